"""Our package in the forms in which a job brings it to workers that lack it."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipelines.submission.package import make_wheel
from tests.cli.process import ROOT

if TYPE_CHECKING:
    from pathlib import Path

_SOURCES = ("bpe", "pipelines", "configs", "docs")
_FILES = ("setup.py", "pyproject.toml", "MANIFEST.in", "README.md", "CHANGELOG.md", "LICENSE")
_BUILT = shutil.ignore_patterns("__pycache__", "*.so", "*.egg-info")


@dataclass(frozen=True)
class Package:
    """What Beam stages: a wheel, or sources that each worker compiles."""

    wheel: Path
    setup_file: Path

    @classmethod
    def built(cls, folder: Path) -> Package:
        """Make the wheel, and a copy of the sources of this checkout."""
        sources = folder / "sources"
        for name in _SOURCES:
            shutil.copytree(ROOT / name, sources / name, ignore=_BUILT)
        for name in _FILES:
            shutil.copy(ROOT / name, sources)
        return cls(make_wheel(folder), sources / "setup.py")

    @property
    def as_wheel(self) -> tuple[str, ...]:
        """Options of Beam that stage the wheel."""
        return (f"--extra_package={self.wheel}",)

    @property
    def as_sources(self) -> tuple[str, ...]:
        """Options of Beam that stage the sources, which need pybind11 to be compiled."""
        return (f"--setup_file={self.setup_file}", "--experiments=pip_use_build_isolation")
