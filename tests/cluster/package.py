"""Our package in the forms in which a job brings it to workers that lack it."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import sysconfig
from typing import TYPE_CHECKING

from tests.cli.pages import blocks, commands_of
from tests.cli.process import ROOT

if TYPE_CHECKING:
    from pathlib import Path

_SOURCES = ("bpe", "pipelines", "configs", "docs")
_FILES = ("setup.py", "pyproject.toml", "MANIFEST.in", "README.md", "CHANGELOG.md", "LICENSE")
_BUILT = shutil.ignore_patterns("__pycache__", "*.so", "*.egg-info")


def staged(folder: Path) -> dict[str, tuple[str, ...]]:
    """Options of Beam that stage a wheel, or sources that each worker compiles with pybind11."""
    setup_file = _copied_sources(folder / "sources") / "setup.py"
    return {
        "wheel": (f"--extra_package={built_wheel(folder)}",),
        "sources": (f"--setup_file={setup_file}", "--experiments=pip_use_build_isolation"),
    }


def built_wheel(folder: Path) -> Path:
    """A wheel of a copy of this checkout, by the command of docs/runners.md, without downloads."""
    sources = _copied_sources(folder / "tree", with_core=True)
    commands = [
        shlex.split(command)
        for block in blocks(ROOT / "docs" / "runners.md")
        if block.kind == "console"
        for command in commands_of(block)
    ]
    (pip,) = (command for command in commands if command[:2] == ["pip", "wheel"])
    command = [sys.executable, "-m", *pip, "--no-build-isolation", "--quiet"]
    subprocess.run(command, cwd=sources, check=True, timeout=1800)
    (wheel,) = (sources / "dist").iterdir()
    return wheel


def _copied_sources(target: Path, *, with_core: bool = False) -> Path:
    for name in _SOURCES:
        shutil.copytree(ROOT / name, target / name, ignore=_BUILT)
    for name in _FILES:
        shutil.copy(ROOT / name, target)
    if with_core:  # where setuptools would put it, which compiles what is newer
        place = f"lib.{sysconfig.get_platform()}-{sys.implementation.cache_tag}"
        built = target / "build" / place / "bpe"
        built.mkdir(parents=True)
        shutil.copy2(ROOT / "bpe" / f"_native{sysconfig.get_config_var('EXT_SUFFIX')}", built)
    return target
