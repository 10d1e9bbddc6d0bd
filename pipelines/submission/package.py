"""This package for workers that lack it: who brings it, and a wheel of it to bring."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from apache_beam.options.pipeline_options import SetupOptions

from pipelines.errors import ConfigError, JobError

if TYPE_CHECKING:
    from apache_beam.options.pipeline_options import PipelineOptions

    from pipelines.settings import Staging
    from pipelines.submission.workers import Workers

DISTRIBUTION = "beam-bpe"
_SOURCES = ("bpe", "pipelines", "configs")
_FILES = ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "CHANGELOG.md", "LICENSE")


def check_package(made: PipelineOptions, workers: Workers, *, how: Staging) -> None:
    """Refuse a job whose workers lack this package, as far as the options tell.

    Raises:
        ConfigError: nothing brings it to them; the message says what does.
    """
    if how == "auto" and needs_package(made, workers):
        raise ConfigError(
            f"the {workers} lack beam-bpe: make a wheel with bpe package --output DIR, which "
            "prints the option of Beam that brings it; or name an image that has it "
            "(--sdk_container_image), or use `stage` none if they have it"
        )


def needs_package(made: PipelineOptions, workers: Workers) -> bool:
    """Whether workers lack this package, as far as the options tell."""
    setup = made.view_as(SetupOptions)
    brought = (
        setup.setup_file,
        any(map(is_ours, setup.extra_packages or ())),
        setup.requirements_file and _requires_us(setup.requirements_file),
        workers.has_own_image,
    )
    return not workers.here and not any(brought)


def is_ours(path: str) -> bool:
    """Whether a file of a package is one of this package, by its name.

    >>> is_ours("dist/beam_bpe-0.1.0-cp311-cp311-linux_x86_64.whl"), is_ours("other-1.0.tar.gz")
    (True, False)
    """
    name = os.path.basename(path).lower().replace("-", "_")  # noqa: PTH119 - it may be a URL
    return name.startswith(DISTRIBUTION.replace("-", "_") + "_")


def _requires_us(path: str) -> bool:
    try:
        lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False  # Beam says what is wrong with it
    return any(line.strip().lower().replace("_", "-").startswith("beam-bpe") for line in lines)


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
        made = Path(folder, "wheel")
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"]
        command += ["--no-deps", "--wheel-dir", str(made), what]
        if tree is not None and _builds_here():
            command.append("--no-build-isolation")
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        if done.returncode:
            lines = [line.strip() for line in (done.stdout + done.stderr).splitlines()]
            last = " / ".join([line for line in lines if line][-3:])[:500]
            raise JobError(f"pip wheel {DISTRIBUTION}: {last or f'exit status {done.returncode}'}")
        (wheel,) = made.glob("*.whl")
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
