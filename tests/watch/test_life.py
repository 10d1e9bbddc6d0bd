"""A watched directory over its life: begun, stopped, gone on with, changed, begun afresh."""

from __future__ import annotations

import json
import signal
from functools import partial
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from pipelines.errors import OutputError
from pipelines.jobs import count
from pipelines.settings import (
    EncodeSettings,
    Execution,
    InputSettings,
    OutputSettings,
    PretokenSettings,
)
from pipelines.watch.job import watch_count, watch_encode
from tests.cli.process import bpe
from tests.pipelines.corpora import small_tokenizer
from tests.watch.drops import running, taken, wait_for

if TYPE_CHECKING:
    from pathlib import Path

ENCODE = (
    *("encode", "--watch", "in/*.jsonl", "--tokenizer", "tokenizer.json", "--output", "out"),
    *("--interval", "0.2", "--settle", "0"),
)
COUNT = ("count", "--watch", "in/*.jsonl", "--output", "out", "--interval", "0.2", "--settle", "0")
IDLE = ("--stop-idle", "0.5", "--json", "--quiet")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    small_tokenizer(tmp_path / "tokenizer.json")
    write(tmp_path, "a", ["the quick", "brown fox"])
    return tmp_path


def write(folder: Path, name: str, texts: list[str], **more: object) -> None:
    lines = [
        json.dumps({"id": f"{name}{i}", "text": text, **more}) + "\n"
        for i, text in enumerate(texts)
    ]
    (folder / "in" / f"{name}.jsonl").write_text("".join(lines))


def ids(folder: Path) -> list[str]:
    files = sorted((folder / "out").glob("part-*.parquet"))
    return sorted(one for file in files for one in pq.read_table(file)["id"].to_pylist())


def has_taken(folder: Path, files: int) -> bool:
    return taken(folder / "out") == files


