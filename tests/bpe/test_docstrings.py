"""The examples in docstrings print what they say, and no docstring begins with a question."""

from __future__ import annotations

import doctest
import importlib
import re

import pytest

from tests.bpe.test_imports import FILES, module
from tests.cli.process import ROOT

MODULES = [name for name in map(module, FILES) if name.split(".")[0] in ("bpe", "examples")]

QUESTION = re.compile(r'"""\s*(What|How|Whether|Where|Which|Why)\b.*')


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    if name == "examples.training":
        pytest.importorskip("torch", reason="see make test-examples")
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_no_docstring_begins_with_a_question() -> None:
    found = [
        (str(path.relative_to(ROOT)), match.group())
        for path in [*FILES, *(ROOT / "tests").rglob("*.py")]
        for match in QUESTION.finditer(path.read_text("utf-8"))
    ]
    assert not found
