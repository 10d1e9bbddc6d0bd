from __future__ import annotations

import io
import os
import pty
import re
import time
from typing import Any

import pytest

from pipelines.progress import (
    BarProgress,
    LineProgress,
    SlotWriter,
    Snapshot,
    duration,
    progress_on,
    size_text,
)
from pipelines.progress.shown import JsonProgress
from pipelines.progress.steps import StageProgress
from tests.cli.streams import wait_for


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


def test_a_writer_without_slots_does_nothing() -> None:
    with LineProgress(io.StringIO()).stage("count", 10) as stage:
        slot = SlotWriter(stage.slots, 0)
    for writer in (slot, SlotWriter(stage.slots, 0), SlotWriter(None, 0)):
        writer.update(documents=1, bytes=1)
    assert stage.snapshot().documents == 0


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


def test_steps_that_count_merges() -> None:
    stream = io.StringIO()
    with LineProgress(stream, interval=0.01).stage("train", None) as stage:
        wait_for("bpe: train: begun", stream)
        SlotWriter(stage.slots, 0).advance(50, 200)
        wait_for("bpe: train: 25%: 50 of 200 merges", stream)
        SlotWriter(stage.slots, 0).advance(199, 200)
    assert stream.getvalue().splitlines()[-1].endswith(": 199 of 200 merges")


QUARTER = {"bytes": 1_000_000, "documents": 9, "total_bytes": 4_000_000}
ELSEWHERE = {"seconds": 100, "state": "RUNNING", **QUARTER}
SPEED = "25%: 9 documents, 1.00 MB of 4.00 MB read, 10.0 kB/s"


@pytest.mark.parametrize(
    ("moment", "said"),
    [
        # An estimate waits until there is something to go by.
        ({"seconds": 1, "done": 1, "total": 2744}, "0%: 1 of 2,744 merges"),
        ({"seconds": 2, "done": 686, "total": 2744}, "25%: 686 of 2,744 merges, 6.0 s left"),
        ({"seconds": 2, "done": 2744, "total": 2744}, "100%: 2,744 of 2,744 merges, finishing"),
        # What an earlier run did is done, but is not speed.
        (
            {"seconds": 50, "kept_bytes": 500_000, **QUARTER},
            f"{SPEED}, 5 min 0 s left",
        ),
        # A job elsewhere that does not move is not estimated; here, a split may take that long.
        ({**ELSEWHERE, "unchanged": 59}, f"{SPEED}, 5 min 0 s left"),
        (
            {**ELSEWHERE, "unchanged": 61},
            f"{SPEED}; no progress for 1 min 1 s: if a worker was lost, the job waits for slots",
        ),
        ({"seconds": 100, "unchanged": 61, **QUARTER}, f"{SPEED}, 5 min 0 s left"),
        (
            {"seconds": 1, "state": "RUNNING", "unchanged": 61, "bytes": 9, "total_bytes": 9},
            "100%: 0 documents, 9 bytes read, 9 bytes/s, finishing",
        ),
    ],
)
def test_what_is_said_of_a_moment(moment: dict[str, Any], said: str) -> None:
    assert Snapshot(**moment).running().startswith(said)
    assert Snapshot(**moment).seconds_left is None or "no progress" not in said


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


@pytest.mark.parametrize(
    ("shown", "said"),
    [(LineProgress, "bpe: count: stopped in "), (JsonProgress, '"event": "stopped"')],
)
def test_a_step_that_fails_says_so(shown: type[LineProgress], said: str) -> None:
    stream = io.StringIO()
    progress = shown(stream)
    assert progress.interval == 10.0
    with pytest.raises(KeyError), progress.stage("count", 10):
        raise KeyError
    assert said in stream.getvalue().splitlines()[-1]


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
