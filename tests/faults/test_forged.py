"""An input that changes between a kill and ``--resume``, its size and time put back."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

from tests.cli.process import bpe
from tests.faults.running import ended, outcome, running, until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.faults.conftest import Undisturbed


def test_old_and_new_are_not_mixed(undisturbed: Undisturbed, tmp_path: Path) -> None:
    job = replace(undisturbed, folder=tmp_path)
    shutil.copytree(undisturbed.corpus, job.corpus)
    shutil.copy(undisturbed.folder / "t.json", tmp_path)
    out, (path,) = tmp_path / "out", job.corpus.iterdir()
    with running(*job.command("encode", out)) as process:
        until(lambda: len(list((out / "records").glob("*.json"))) >= 3, process)
        process.kill()
        ended(process)
    before = path.stat()
    text = path.read_bytes()
    path.write_bytes(text.replace(b"the", b"eht"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = path.stat()
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert path.read_bytes() != text
    bpe(*job.command("encode", out, "--resume"))
    bpe(*job.command("encode", tmp_path / "fresh"))
    assert outcome(out) == outcome(tmp_path / "fresh")
