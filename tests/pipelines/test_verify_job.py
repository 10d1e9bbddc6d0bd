"""Verification finds every difference, and says where it is."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import bpe
from bpe.special_tokens import TokenFlags
from pipelines import storage
from pipelines.encode.parts import open_part
from pipelines.errors import InputError, JobError, VerificationError
from pipelines.output.names import dead_letters_file, manifest_bytes
from pipelines.settings import EncodeSettings, Execution, InputSettings, PretokenSettings
from pipelines.stage.beam import RunJob
from pipelines.verify.base import Verification, VerifyJob
from tests import jobs
from tests.pipelines.corpora import (
    END,
    Corpus,
    count,
    decoded,
    edit_manifest,
    encode,
    flip,
    sentence,
    write_jsonl,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.mark.parametrize("special", [True, False])
def test_whitespace_that_tokens_take_is_not_missed(tmp_path: Path, special: bool) -> None:
    tokenizer = bpe.Tokenizer(
        tokens=[*(bytes([i]) for i in range(256)), b"<x>"],
        merges=[],
        pretokenizer=bpe.Pretokenizer("gpt2"),
        token_flags={"<x>": TokenFlags(rstrip=True)},
        **{"special_tokens" if special else "added_tokens": {"<x>": 256}},
    )
    tokenizer.save(tmp_path / "t.json")
    assert tokenizer.lossless == special
    corpus = write_jsonl(tmp_path / "in" / "docs.jsonl", ["hello <x>  b", "tail"])
    for allowed in ((), ("<x>",)) if special else ((),):
        output = tmp_path / f"ids{len(allowed)}"
        encoding = EncodeSettings(allow_special=allowed)
        encode(corpus.inputs(), tmp_path / "t.json", output, encoding=encoding)
        summary = jobs.verify(directory=str(output), inputs=corpus.inputs())
        assert summary.compared
        assert summary.lossless == (special and not allowed)


@pytest.fixture
def counts(counted: Path, tmp_path: Path) -> Path:
    """A copy of them."""
    return shutil.copytree(counted, tmp_path / "counts")


def part(ids: Path, number: int = 2) -> Path:
    return sorted(ids.glob("data/train-*"))[number]


LETTERS = {"file": dead_letters_file(0, 9), "records": 0, "bytes": 0, "sha256": ""}
DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "half-written file": (
        lambda ids: (ids / f".{part(ids).name}.{'0' * 32}.tmp").touch(),
        "half written",
    ),
    "other tokenizer": (
        lambda ids: bpe.train(bpe.count_pretokens(["aaaa"]), vocab_size=257).save(
            ids / "tokenizer.json"
        ),
        "tokenizer.json is not the tokenizer that the manifest names",
    ),
    "no tokenizer": (
        lambda ids: (ids / "tokenizer.json").unlink(),
        "tokenizer.json is missing: put back the tokenizer.json that it was encoded with",
    ),
    "range of an input": (
        lambda ids: edit_manifest(ids, lambda m: m["parts"][2]["inputs"][0].update(end=1)),
        r"train-00002-of-\d+\.parquet: it was made from other inputs",
    ),
    "one input more": (
        lambda ids: edit_manifest(ids, lambda m: m["inputs"].append(m["inputs"][0])),
        r"list of \d+ inputs is not that of its parts, which have \d+",
    ),
    "dead letters": (
        lambda ids: edit_manifest(ids, lambda m: m["dead_letters"].append(LETTERS)),
        "is missing, the manifest names it",
    ),
}


@pytest.mark.parametrize("how", DAMAGE)
def test_damage_is_found_and_named(ids: Path, how: str) -> None:
    damage, message = DAMAGE[how]
    damage(ids)
    with pytest.raises(VerificationError, match=message):
        jobs.verify(directory=str(ids))


def put(ids: Path, *where: str | int, value: object) -> None:
    """Write another value into the manifest."""
    whole = json.loads((ids / "manifest.json").read_bytes())
    inner = whole
    for key in where[:-1]:
        inner = inner[key]
    inner[where[-1]] = value
    (ids / "manifest.json").write_bytes(manifest_bytes(whole))


@pytest.mark.parametrize(
    ("where", "value", "error", "message"),
    [
        (("settings", "text_field"), "no", VerificationError, "made from other inputs or with"),
        (("inputs", 1, "name"), "no", VerificationError, r"inputs is not that of its parts"),
        (("rows", "dropout"), 0.5, VerificationError, "made from other inputs or with other"),
        (("settings", "keep"), [{"name": "a", "type": "b"}], InputError, "'b' is no type"),
        (("totals", "tokens"), 1, VerificationError, "total of tokens is 1, its parts add up to"),
        (("duplicate_ids", "documents"), 1, VerificationError, "says 1 duplicate ids, the parts"),
        (("totals", "tokens"), True, InputError, "totals.tokens must be an integer from 0, got"),
        (("records",), [{"file": "x"}], InputError, "records must be an object"),
        (("id_type",), "int8", InputError, "damaged: id_type must be"),
    ],
)
def test_a_manifest_that_says_something_else_is_found(
    ids: Path, where: tuple[str | int, ...], value: object, error: type[Exception], message: str
) -> None:
    put(ids, *where, value=value)
    with pytest.raises(error, match=message):
        jobs.verify(directory=str(ids))
    if error is InputError:
        with pytest.raises(error, match=message):
            decoded(ids)


@pytest.mark.parametrize(
    ("end", "token", "message"),
    [
        ("append_token", "no", "contradicts itself: `append_token`: 'no'"),
        ("append_token", END, "does not end with the id"),
        ("prepend_token", END, "does not begin with the id"),
    ],
)
def test_a_token_that_is_not_there_cannot_be_left_out(
    ids: Path, end: str, token: str, message: str
) -> None:
    put(ids, "rows", end, value=token)
    with pytest.raises(InputError, match=message):
        decoded(ids)


def rewrite(ids: Path, number: int, change: Callable[[pa.Table], pa.Table]) -> None:
    """Change rows of a part, and let the manifest agree with the new file."""
    path = part(ids, number)
    table = change(open_part(path).read())
    pq.write_table(table, path, write_page_checksum=True)
    tokens = sum(table["num_tokens"].to_pylist())
    made = {**vars(storage.digest(str(path))), "documents": len(table), "tokens": tokens}

    def edit(manifest: dict[str, Any]) -> None:
        manifest["parts"][number].update(made)
        for name in made.keys() - {"sha256"}:
            manifest["totals"][name] = sum(one[name] for one in manifest["parts"])
        del manifest["duplicate_ids"]

    edit_manifest(ids, edit)


def with_ids(table: pa.Table, row: int, ids: list[int]) -> pa.Table:
    rows = table["input_ids"].to_pylist()
    rows[row] = ids
    columns = [table["id"], table["key"], rows, list(map(len, rows))]
    return pa.table(dict(zip(table.schema.names, columns, strict=True)), schema=table.schema)


@pytest.mark.parametrize("kind", ["ids", "counts"])
def test_of_several_wrong_parts_the_first_is_named_and_all_are_counted(
    request: pytest.FixtureRequest, corpus: Corpus, kind: str
) -> None:
    """Whatever worker comes to one of them first; and shards that cannot be read are no others."""
    out = request.getfixturevalue(kind)
    parts = sorted((out / "data").glob("*.parquet"))
    for number in (4, 2, 1):
        flip(parts[number])
    for workers, inputs in ((1, None), (2, corpus.inputs())):
        with pytest.raises(VerificationError) as raised:
            jobs.verify(directory=str(out), inputs=inputs, execution=Execution(workers=workers))
        assert f"{parts[1].name}: its SHA-256 is not that of" in str(raised.value)
        assert f"(the first of 3 parts that are wrong, of {len(parts)})" in str(raised.value)


CHANGES: dict[str, tuple[Callable[[pa.Table, bpe.Tokenizer], pa.Table], str]] = {
    "another encoding": (
        lambda table, tokenizer: with_ids(table, 1, _bytewise(table, 1, tokenizer)),
        r"train-00001-of-\d+\.parquet, row 1, document 'j\d+': input_ids is .*, its input says",
    ),
    "another key": (
        lambda table, _: table.set_column(1, "key", pc.bit_wise_not(table["key"])),
        r"row 0, document '.*': key is \d+, its input says \d+",
    ),
    "a row lost": (lambda table, _: table.slice(0, len(table) - 1), "of the input has no row"),
    "a row too many": (
        lambda table, _: pa.concat_tables([table, table.slice(0, 1)]).combine_chunks(),
        r"row \d+: document '.*' is not in the input",
    ),
    "rows swapped": (
        lambda table, _: table.take([1, 0, *range(2, len(table))]),
        r"row 0, document '.*': id is 'j1', its input says '",
    ),
}


def _bytewise(table: pa.Table, row: int, tokenizer: bpe.Tokenizer) -> list[int]:
    """Ids that decode to the same text, but are not its encoding."""
    text = tokenizer.decode_bytes(table["input_ids"].to_pylist()[row])
    return [tokenizer.encode(bytes([byte]))[0] for byte in text]


@pytest.mark.parametrize("how", CHANGES)
def test_rows_that_are_not_those_of_the_input_are_named(
    corpus: Corpus, model: Path, ids: Path, how: str
) -> None:
    tokenizer = bpe.Tokenizer.load(model)
    change, message = CHANGES[how]
    rewrite(ids, 1, lambda table: change(table, tokenizer))
    jobs.verify(directory=str(ids))  # the files agree with each other
    with pytest.raises(VerificationError, match=message):
        jobs.verify(directory=str(ids), inputs=corpus.inputs())


def test_inputs_that_changed_are_named(model: Path, tmp_path: Path) -> None:
    corpus = write_jsonl(tmp_path / "in" / "a.jsonl", [sentence(i) for i in range(9)])
    encode(corpus.inputs(), model, tmp_path / "ids")
    first, second = corpus.folder / "a.jsonl", corpus.folder / "b.jsonl"
    good = first.read_text()
    for files, message in (
        ({first: good + "\n"}, r"a\.jsonl has \d+ bytes, the manifest says"),
        ({first: good.replace("quick", "quack")}, "row 0, document 'd0'"),
        ({first: good, second: ""}, r"'b\.jsonl' is not among the inputs"),
        ({second: good}, r"'a\.jsonl' of the manifest is not among the files"),
    ):
        first.unlink(missing_ok=True)
        for path, text in files.items():
            path.write_text(text)
        with pytest.raises(VerificationError, match=message):
            jobs.verify(directory=str(tmp_path / "ids"), inputs=corpus.inputs())


@pytest.mark.parametrize(
    "text",
    ["[]", "{}", "[" * 100_000, *(f'{{"kind": "encoded", "version": {n}}}' for n in (4, 99))],
)
def test_a_manifest_that_is_none_is_an_error_of_the_input(tmp_path: Path, text: str) -> None:
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(InputError, match=r"manifest\.json"):
        jobs.verify(directory=str(tmp_path))


def test_dead_letters_of_counts_are_those_of_the_last_run(tmp_path: Path) -> None:
    path = tmp_path / "in" / "a.jsonl"
    corpus = write_jsonl(path, ["one", "two"])
    path.write_bytes(path.read_bytes() + b"{}\n[]\n")
    inputs = corpus.inputs(split_size=20, max_failures=2)
    count(inputs, tmp_path / "counts")
    letters = sorted((tmp_path / "counts" / "dead-letters").iterdir())
    good = letters[0].read_bytes()
    letters[0].unlink()
    with pytest.raises(VerificationError, match="jsonl is missing, the manifest names it"):
        jobs.verify(directory=str(tmp_path / "counts"))
    letters[0].write_bytes(good)
    before = {one: one.stat().st_mtime_ns for one in tmp_path.rglob("*")}
    summary = jobs.verify(directory=str(tmp_path / "counts"), inputs=inputs)
    assert (summary.compared, summary.failures) == (True, 2)
    assert {one: one.stat().st_mtime_ns for one in tmp_path.rglob("*")} == before
    (other := letters[0].with_name("part-00009-of-00010.jsonl")).write_bytes(b"")
    with pytest.raises(VerificationError, match=f"{other.name} is not named in the manifest"):
        jobs.verify(directory=str(tmp_path / "counts"))
    other.unlink()
    path.write_bytes(path.read_bytes().replace(b"{}\n[]\n", b"\n" * 6))
    count(inputs, tmp_path / "counts", resume=True)
    assert jobs.verify(directory=str(tmp_path / "counts"), inputs=inputs).failures == 0
    assert not [*(tmp_path / "counts" / "dead-letters").iterdir()]


def test_totals_of_counts_are_those_of_their_input(corpus: Corpus, counts: Path) -> None:
    edit_manifest(counts, lambda m: m["totals"].update(pretokens=9))
    with pytest.raises(VerificationError, match=r"says pre-tokens: 9; counting again gives \d+"):
        jobs.verify(directory=str(counts), inputs=corpus.inputs())


def test_graphs_are_the_same_for_any_corpus_and_output(model: Path, tmp_path: Path) -> None:
    (folder := tmp_path / "in").mkdir()
    sizes: list[int] = []

    def measured(job: RunJob, begin: Any) -> Any:
        done = built(job, begin)
        graph = begin.pipeline.to_runner_api()
        # The first step in a worker is Beam's: one without our package says so (tests/cluster).
        transforms = graph.components.transforms.values()
        assert any("/Start/FlatMap" in one.unique_name for one in transforms)
        sizes.append(len(graph.SerializeToString(deterministic=True)))
        return done

    built = RunJob.expand
    for files in (2, 14):
        for number in range(files):
            (folder / f"{number}.txt").write_text("text")
        inputs = InputSettings(patterns=(str(folder),), split_size=4)
        with patch.object(RunJob, "expand", measured):
            encode(inputs, model, tmp_path / "ids", overwrite=True)
            count(inputs, tmp_path / "counts", overwrite=True)
            for name in ("ids", "counts"):
                jobs.verify(directory=str(tmp_path / name), inputs=inputs)
    # Of encoding and counting too, whose graphs hold no files either.
    few, many = sizes[: len(sizes) // 2], sizes[len(sizes) // 2 :]
    assert all(abs(one - other) < 500 for one, other in zip(few, many, strict=True))
    assert max(many) < 100_000


@pytest.mark.parametrize("kind", ["ids", "counts"])
def test_a_manifest_that_is_written_anew_meanwhile_is_an_error(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    out, run = request.getfixturevalue(kind), Verification.run

    def changed(job: Verification, *checks: Any, **asked: Any) -> None:
        edit_manifest(out, lambda m: m["totals"].update(documents=1))
        run(job, *checks, **asked)

    monkeypatch.setattr(Verification, "run", changed)
    with pytest.raises(VerificationError, match=r"manifest\.json was written anew since"):
        jobs.verify(directory=str(out), execution=Execution(workers=1))


def test_what_a_runner_loses_is_not_verified(ids: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(VerifyJob, "finish", lambda _: None)
    with pytest.raises(JobError, match="does not say that all checks are done"):
        jobs.verify(directory=str(ids))


def test_nothing_is_written_where_nothing_is_made_again(
    corpus: Corpus, encoded: Path, counted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An output that cannot be written is verified, wherever workers are."""

    def refuse(path: str, **_: Any) -> None:
        raise AssertionError(path)

    monkeypatch.setattr(storage, "replacing", refuse)
    jobs.verify(directory=str(encoded))
    jobs.verify(directory=str(encoded), inputs=corpus.inputs())
    jobs.verify(directory=str(counted))


def test_counts_of_another_text_are_found(tmp_path: Path) -> None:
    corpus = write_jsonl(tmp_path / "in" / "a.jsonl", ["one two", "two three"])
    count(corpus.inputs(), tmp_path / "counts", pretokens=PretokenSettings(pretokenizer="words"))
    directory, path = str(tmp_path / "counts"), corpus.folder / "a.jsonl"
    path.write_text(path.read_text().replace("three", "eerht"))
    where = r"counts, shard \d+ of 16: in byte order, the pre-token of row 0 is"
    with pytest.raises(VerificationError, match=where) as error:
        jobs.verify(directory=directory, inputs=corpus.inputs())
    assert ("'eerht'" in str(error.value)) != ("'three'" in str(error.value))
    other = InputSettings(patterns=(str(path), __file__))
    message = r"input .* of the manifest is not among the files given"
    with pytest.raises(VerificationError, match=message):
        jobs.verify(directory=directory, inputs=other)
