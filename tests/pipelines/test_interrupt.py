"""Ctrl-C in a program that runs a job."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING

import pytest

from tests.faults.running import running, until
from tests.pipelines.corpora import (
    sentence,
    small_tokenizer,
    write_jsonl,
)
from tests.shared_data import ROOT

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = """
import sys
from pathlib import Path
from pipelines.settings import Execution, InputSettings
from tests.pipelines.corpora import encode

folder, execution = Path(sys.argv[1]), Execution(workers=2)
inputs = InputSettings(patterns=(sys.argv[2],), split_size=3_000)
encode(inputs, folder / "t.json", folder / "ids", execution=execution)
"""


@pytest.mark.long  # in the short form, tests/faults interrupts a count
def test_a_program_ends_as_python_does(tmp_path: Path) -> None:
    """The command's remains, and their resumption, are tested in tests/faults."""
    small_tokenizer(tmp_path / "t.json")
    corpus = write_jsonl(tmp_path / "in" / "docs.jsonl", [sentence(i, 60) for i in range(600)])
    program = [sys.executable, "-c", SCRIPT, str(tmp_path), str(corpus.folder)]
    ids = tmp_path / "ids"
    with running(program=program, cwd=ROOT) as process:
        until(lambda: any(ids.glob("data/train-*")), process)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT, errors
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert not (ids / "manifest.json").exists()
