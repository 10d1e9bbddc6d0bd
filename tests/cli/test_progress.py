from __future__ import annotations

import io
import os
import pty
import re
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from pipelines.cli.commands import bpe as group
from pipelines.progress import (
    BarProgress,
    LineProgress,
    Progress,
    SlotWriter,
    Snapshot,
    duration,
    progress_on,
    size_text,
)
from pipelines.progress.shown import JsonProgress
from pipelines.progress.steps import StageProgress

if TYPE_CHECKING:
    from pathlib import Path


def wait_for(text: str, stream: io.StringIO) -> None:
    for _ in range(500):
        if text in stream.getvalue():
            return
        time.sleep(0.01)
    raise AssertionError(f"{text!r} never came: {stream.getvalue()!r}")


def test_slots_add_up_and_count_a_repeated_part_once() -> None:
    stream = io.StringIO()
    with LineProgress(stream, interval=0.01).stage("count", 4_000_000) as stage:
        slot = SlotWriter(stage.slots, 0)
        slot.update(documents=5, bytes=500_000)
        slot.update(documents=10, bytes=1_000_000)
        for _ in range(2):  # a part that is done twice
            slot = SlotWriter(stage.slots, 2)
            slot.update(documents=20, bytes=1_000_000)
        wait_for("50%: 30 documents, 2.00 MB of 4.00 MB", stream)
    last = stream.getvalue().splitlines()[-1]
    assert last.startswith("bpe: count: done in ")
    assert "30 documents, 2.00 MB of 4.00 MB" in last


@pytest.mark.parametrize("slots", [None, "of another process"])
def test_a_writer_without_slots_does_nothing(slots: str | None) -> None:
    SlotWriter(slots, 3).update(documents=1, bytes=1)


def test_a_writer_outlives_its_stage() -> None:
    with LineProgress(io.StringIO()).stage("count", 10) as stage:
        slot = SlotWriter(stage.slots, 0)
    slot.update(documents=1, bytes=1)
    SlotWriter(stage.slots, 0).update(documents=1, bytes=1)
    assert stage.snapshot().documents == 0