@pytest.mark.parametrize("command", [ENCODE, COUNT], ids=["encode", "count"])
@pytest.mark.parametrize("which", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly(
    folder: Path, command: tuple[str, ...], which: signal.Signals
) -> None:
    with running(*command, cwd=folder) as process:
        wait_for(partial(has_taken, folder, 1), process)
        process.send_signal(which)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert out.startswith("watched   2 documents, 18 bytes of text: ")
    assert "Traceback" not in err
    bpe("verify", "out", cwd=folder)


def test_a_file_that_changes_is_encoded_in_place_of_what_it_was(folder: Path) -> None:
    write(folder, "b", ["lazy dog"])
    bpe(*ENCODE, *IDLE, cwd=folder)
    write(folder, "a", ["over", "the", "lazy dog"])
    summary = json.loads(bpe(*ENCODE, *IDLE, cwd=folder).stdout)
    assert (summary["inputs"], summary["new_inputs"]) == (2, 1)
    assert ids(folder) == ["a0", "a1", "a2", "b0"]
    bpe("verify", "out", "--input", "in/*.jsonl", cwd=folder)
    (folder / "in" / "a.jsonl").touch()
    summary = json.loads(bpe(*ENCODE, *IDLE, cwd=folder).stdout)
    assert (summary["inputs"], summary["new_inputs"]) == (2, 0)


def test_counts_of_a_file_that_changes_are_counted_again(folder: Path) -> None:
    bpe(*COUNT, *IDLE, cwd=folder)
    write(folder, "a", ["over the lazy dog"])
    bpe(*COUNT, *IDLE, cwd=folder)
    bpe("verify", "out", "--input", "in/*.jsonl", cwd=folder)
    bpe("report", "out", cwd=folder)
    assert '<section id="pre-tokens">' in (folder / "out" / "report.html").read_text("utf-8")


def test_it_goes_on_as_it_was_begun_or_not_at_all(folder: Path) -> None:
    bpe(*ENCODE, *IDLE, cwd=folder)
    done = bpe(*ENCODE, *IDLE, "--max-tokens", "2", cwd=folder, status=1)
    assert "cannot go on: it was begun as another watch: settings max_tokens" in done.stderr
    summary = json.loads(bpe(*ENCODE, *IDLE, "--max-tokens", "2", "--overwrite", cwd=folder).stdout)
    assert summary["new_inputs"] == 1
    bpe("verify", "out", "--input", "in/*.jsonl", cwd=folder)
    batch = ("encode", "--input", "in", *ENCODE[3:7])
    assert "choose an empty directory" in bpe(*batch, cwd=folder, status=1).stderr
    bpe(*batch, "--overwrite", cwd=folder)
    names = {path.name for path in (folder / "out").iterdir()}
    assert not names & {"log", "drift", "sets"}


def test_the_first_bad_record_ends_it_unless_some_may_be_set_aside(folder: Path) -> None:
    (folder / "in" / "bad.jsonl").write_text('{"text": 1}\n')
    done = bpe(*ENCODE, *IDLE, cwd=folder, status=1)
    assert "bad.jsonl, record at byte 0: field 'text' is a number" in done.stderr
    assert "--max-failures" in done.stderr
    (folder / "in" / "worse.jsonl").write_text('{"text": 1}\n{"text": 2}\n')
    done = bpe(*ENCODE, *IDLE, "--max-failures", "2", cwd=folder, status=1)
    assert "more than the 2 bad records that --max-failures allows" in done.stderr
    summary = json.loads(bpe(*ENCODE, *IDLE, "--max-failures", "3", cwd=folder).stdout)
    assert summary["failures"] == 3
    assert ids(folder) == ["a0", "a1"]


@pytest.mark.parametrize("name", ["log", "sets", "drift", "dead-letters"])
def test_linked_folders_of_the_output_are_refused(folder: Path, name: str) -> None:
    away, out = folder / "away", folder / "out"
    key = "0" * 20
    (away / key).mkdir(parents=True)
    for file in (f"{key}.json", f"part-{key}-00000-of-00001.jsonl", "2026-01-01.jsonl"):
        (away / file).write_text("{}\n")
    (away / key / "manifest.json").write_text("{}\n")
    before = sorted(away.rglob("*"))
    out.mkdir()
    plan = {"program": "beam-bpe", "kind": "counts", "settings": {"watch": ["in/*.jsonl"]}}
    (out / ".plan.json").write_text(json.dumps(plan))
    (out / name).symlink_to(away)
    inputs = InputSettings(patterns=(str(folder / "in"),))
    here = Execution(workers=1)
    for overwrite in (False, True):
        output = OutputSettings(directory=str(out), overwrite=overwrite)
        with pytest.raises(OutputError, match=f"out/{name} is a link, which may lead out of"):
            watch_count(inputs=inputs, pretokens=PretokenSettings(), output=output, execution=here)
        with pytest.raises(OutputError, match=f"out/{name} is a link, which may lead out of"):
            watch_encode(
                inputs=inputs,
                tokenizer=str(folder / "tokenizer.json"),
                output=output,
                execution=here,
                encoding=EncodeSettings(),
            )
    with pytest.raises(OutputError, match=f"out/{name} is a link, which may lead out of"):
        count(inputs=inputs, pretokens=PretokenSettings(), output=output, execution=here)
    assert sorted(away.rglob("*")) == before


def test_rows_chunks_and_columns(folder: Path) -> None:
    write(folder, "a", ["the quick brown fox jumps over the lazy dog"] * 3, n=1)
    command = (*ENCODE, *IDLE, "--pack", "7", "--keep", "n", "--append-token", "<|end|>")
    bpe(*command, cwd=folder)
    write(folder, "b", ["over the lazy dog"], n=2.5)  # a value that the type does not hold
    write(folder, "c", ["over the lazy dog"], n=3)
    bpe(*command, "--max-failures", "1", cwd=folder)
    bpe("verify", "out", "--input", "in/*.jsonl", cwd=folder)
    decoded = bpe("decode", "out", cwd=folder).stdout.splitlines()
    assert [json.loads(line)["id"] for line in decoded] == ["a0", "a1", "a2", "c0"]


def test_what_goes_with_watching_alone_is_refused(folder: Path) -> None:
    batch = ("--input", "in", "--output", "o", "--settle", "1")
    assert "--settle goes with --watch" in bpe("count", *batch, cwd=folder, status=2).stderr
    both = ("--input", "in", "--watch", "in", "--output", "o")
    assert (
        "--watch and --input exclude each other" in bpe("count", *both, cwd=folder, status=2).stderr
    )
    pruned = (*COUNT, "--prune-below", "2")
    assert "give it to bpe train" in bpe(*pruned, cwd=folder, status=2).stderr
