"""A watch that is stopped in the middle of its work, and started again, through the command."""

from __future__ import annotations

import json
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from pipelines.settings import (
    CountsInput,
    EncodeSettings,
    InputSettings,
    OutputSettings,
    PretokenSettings,
    WatchSettings,
)
from pipelines.watch.job import watch_count, watch_encode
from tests import jobs
from tests.cli.process import bpe
from tests.pipelines.corpora import ONE, encode, sentence, small_tokenizer, train
from tests.watch.drops import WAIT, running, taken, wait_for
from tests.watch.killed import table

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.summaries import WatchSummary

SPLIT = 2000  # bytes: a file is several parts
TOKENIZER = ("--tokenizer", "tokenizer.json")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    small_tokenizer(tmp_path / "tokenizer.json")
    return tmp_path


def lines_of(name: str, documents: int) -> str:
    rows = [{"id": f"{name}-{i}", "text": sentence(len(name) + i, 90)} for i in range(documents)]
    return "".join(json.dumps(row) + "\n" for row in rows)


def inputs_of(folder: Path) -> InputSettings:
    return InputSettings(patterns=(str(folder / "in" / "*.jsonl"),), split_size=SPLIT)


def go_on(folder: Path, what: str, output: str) -> WatchSummary:
    """Take what is left, as the command does when it is started again."""
    shared: dict[str, Any] = {
        "inputs": inputs_of(folder),
        "output": OutputSettings(directory=str(folder / output)),
        "execution": ONE,
        "watch": WatchSettings(interval=0.2, settle=0.0, stop_idle=0.4),
    }
    if what == "count":
        return watch_count(pretokens=PretokenSettings(), **shared)
    tokenizer = str(folder / "tokenizer.json")
    return watch_encode(tokenizer=tokenizer, encoding=EncodeSettings(), **shared)


def parts(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("data/train-*.parquet"))


def test_stop_after_and_markers(folder: Path) -> None:
    """A file without its marker is never taken, and what is left is taken by the next run."""

    def write(name: str, text: str, *, done: bool) -> None:
        (folder / "in" / f"{name}.jsonl").write_text(text)
        if done:
            (folder / "in" / f"{name}.jsonl.done").touch()

    def watch(*ending: str) -> dict[str, Any]:
        command = ("encode", "--watch", "in/*.jsonl", *TOKENIZER, "--output", "out", "--json")
        when = ("--interval", "0.2", "--complete-when", "marker")
        summary = json.loads(bpe(*command, *when, *ending, cwd=folder, seconds=WAIT).stdout)
        jobs.verify(directory=str(folder / "out"))
        assert summary["documents"] == len(table(folder / "out"))
        return dict(summary)

    for name in ("a", "b"):
        write(name, lines_of(name, 2), done=True)
    half = lines_of("half", 3)
    write("half", half[: len(half) // 2], done=False)
    end = time.monotonic() + WAIT
    while (summary := watch("--stop-after", "3"))["inputs"] < 2:  # it may be a slow machine
        assert summary["stopped"] == "asked"
        assert time.monotonic() < end
    assert (summary["stopped"], summary["documents"], summary["failures"]) == ("asked", 4, 0)
    write("half", half, done=True)
    write("c", lines_of("c", 1), done=True)
    summary = watch("--stop-idle", "0.5")
    assert (summary["inputs"], summary["new_inputs"], summary["documents"]) == (4, 2, 8)
    bpe("verify", "out", "-q", "--input", "in/*.jsonl", cwd=folder)


class Arriving(threading.Thread):
    """Files that arrive until it is told to stop."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self._told = threading.Event()
        self.files = 0

    def run(self) -> None:
        while not self._told.wait(0.05):
            self.write()

    def end(self) -> None:
        self._told.set()
        if self.ident is not None:
            self.join()

    def write(self) -> None:
        name = f"{self.files:04}"
        hidden = self._folder / f".{name}.jsonl"
        hidden.write_text(lines_of(name, self.files % 8 + 1))
        hidden.rename(self._folder / f"{name}.jsonl")
        self.files += 1


@pytest.mark.parametrize("what", ["encode", pytest.param("count", marks=pytest.mark.long)])
def test_sigterm_while_files_arrive(folder: Path, what: str) -> None:
    often = ("--interval", "0.2", "--settle", "0", "--split-size", str(SPLIT))
    options = (*often, *(TOKENIZER if what == "encode" else ()))
    watch = (what, "--watch", "in/*.jsonl", *options)
    out, inputs = folder / "out", inputs_of(folder)
    arriving = Arriving(folder / "in")
    try:
        arriving.start()
        with running(*watch, "--output", "out", cwd=folder) as process:
            wait_for(lambda: taken(out) > 4, process)
            there = arriving.files
            process.send_signal(signal.SIGTERM)
            said, err = process.communicate(timeout=WAIT)
            wait_for(lambda: arriving.files > there, None)  # they came until it had ended
    finally:
        arriving.end()
    assert process.returncode == 0, err
    assert said.startswith("watched ")
    assert "Traceback" not in err
    first = taken(out)
    jobs.verify(directory=str(out))
    arriving.write()  # at least this one is left
    assert 4 < first < arriving.files
    summary = go_on(folder, what, "out")
    assert (summary.inputs, summary.new_inputs) == (arriving.files, arriving.files - first)
    if what == "count":
        train(folder / "model", counts=(CountsInput(directory=str(out)),))
        train(folder / "batch", inputs=inputs)
        for name in ("tokenizer.json", "training.json"):
            assert (folder / "model" / name).read_bytes() == (folder / "batch" / name).read_bytes()
        return
    encode(inputs, folder / "tokenizer.json", folder / "batch")
    assert table(out).equals(table(folder / "batch"))
    names = parts(out)
    assert len(names) > arriving.files, "a file of more than one split has a part of each"
    go_on(folder, what, "again")
    assert parts(folder / "again") == names, "no run of a watch gives parts other names"
