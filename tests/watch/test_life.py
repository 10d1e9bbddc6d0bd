"""A watched directory over its life: begun, stopped, gone on with, changed, begun afresh."""

from __future__ import annotations

import contextlib
import io
import json
import signal
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from pipelines.cli.commands import bpe as group
from pipelines.count.directory import load_counts
from pipelines.errors import ConfigError, OutputError, RecordError, VerificationError
from pipelines.output.entries import read_log
from pipelines.report import report
from pipelines.settings import (
    CountSettings,
    EncodeSettings,
    Execution,
    InputSettings,
    OutputSettings,
    PretokenSettings,
    WatchSettings,
)
from pipelines.watch.counting import FAN_IN
from pipelines.watch.job import watch_count, watch_encode
from tests import jobs
from tests.cli.process import bpe
from tests.pipelines.corpora import small_tokenizer
from tests.watch.drops import WAIT, running, taken, wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.summaries import WatchSummary

ENCODE = (
    *("encode", "--watch", "in/*.jsonl", "--tokenizer", "tokenizer.json", "--output", "out"),
    *("--interval", "0.2", "--settle", "0"),
)
COUNT = ("count", "--watch", "in/*.jsonl", "--output", "out", "--interval", "0.2", "--settle", "0")
SOON = WatchSettings(interval=0.2, settle=0.0, stop_idle=0.4)
HERE = Execution(workers=1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    small_tokenizer(tmp_path / "tokenizer.json")
    write(tmp_path, "a", ["the quick", "brown fox"])
    return tmp_path


def inputs_of(folder: Path, max_failures: int = 0) -> InputSettings:
    return InputSettings(patterns=(str(folder / "in" / "*.jsonl"),), max_failures=max_failures)


def encode(
    folder: Path, *, overwrite: bool = False, max_failures: int = 0, **encoding: Any
) -> WatchSummary:
    """Encode what is there, until nothing comes."""
    return watch_encode(
        inputs=inputs_of(folder, max_failures),
        tokenizer=str(folder / "tokenizer.json"),
        output=OutputSettings(directory=str(folder / "out"), overwrite=overwrite),
        execution=HERE,
        encoding=EncodeSettings(**encoding),
        watch=SOON,
    )


def count(folder: Path) -> WatchSummary:
    """Count what is there, until nothing comes."""
    return watch_count(
        inputs=inputs_of(folder),
        pretokens=PretokenSettings(),
        output=OutputSettings(directory=str(folder / "out")),
        execution=HERE,
        watch=SOON,
    )


def verify(folder: Path) -> None:
    jobs.verify(directory=str(folder / "out"), inputs=inputs_of(folder))


def write(folder: Path, name: str, texts: list[str], **more: object) -> None:
    lines = [
        json.dumps({"id": f"{name}{i}", "text": text, **more}) + "\n"
        for i, text in enumerate(texts)
    ]
    (folder / "in" / f"{name}.jsonl").write_text("".join(lines))


def ids(folder: Path) -> list[str]:
    files = sorted((folder / "out").glob("data/train-*.parquet"))
    return sorted(one for file in files for one in pq.read_table(file)["id"].to_pylist())


def has_taken(folder: Path, files: int) -> bool:
    return taken(folder / "out") == files


@pytest.mark.parametrize(
    ("command", "which"),
    [(ENCODE, signal.SIGTERM), (COUNT, signal.SIGINT)],
    ids=["encode", "count"],
)
def test_a_signal_ends_it_cleanly(
    folder: Path, command: tuple[str, ...], which: signal.Signals
) -> None:
    with running(*command, cwd=folder) as process:
        wait_for(partial(has_taken, folder, 1), process)
        process.send_signal(which)
        out, err = process.communicate(timeout=WAIT)
    assert process.returncode == 0, err
    assert out.startswith("watched   2 documents (jsonl), 18 bytes of text: ")
    assert "Traceback" not in err
    verify(folder)


def test_a_file_that_changes_is_encoded_in_place_of_what_it_was(folder: Path) -> None:
    write(folder, "b", ["lazy dog"])
    encode(folder)
    write(folder, "a", ["over", "the", "lazy dog"])
    summary = encode(folder)
    assert (summary.inputs, summary.new_inputs) == (2, 1)
    assert ids(folder) == ["a0", "a1", "a2", "b0"]
    verify(folder)
    (folder / "in" / "a.jsonl").touch()
    summary = encode(folder)
    assert (summary.inputs, summary.new_inputs) == (2, 0)


def test_counts_of_a_file_that_changes_are_counted_again(folder: Path) -> None:
    count(folder)
    write(folder, "a", ["over the lazy dog"])
    count(folder)
    verify(folder)
    report(str(folder / "out"))
    assert '<section id="pre-tokens">' in (folder / "out" / "report.html").read_text("utf-8")


def test_the_parts_of_counts_are_a_table(folder: Path) -> None:
    """As docs/watching.md says, for readers that know nothing of us."""
    for number in range(FAN_IN + 2):
        write(folder, f"b{number:02}", ["lazy dog", f"number {number}"])
    count(folder)
    table = (
        pq.read_table(folder / "out" / "data").group_by("pretoken").aggregate([("count", "sum")])
    )
    assert dict(zip(*table.to_pydict().values(), strict=True)) == dict(
        load_counts(str(folder / "out")).items()
    )


def test_files_that_changed_after_their_counts_were_added_up_are_named(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(1, FAN_IN):
        write(folder, f"b{number:02}", ["lazy dog"])
    assert count(folder).outdated_inputs == 0
    (only,) = read_log(str(folder / "out")).values()
    assert len(only.taken) == FAN_IN
    caplog.clear()
    changed = [f"b{number:02}" for number in (3, 5, 9)]
    for name in changed:
        write(folder, name, ["something else"])
    summary = count(folder)
    assert (summary.outdated_inputs, summary.failed_inputs) == (3, 0)
    warnings = [one.getMessage() for one in caplog.records if "changed" in one.getMessage()]
    assert 1 <= len(warnings) <= 3  # those that are found at once stand in one
    for name in changed:
        assert sum(f"{name}.jsonl" in warning for warning in warnings) == 1
    done = bpe(*COUNT, "--stop-idle", "0.4", cwd=folder)
    assert "; 3 changed after they were counted (old text counted);" in done.stdout
    assert "cannot be read" not in done.stdout


def test_a_file_that_cannot_be_counted_may_be_made_good(folder: Path) -> None:
    """Also when others have been added up; until then it is one bad record, and no input."""
    inputs = InputSettings(patterns=(str(folder / "in"),), max_failures=1)
    path, out = folder / "in" / "b.parquet", str(folder / "out")

    def counted() -> tuple[int, int, int, int]:
        summary = watch_count(
            inputs=inputs,
            pretokens=PretokenSettings(),
            output=OutputSettings(directory=out),
            execution=HERE,
            watch=SOON,
        )
        assert jobs.verify(directory=out, inputs=inputs).failures == summary.failures
        assert not summary.outdated_inputs
        return summary.inputs, summary.failed_inputs, summary.failures, summary.documents

    pq.write_table(pa.table({"words": ["no text"]}), path)
    for number in range(1, FAN_IN):
        write(folder, f"b{number:02}", ["lazy dog"])
    assert counted() == (FAN_IN, 1, 1, FAN_IN + 1)
    assert max(len(entry.taken) for entry in read_log(out).values()) == FAN_IN
    pq.write_table(pa.table({"text": ["over the lazy dog"]}), path)
    assert counted() == (FAN_IN + 1, 0, 0, FAN_IN + 2)


def test_it_goes_on_as_it_was_begun_or_not_at_all(folder: Path) -> None:
    encode(folder)
    with pytest.raises(OutputError, match=r"holds another watch \(settings dropout"):
        encode(folder, dropout=0.5)
    assert encode(folder, dropout=0.5, overwrite=True).new_inputs == 1
    (folder / "out" / "tokenizer.json").unlink()
    with pytest.raises(VerificationError, match=r"is missing: .* repeat its bpe encode \(with"):
        verify(folder)
    assert encode(folder, dropout=0.5).new_inputs == 0
    verify(folder)
    for overwrite in (False, True):
        output = OutputSettings(directory=str(folder / "out"), overwrite=overwrite)
        refused = pytest.raises(OutputError, match="encode --watch: repeat its command to go on")
        with contextlib.nullcontext() if overwrite else refused:
            jobs.encode(
                inputs=inputs_of(folder),
                tokenizer=str(folder / "tokenizer.json"),
                output=output,
                execution=HERE,
            )
    names = {path.name for path in (folder / "out").iterdir()}
    assert not names & {"log", "drift"}


def test_the_first_bad_record_ends_it_unless_some_may_be_set_aside(folder: Path) -> None:
    (folder / "in" / "bad.jsonl").write_text('{"text": 1}\n')
    bad = r"bad\.jsonl, record at byte 0: field 'text' is a number.*`max_failures`"
    with pytest.raises(RecordError, match=bad):
        encode(folder)
    (folder / "in" / "worse.jsonl").write_text('{"text": 1}\n{"text": 2}\n')
    with pytest.raises(RecordError, match="more than the 2 bad records that `max_failures`"):
        encode(folder, max_failures=2)
    assert encode(folder, max_failures=3).failures == 3
    assert ids(folder) == ["a0", "a1"]
    first = r"3 bad records, the first: .*(bad|worse)\.jsonl, record at byte \d+: field 'text'"
    with pytest.raises(RecordError, match=first):  # found by those before
        encode(folder, max_failures=1)


@pytest.mark.parametrize("name", ["log", "drift", "data", "dead-letters"])
def test_linked_folders_of_the_output_are_refused(folder: Path, name: str) -> None:
    away, out = folder / "away", folder / "out"
    key = "0" * 20
    (away / key).mkdir(parents=True)
    for file in (f"{key}.json", f"part-00000-of-00001-{key}.jsonl", "2026-01-01.jsonl"):
        (away / file).write_text("{}\n")
    (away / key / "manifest.json").write_text("{}\n")
    before = sorted(away.rglob("*"))
    out.mkdir()
    plan = {"program": "beam-bpe", "kind": "counts", "settings": {"watch": ["in/*.jsonl"]}}
    (out / ".plan.json").write_text(json.dumps(plan))
    (out / name).symlink_to(away)
    inputs = InputSettings(patterns=(str(folder / "in"),))
    for overwrite in (False, True):
        output = OutputSettings(directory=str(out), overwrite=overwrite)
        with pytest.raises(OutputError, match=f"out/{name} is a link, which may lead out of"):
            watch_count(inputs=inputs, pretokens=PretokenSettings(), output=output, execution=HERE)
        with pytest.raises(OutputError, match=f"out/{name} is a link, which may lead out of"):
            watch_encode(
                inputs=inputs,
                tokenizer=str(folder / "tokenizer.json"),
                output=output,
                execution=HERE,
                encoding=EncodeSettings(),
            )
    with pytest.raises(OutputError, match=f"out/{name} is a link, which may lead out of"):
        jobs.count(inputs=inputs, pretokens=PretokenSettings(), output=output, execution=HERE)
    assert sorted(away.rglob("*")) == before


def test_ends_and_columns(folder: Path) -> None:
    write(folder, "a", ["the quick brown fox jumps over the lazy dog"] * 3, n=1)
    rows: dict[str, Any] = {"keep": ("n",), "append_token": "<|end|>"}
    encode(folder, **rows)
    write(folder, "b", ["over the lazy dog"], n=2.5)  # a value that the type does not hold
    write(folder, "c", ["over the lazy dog"], n=3)
    encode(folder, max_failures=1, **rows)
    verify(folder)
    stream = io.BytesIO()
    jobs.decode(directory=str(folder / "out"), stream=stream)
    decoded = [json.loads(line)["id"] for line in stream.getvalue().splitlines()]
    assert decoded == ["a0", "a1", "a2", "c0"]


def test_what_goes_with_watching_alone_is_refused(folder: Path) -> None:
    def said(*arguments: str) -> str:
        done = CliRunner().invoke(group, ["count", "--input", "in", "--output", "o", *arguments])
        assert done.exit_code == 2
        return done.output

    assert "--settle needs --watch" in said("--settle", "1")
    assert "--watch and --input exclude each other" in said("--watch", "in")
    with pytest.raises(ConfigError, match="give it to bpe train"):
        watch_count(
            inputs=inputs_of(folder),
            pretokens=PretokenSettings(),
            output=OutputSettings(directory=str(folder / "out")),
            execution=HERE,
            settings=CountSettings(prune_below=2),
        )
