"""This package as one file that workers can install: built, or put together again, and kept.

From a source tree (a clone, an editable install) pip builds a wheel; of an installed distribution
the files that its RECORD names become the wheel that they came from. What was made once is kept
in the user's cache directory (``XDG_CACHE_HOME``, else ``~/.cache``), under a name that depends on
every byte it was made of. Where that cannot be written, it is made for each command anew, which
says so.
"""

from __future__ import annotations

import atexit
import base64
import contextlib
import csv
import functools
import hashlib
import importlib.metadata
import importlib.util
import io
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.errors import ConfigError, JobError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DISTRIBUTION = "beam-bpe"
_SOURCES = ("bpe", "pipelines", "configs")
_FILES = (
    "pyproject.toml",
    "setup.py",
    "MANIFEST.in",
    "README.md",
    "CHANGELOG.md",
    "LICENSE",
)
_BUILD_SECONDS = 1800


def is_ours(path: str) -> bool:
    """Whether a file of a package is one of this package, by its name.

    >>> is_ours("dist/beam_bpe-0.1.0-cp311-cp311-linux_x86_64.whl"), is_ours("other-1.0.tar.gz")
    (True, False)
    """
    name = os.path.basename(path).lower().replace("-", "_")  # noqa: PTH119 - it may be a URL
    return name.startswith(DISTRIBUTION.replace("-", "_") + "_")


def source_tree() -> Path | None:
    """Where this package runs from its sources; None where it is installed without them."""
    root = Path(__file__).resolve().parents[2]
    module = root / "bpe" / "native" / "python" / "module.cpp"
    needed = (root / "pyproject.toml", root / "setup.py", module)
    return root if all(path.is_file() for path in needed) else None


def wheel(say: Callable[[str], None]) -> Path:
    """A wheel of the package as it runs here.

    It fits workers with the same minor version of Python, the same kind of machine and system, and
    a C library that is not older (`fits`).

    Args:
        say: told when something is built, which can take a minute.

    Raises:
        JobError: it cannot be built.
    """
    tree = source_tree()
    if tree is None:
        return _kept("installed", _installed_digest(), _repack, say=say)
    digest = _digest(_files_of(tree), tree)

    def build(folder: Path) -> None:
        say("building a wheel of beam-bpe for the workers (once for each version of its sources)")
        copied = folder / "tree"
        _copy(tree, copied)
        _reuse_core(tree, copied)
        _build_wheel(copied, folder)
        shutil.rmtree(copied)

    return _kept("wheel", digest, build, say=say)


def sources(say: Callable[[str], None]) -> Path:
    """A copy of the sources, for ``--setup_file``: its ``setup.py``.

    Args:
        say: told where they cannot be kept.

    Raises:
        ConfigError: the package is installed without its sources, or what builds them is missing.
        JobError: they cannot be copied.
    """
    tree = source_tree()
    if tree is None:
        raise ConfigError(
            "`stage` sdist needs the sources of beam-bpe, and it is installed without them: use "
            "`stage` wheel, or `package` FILE"
        )
    if not _builds_here():
        raise ConfigError(
            "`stage` sdist needs what the sources are built with in this environment: "
            "pip install 'setuptools>=77' 'pybind11>=3.0,<4' (or use `stage` wheel)"
        )

    def copy(folder: Path) -> None:
        _copy(tree, folder / "tree")

    return _kept("sources", _digest(_files_of(tree), tree), copy, say=say) / "setup.py"


def fits() -> str:
    """Which workers a wheel that is built here fits, as one phrase."""
    library, version = platform.libc_ver()
    system = f"{platform.system()} {platform.machine()}"
    libc = f", {library} {version} or newer" if library else ""
    return f"CPython {sys.version_info[0]}.{sys.version_info[1]}, {system}{libc}"


def _kept(
    kind: str, digest: str, make: Callable[[Path], None], *, say: Callable[[str], None]
) -> Path:
    """What ``make`` puts into a folder (one thing), made once for each digest."""
    cache, why_not = _cache()
    place = cache / f"{kind}-{digest[:32]}"
    with contextlib.suppress(OSError):
        if found := _only(place):
            return found
    if why_not:
        say(f"{why_not}: what is made for the workers is not kept (XDG_CACHE_HOME=DIR chooses)")
    folder = Path(tempfile.mkdtemp(prefix=".making-", dir=cache))
    try:
        make(folder)
        if _only(folder) is None:
            raise JobError("building the package for the workers left nothing: use `package` FILE")
        with contextlib.suppress(OSError):  # another process was faster: its result is the same
            folder.rename(place)
        found = _only(place)
    except OSError as error:
        raise JobError(
            f"{cache}: cannot make the package for the workers there ({error.strerror or error}): "
            "make room, choose another place with XDG_CACHE_HOME=DIR, or use `package` FILE"
        ) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if found is None:
        raise JobError(f"{place}: cannot keep the package for the workers there")
    return found


