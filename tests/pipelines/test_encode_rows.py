"""Rows for training, through whole jobs: encoded, verified, decoded, finished after a stop."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bpe
from bpe.dropout import row_seeds
from pipelines.corpus.documents import ReadOptions, read_blocks
from pipelines.corpus.splits import Split
from pipelines.encode.rows import RowLayout, with_ends, without_ends
from pipelines.encode.steps import SplitEncoder, document_seeds, file_seed
from pipelines.encode.tokens import check_tokens
from pipelines.errors import ConfigError, InputError, VerificationError
from pipelines.output.names import manifest_bytes
from pipelines.settings import EncodeSettings, RowSettings
from tests import jobs
from tests.pipelines.corpora import (
    END,
    MODES,
    Corpus,
    decoded,
    encode,
    encoded_manifest,
    write_jsonl,
)
from tests.pipelines.corpus_files import whole

if TYPE_CHECKING:
    from pathlib import Path


def rows(directory: Path) -> pa.Table:
    return pa.concat_tables(
        pq.read_table(path) for path in sorted(directory.glob("data/*.parquet"))
    )


@pytest.mark.parametrize("mode", MODES)
def test_all_numbers_of_a_mode_add_up(
    corpus: Corpus, model: Path, tmp_path: Path, mode: str
) -> None:
    settings, ids = MODES[mode], tmp_path / "ids"
    summary = encode(corpus.inputs(), model, ids, encoding=settings)
    verified = jobs.verify(directory=str(ids), inputs=corpus.inputs())
    assert (verified.documents, verified.tokens) == (len(corpus.documents), summary.tokens)
    table, totals = rows(ids), encoded_manifest(ids)["totals"]
    parts = encoded_manifest(ids)["parts"]
    assert totals["documents"] == len(corpus.documents) == sum(p["documents"] for p in parts)
    assert totals["tokens"] == sum(table["num_tokens"].to_pylist())
    assert totals["tokens"] == sum(map(len, table["input_ids"].to_pylist()))
    ends = (settings.prepend_token is not None) + (settings.append_token is not None)
    tokenizer = bpe.Tokenizer.load(model)
    allowed = settings.allow_special and "all"
    expected = sum(
        len(tokenizer.encode(text, allowed_special=allowed)) + ends for text in corpus.texts
    )
    if settings.dropout:
        assert totals["tokens"] > expected
    else:
        assert totals["tokens"] == expected
    assert table.schema.field("input_ids").type.value_type == pa.type_for_alias(summary.id_type)
    assert decoded(ids) == corpus.documents


def test_dropout_depends_on_seed_file_and_place_alone(
    corpus: Corpus, model: Path, tmp_path: Path
) -> None:
    seed = 7
    settings = EncodeSettings(dropout=0.4, dropout_seed=seed)
    found = []
    for size in (300, 5000):
        ids = tmp_path / str(size)
        encode(corpus.inputs(split_size=size), model, ids, encoding=settings)
        found.append(rows(ids)["input_ids"].to_pylist())
    assert found[0] == found[1]
    tokenizer = bpe.Tokenizer.load(model)
    assert [tokenizer.decode(ids) for ids in found[0]] == corpus.texts
    plain = [tokenizer.encode(text) for text in corpus.texts]
    assert found[0] != plain
    # The first document of all: place 0 of the file of that name.
    seeds = row_seeds(file_seed(seed, "a ünï.txt"), 1)
    text = pa.array(corpus.texts[:1])
    assert found[0][0] == tokenizer.encode_arrow(text, dropout=0.4, seeds=seeds)[0].as_py()


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
        row_seeds(seeds[index], 1, first=place)[0].as_py() for index, place in where
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
    bad: dict[int, str] = {}
    encoded = encoder.encode(block, bad.__setitem__)
    assert encoded.rows["id"].to_pylist() == ["d0", "d2"]
    assert encoded.rows["num_tokens"].to_pylist() == [9, 6]
    assert list(bad) == [1, 3]
    assert "'h'" in bad[1]
    assert "'?'" in bad[3]


def test_special_tokens_are_recognised_where_they_are_allowed(model: Path, tmp_path: Path) -> None:
    corpus = write_jsonl(tmp_path / "in" / "docs.jsonl", [f"a {END} b"])
    id_, ids = bpe.Tokenizer.load(model).special_tokens[END], tmp_path / "ids"
    encode(corpus.inputs(), model, ids, encoding=EncodeSettings(allow_special=(END,)))
    assert id_ in rows(ids)["input_ids"].to_pylist()[0]
    jobs.verify(directory=str(ids), inputs=corpus.inputs())
    assert decoded(ids) == corpus.documents


def test_ends_are_put_and_taken_away() -> None:
    lists = pa.array([[5, 6], [], [7]], pa.list_(pa.uint16()))
    for prepend, append in ((None, None), (1, None), (None, 2), (1, 2)):
        ended = with_ends(lists[1:], prepend=prepend, append=append)
        before, after = ([] if id_ is None else [id_] for id_ in (prepend, append))
        assert ended.to_pylist() == [before + after, [*before, 7, *after]]
        assert ended.type == lists.type
        assert without_ends(ended, prepend=prepend, append=append).to_pylist() == [[], [7]]
    wide = pa.array([[5]], pa.list_(pa.field("element", pa.uint32(), nullable=False)))
    ended = with_ends(wide, prepend=1 << 17, append=258)
    assert ended.to_pylist() == [[1 << 17, 5, 258]]
    assert ended.type == wide.type
    assert with_ends(wide[:0], prepend=1, append=None).to_pylist() == []
    with pytest.raises(OverflowError):
        with_ends(lists, prepend=1 << 16, append=None)
    with pytest.raises(ValueError, match="shorter than the tokens"):
        without_ends(lists, prepend=5, append=None)
    with pytest.raises(ValueError, match="does not begin with the id 4"):
        without_ends(lists[:1], prepend=4, append=6)
    with pytest.raises(ValueError, match="does not end with the id 4"):
        without_ends(lists[:1], prepend=5, append=4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dropout": 1.5}, "`dropout` 1.5 is not between 0 and 1"),
        ({"dropout": float("nan")}, "`dropout` nan is not between 0 and 1"),
        ({"dropout_seed": 3}, "`dropout_seed` needs `dropout`"),
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


def test_only_what_is_given_tells_jobs_apart() -> None:
    """So an option that is new changes nothing for the jobs of before."""
    assert RowSettings().to_json() == ReadOptions().to_json() == {}
    assert RowSettings(allow_special=("all",)).to_json() == {"allow_special": ["all"]}


def edit_encoded_manifest(ids: Path, *where: str, value: object) -> None:
    whole = json.loads((ids / "manifest.json").read_bytes())
    inner = whole
    for key in where[:-1]:
        inner = inner[key]
    inner[where[-1]] = value
    (ids / "manifest.json").write_bytes(manifest_bytes(whole))


@pytest.mark.parametrize(
    ("where", "value", "error", "message"),
    [
        (("rows", "dropout"), 0.5, VerificationError, "made from other inputs or with other"),
        (("rows", "append_token"), "no", VerificationError, "made from other inputs or with other"),
        (("rows", "parquet_encoding"), "x", InputError, "manifest.json: damaged"),
        (("rows", "dropout_seed"), 2.5, InputError, "manifest.json: damaged"),
        (("rows", "allow_special"), [1], InputError, "manifest.json: damaged"),
        (("settings", "keep"), [{"name": "a", "type": "b"}], InputError, "'b' is no type"),
        (("settings", "keep"), [{"name": 1, "type": "int8"}], InputError, "manifest.json: damaged"),
        (("totals", "tokens"), 1, VerificationError, "total of tokens is 1, its parts add up to"),
        (("duplicate_ids", "documents"), 1, VerificationError, "says 1 duplicate ids, the parts"),
        (("totals", "tokens"), None, InputError, "manifest.json: damaged"),
        (("totals", "tokens"), True, InputError, "totals.tokens must be an integer from 0, got"),
        (("records",), [{"file": "x"}], InputError, "records must be an object"),
        (("id_type",), "int8", InputError, "damaged: id_type must be"),
    ],
)
def test_a_manifest_that_says_something_else_is_found(
    ids: Path, where: tuple[str, ...], value: object, error: type[Exception], message: str
) -> None:
    edit_encoded_manifest(ids, *where, value=value)
    with pytest.raises(error, match=message):
        jobs.verify(directory=str(ids))
    if error is InputError:
        with pytest.raises(error, match=message):
            decoded(ids)


def test_a_token_of_no_tokenizer_cannot_be_left_out(ids: Path) -> None:
    edit_encoded_manifest(ids, "rows", "append_token", value="no")
    with pytest.raises(InputError, match="contradicts itself: `append_token`: 'no'"):
        decoded(ids)
