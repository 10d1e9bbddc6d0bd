"""Rows for training, through whole jobs: encoded, verified, decoded, finished after a stop."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bpe
from pipelines.corpus.documents import BadRecord, ReadOptions, read_blocks
from pipelines.corpus.splits import Split
from pipelines.encode.encoder import SplitEncoder, document_seeds, file_seed
from pipelines.encode.manifest import read_encoded
from pipelines.encode.parts import open_part
from pipelines.encode.rows import RowLayout
from pipelines.encode.steps import check_tokens
from pipelines.errors import ConfigError, InputError, OutputError, VerificationError
from pipelines.output.names import manifest_bytes
from pipelines.settings import ADDED_COLUMNS, EncodeSettings, RowSettings
from pipelines.verify.rows import PartRows
from tests import jobs
from tests.pipelines.corpora import (
    END,
    MODES,
    ONE,
    TWO,
    Corpus,
    decoded,
    encode,
    sentence,
    tree,
    write_jsonl,
)
from tests.pipelines.corpus_files import whole

if TYPE_CHECKING:
    from pathlib import Path


def rows(directory: Path) -> pa.Table:
    return pa.concat_tables(
        pq.read_table(path) for path in sorted(directory.glob("data/*.parquet"))
    )


def manifest(directory: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((directory / "manifest.json").read_bytes())
    return value


@pytest.mark.parametrize("mode", MODES)
def test_a_mode_from_end_to_end(corpus: Corpus, model: Path, tmp_path: Path, mode: str) -> None:
    settings, ids = MODES[mode], tmp_path / "ids"
    summary = encode(corpus.inputs(), model, ids, encoding=settings)
    encode(corpus.inputs(), model, tmp_path / "two", encoding=settings, execution=TWO)
    assert tree(ids) == tree(tmp_path / "two")
    assert jobs.verify(directory=str(ids)).documents == len(corpus.documents)
    assert jobs.verify(directory=str(ids), inputs=corpus.inputs()).tokens == summary.tokens

    # Everything adds up.
    table, totals = rows(ids), manifest(ids)["totals"]
    parts = manifest(ids)["parts"]
    assert totals["documents"] == len(corpus.documents) == sum(p["documents"] for p in parts)
    assert totals["rows"] == summary.rows == len(table) == sum(p["rows"] for p in parts)
    assert totals["tokens"] == sum(table["num_tokens"].to_pylist())
    ids_of_rows = sum(map(len, table["input_ids"].to_pylist()))
    assert totals["tokens"] + totals["padding"] == ids_of_rows
    if settings.pack_remainder == "pad":
        assert summary.padding_tokens == totals["padding"] > 0
        assert summary.short_rows == 0
        assert ids_of_rows == len(table) * (settings.pack or 0)
    elif settings.best_fit:
        assert summary.short_rows == summary.padding_tokens == 0
        assert summary.fill == totals["tokens"] / (len(table) * 33) > 0.9
        assert summary.cut_documents == totals["cut_documents"] > 0
    elif settings.pack is None or settings.pack_remainder == "drop":
        assert summary.short_rows == summary.padding_tokens == 0
    else:
        lengths = table["num_tokens"].to_pylist()
        assert summary.short_rows == sum(length < settings.pack for length in lengths) > 0
    ends = (settings.prepend_token is not None) + (settings.append_token is not None)
    tokenizer = bpe.Tokenizer.load(model)
    expected = sum(len(tokenizer.encode(text)) + ends for text in corpus.texts)
    if settings.dropout:
        assert totals["tokens"] > expected
    else:
        assert totals["tokens"] + totals["dropped"]["tokens"] == expected
    assert table.schema.field("input_ids").type.value_type == pa.type_for_alias(summary.id_type)

    # Documents come back.
    found = decoded(ids)
    if settings.pack_remainder == "drop":
        dropped = totals["dropped"]
        assert summary.dropped_tokens == dropped["tokens"] > 0
        assert len(found) == len(corpus.documents) - dropped["documents"]
        assert all(len(row) == 100 for row in table["input_ids"].to_pylist())
        texts = dict(corpus.documents)
        assert sum(texts[id_] != text for id_, text in found if id_ != "same") <= dropped["cut"]
    elif settings.validation or settings.shuffles:
        assert sorted(found) == sorted(corpus.documents)
    if settings.validation:
        assert 0 < (summary.validation_documents or 0) < summary.documents
    elif not settings.shuffles and settings.pack_remainder != "drop":
        assert found == corpus.documents

    # A part that is lost is made again.
    before = tree(ids)
    min(ids.glob("data/*.parquet")).unlink()
    again = encode(corpus.inputs(), model, ids, encoding=settings, resume=True)
    # The part held out is made together with it, or the last one is made of what is left.
    together = 2 if settings.carries or (settings.validation and not settings.shuffles) else 1
    assert again.resumed_parts == summary.parts - together
    assert tree(ids) == before


def test_packed_rows_have_one_length_but_the_last_of_a_part(
    corpus: Corpus, model: Path, tmp_path: Path
) -> None:
    encode(corpus.inputs(), model, tmp_path / "ids", encoding=EncodeSettings(pack=16))
    for path in (tmp_path / "ids").glob("data/train-*"):
        lengths = pq.read_table(path)["num_tokens"].to_pylist()
        assert lengths[:-1] == [16] * (len(lengths) - 1)


@pytest.mark.parametrize("seed", [0, 7])
def test_dropout_depends_on_seed_file_and_place_alone(
    corpus: Corpus, model: Path, tmp_path: Path, seed: int
) -> None:
    settings = EncodeSettings(dropout=0.4, dropout_seed=seed)
    found = []
    for size in (300, 5000):
        ids = tmp_path / str(size)
        encode(corpus.inputs(split_size=size), model, ids, encoding=settings, execution=TWO)
        found.append(rows(ids)["input_ids"].to_pylist())
    assert found[0] == found[1]
    tokenizer = bpe.Tokenizer.load(model)
    assert [tokenizer.decode(ids) for ids in found[0]] == corpus.texts
    plain = [tokenizer.encode(text) for text in corpus.texts]
    assert found[0] != plain
    # The first document of all: place 0 of the file of that name.
    seeds = bpe.row_seeds(file_seed(seed, "a ünï.txt"), 1)
    text = pa.array(corpus.texts[:1])
    assert found[0][0] == tokenizer.encode_arrow(text, dropout=0.4, seeds=seeds)[0].as_py()


def test_another_seed_gives_other_ids(corpus: Corpus, model: Path, tmp_path: Path) -> None:
    tables = []
    for seed in (1, 2):
        settings = EncodeSettings(dropout=0.5, dropout_seed=seed)
        encode(corpus.inputs(), model, tmp_path / str(seed), encoding=settings)
        tables.append(rows(tmp_path / str(seed))["input_ids"])
    assert tables[0] != tables[1]


@given(
    st.integers(0, (1 << 63) - 1),
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, (1 << 63) - 2)), max_size=9),
)
def test_seeds_of_documents_are_numbers_of_splitmix64(
    seed: int, where: list[tuple[int, int]]
) -> None:
    seeds = {index: file_seed(seed, f"file {index}") for index in range(3)}
    found = document_seeds(
        seeds,
        files=pa.array([index for index, _ in where], pa.int32()),
        places=pa.array([place for _, place in where], pa.int64()),
    )
    assert found.to_pylist() == [
        bpe.row_seeds(seeds[index], 1, first=place)[0].as_py() for index, place in where
    ]


def test_dropout_of_a_tokenizer_without_merges_is_refused(corpus: Corpus, tmp_path: Path) -> None:
    tokens = [b"[UNK]", *(bytes([byte]) for byte in range(97, 123))]
    tokenizer = bpe.Tokenizer(
        tokens=tokens,
        merges=[],
        pretokenizer=bpe.Pretokenizer("words"),
        special_tokens={"[UNK]": 0},
        model=bpe.WordPiece(),
    )
    with pytest.raises(ConfigError, match=r"`dropout` 0.1: "):
        check_tokens(tokenizer, EncodeSettings(dropout=0.1))


def letters_tokenizer(letters: str) -> bpe.Tokenizer:
    """One token a letter, and one for the end of a word."""
    tokens = [*(letter.encode() for letter in letters), b"</w>"]
    cut = bpe.Pretokenizer("words")
    return bpe.Tokenizer(tokens=tokens, merges=[], pretokenizer=cut, model=bpe.CharacterLevel())


def test_characters_without_a_token_are_bad_records(tmp_path: Path) -> None:
    corpus = write_jsonl(tmp_path / "in" / "docs.jsonl", ["low west", "high", "lower", "slow?"])
    block = next(read_blocks(whole(corpus.folder / "docs.jsonl", "jsonl"), ReadOptions()))
    source = whole(corpus.folder / "docs.jsonl", "jsonl")
    encoder = SplitEncoder(
        letters_tokenizer("lowerst"),
        Split(part=0, parts=1, pieces=(source,)),
        layout=RowLayout(settings=RowSettings(), id_type="uint16"),
    )
    bad: list[BadRecord] = []
    encoded = encoder.encode(block, bad.append)
    assert encoded.documents.ids.to_pylist() == ["d0", "d2"]
    assert [len(ids) for ids in encoded.documents.input_ids] == [9, 6]
    assert [record.place for record in bad] == [block.places[row].as_py() for row in (1, 3)]
    assert [record.raw for record in bad] == [b"high", b"slow?"]
    assert "'h'" in bad[0].reason
    assert "'?'" in bad[1].reason


def test_special_tokens_are_recognised_where_they_are_allowed(model: Path, tmp_path: Path) -> None:
    corpus = write_jsonl(tmp_path / "in" / "docs.jsonl", [f"a {END} b"])
    id_ = bpe.Tokenizer.load(model).special_tokens[END]
    for allowed in ((END,), ("all",)):
        ids = tmp_path / allowed[0]
        encode(corpus.inputs(), model, ids, encoding=EncodeSettings(allow_special=allowed))
        assert id_ in rows(ids)["input_ids"].to_pylist()[0]
        jobs.verify(directory=str(ids), inputs=corpus.inputs())
        assert decoded(ids) == corpus.documents


def test_bad_records_are_set_aside_in_every_mode(model: Path, tmp_path: Path) -> None:
    corpus = write_jsonl(tmp_path / "in" / "docs.jsonl", [sentence(i) for i in range(30)])
    path = corpus.folder / "docs.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:9], "{", *lines[9:], '{"text": 1}']))
    inputs = corpus.inputs(max_failures=2)
    for mode, settings in MODES.items():
        summary = encode(inputs, model, tmp_path / mode, encoding=settings)
        assert (summary.documents, summary.failures) == (30, 2)
        jobs.verify(directory=str(tmp_path / mode), inputs=inputs)


def test_a_document_longer_than_any_row_is_cut(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipelines.encode.encoder.MAX_ROW_TOKENS", 50)
    corpus = write_jsonl(tmp_path / "in" / "docs.jsonl", ["#" * 120])
    for name, settings in (("c", EncodeSettings(max_tokens=50)), ("p", EncodeSettings(pack=50))):
        encode(corpus.inputs(), model, tmp_path / name, encoding=settings)
        assert rows(tmp_path / name)["num_tokens"].to_pylist() == [50, 50, 20]
        assert decoded(tmp_path / name) == corpus.documents


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_tokens": 0}, "`max_tokens` 0 is not between 1 and"),
        ({"pack": 1 << 21}, "`pack` 2097152 is not between 1 and 1,048,576"),
        ({"pack": 8, "max_tokens": 8}, "`pack` and `max_tokens` exclude each other"),
        ({"pack_remainder": "drop"}, "goes with `pack`"),
        ({"pack_remainder": "carry"}, "goes with `pack`"),
        ({"packing": "best-fit"}, "goes with `pack`"),
        (
            {"pack": 8, "packing": "best-fit", "pack_remainder": "drop"},
            "does not work with `packing` best-fit",
        ),
        ({"pack": 8, "pack_remainder": "fill"}, "use one of keep, drop, pad, carry"),
        ({"pack": 8, "pad_token": END}, "goes with `pack_remainder` pad"),
        ({"add_column": ("cu_seqlens",)}, "`add_column` cu_seqlens goes with `pack` N"),
        ({"pack": 8, "add_column": ("cu_seqlens",) * 2}, "`add_column`: a column is named twice"),
        ({"pack": 8, "add_column": ("mask",)}, "use one of document_ids, position_ids, cu_seqlens"),
        ({"dropout": 1.5}, "`dropout` 1.5 is not between 0 and 1"),
        ({"dropout": float("nan")}, "`dropout` nan is not between 0 and 1"),
        ({"dropout_seed": 3}, "`dropout_seed` goes with `dropout`"),
        ({"dropout": 0.1, "dropout_seed": -1}, "`dropout_seed` -1 is out of range: use 0 or more"),
        ({"id_type": "int64"}, "use one of auto, uint16, uint32"),
        ({"keep": ("",)}, "`keep` is empty"),
        ({"keep": ("a", "a")}, "`keep` a is given twice"),
    ],
)
def test_settings_that_cannot_be_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        EncodeSettings(**arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"append_token": "<eos>"}, r"`append_token`: '<eos>' is not a special.* has '<\|end\|>'"),
        ({"prepend_token": "<bos>"}, "`prepend_token`: '<bos>' is not a special token"),
        (
            {"pack": 8, "pack_remainder": "pad", "pad_token": "<pad>"},
            "`pad_token`: '<pad>' is not a special token",
        ),
        (
            {"pack": 8, "pack_remainder": "pad", "pad_token": ""},
            "`pad_token`: '' is not a special token",
        ),
        ({"pack": 8, "pack_remainder": "pad"}, "no token for the role pad: name a special token"),
        ({"allow_special": ("all", "x")}, "`allow_special`: 'x' is not a special token"),
    ],
)
def test_tokens_must_be_special_tokens_of_the_tokenizer(
    corpus: Corpus, model: Path, tmp_path: Path, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        encode(corpus.inputs(), model, tmp_path / "ids", encoding=EncodeSettings(**arguments))
    assert not (tmp_path / "ids").exists()


def test_ids_that_do_not_fit_are_refused_before_anything_is_written(
    corpus: Corpus, tmp_path: Path
) -> None:
    tokens = [bytes([byte]) for byte in range(256)]
    tokenizer = bpe.Tokenizer(
        tokens=[*tokens, *[None] * 70_000, b"<|end|>"],
        merges=[],
        pretokenizer=bpe.Pretokenizer("none"),
        special_tokens={"<|end|>": 70_256},
    )
    tokenizer.save(tmp_path / "t.json")
    settings = EncodeSettings(id_type="uint16")
    with pytest.raises(ConfigError, match="the greatest id is 70256, and uint16 ends at 65535"):
        encode(corpus.inputs(), tmp_path / "t.json", tmp_path / "ids", encoding=settings)
    assert not (tmp_path / "ids").exists()


def test_another_mode_is_another_job(corpus: Corpus, model: Path, tmp_path: Path) -> None:
    encode(corpus.inputs(), model, tmp_path / "ids", encoding=EncodeSettings(pack=16))
    other = EncodeSettings(pack=32)
    with pytest.raises(OutputError, match="settings pack was 16, is 32"):
        encode(corpus.inputs(), model, tmp_path / "ids", encoding=other, resume=True)
    schemas = r'settings schema was \["documents: .*, is \["id: string", "key: uint64", .*'
    with pytest.raises(OutputError, match=f"settings pack was 16, is the default; {schemas}"):
        encode(corpus.inputs(), model, tmp_path / "ids", resume=True)


def test_only_what_is_given_tells_jobs_apart() -> None:
    """So an option that is new changes nothing for the jobs of before."""
    assert RowSettings().to_json() == ReadOptions().to_json() == {}
    assert RowSettings(pack=16, allow_special=("all",)).to_json() == {
        "pack": 16,
        "allow_special": ["all"],
    }


@pytest.mark.parametrize("name", ["document_ids", "position_ids", "cu_seqlens"])
def test_a_column_that_does_not_follow_is_found(
    corpus: Corpus, model: Path, tmp_path: Path, name: str
) -> None:
    settings = EncodeSettings(pack=16, add_column=ADDED_COLUMNS)
    encode(corpus.inputs(), model, tmp_path / "ids", encoding=settings)
    path = sorted(tmp_path.glob("ids/data/train-*"))[1]
    file = open_part(path)
    layout = RowLayout(settings=settings.rows, id_type="uint16")
    rows = file.read().to_pylist()
    rows[2][name][1] += 1
    part = next(
        one for one in read_encoded(str(tmp_path / "ids")).parts if one.file.endswith(path.name)
    )
    pq.write_table(pa.Table.from_pylist(rows, layout.schema), tmp_path / "changed.parquet")
    checked = PartRows(
        pq.ParquetFile(tmp_path / "changed.parquet"),
        path="x",
        part=part,
        layout=layout,
        vocab_size=1 << 16,
        unknown=None,
    )
    with pytest.raises(VerificationError, match=f"row 2, document.*: its {name} is not what"):
        checked.rest()


def edit_manifest(ids: Path, *where: str, value: object) -> None:
    whole = manifest(ids)
    inner = whole
    for key in where[:-1]:
        inner = inner[key]
    inner[where[-1]] = value
    (ids / "manifest.json").write_bytes(manifest_bytes(whole))


@pytest.mark.parametrize(
    ("where", "value", "error", "message"),
    [
        (("rows", "pack"), 8, VerificationError, "made from other inputs or with other settings"),
        (("rows", "append_token"), "no", VerificationError, "contradicts itself: `append_token`"),
        (("rows", "pack_remainder"), "x", InputError, "manifest.json: damaged"),
        (("rows", "pack"), 2.5, InputError, "manifest.json: damaged"),
        (("rows", "allow_special"), [1], InputError, "manifest.json: damaged"),
        (("settings", "keep"), [{"name": "a", "type": "b"}], InputError, "'b' is no type"),
        (("settings", "keep"), [{"name": 1, "type": "int8"}], InputError, "manifest.json: damaged"),
        (("totals", "rows"), 1, VerificationError, "total of rows is 1, its parts add up to"),
        (("totals", "dropped", "tokens"), 1, VerificationError, "total of dropped is "),
        (("totals", "dropped"), None, InputError, "manifest.json: damaged"),
        (("totals", "rows"), True, InputError, "totals.rows must be an integer from 0, got True"),
        (("parts",), [{"file": "x"}], InputError, r"parts\[0\] has no field 'documents'"),
        (("id_type",), "int8", InputError, "damaged: id_type 'int8'"),
    ],
)
def test_a_manifest_that_says_something_else_is_found(
    corpus: Corpus,
    model: Path,
    tmp_path: Path,
    where: tuple[str, ...],
    value: object,
    error: type[Exception],
    message: str,
) -> None:
    encode(corpus.inputs(), model, tmp_path / "ids", encoding=EncodeSettings(pack=16))
    edit_manifest(tmp_path / "ids", *where, value=value)
    with pytest.raises(error, match=message):
        jobs.verify(directory=str(tmp_path / "ids"))
    if error is InputError:
        with pytest.raises(error, match=message):
            decoded(tmp_path / "ids")


def test_a_token_of_no_tokenizer_cannot_be_left_out(
    corpus: Corpus, model: Path, tmp_path: Path
) -> None:
    encode(corpus.inputs(), model, tmp_path / "ids", encoding=EncodeSettings(append_token=END))
    edit_manifest(tmp_path / "ids", "rows", "append_token", value="no")
    with pytest.raises(InputError, match="contradicts itself: `append_token`: 'no'"):
        decoded(tmp_path / "ids")


def test_packed_rows_of_another_text_are_found(model: Path, tmp_path: Path) -> None:
    corpus = write_jsonl(tmp_path / "in" / "docs.jsonl", [sentence(i) for i in range(9)])
    for name, settings in (("c", EncodeSettings(max_tokens=7)), ("p", EncodeSettings(pack=16))):
        encode(corpus.inputs(), model, tmp_path / name, encoding=settings)
    path = corpus.folder / "docs.jsonl"
    path.write_text(path.read_text().replace("lazy", "zaly"))
    for name, message in (
        ("c", r"row \d+, document 'd\d', chunk \d+: its ids do not decode to its text"),
        ("p", r"data/train-.*, row \d+, document"),
    ):
        with pytest.raises(VerificationError, match=message):
            jobs.verify(directory=str(tmp_path / name), inputs=corpus.inputs())


def test_workers_that_run_twice_change_nothing(corpus: Corpus, model: Path, tmp_path: Path) -> None:
    settings = EncodeSettings(pack=16, append_token=END)
    encode(corpus.inputs(), model, tmp_path / "once", encoding=settings)
    repeat = replace(ONE, beam_args=("--direct_runner_bundle_repeat=2",))
    encode(corpus.inputs(), model, tmp_path / "thrice", encoding=settings, execution=repeat)
    assert tree(tmp_path / "once") == tree(tmp_path / "thrice")
