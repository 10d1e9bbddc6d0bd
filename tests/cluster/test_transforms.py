"""Transforms in pipelines of one's own, where windows of streams fire: on Prism and on Flink."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from tests.cli.pages import blocks
from tests.cli.process import ROOT, environment
from tests.pipelines.corpora import sentence, small_tokenizer
from tests.pipelines.test_transforms_windows import (
    EVENTS,
    TRIGGERS,
    compare_panes,
    stream_of,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.jobs import Submission

SECONDS = 600


def stream(folder: Path, submission: Submission) -> None:
    """Run the streaming program of docs/beam.md; every token of every file is in one total."""
    (program,) = (one.text for one in blocks(ROOT / "docs" / "beam.md") if one.kind == "py")
    (folder / "stream.py").write_text(program, "utf-8")
    (folder / "beam-model").mkdir()
    tokenizer = small_tokenizer(folder / "beam-model" / "tokenizer.json")
    arrivals = folder / "beam-arrivals"
    arrivals.mkdir()
    texts = {f"{number}.txt": sentence(number, 20) for number in range(6)}

    def arrive() -> None:
        for name, text in texts.items():
            (folder / name).write_text(text, "utf-8")
            (folder / name).rename(arrivals / name)
            time.sleep(0.5)

    (arrivals / "first.txt").write_text("the lazy dog", "utf-8")
    writing = threading.Thread(target=arrive)
    writing.start()
    done = subprocess.run(
        [sys.executable, "stream.py", *submission.for_beam, "--runner=PortableRunner"],
        cwd=folder,
        env=environment(PYTHONPATH=str(ROOT)),
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    writing.join()
    assert done.returncode == 0, done.stderr
    totals = [int(total) for total in re.findall(r"^tokens (\d+)$", done.stdout, re.MULTILINE)]
    assert totals, done.stderr
    expected = [*texts.values(), "the lazy dog"]
    assert sum(totals) == sum(len(tokenizer.encode(text)) for text in expected)


def test_a_stream_on_prism(on_prism: Submission, tmp_path: Path) -> None:
    stream(tmp_path, on_prism)


@pytest.mark.long
def test_a_stream_on_flink(flink_local: Submission, tmp_path: Path) -> None:
    stream(tmp_path, flink_local)


def panes(trigger: str, submission: Submission) -> None:
    """Counts of a stream are those of Beam's own count, pane by pane, in both modes."""
    flags = ["--streaming", "--allow_unsafe_triggers", *submission.for_beam]
    with beam.Pipeline(runner="PortableRunner", options=PipelineOptions(flags)) as p:
        compare_panes(p | stream_of(*EVENTS), trigger)


@pytest.mark.parametrize("trigger", ["any", "in turn"])
def test_panes_on_prism(trigger: str, on_prism: Submission) -> None:
    panes(trigger, on_prism)


# Prism 2.77 may panic at one of them ("assignment to entry in nil map"); it runs in process.
ELSEWHERE = ("any", "in turn", "early by time")


@pytest.mark.long
@pytest.mark.parametrize("trigger", [name for name in TRIGGERS if name not in ELSEWHERE])
def test_all_panes_on_prism(trigger: str, on_prism: Submission) -> None:
    panes(trigger, on_prism)