def _only(folder: Path) -> Path | None:
    found = sorted(folder.iterdir())
    return found[0] if len(found) == 1 else None


def _cache() -> tuple[Path, str]:
    """A folder of this user that is kept; where there is none, one of this process, and why."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    try:
        user = Path(base) if Path(base).is_absolute() else Path.home() / ".cache"
    except RuntimeError as error:
        return _own_folder(), str(error)
    folder = user / DISTRIBUTION / "packages"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder, ""
    except OSError as error:
        return _own_folder(), f"{folder} cannot be written ({error.strerror or error})"


@functools.cache
def _own_folder() -> Path:
    """Removed with the end of this process, when the job has been submitted."""
    folder = Path(tempfile.mkdtemp(prefix="beam-bpe-packages-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _files_of(tree: Path) -> Iterator[Path]:
    yield from (tree / name for name in _FILES if (tree / name).is_file())
    for name in _SOURCES:
        for path in sorted((tree / name).rglob("*")):
            made = path.suffix in (".so", ".pyc", ".pyd") or "__pycache__" in path.parts
            if path.is_file() and not made:
                yield path


def _digest(files: Iterator[Path], root: Path) -> str:
    sha256 = hashlib.sha256(sysconfig.get_platform().encode() + sys.version.encode())
    for path in files:
        data = path.read_bytes()
        sha256.update(f"{path.relative_to(root)}\0{len(data)}\0".encode())
        sha256.update(data)
    return sha256.hexdigest()


def _copy(tree: Path, target: Path) -> None:
    for path in _files_of(tree):
        copied = target / path.relative_to(tree)
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, copied)  # with its time: what is compiled already is compared with it


def _reuse_core(tree: Path, copied: Path) -> None:
    """Put the compiled core where setuptools would; it compiles again where a source is newer."""
    place = f"lib.{sysconfig.get_platform()}-{sys.implementation.cache_tag}"
    name = f"_native{sysconfig.get_config_var('EXT_SUFFIX')}"
    core = tree / "bpe" / name
    if core.is_file():
        target = copied / "build" / place / "bpe"
        target.mkdir(parents=True)
        shutil.copy2(core, target / name)


def _builds_here() -> bool:
    """Whether what pyproject.toml asks for to build with is installed."""
    try:
        major = int(importlib.metadata.version("setuptools").split(".")[0])
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return False
    return major >= 77 and importlib.util.find_spec("pybind11") is not None


def _build_wheel(tree: Path, folder: Path) -> None:
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--wheel-dir", str(folder), str(tree)]
    if _builds_here():
        command.append("--no-build-isolation")
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_BUILD_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise JobError(f"building a wheel of beam-bpe for the workers: {error}") from error
    if done.returncode:
        said = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        raise JobError(
            "building a wheel of beam-bpe for the workers failed: give one with `package` FILE, or "
            f"`stage` none if they have it. pip says: {' / '.join(said[-3:])[:500]}"
        )


def _distribution() -> importlib.metadata.Distribution:
    try:
        return importlib.metadata.distribution(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError as error:
        raise JobError(
            "beam-bpe is neither installed nor run from its sources: give the workers a wheel of "
            "it with `package` FILE, or `stage` none if they have it"
        ) from error


def _installed_digest() -> str:
    return hashlib.sha256((_distribution().read_text("RECORD") or "").encode()).hexdigest()


def _repack(folder: Path) -> None:
    """Put the files of the installed distribution into a wheel again."""
    distribution = _distribution()
    stem = f"{DISTRIBUTION.replace('-', '_')}-{distribution.version}"
    info = f"{stem}.dist-info"
    left_out = {
        f"{info}/{name}" for name in ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json")
    }
    files = {
        str(file): Path(str(distribution.locate_file(file))).read_bytes()
        for file in distribution.files or ()
        if ".." not in file.parts and file.suffix != ".pyc" and str(file) not in left_out
    }
    if f"{info}/WHEEL" not in files or "bpe/__init__.py" not in files:
        raise JobError(
            "the installed beam-bpe does not say which files it is made of: give the workers a "
            "wheel of it with `package` FILE"
        )
    said = files[f"{info}/WHEEL"].decode().splitlines()
    tag = next(line.split(":", 1)[1].strip() for line in said if line.startswith("Tag:"))
    record = io.StringIO()
    rows = csv.writer(record, lineterminator="\n")
    with zipfile.ZipFile(folder / f"{stem}-{tag}.whl", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in sorted(files.items()):
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            rows.writerow([name, f"sha256={digest}", len(data)])
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
        rows.writerow([f"{info}/RECORD", "", ""])
        archive.writestr(zipfile.ZipInfo(f"{info}/RECORD"), record.getvalue())
