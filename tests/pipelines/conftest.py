"""The corpus and the tokenizer of many tests here, made once a process: nobody may change them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.pipelines.corpora import Corpus, small_tokenizer, write_corpus

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Every format, and what is odd in them."""
    return write_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a small tokenizer."""
    path = tmp_path_factory.mktemp("model") / "tokenizer.json"
    small_tokenizer(path)
    return path
