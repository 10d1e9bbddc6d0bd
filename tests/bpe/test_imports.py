"""Rules of imports: the algorithm imports no Beam; tests and explanations import its oracle."""

from __future__ import annotations

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING

import pytest

from tests.cli.process import ROOT, environment

if TYPE_CHECKING:
    from pathlib import Path

PACKAGES = ("bpe", "pipelines", "examples", "benchmarks", "scripts")
FILES = sorted(path for name in PACKAGES for path in (ROOT / name).rglob("*.py"))


def module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module(path) for path in FILES}


def imported(path: Path) -> set[str]:
    """The modules that a file imports, wherever in it; ``import a.b`` imports ``a`` too."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            whole = {f"{node.module}.{alias.name}" for alias in node.names} & MODULES
            names |= whole if len(whole) == len(node.names) else {node.module or "", *whole}
    return names


@pytest.mark.parametrize("package", PACKAGES)
def test_only_tests_and_explain_import_the_oracle(package: str) -> None:
    importers = [
        module(path)
        for path in FILES
        if module(path).partition(".")[0] == package
        and not module(path).startswith("bpe.reference")
        and any(name.startswith("bpe.reference") for name in imported(path))
    ]
    assert importers == (["bpe.explain"] if package == "bpe" else [])


def test_the_algorithm_imports_neither_beam_nor_the_pipelines() -> None:
    for path in FILES:
        if module(path).partition(".")[0] == "bpe":
            roots = {name.partition(".")[0] for name in imported(path)}
            assert roots.isdisjoint({"apache_beam", "pipelines", "click", *PACKAGES[1:]}), path


def test_no_import_of_the_algorithm_runs_in_a_circle_not_even_for_types() -> None:
    graph = {
        module(path): imported(path) & MODULES - {"bpe"}
        for path in FILES
        if module(path).partition(".")[0] == "bpe"
    }
    order = [*TopologicalSorter(graph).static_order()]  # raises CycleError
    assert order.index("bpe.errors") < order.index("bpe.tokenizer")


def test_importing_the_library_loads_no_more_of_the_oracle_and_no_beam() -> None:
    code = "import sys; from bpe import *; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True
    )
    loaded = done.stdout.split()
    assert "bpe.tokenizer" in loaded
    assert sorted(
        name for name in loaded if name.startswith(("bpe.reference.", "apache_beam", "pipelines"))
    ) == ["bpe.reference.encode", "bpe.reference.merge"]
