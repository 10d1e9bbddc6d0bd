"""A directory that is appended to, over its life: begun, gone on with, changed, begun afresh."""

from __future__ import annotations

import gzip
import json
import os
import signal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.count import appended
from pipelines.count.directory import load_counts
from pipelines.encode import job
from pipelines.encode.manifest import read_encoded
from pipelines.errors import InputError, OutputError, RecordError
from pipelines.option import declared
from pipelines.output.directory import locked
from pipelines.planned import run_once
from pipelines.settings import (
    AppendSettings,
    CountsInput,
    EncodeSettings,
    InputSettings,
)
from pipelines.verify import counts as verify_counts
from tests import jobs
from tests.append.drops import taken
from tests.cli.process import bpe, refused
from tests.faults.running import PATIENCE, running, until
from tests.pipelines import corpora

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipelines.summaries import CountSummary, EncodeSummary

    Append = Callable[..., CountSummary | EncodeSummary]

LOOP = "is a loop in this process: leave it out and append by a scheduler, or stream in a pipeline"
COMMANDS = {
    "encode": ("encode", "--tokenizer", "tokenizer.json", "--input", "in/*.jsonl"),
    "count": ("count", "--input", "in/*.jsonl"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    corpora.small_tokenizer(tmp_path / "tokenizer.json")
    write(tmp_path, "a", ["the quick", "brown fox"])
    return tmp_path


def inputs_of(folder: Path, pattern: str = "*.jsonl", **reading: Any) -> InputSettings:
    return InputSettings(patterns=(str(folder / "in" / pattern),), **reading)


def appending(more: dict[str, Any]) -> AppendSettings:
    """The settings of appending among the arguments of a job."""
    own = {name: more.pop(name) for name in declared(AppendSettings).keys() & more}
    return AppendSettings(**{"append": True, **own})


def encode(
    folder: Path, pattern: str = "*.jsonl", *, out: str = "out", **more: Any
) -> EncodeSummary:
    """Append the files of a pattern, or what ``more`` says."""
    inputs = more.pop("inputs", inputs_of(folder, pattern))
    settings = {"appending": appending(more), **more}
    return corpora.encode(inputs, folder / "tokenizer.json", folder / out, **settings)


def count(folder: Path, pattern: str = "*.jsonl", **more: Any) -> CountSummary:
    inputs = more.pop("inputs", inputs_of(folder, pattern))
    return corpora.count(inputs, folder / "out", shards=2, appending=appending(more))


def verify(folder: Path, pattern: str = "*.jsonl") -> None:
    jobs.verify(directory=str(folder / "out"), inputs=inputs_of(folder, pattern))


def write(folder: Path, name: str, texts: list[str], **more: object) -> None:
    records = ({"id": f"{name}{i}", "text": text, **more} for i, text in enumerate(texts))
    corpora.write_rows(folder / "in" / f"{name}.jsonl", records)


def documents(folder: Path) -> list[str]:
    """Those of an encoded corpus, by id, in the order of the manifest."""
    return [id_ for id_, _ in corpora.decoded(folder / "out")]


def test_new_files_have_parts_of_their_own(folder: Path) -> None:
    write(folder, "c", ["lazy dog"])
    first = encode(folder)
    assert (first.inputs, first.new_inputs, first.parts) == (2, 2, 1)
    write(folder, "b", ["over"])
    second = encode(folder)
    assert (second.inputs, second.new_inputs, second.documents) == (3, 1, 4)
    names = sorted(path.name for path in (folder / "out" / "data").iterdir())
    assert names == ["train-00000-of-00001-g0001.parquet", "train-00000-of-00001.parquet"]
    # In the order of the files, whenever they came: a, c make one part, before b.
    assert documents(folder) == ["a0", "a1", "c0", "b0"]
    verify(folder)
    third = encode(folder)
    assert (third.inputs, third.new_inputs) == (3, 0)
    assert json.loads((folder / "out" / "manifest.json").read_text())["generation"] == 1


def test_a_directory_of_a_job_that_did_not_append_is_one_that_did_once(folder: Path) -> None:
    encode(folder, append=False)
    encode(folder, out="appended")
    assert corpora.tree(folder / "out" / "data") == corpora.tree(folder / "appended" / "data")
    write(folder, "b", ["lazy dog"])
    assert encode(folder).new_inputs == 1
    assert documents(folder) == ["a0", "a1", "b0"]
    verify(folder)


def test_a_file_that_changes_is_encoded_in_place_of_what_it_was(folder: Path) -> None:
    write(folder, "b", ["lazy dog"])
    encode(folder)
    write(folder, "c", ["fox"])
    encode(folder)
    export = ("export", "out", "--to", "parquet", "--output", "rows", "--quiet")
    bpe(*export, cwd=folder)
    exported = corpora.tree(folder / "rows")
    write(folder, "a", ["over", "the", "lazy dog"])
    summary = encode(folder)  # and b, which shares its unit of work
    assert (summary.inputs, summary.new_inputs) == (3, 2)
    assert documents(folder) == ["a0", "a1", "a2", "b0", "c0"]
    verify(folder)
    old = folder / "out" / "data" / "train-00000-of-00001.parquet"
    assert old.exists(), "the export has pinned it"
    bpe(*export, "--resume", cwd=folder)
    assert corpora.tree(folder / "rows") == exported
    assert encode(folder, prune=True).new_inputs == 0
    assert not old.exists()
    verify(folder)
    (folder / "in" / "b.jsonl").unlink()
    write(folder, "a", ["over"])
    with pytest.raises(InputError, match=r"b\.jsonl is gone, and shares a unit of work with a\."):
        encode(folder)


def test_counts_are_those_of_all_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(appended, "FAN_IN", 3)
    first = count(folder)
    assert json.loads((folder / "out" / "manifest.json").read_text())["kind"] == "counts"
    for number in range(4):
        write(folder, f"b{number}", ["lazy dog", f"number {number}"])
        summary = count(folder)
    assert (first.new_inputs, summary.new_inputs, summary.inputs) == (1, 1, 5)
    manifest = json.loads((folder / "out" / "manifest.json").read_text())
    assert [one["jobs"] for one in manifest["sets"]] == [0, 3, 1]
    verify(folder)
    corpora.train(folder / "model", counts=(CountsInput(directory=str(folder / "out")),))
    corpora.train(folder / "batch", inputs=inputs_of(folder))
    for name in ("tokenizer.json", "training.json"):
        assert (folder / "model" / name).read_bytes() == (folder / "batch" / name).read_bytes()
    bpe("report", "out", cwd=folder)
    assert '<section id="pre-tokens">' in (folder / "out" / "report.html").read_text("utf-8")


def test_counts_of_a_file_that_changes(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    count(folder)
    write(folder, "b", ["lazy dog"])
    count(folder)
    write(folder, "b", ["over the lazy dog", "again"])  # of a job of its own: counted again
    assert count(folder).documents == 4
    verify(folder)
    assert not caplog.records
    write(folder, "a", ["something else"])  # of the first job, whose counts are one
    summary = count(folder)
    assert (summary.documents, summary.outdated) == (4, ("a.jsonl",))
    assert "a.jsonl changed after its counts were merged" in caplog.text
    counts = dict(load_counts(str(folder / "out")).items())
    assert counts[b" quick"] == 1
    assert b" else" not in counts


@pytest.mark.parametrize("do", [encode, pytest.param(count, marks=pytest.mark.long)])
def test_bad_files_are_set_aside_until_they_change(folder: Path, do: Append) -> None:
    (folder / "in" / "half.jsonl").write_text('{"id": "half", "text": "the la')
    (folder / "in" / "no.jsonl.gz").write_bytes(b"no gzip")
    (folder / "in" / "stray.txt").write_text("a note")
    (folder / "in" / "archive.zip").write_bytes(b"PK")
    pq.write_table(pa.table({"words": ["no text"]}), folder / "in" / "other.parquet")
    summary = do(folder, "*")
    assert (summary.documents, summary.failures) == (2, 0)
    assert sorted(one.split(":")[0] for one in summary.set_aside) == [
        *("half.jsonl", "no.jsonl.gz", "other.parquet")
    ]
    assert sum(one.files for one in summary.passed_over) == 2
    verify(folder, "*")
    assert do(folder, "*").new_inputs == 0
    write(folder, "half", ["the lazy dog"])
    (folder / "in" / "no.jsonl.gz").write_bytes(
        gzip.compress(b'{"id": "z", "text": "over the lazy dog"}\n')
    )
    summary = do(folder, "*")
    assert (summary.documents, len(summary.set_aside)) == (4, 1)
    verify(folder, "*")


@pytest.mark.parametrize("do", [encode, count])
def test_a_file_is_taken_as_a_whole_or_not_at_all(folder: Path, do: Append) -> None:
    """The place of its bad record and the size of splits change nothing."""
    good = json.dumps({"text": "the quick brown fox"}) + "\n"
    (folder / "in" / "large.jsonl").write_text("{\n" + good * 400)
    summary = do(folder, inputs=inputs_of(folder, split_size=4000))
    assert (summary.documents, summary.inputs, len(summary.set_aside)) == (2, 1, 1)
    verify(folder)


def test_a_file_that_changes_after_a_kill_is_read_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when it has as many bytes as before; whether the directory was begun, or appended to."""
    for name in ("a", "b"):
        write(folder, name, ["the quick"])
        with monkeypatch.context() as patch:
            patch.setattr(job, "write_manifest", killed)
            with pytest.raises(OutputError, match="killed"):
                encode(folder)
        write(folder, name, ["quick the"])
        assert encode(folder).new_inputs == 1
        verify(folder)


def killed(*_: object, **__: object) -> None:
    raise OutputError("killed")


def test_sources_stand_in_the_order_of_their_patterns(folder: Path) -> None:
    patterns = tuple(f"{name}={folder}/in/{name}/*.jsonl" for name in ("web", "books"))
    for name in ("books/b1", "web/a1", "books/b0"):
        write(folder, name, ["fox"])
        encode(folder, inputs=InputSettings(patterns=patterns))
    assert documents(folder) == ["web/a10", "books/b00", "books/b10"]


def test_what_killed_jobs_have_left_of_counts_goes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count(folder)
    with monkeypatch.context() as patch:
        patch.setattr(appended, "tidy", killed)
        for text in ("lazy dog", "lazy", "dog"):
            write(folder, "b", [text])
            with pytest.raises(OutputError, match="killed"):
                count(folder)
    write(folder, "c", ["fox"])
    count(folder)
    left = {path.name for path in (folder / "out").glob("manifest-*")}
    assert left == {f"manifest-g000{number}.json" for number in (0, 3, 4)}
    assert not list((folder / "out" / "data").glob("*-g0001.parquet"))
    verify(folder)


def test_columns_are_compared_by_name_and_type(folder: Path) -> None:
    rows = EncodeSettings(keep=("n",), append_token=corpora.END)
    write(folder, "a", ["the quick brown fox jumps over the lazy dog"] * 3, n=1)
    encode(folder, "*", encoding=rows)
    write(folder, "c", ["over the lazy dog"], n=3)
    for name, values in (("d", ["1"]), ("e", [2])):
        table = pa.table({"text": ["over the fox"], "n": values, "id": [name]})
        pq.write_table(table, folder / "in" / f"{name}.parquet")
    pq.write_table(pa.table({"text": ["dog"]}), folder / "in" / "f.parquet")
    summary = encode(folder, "*", encoding=rows)
    reasons = " ".join(summary.set_aside)
    assert "column 'n' holds string" in reasons
    assert "f.parquet has no column 'n'" in reasons
    assert sorted(documents(folder)) == ["a0", "a1", "a2", "c0", "e"]
    verify(folder, "*")


def test_bad_records_may_be_set_aside_over_the_life_of_a_directory(folder: Path) -> None:
    (folder / "in" / "bad.jsonl").write_text('{"text": 1}\n{"text": "fox", "id": "good"}\n')
    one, two = (inputs_of(folder, max_failures=number) for number in (1, 2))
    assert encode(folder, inputs=one).failures == 1
    verify(folder)
    (folder / "in" / "worse.jsonl").write_text('{"text": 1}\n')
    with pytest.raises(RecordError, match="more than the 1 bad record"):
        encode(folder, inputs=one)
    assert encode(folder, inputs=two).failures == 2
    assert documents(folder) == ["a0", "a1", "good"]


def test_it_goes_on_as_it_was_begun_or_not_at_all(folder: Path) -> None:
    encode(folder)
    write(folder, "b", ["lazy dog"])
    other = EncodeSettings(dropout=0.5)
    for files in (1, 0):  # whether there is something to take, or not
        with pytest.raises(OutputError, match=r"cannot append: it was .* \(?settings dropout was"):
            encode(folder, encoding=other)
        if files:
            encode(folder)
    assert encode(folder, encoding=other, overwrite=True).new_inputs == 2
    with pytest.raises(OutputError, match="encode --append: repeat its command to go on"):
        encode(folder, append=False)
    encode(folder, append=False, overwrite=True)
    assert not (folder / "out" / "drift").exists()


def test_files_are_named_below_one_folder_for_good(folder: Path) -> None:
    for day in ("monday", "tuesday"):
        write(folder, f"{day}/x", [day])
    encode(folder, "monday/*.jsonl")
    with pytest.raises(InputError, match=r"is not below .*monday/, the folder below which"):
        encode(folder, "tuesday/*.jsonl")
    assert encode(folder, "*/*.jsonl", out="all").inputs == 2
    names = {one.name for one in read_encoded(str(folder / "all")).inputs}
    assert names == {"monday/x.jsonl", "tuesday/x.jsonl"}


def test_a_file_must_be_complete(folder: Path) -> None:
    (folder / "in" / "b.jsonl.tmp").write_text("half")
    os.utime(folder / "in" / "a.jsonl", (0, 0))
    write(folder, "b", ["over"])

    summary = encode(folder, "*", settle=600.0)
    assert summary.documents == 2
    assert "changed less than 600 s ago" in {one.reason for one in summary.passed_over}
    (folder / "in" / "b.jsonl.done").touch()
    assert encode(folder, "*").documents == 3


@pytest.mark.long
def test_counts_that_grow_while_they_are_verified(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count(folder)
    write(folder, "b", ["lazy dog"])
    count(folder)

    def counted_and_grown(*arguments: Any, **more: Any) -> Any:
        done = run_once(*arguments, **more)
        write(folder, "c", ["brown fox"])
        count(folder)
        return done

    monkeypatch.setattr(verify_counts, "run_once", counted_and_grown)
    jobs.verify(directory=str(folder / "out"), inputs=inputs_of(folder))
    monkeypatch.undo()
    assert load_counts(str(folder / "out")).totals.documents == 4
    verify(folder)


@pytest.mark.parametrize(
    ("what", "which"),
    [("encode", signal.SIGTERM), pytest.param("count", signal.SIGINT, marks=pytest.mark.long)],
)
def test_a_signal_ends_the_loop_cleanly(folder: Path, what: str, which: signal.Signals) -> None:
    watch = (*COMMANDS[what], "--output", "out", "--watch", "0.2", "--settle", "0")
    with running(*watch, cwd=folder) as process:
        until(lambda: taken(folder / "out") == 1, process)
        with pytest.raises(OutputError, match="another job"), locked(str(folder / "out")):
            pass
        write(folder, "b", ["lazy dog"])
        until(lambda: taken(folder / "out") == 2, process)
        process.send_signal(which)
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert "3 documents (jsonl)" in out
    assert "Traceback" not in err
    verify(folder)


def test_the_loop_stops_when_it_is_told_to(folder: Path) -> None:
    for path in (folder / "in").iterdir():
        path.unlink()
    command = (*COMMANDS["encode"], "--output", "out", "--watch", "0.2", "--stop-after", "1")
    done = bpe(*command, "--settle", "0", cwd=folder, status=1)
    assert "no file has arrived" in done.stderr
    write(folder, "a", ["fox"])
    done = bpe(*command, "--settle", "0", cwd=folder)
    assert "1 document (jsonl)" in done.stdout


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("count --settle 0", "--settle needs --append or --watch"),
        ("count --append --stop-after 1", "--stop-after needs --watch"),
        ("count --append --group-by n", "does not go with --append"),
        ("count --append --track-order", "does not go with --append"),
        ("encode --tokenizer tokenizer.json --watch 1 --runner PrismRunner", LOOP),
    ],
)
def test_what_does_not_go_with_it_is_refused(folder: Path, command: str, message: str) -> None:
    refused(message, *command.split(), "--input", "in", "--output", "out", cwd=folder, status=(2,))
