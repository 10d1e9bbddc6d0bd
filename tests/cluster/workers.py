"""Python workers of a cluster on this machine, as an image of Beam's would start them."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.cluster import cache
from tests.cluster.processes import HOST, Program, free_ports

if TYPE_CHECKING:
    from collections.abc import Iterator

_POOL = Path(__file__).with_name("pool.py")

# Beam's images give each container a fresh environment. Here it is a thin one over that of
# `cache.worker`, in a folder of its own, into which the boot program installs what was staged.
_BOOT = """\
#!/bin/sh
set -eu
home=$(mktemp -d {folder}/worker-XXXXXX)
mkdir -p "$home/bin" "$home/{packages}"
ln -s {python} "$home/bin/python"
ln -s python "$home/bin/python3"
cat > "$home/pyvenv.cfg" <<EOF
home = {base}
include-system-site-packages = false
EOF
echo {worker}/{packages} > "$home/{packages}/worker.pth"
cd "$home"
unset PYTHONPATH PYTHONHOME
export PATH="$home/bin:$PATH" VIRTUAL_ENV="$home" TMPDIR="$home" \\
    RUN_PYTHON_SDK_IN_DEFAULT_ENVIRONMENT=1
exec {boot} "$@" --semi_persist_dir="$home"
"""


def boot_command(folder: Path) -> Path:
    """A program that starts a worker without our package, which gets what the job stages.

    Args:
        folder: for the program and the environments of the workers.
    """
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    python = cache.worker_python().resolve()
    script = folder / "boot"
    script.write_text(
        _BOOT.format(
            folder=shlex.quote(str(folder)),
            packages=f"lib/{version}/site-packages",
            python=shlex.quote(str(python)),
            base=python.parent,
            worker=shlex.quote(str(cache.worker())),
            boot=shlex.quote(str(cache.boot())),
        ),
        encoding="utf-8",
    )
    script.chmod(0o755)
    return script


@contextlib.contextmanager
def started_pool(
    folder: Path, *, boot: Path | None = None, port: int | None = None
) -> Iterator[tuple[Program, str]]:
    """A pool of workers for ``--environment_type=EXTERNAL``; it and its address.

    Args:
        folder: for its log.
        boot: starts a worker (see `boot_command`); None for this Python, which has our package.
        port: where it listens; None for a free one.
    """
    port = port or free_ports(1)[0]
    command = [sys.executable, str(_POOL), str(port), *([str(boot)] if boot else [])]
    with Program("pool", command, folder=folder, env=environment(TMPDIR=str(folder))) as pool:
        yield pool.wait_for(port), f"{HOST}:{port}"


def environment(**changes: str) -> dict[str, str]:
    """Ours, in which ``python`` is this Python and finds the package of this checkout."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    root = str(Path(__file__).resolve().parents[2])
    return {**os.environ, "PATH": path, "PYTHONPATH": root, **changes}
