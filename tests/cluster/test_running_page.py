"""docs/running.md: its five commands bring Flink up, and the demo's job makes the same files."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.cli.pages import blocks
from tests.cli.process import ROOT
from tests.cluster import service

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.long
PAGE = ROOT / "docs" / "running.md"
SECONDS = 3600  # of a command, on a machine that is busy
NOT_OF_A_CLONE = (
    ".git",
    ".venv",
    ".bench-venv",
    ".*_cache",
    ".hypothesis",
    "build",
    "demo",
    "data",
)


def commands() -> list[str]:
    """The five, as typed."""
    (block,) = (one for one in blocks(PAGE) if "-m tests.cluster start" in one.text)
    lines = [line.removeprefix("$ ") for line in block.text.splitlines()]
    assert len(lines) == 5
    return lines


def comparison() -> str:
    """The command that the page says finds no difference."""
    (found,) = re.findall(r"`(diff -r [^`]+)` prints nothing", PAGE.read_text("utf-8"))
    return str(found)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """This checkout without what was made in it but the core, with its environment."""
    made = tmp_path / "beam-bpe"
    shutil.copytree(ROOT, made, ignore=shutil.ignore_patterns(*NOT_OF_A_CLONE))
    (made / ".venv").symlink_to(ROOT / ".venv")
    return made


def typed(command: str, clone: Path) -> str:
    """The output of a shell command in the clone, which must succeed."""
    not_ours = ("PYTHONPATH", "MAKEFLAGS", "MAKELEVEL", "MFLAGS")
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=clone,
        env={name: value for name, value in os.environ.items() if name not in not_ours},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        check=False,
        timeout=SECONDS,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-6000:]}"
    return done.stdout


@pytest.mark.skipif(not (ROOT / ".venv").exists(), reason="the commands name .venv: make install")
def test_the_five_commands_run_the_demo_on_flink(pieces: None, apart: Path, clone: Path) -> None:
    demo, setup, start, run, stop = commands()
    try:
        assert "bpe verify" in typed(demo, clone)
        assert str(apart) in typed(setup, clone)
        assert "configs/runners/flink-standalone.yaml" in typed(start, clone)
        assert service.running()
        with pytest.raises(service.ServiceError, match="a cluster is running"):
            service.start()
        assert "on PortableRunner, job server 127.0.0.1:8099" in typed(run, clone)
        assert (clone / "demo" / "flink" / "encoded" / "manifest.json").exists()
        assert typed(comparison(), clone) == ""
        assert "stopped" in typed(stop, clone)
        assert not service.running()
        assert not service.folder().exists()
    finally:
        service.stop()
