"""Transforms in pipelines of one's own, where windows of streams fire: on Prism and on Flink."""

from __future__ import annotations

import json
import re
import sys
import time
from typing import TYPE_CHECKING

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from tests.cli.pages import blocks
from tests.cli.process import ROOT
from tests.faults.running import running, until
from tests.pipelines.corpora import sentence, small_tokenizer
from tests.pipelines.test_transforms_windows import (
    EVENTS,
    TRIGGERS,
    compare_panes,
    stream_of,
)
from tests.shared_data import long_but

if TYPE_CHECKING:
    import contextlib
    import subprocess
    from collections.abc import Iterable
    from pathlib import Path

    from tests.cluster.jobs import Submission

SECONDS = 600


def write_program(folder: Path) -> dict[str, list[int]]:
    """Write the streaming program of docs/beam.md and its model; returns texts with their ids."""
    (program,) = (one.text for one in blocks(ROOT / "docs" / "beam.md") if one.kind == "py")
    (folder / "stream.py").write_text(program, "utf-8")
    (folder / "beam-model").mkdir()
    tokenizer = small_tokenizer(folder / "beam-model" / "tokenizer.json")
    texts = [sentence(number, 20) for number in range(7)]
    return {text: tokenizer.encode(text) for text in texts}


def arrive(folder: Path, texts: Iterable[str]) -> None:
    """Let a file arrive for each text, half a second apart."""
    arrivals = folder / "beam-arrivals"
    arrivals.mkdir(exist_ok=True)
    for text in texts:
        name = f"{len(list(arrivals.iterdir()))}.txt"
        (folder / name).write_text(text, "utf-8")
        (folder / name).rename(arrivals / name)
        time.sleep(0.5)


def program(
    folder: Path, submission: Submission
) -> contextlib.AbstractContextManager[subprocess.Popen[str]]:
    """Start the program."""
    flags = (*submission.for_beam, "--runner=PortableRunner")
    return running(*flags, program=[sys.executable, "stream.py"], cwd=folder)


def written(folder: Path) -> list[tuple[str, list[int]]]:
    """The documents in the files of all windows, with their ids."""
    files = (folder / "beam-windows").glob("output-*")
    rows = [json.loads(line) for file in files for line in file.read_text("utf-8").splitlines()]
    return sorted((row["text"], row["input_ids"]) for row in rows)


@pytest.mark.parametrize(
    "submission", long_but(["on_prism", "flink_local"], "on_prism"), indirect=True
)
def test_a_stream(tmp_path: Path, submission: Submission) -> None:
    """Every document of every file is in a window's file once, and in the drift of one window."""
    texts = write_program(tmp_path)
    first, *others = texts
    arrive(tmp_path, [first])
    with program(tmp_path, submission) as process:
        arrive(tmp_path, others)
        printed, errors = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, errors
    tokens = re.findall(r"^tokens (\d+) [\d.]+$", printed, re.MULTILINE)
    assert sum(map(int, tokens)) == sum(map(len, texts.values())), errors
    assert written(tmp_path) == sorted(texts.items())


@pytest.mark.long
def test_a_stream_that_is_killed_starts_again(on_prism: Submission, tmp_path: Path) -> None:
    texts = write_program(tmp_path)
    first, *others = texts
    arrive(tmp_path, [first])
    with program(tmp_path, on_prism) as process:
        until(lambda: list(tmp_path.glob("beam-windows/output-*")), process)
    arrive(tmp_path, others)
    with program(tmp_path, on_prism) as process:
        _, errors = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, errors
    assert dict(written(tmp_path)) == texts  # some in the files of two windows, none in part
    assert all(texts[text] == ids for text, ids in written(tmp_path))


@pytest.mark.long
# Prism 2.77 may panic at one of them ("assignment to entry in nil map"); it runs in process.
@pytest.mark.parametrize("trigger", [name for name in TRIGGERS if name != "early by time"])
def test_panes_on_prism(trigger: str, on_prism: Submission) -> None:
    flags = ["--streaming", "--allow_unsafe_triggers", *on_prism.for_beam]
    with beam.Pipeline(runner="PortableRunner", options=PipelineOptions(flags)) as p:
        compare_panes(p | stream_of(*EVENTS), trigger)
