"""A disk that is full, an output that cannot be written: one error, and then a second try."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.cli.process import bpe
from tests.faults.running import PROCESSES, outcome, temporaries

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.faults.conftest import Undisturbed


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A filesystem of 256 KiB: less than any of the outputs takes."""
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("a small filesystem is mounted by root, on Linux")
    disk = tmp_path / "disk"
    disk.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        pytest.skip(f"no filesystem can be mounted here: {made.stderr.strip()}")
    try:
        yield disk
    finally:
        subprocess.run(["umount", disk], check=True)


def room(disk: Path, size: str) -> None:
    subprocess.run(["mount", "-o", f"remount,size={size}", disk], check=True)


@pytest.mark.parametrize("name", ["encode", pytest.param("train", marks=pytest.mark.long)])
def test_a_full_disk_is_named_and_the_job_goes_on_when_there_is_room(
    undisturbed: Undisturbed, small_disk: Path, name: str
) -> None:
    fill(undisturbed, small_disk, name)


@pytest.mark.long
@pytest.mark.parametrize("name", ["encode", "train"])
def test_a_full_disk_with_worker_processes(
    undisturbed: Undisturbed, small_disk: Path, name: str
) -> None:
    fill(undisturbed, small_disk, name, *PROCESSES)


def fill(undisturbed: Undisturbed, disk: Path, name: str, *more: str) -> None:
    out = disk / "out"
    ballast = 120_000 if name == "encode" else 240_000
    (disk / "ballast").write_bytes(bytes(ballast))
    free = os.statvfs(disk)
    needed = sum(-(-len(data) // free.f_bsize) for data in undisturbed.made(name).values())
    assert needed > free.f_bavail
    done = bpe(*undisturbed.command(name, out, *more), status=1)
    (error,) = (line for line in done.stderr.splitlines() if line.startswith("bpe: error:"))
    assert f"{out}/" in error
    assert "No space left on device" in error
    assert "--resume" in error
    assert "Traceback" not in done.stderr
    assert temporaries(out) == []
    assert not (out / "manifest.json").exists()
    room(disk, "16m")
    bpe(*undisturbed.command(name, out, "--resume"))
    assert outcome(out) == undisturbed.made(name)


def test_a_read_only_output_is_named(undisturbed: Undisturbed, small_disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    done = bpe(*undisturbed.command("encode", small_disk / "out"), status=1)
    assert done.stderr.count("\n") == 1
    assert f"bpe: error: {small_disk / 'out'}: cannot make it: Read-only file system" in done.stderr
    subprocess.run(["mount", "-o", "remount,rw,size=16m", small_disk], check=True)
    (small_disk / "out").mkdir()
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    done = bpe(*undisturbed.command("encode", small_disk / "out"), status=1)
    assert done.stderr.count("\n") == 1
    assert "Read-only file system: make it writable" in done.stderr
    subprocess.run(["mount", "-o", "remount,rw,size=16m", small_disk], check=True)
    bpe(*undisturbed.command("encode", small_disk / "out", "--resume"))
    assert outcome(small_disk / "out") == undisturbed.made("encode")


def test_an_output_without_permission_is_named(undisturbed: Undisturbed, tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    tmp_path.chmod(0o500)
    done = bpe(*undisturbed.command("encode", tmp_path / "out"), status=1)
    tmp_path.chmod(0o700)
    assert f"bpe: error: {tmp_path / 'out'}: cannot make it: Permission denied" in done.stderr
