"""The corpus and the tokenizer of many tests here, made once a process: nobody may change them."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from apache_beam.runners.direct import executor

import bpe
from tests.pipelines.corpora import Corpus, count, encode, small_tokenizer, write_corpus

if TYPE_CHECKING:
    from pathlib import Path

# Idle threads of Beam's runner of streams ask every so many seconds whether their pipeline has
# ended, and each pipeline waits for them: five seconds, if Beam is left to itself.
executor._ExecutorService._ExecutorServiceWorker.TIMEOUT = 0.05


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


@pytest.fixture(scope="session")
def tokenizer(model: Path) -> bpe.Tokenizer:
    """That tokenizer."""
    return bpe.Tokenizer.load(model)


@pytest.fixture(scope="session")
def letters() -> bpe.Tokenizer:
    """One that has tokens for a, b and c only, and no unknown token."""
    counts = bpe.count_pretokens(["ab abc cab bc"], pretokenizer="words")
    return bpe.train(counts, vocab_size=12, model=bpe.CharacterLevel())


@pytest.fixture(scope="session")
def encoded(corpus: Corpus, model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The corpus, encoded."""
    path = tmp_path_factory.mktemp("encoded") / "ids"
    encode(corpus.inputs(), model, path)
    return path


@pytest.fixture(scope="session")
def counted(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The corpus, counted."""
    path = tmp_path_factory.mktemp("counted") / "counts"
    count(corpus.inputs(), path)
    return path


@pytest.fixture
def ids(encoded: Path, tmp_path: Path) -> Path:
    """A copy of it, which a test may change."""
    return shutil.copytree(encoded, tmp_path / "ids")