def test_many_threads_write_their_own_slots() -> None:
    stream = io.StringIO()
    with LineProgress(stream).stage("count", 100) as stage:

        def work(part: int) -> None:
            slot = SlotWriter(stage.slots, part)
            for done in range(100):
                slot.update(documents=done + 1, bytes=1_000_000)

        threads = [threading.Thread(target=work, args=(part,)) for part in range(64)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert "6,400 documents, 64.0 MB read" in stream.getvalue()


def test_what_an_earlier_run_did_is_done_but_not_speed() -> None:
    stream = io.StringIO()
    with LineProgress(stream, interval=0.01).stage("encode", 4_000_000) as stage:
        slot = SlotWriter(stage.slots, 0)
        slot.keep(documents=9, bytes=2_000_000)
        wait_for("50%: 9 documents, 2.00 MB of 4.00 MB read\n", stream)
        slot = SlotWriter(stage.slots, 1)
        slot.update(documents=1, bytes=1_000_000)
        wait_for("75%: 10 documents, 3.00 MB of 4.00 MB read, ", stream)
        slot = SlotWriter(stage.slots, 1)
        slot.keep(documents=1, bytes=2_000_000)
    assert stream.getvalue().endswith("10 documents, 4.00 MB read, all by an earlier run\n")
    now = Snapshot(seconds=1.0, bytes=3_000_000, kept_bytes=2_000_000, total_bytes=4_000_000)
    assert now.speed == 1_000_000
    assert now.seconds_left == 1.0


def test_steps_that_count_merges() -> None:
    stream = io.StringIO()
    with LineProgress(stream, interval=0.01).stage("train", None) as stage:
        wait_for("bpe: train: begun", stream)
        stage.advance(50, 200)
        wait_for("bpe: train: 25%: 50 of 200 merges", stream)
        stage.advance(199, 200)
        stage.ended("no pair left")
    last = stream.getvalue().splitlines()[-1]
    assert last.endswith(": 199 merges of 200 at most: no pair left")


def test_a_step_of_which_only_the_end_is_known() -> None:
    stream = io.StringIO()
    with LineProgress(stream).stage("train", None) as stage:
        stage.ended("no pair left")
    assert stream.getvalue().endswith(" s: no pair left\n")


def test_an_estimate_waits_until_there_is_something_to_go_by() -> None:
    assert Snapshot(seconds=1.0, done=1, total=2744).seconds_left is None
    assert Snapshot(seconds=2.0, done=686, total=2744).running().endswith(", 6.0 s left")
    assert Snapshot(seconds=2.0, done=2744, total=2744).running().endswith(" merges, finishing")


def test_a_job_elsewhere_that_does_not_move_is_not_estimated() -> None:
    quarter: dict[str, Any] = {"bytes": 1_000_000, "documents": 9, "total_bytes": 4_000_000}
    moving = Snapshot(seconds=90.0, state="RUNNING", unchanged=59.0, **quarter)
    assert moving.running().endswith(" left")
    still = Snapshot(seconds=90.0, state="RUNNING", unchanged=61.0, **quarter)
    assert still.seconds_left is None
    assert still.running().startswith("25%: 9 documents, 1.00 MB of 4.00 MB read, ")
    assert "; no progress for 1 min 1 s: if a worker was lost, the job waits for slots" in (
        still.running()
    )
    here = Snapshot(seconds=90.0, unchanged=61.0, **quarter)  # one split may take that long
    assert here.running().endswith(" left")
    over = Snapshot(seconds=90.0, state="RUNNING", unchanged=61.0, bytes=9, total_bytes=9)
    assert over.running().endswith(", finishing")


def test_what_moves_is_what_workers_and_runners_tell() -> None:
    stage = StageProgress("encode", 4_000, is_watched=True)
    stage.observe(state="RUNNING", documents=1, bytes=10)
    time.sleep(0.01)
    assert stage.snapshot().unchanged == 0.0
    time.sleep(0.01)
    stage.observe(state="RUNNING", documents=1, bytes=10)
    assert stage.snapshot().unchanged >= 0.01
    slot = SlotWriter(stage.slots, 0)
    slot.update(documents=2, bytes=20)
    assert stage.snapshot().unchanged == 0.0
    stage.close()


def test_a_step_that_fails_says_so() -> None:
    stream = io.StringIO()
    with pytest.raises(KeyError), LineProgress(stream).stage("count", 10):
        raise KeyError
    assert "bpe: count: stopped in " in stream.getvalue()


def test_nobody_watches() -> None:
    progress = Progress()
    progress.log("not seen")
    with progress.stage("count", 10) as stage:
        stage.advance(1, 2)
        assert stage.slots is None


def test_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    master, slave = pty.openpty()
    with os.fdopen(slave, "w", encoding="utf-8") as stream:
        progress = progress_on(stream)
        assert isinstance(progress, BarProgress)
        with progress.stage("count", 2_000_000) as stage:
            slot = SlotWriter(stage.slots, 0)
            slot.update(documents=7, bytes=1_000_000)
            drawn = ""
            while "50%" not in drawn:
                drawn += os.read(master, 65536).decode()
        while "bpe: count: done in" not in drawn:
            drawn += os.read(master, 65536).decode()
    os.close(master)
    assert re.search(r"50%: 7 documents, 1\.00 MB of 2\.00 MB read, [\d.,]+ [kMG]?B/s, ", drawn)
    assert re.search(r"B/s, [\d.]+ (?:s|min|h)[\w .]* left", drawn), "the time that is left"
    assert "\x1b[" in drawn


def test_a_command_says_something_every_ten_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That of a run is not waited for: it is what its thread waits between two looks."""
    waits = set()
    wait = threading.Event.wait

    def seen(event: threading.Event, timeout: float | None = None) -> bool:
        if threading.current_thread().name == "progress-count":
            waits.add(timeout)
        return wait(event, timeout)

    monkeypatch.setattr(threading.Event, "wait", seen)
    (tmp_path / "c.jsonl").write_text('{"text": "low lower lowest"}\n')
    command = ["count", "--input", str(tmp_path), "--output", str(tmp_path / "counts")]
    done = CliRunner().invoke(group, command, catch_exceptions=False)
    assert done.exit_code == 0
    assert "bpe: count: done in " in done.stderr
    assert waits == {10.0}
    assert JsonProgress(io.StringIO()).interval == 10.0


@pytest.mark.parametrize("term", ["", "dumb"])
def test_lines_on_a_terminal_that_cannot_draw(monkeypatch: pytest.MonkeyPatch, term: str) -> None:
    monkeypatch.setenv("TERM", term)
    master, slave = pty.openpty()
    with os.fdopen(slave, "w", encoding="utf-8") as stream:
        assert isinstance(progress_on(stream), LineProgress)
    os.close(master)


def test_sizes_and_times_read_well() -> None:
    sizes = {
        0: "0 bytes",
        1: "1 byte",
        9_999: "9,999 bytes",
        10_000: "10.0 kB",
        999_400: "999 kB",
        999_600: "1.00 MB",
        12_345_678: "12.3 MB",
        99_960_000: "100 MB",
        1_234_567_890: "1,235 MB",
        12_345_678_901: "12.3 GB",
    }
    assert {size: size_text(size) for size in sizes} == sizes
    assert [duration(s) for s in (0, 9.94, 59.4, 61, 3600 * 5 + 120)] == [
        "0.0 s",
        "9.9 s",
        "59 s",
        "1 min 1 s",
        "5 h 2 min",
    ]
