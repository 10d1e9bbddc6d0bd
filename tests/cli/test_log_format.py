"""``--log-format json``: every line on standard error is an object."""

from __future__ import annotations

import io
import json
import logging
import sys
from typing import TYPE_CHECKING, Any

import pytest

from pipelines.progress import SlotWriter
from pipelines.progress.shown import JsonFormatter, JsonProgress
from tests.cli.process import bpe
from tests.cli.streams import wait_for

if TYPE_CHECKING:
    from pathlib import Path


def lines(text: str) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in text.splitlines()]
    assert all({"time", "level", "message"} <= set(line) for line in found)
    return found


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("logged") / "c.jsonl"
    path.write_text('{"text": "low lower lowest"}\n' * 50, "utf-8")
    return path


def test_a_job_tells_each_step(corpus: Path) -> None:
    (corpus.parent / "log.yaml").write_text("log_format: json\n")
    train = ("train", "--input", "c.jsonl", "--output", "model", "--vocab-size", "260")
    done = bpe(*train, "--config", "log.yaml", "--json", cwd=corpus.parent)
    assert json.loads(done.stdout)["vocab_size"] == 260
    found = lines(done.stderr)
    told = [(line["stage"], line["event"]) for line in found if "stage" in line]
    for step in ("count", "train"):
        of_step = [event for stage, event in told if stage == step]
        assert (of_step[0], of_step[-1]) == ("begun", "done")
    last = next(line for line in found if line.get("event") == "done" and line["stage"] == "count")
    size = corpus.stat().st_size
    assert (last["documents"], last["bytes"], last["total_bytes"]) == (50, size, size)
    last = found[-1]
    assert (last["stage"], last["merges"], last["total_merges"]) == ("train", 4, 4)


@pytest.mark.parametrize(
    ("arguments", "status"),
    [("--input nowhere", 1), ("--input c.jsonl --nonsense", 2), ("--input c --config c.yaml", 2)],
)
def test_an_error_is_a_line_too(corpus: Path, arguments: str, status: int) -> None:
    (corpus.parent / "c.yaml").write_text("nonsense: 1\n")
    count = ("count", "--output", "x", "--log-format=json", *arguments.split())
    done = bpe(*count, cwd=corpus.parent, status=status)
    assert lines(done.stderr)[-1]["level"] == "ERROR"


def test_an_error_of_rules_has_the_format_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("log_format: json\ninput: c\noutput: x\nprune: true\n")
    done = bpe("count", "--config", "c.yaml", cwd=tmp_path, status=2)
    assert "--prune needs" in lines(done.stderr)[-1]["message"]


def test_a_step_under_way_has_speed_and_time_left() -> None:
    stream = io.StringIO()
    with JsonProgress(stream, interval=0.01).stage("count", 4_000_000) as stage:
        SlotWriter(stage.slots, 0).update(documents=3, bytes=1_000_000)
        wait_for('"bytes": 1000000', stream)
    running = [line for line in lines(stream.getvalue()) if line["event"] == "running"][-1]
    assert running["documents"] == 3
    assert running["bytes_per_second"] > 0
    assert running["seconds_left"] is not None  # rounded, it may be 0


def test_records_of_libraries() -> None:
    try:
        int("no\nway")
    except ValueError:
        said = ("took %d s", (3,), sys.exc_info())
    record = logging.LogRecord("apache_beam", logging.WARNING, __file__, 1, *said)
    [line] = lines(JsonFormatter().format(record))
    assert (line["level"], line["logger"]) == ("WARNING", "apache_beam")
    assert line["message"] == "took 3 s"
    assert "ValueError: invalid literal" in line["traceback"]
