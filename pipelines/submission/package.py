"""A wheel of this package, for workers that lack it."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from pipelines.errors import JobError

DISTRIBUTION = "beam-bpe"
_SOURCES = ("bpe", "pipelines")
_FILES = ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "CHANGELOG.md", "LICENSE")


def fits() -> str:
    """Which workers a wheel that is built here fits, as one phrase."""
    library, version = platform.libc_ver()
    system = f"{platform.system()} {platform.machine()}"
    libc = f", {library} {version} or newer" if library else ""
    return f"CPython {sys.version_info[0]}.{sys.version_info[1]}, {system}{libc}"


def source_tree() -> Path | None:
    """Where this package runs from its sources; None where it is installed without them."""
    root = Path(__file__).resolve().parents[2]
    needed = (root / "pyproject.toml", root / "setup.py", root / "bpe" / "native")
    return root if all(path.exists() for path in needed) else None


def make_wheel(directory: Path) -> Path:
    """Have pip make a wheel of this package: of its sources, or of its release where they are not.

    Args:
        directory: where it goes; made where it is not there.

    Raises:
        JobError: pip fails.
    """
    tree = source_tree()
    with tempfile.TemporaryDirectory(prefix="bpe-package-") as folder:
        if tree is None:
            what = f"{DISTRIBUTION}=={importlib.metadata.version(DISTRIBUTION)}"
        else:  # building leaves files beside the sources, which a later wheel would hold
            copied = Path(folder, "tree")
            _copy(tree, copied)
            what = str(copied)
        wheels = Path(folder, "wheels")
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"]
        command += ["--no-deps", "--wheel-dir", str(wheels), what]
        if tree is not None and _builds_here():
            command.append("--no-build-isolation")
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        if done.returncode:
            lines = [line.strip() for line in (done.stdout + done.stderr).splitlines()]
            last = " / ".join([line for line in lines if line][-3:])[:500]
            raise JobError(f"pip wheel {DISTRIBUTION}: {last or f'exit status {done.returncode}'}")
        (wheel,) = wheels.glob("*.whl")
        directory.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copy(wheel, directory))


def _copy(tree: Path, target: Path) -> None:
    ignore = shutil.ignore_patterns("*.so", "*.pyc", "*.pyd", "__pycache__")
    for name in _SOURCES:
        shutil.copytree(tree / name, target / name, ignore=ignore)
    for name in _FILES:
        shutil.copy2(tree / name, target)
    # The compiled core goes where setuptools would put it, which compiles what is newer.
    core = f"_native{sysconfig.get_config_var('EXT_SUFFIX')}"
    if (tree / "bpe" / core).is_file():
        place = f"lib.{sysconfig.get_platform()}-{sys.implementation.cache_tag}"
        built = target / "build" / place / "bpe"
        built.mkdir(parents=True)
        shutil.copy2(tree / "bpe" / core, built)


def _builds_here() -> bool:
    """Whether what pyproject.toml asks for to build with is installed."""
    try:
        major = int(importlib.metadata.version("setuptools").split(".")[0])
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return False
    return major >= 77 and importlib.util.find_spec("pybind11") is not None
