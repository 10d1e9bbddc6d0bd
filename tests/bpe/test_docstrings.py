"""The examples in docstrings print what they say, and no docstring begins with a question."""

from __future__ import annotations

import ast
import doctest
import importlib

import pytest

from tests.bpe.test_imports import FILES, module
from tests.cli.process import ROOT

MODULES = [name for name in map(module, FILES) if name.split(".")[0] in ("bpe", "examples")]

QUESTIONS = ("What", "How", "Whether", "Where", "Which", "Why")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    if name == "examples.training":
        pytest.importorskip("torch", reason="see make test-examples")
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_no_docstring_begins_with_a_question() -> None:
    found = [
        (str(path.relative_to(ROOT)), text.splitlines()[0])
        for path in [*FILES, *(ROOT / "tests").rglob("*.py")]
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, DOCUMENTED) and (text := ast.get_docstring(node))
        if text.split()[0] in QUESTIONS
    ]
    assert not found
