"""Ctrl-C: the workers wind down, nothing half is left, and the job can be resumed."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pipelines.storage import is_temporary
from tests.pipelines.corpora import (
    Corpus,
    encode,
    sentence,
    small_tokenizer,
    tree,
    write_jsonl,
)

SCRIPT = """
import sys
from pathlib import Path
from pipelines.settings import Execution, InputSettings
from tests.pipelines.corpora import encode

source, folder, *beam_args = sys.argv[1:]
execution = Execution(workers=2, beam_args=tuple(beam_args))
inputs = InputSettings(patterns=(source,), split_size=3_000)
encode(inputs, Path(folder) / "t.json", Path(folder) / "ids", execution=execution)
"""
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    texts = [sentence(i, 60) for i in range(600)]
    return write_jsonl(tmp_path_factory.mktemp("corpus") / "docs.jsonl", texts)


@pytest.mark.long  # in the short form, tests/faults interrupts a count
@pytest.mark.parametrize("mode", ["in_memory", "multi_threading"])
def test_an_interrupted_job_ends_soon_and_clean(corpus: Corpus, tmp_path: Path, mode: str) -> None:
    small_tokenizer(tmp_path / "t.json")
    flags = [f"--direct_running_mode={mode}"]
    if mode == "in_memory":
        flags.append("--direct_num_workers=1")
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(corpus.folder), str(tmp_path), *flags],
        cwd=ROOT,
        stderr=subprocess.PIPE,
    )
    ids = tmp_path / "ids"
    while process.poll() is None and not any(ids.glob("data/train-*")):
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT, errors.decode()
    assert errors.decode().rstrip().endswith("KeyboardInterrupt")
    assert not (ids / "manifest.json").exists()
    assert not any(is_temporary(path.name) for path in ids.iterdir())
    inputs = corpus.inputs(split_size=3000)
    again = encode(inputs, tmp_path / "t.json", ids, resume=True)
    assert 0 < again.resumed_parts < again.parts
    if mode == "in_memory":
        encode(inputs, tmp_path / "t.json", tmp_path / "undisturbed")
        assert tree(ids) == tree(tmp_path / "undisturbed")
