"""The fuzzer finds what it is made to find."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bpe import fuzz, fuzz_targets, sanitized
from tests.bpe.fuzz import Fuzzer, Input
from tests.bpe.fuzz_targets import DifferenceError, Seen

ROOT = Path(__file__).parents[2]


def run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """The command line, as ``make fuzz`` calls it."""
    return subprocess.run(
        [
            *(sys.executable, "-m", "tests.bpe.fuzz", "--seed", "1", *options),
            *("--input-file", str(folder / "input"), "--corpus", str(folder / "corpus")),
        ],
        cwd=ROOT,
        env=os.environ
        | {"PYTHONMALLOC": "malloc", "ASAN_OPTIONS": "detect_leaks=1:leak_check_at_exit=0"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_each_target_gets_inputs_and_new_ones_are_kept(tmp_path: Path) -> None:
    done = run(tmp_path, "--seconds", "4")
    assert done.returncode == 0, done.stderr
    assert "no difference, no leak" in done.stdout or not sanitized.finds_leaks()
    for name in fuzz_targets.TARGETS:
        assert f"\n{name} " in done.stdout
    kept = list((tmp_path / "corpus").iterdir())
    assert kept
    assert {Input.read(path).target for path in kept} <= set(fuzz_targets.TARGETS)


def test_a_difference_is_found_and_its_input_can_be_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def differs(data: bytes, dice: random.Random) -> Seen:
        fuzz_targets.same(b"\0" in data, False, "a zero byte")  # a value
        return (dice.randrange(2),)

    monkeypatch.setitem(fuzz_targets.TARGETS, "scan", differs)
    fuzzer = Fuzzer(tmp_path / "input", tmp_path / "corpus")
    with pytest.raises(DifferenceError, match="scan: a zero byte"):
        fuzz.fuzz(600, 1, fuzzer)
    left = Input.read(tmp_path / "input")
    assert left.target == "scan"
    assert b"\0" in left.data
    with pytest.raises(DifferenceError, match="scan: a zero byte"):
        fuzzer.run(left)


SANITIZED = pytest.mark.skipif(
    not (sanitized.finds_leaks() and sanitized.Coverage()),
    reason="this core was built without sanitizers: make sanitize runs it",
)


@SANITIZED
def test_the_sanitized_core_tells_branches() -> None:
    coverage = sanitized.Coverage()
    coverage.begin()
    assert coverage.taken() == 0
    taken = []
    for data in (b"aaa", b"a\xff \n123"):
        coverage.begin()
        fuzz_targets.check_scan(data, random.Random(1))
        taken.append(coverage.taken())
    assert taken[1] & ~taken[0]


@SANITIZED
def test_leaks_on_purpose_are_found(tmp_path: Path) -> None:
    done = run(tmp_path, "--seconds", "1", "--leak", "memory", "object")
    assert done.returncode == 1
    assert "LeakSanitizer: detected memory leaks" in done.stderr
    # Through functions of Python, which keeps no frame pointers, the stack of the object is lost.
    assert "bpe_leak_memory" in done.stderr
    assert "byte(s) leaked in 2 allocation(s)" in done.stderr
