"""A disk that is full, an output that cannot be written: one error, and then a second try."""

from __future__ import annotations

import os
import random
import resource
import subprocess
from typing import TYPE_CHECKING

import pytest

from pipelines.settings import InputSettings
from tests.cli.process import BPE, bpe, environment
from tests.faults.disk import Disk, bound_by_permissions, small_disk
from tests.faults.running import (
    PATIENCE,
    ended,
    outcome,
    running,
    stamps,
    temporaries,
    until,
)
from tests.pipelines.corpora import (
    count,
    encode,
    patterns,
    sentence,
    small_tokenizer,
    write_jsonl,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.faults.conftest import Undisturbed
    from tests.faults.whole import WholeJob

READ_ONLY = "Read-only file system: make it writable"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """A mebibyte, more than the outputs take."""
    with small_disk(tmp_path / "disk", size="1m") as disk:
        yield disk


def error_of(stderr: str) -> str:
    assert "Traceback" not in stderr
    (error,) = (line for line in stderr.splitlines() if line.startswith("bpe: error:"))
    return error


@pytest.mark.long
@pytest.mark.parametrize("name", ["encode", "train"])
def test_a_full_disk_is_named_and_the_job_goes_on_when_there_is_room(
    small: Undisturbed, disk: Disk, name: str
) -> None:
    out, seen = disk.path / "out", disk.outside / "out"
    free = os.statvfs(disk.outside)
    needed = sum(-(-len(data) // free.f_bsize) for data in small.made(name).values())
    (disk.outside / "ballast").write_bytes(bytes((free.f_bavail - needed // 2) * free.f_bsize))
    done = bpe(*small.command(name, out), status=1, inside=disk.inside)
    error = error_of(done.stderr)
    assert f"{out}/" in error
    assert "No space left on device" in error
    assert "--resume" in error
    assert temporaries(seen) == []
    assert not (seen / "manifest.json").exists()
    assert disk.remount("rw,size=16m")
    bpe(*small.command(name, out, "--resume"), inside=disk.inside)
    assert outcome(seen) == small.made(name)


def command_of(
    name: str, undisturbed: Undisturbed, whole: WholeJob, folder: Path, out: Path
) -> list[str | Path]:
    """`folder` is where the configuration of a run is written."""
    if name == "run":
        return whole.command(folder / "job.yaml", out)
    return undisturbed.command(name, out)


def made_by(name: str, undisturbed: Undisturbed, whole: WholeJob) -> dict[str, bytes]:
    return whole.made() if name == "run" else undisturbed.made(name)


@pytest.mark.long
@pytest.mark.parametrize("name", ["encode", "train", "run"])
def test_a_read_only_output_is_named(
    small: Undisturbed, whole: WholeJob, disk: Disk, tmp_path: Path, name: str
) -> None:
    out, seen = disk.path / "out", disk.outside / "out"
    command = command_of(name, small, whole, tmp_path, out)
    made = made_by(name, small, whole)
    assert disk.remount("ro,size=16m")
    done = bpe(*command, status=1, inside=disk.inside)
    assert done.stderr.count("\n") == 1
    assert f"bpe: error: {out}" in done.stderr
    assert "cannot make it: Read-only file system" in done.stderr
    assert disk.remount("rw,size=16m")
    seen.mkdir()
    assert disk.remount("ro,size=16m")
    done = bpe(*command, status=1, inside=disk.inside)
    assert done.stderr.count("\n") == 1
    assert READ_ONLY in done.stderr
    assert disk.remount("rw,size=16m")
    bpe(*command, "--resume", inside=disk.inside)
    assert outcome(seen) == made


def parts(directory: Path) -> list[Path]:
    """Of an encoding."""
    return list(directory.rglob("train-*.parquet"))


@pytest.mark.parametrize(
    "name", ["encode", *(pytest.param(name, marks=pytest.mark.long) for name in ("train", "run"))]
)
def test_an_output_without_permission_is_named(
    small: Undisturbed, whole: WholeJob, tmp_path: Path, name: str
) -> None:
    out = tmp_path / "closed" / "out"
    out.parent.mkdir()
    command = command_of(name, small, whole, tmp_path, out)
    out.parent.chmod(0o500)
    done = bpe(*command, status=1, inside=bound_by_permissions())
    out.parent.chmod(0o700)
    assert done.stderr.count("\n") == 1
    assert f"bpe: error: {out}" in done.stderr
    assert "cannot make it: Permission denied: make it writable" in done.stderr
    assert list(out.parent.iterdir()) == []


@pytest.mark.long
def test_an_output_that_loses_its_permission(whole: WholeJob, tmp_path: Path) -> None:
    """While ``bpe run`` encodes; what it had begun there it could not remove."""
    out = tmp_path / "out"
    run = whole.command(tmp_path / "job.yaml", out)
    with running(*run, inside=bound_by_permissions()) as process:
        until(lambda: len(parts(out)) >= 3, process)
        (out / "encoded").chmod(0o500)
        status, errors = ended(process)
    (out / "encoded").chmod(0o700)
    (error,) = errors
    assert status == 1
    assert f"{out}/encoded" in error
    assert "Permission denied: make it writable" in error
    assert "--resume" in error
    expected, before = whole.made(), stamps(out)
    assert "encoded/manifest.json" not in before
    bpe(*run, "--resume")
    assert outcome(out) == expected
    assert temporaries(out) == []
    after = stamps(out)
    kept = [name for name in before if name.startswith("encoded/data/train-")]
    assert len(kept) >= 3
    assert all(after[name] == before[name] for name in kept)


@pytest.mark.parametrize("name", ["encode", pytest.param("count", marks=pytest.mark.long)])
def test_a_file_that_may_not_grow_is_named_and_the_job_goes_on_when_it_may(
    tmp_path: Path, name: str
) -> None:
    """A limit of the process, which nobody needs a right for: a write fails as on a full disk."""
    out = tmp_path / "out"
    figures = random.Random(1)
    write_jsonl(tmp_path / "corpus" / "docs.jsonl", [sentence(i, 40) for i in range(40)])
    long = " ".join(str(figures.randrange(10**6)) for _ in range(30_000))
    (tmp_path / "corpus" / "long.txt").write_text(long)
    small_tokenizer(tmp_path / "t.json")
    inputs = InputSettings(patterns=patterns(tmp_path / "corpus"), split_size=2000)
    undisturbed = tmp_path / "undisturbed"
    if name == "encode":
        encode(inputs, tmp_path / "t.json", undisturbed)
    else:
        count(inputs, undisturbed)
    expected = outcome(undisturbed)
    limit = max(map(len, expected.values())) - 1  # bytes: what all files have but one
    assert max(expected, key=lambda file: len(expected[file])).startswith("data/")
    corpus = [word for one in inputs.patterns for word in ("--input", one)]
    command: list[str | Path] = [name, *corpus, "--split-size", "2000", "--output", out]
    command += ["--tokenizer", tmp_path / "t.json"] if name == "encode" else []
    done = subprocess.run(
        [*BPE, *command, "--workers", "2", "--quiet"],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    assert done.returncode == 1
    error = error_of(done.stderr)
    assert f"{out}/data/" in error
    assert "File too large: " in error
    assert "--resume" in error
    assert temporaries(out) == []
    left = outcome(out)
    assert "manifest.json" not in left
    assert all(expected[file] == data for file, data in left.items())
    bpe(*command, "--resume", "--quiet")
    assert outcome(out) == expected


@pytest.mark.long
@pytest.mark.parametrize("name", ["encode", "run"])
def test_a_disk_that_becomes_read_only(
    undisturbed: Undisturbed,
    whole: WholeJob,
    disk: Disk,
    tmp_path: Path,
    name: str,
) -> None:
    """As a kernel does with a disk that fails, while a job writes to it."""
    out, seen = disk.path / "out", disk.outside / "out"
    command = command_of(name, undisturbed, whole, tmp_path, out)
    made = made_by(name, undisturbed, whole)
    assert disk.remount("rw,size=16m")
    with running(*command, inside=disk.inside) as process:
        until(lambda: len(parts(seen)) >= 3, process)
        until(lambda: disk.remount("ro,size=16m"), process)
        status, errors = ended(process)
    (error,) = errors
    assert status == 1
    assert f"{out}/" in error
    assert READ_ONLY in error
    assert disk.remount("rw,size=16m")
    assert parts(seen) != []
    assert list(seen.rglob("encoded/manifest.json")) == []
    bpe(*command, "--resume", inside=disk.inside)
    assert outcome(seen) == made
    assert temporaries(seen) == []
