"""A disk that is full, an output that cannot be written: one error, and then a second try."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.process import bpe
from tests.faults.disk import Disk, bound_by_permissions, small_disk
from tests.faults.running import ended, outcome, running, stamps, temporaries, until
from tests.shared_data import long_but

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.faults.conftest import Undisturbed
    from tests.faults.whole import WholeJob

READ_ONLY = "Read-only file system: make it writable"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """A mebibyte, more than the outputs take."""
    with small_disk(tmp_path / "disk", size="1m") as disk:
        yield disk


@pytest.mark.parametrize("name", long_but(["encode", "train"], "encode"))
def test_a_full_disk_is_named_and_the_job_goes_on_when_there_is_room(
    small: Undisturbed, disk: Disk, name: str
) -> None:
    out, seen = disk.path / "out", disk.outside / "out"
    free = os.statvfs(disk.outside)
    needed = sum(-(-len(data) // free.f_bsize) for data in small.made(name).values())
    (disk.outside / "ballast").write_bytes(bytes((free.f_bavail - needed // 2) * free.f_bsize))
    done = bpe(*small.command(name, out), status=1, inside=disk.inside)
    assert "Traceback" not in done.stderr
    (error,) = (line for line in done.stderr.splitlines() if line.startswith("bpe: error:"))
    for words in (f"{out}/", "No space left on device", "--resume"):
        assert words in error
    assert temporaries(seen) == []
    assert not (seen / "manifest.json").exists()
    assert disk.remount("rw,size=16m")
    bpe(*small.command(name, out, "--resume"), inside=disk.inside)
    assert outcome(seen) == small.made(name)


def test_an_output_without_permission_is_named(small: Undisturbed, tmp_path: Path) -> None:
    out = tmp_path / "closed" / "out"
    out.parent.mkdir()
    out.parent.chmod(0o500)
    done = bpe(*small.command("encode", out), status=1, inside=bound_by_permissions())
    out.parent.chmod(0o700)
    assert done.stderr.count("\n") == 1
    assert f"bpe: error: {out}" in done.stderr
    assert "cannot write: Permission denied: make it writable" in done.stderr
    assert list(out.parent.iterdir()) == []


@pytest.mark.long
@pytest.mark.parametrize("named", [READ_ONLY, "Permission denied: make it writable"])
def test_an_output_that_cannot_be_written_any_more(
    whole: WholeJob, disk: Disk, tmp_path: Path, named: str
) -> None:
    """While ``bpe run`` encodes: as a kernel does with a disk that fails, or a user by chmod."""
    out, seen = disk.path / "out", disk.outside / "out"
    run = whole.command(tmp_path / "job.yaml", out)
    assert disk.remount("rw,size=16m")
    with running(*run, inside=(*disk.inside, *bound_by_permissions())) as process:
        until(lambda: len(list(seen.glob("encoded/data/train-*.parquet"))) >= 3, process)
        if named == READ_ONLY:
            until(lambda: disk.remount("ro,size=16m"), process)
        else:
            (seen / "encoded").chmod(0o500)
        status, (error,) = ended(process)
    assert disk.remount("rw,size=16m")
    (seen / "encoded").chmod(0o700)
    assert status == 1
    assert f"{out}/encoded" in error
    assert named in error
    assert "--resume" in error
    before = stamps(seen)
    assert "encoded/manifest.json" not in before
    bpe(*run, "--resume", inside=disk.inside)
    assert outcome(seen) == whole.made()
    assert temporaries(seen) == []
    recorded = [Path(name).stem for name in before if name.startswith("encoded/records/train-")]
    kept = [f"encoded/data/{stem}.parquet" for stem in recorded]
    after = stamps(seen)
    assert kept
    assert [after[name] for name in kept] == [before[name] for name in kept]


def test_a_file_that_may_not_grow_is_named(small: Undisturbed, tmp_path: Path) -> None:
    """A limit of the process: a write fails as on a full disk, and needs another remedy."""
    limit = (small.folder / "t.json").stat().st_size - 1
    command = small.command("encode", tmp_path / "out")
    done = bpe(*command, status=1, inside=("prlimit", f"--fsize={limit}"))
    error = done.stderr.splitlines()[-1]
    assert error.startswith(f"bpe: error: {tmp_path / 'out'}/")
    assert "File too large: allow larger files" in error
    assert "finish the job with --resume" in error
