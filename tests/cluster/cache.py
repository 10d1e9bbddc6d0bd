"""The pieces of a cluster: their versions, and their folder outside the checkout."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from importlib.metadata import requires, version
from pathlib import Path

# The newest pair whose jars Maven's central repository holds in full. Where the job server of the
# Python Beam's own version can be had, and the cluster is of another release, change them here.
FLINK = "1.19"
BEAM_JAVA = "2.62.0"
SLF4J = "1.7.30"
SPARK = "3.2"  # as configs/runners/spark-pom.xml has it
BEAM = version("apache-beam")

_DISTRIBUTION = "beam-bpe"


def root() -> Path:
    """The folder of all pieces: ``BPE_CLUSTER``, or one in the user's cache."""
    if chosen := os.environ.get("BPE_CLUSTER"):
        return Path(chosen).absolute()
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache, _DISTRIBUTION, "cluster").absolute()


def jars() -> Path:
    """The folder of Flink with Beam's job server, and of nothing else."""
    return root() / f"flink-{FLINK}-beam-{BEAM_JAVA}"


def spark() -> Path:
    """The folder of Spark with Beam's job server, and of nothing else."""
    return root() / f"spark-{SPARK}-beam-{BEAM_JAVA}"


def sql() -> Path:
    """The folder of Beam SQL, without what it has in common with `jars`."""
    return root() / f"sql-beam-{BEAM_JAVA}"


def prism() -> Path:
    """The program Prism."""
    return root() / f"prism-{BEAM}" / "prism"


def boot() -> Path:
    """The entry point of Beam's images for Python workers."""
    return root() / f"boot-{BEAM}" / "container"


def worker() -> Path:
    """A Python environment with what our package needs, and without our package."""
    wanted = hashlib.sha256("\n".join(worker_packages()).encode()).hexdigest()
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return root() / f"worker-{python}-{wanted[:12]}"


def worker_python() -> Path:
    """The interpreter of `worker`."""
    return worker() / "bin" / "python"


def worker_packages() -> list[str]:
    """The requirements of our package, in the versions that are installed here.

    Beam wants one version on both sides, and the same pyarrow writes the same bytes.
    """
    needed = [one for one in requires(_DISTRIBUTION) or () if "extra ==" not in one]
    names = [found[0] for one in needed if (found := re.match(r"[\w.-]+", one))]
    return sorted(f"{name}=={version(name)}" for name in names)


def pieces() -> dict[str, Path]:
    """Every piece, and the file or folder that is there when it is whole."""
    return {
        f"Flink {FLINK} with the job server of Beam {BEAM_JAVA}": jars(),
        f"Spark {SPARK} with the job server of Beam {BEAM_JAVA}": spark(),
        f"Beam SQL {BEAM_JAVA}": sql(),
        f"Prism {BEAM}": prism(),
        f"the boot program of Beam {BEAM}": boot(),
        "a Python environment for workers": worker() / ".complete",
    }


def missing() -> list[str]:
    """The pieces that are not here."""
    return [name for name, path in pieces().items() if not path.exists()]
