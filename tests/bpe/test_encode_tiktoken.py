"""Ids equal to tiktoken's, for its own vocabularies and for one made here."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np
import pytest
import tiktoken
from hypothesis import given

import bpe
from bpe.pretokenizer import PATTERNS
from tests.bpe.texts import library_sources, strings
from tests.bpe.vocabularies import rank_lines, ranked_tokens
from tests.shared_data import LONG, shared_file, shared_rows

if TYPE_CHECKING:
    from collections.abc import Iterable

PUBLISHED = ("r50k_base", "cl100k_base", "o200k_base")
URL = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"


@pytest.fixture(scope="module", params=PUBLISHED)
def published(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[bpe.Tokenizer, tiktoken.Encoding]:
    """A published vocabulary as we load it, and as tiktoken does from its cache."""
    path = shared_file(f"vocabs/{request.param}.tiktoken")
    cache = tmp_path_factory.mktemp("cache")
    name = hashlib.sha1(URL.format(request.param).encode(), usedforsecurity=False).hexdigest()
    (cache / name).symlink_to(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", str(cache))
        encoding = tiktoken.get_encoding(request.param)
    return bpe.Tokenizer.load(path), encoding


@pytest.fixture(scope="module", params=["gpt2", "cl100k", "o200k"])
def small(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[bpe.Tokenizer, tiktoken.Encoding]:
    """A vocabulary of frequent strings, which no trainer would make: many overlap."""
    tokens = ranked_tokens()
    path = tmp_path_factory.mktemp("small") / "small.tiktoken"
    path.write_bytes(rank_lines(tokens))
    special = {"<|endoftext|>": len(tokens) + 3}
    encoding = tiktoken.Encoding(
        "small",
        pat_str=PATTERNS[request.param],
        mergeable_ranks={token: rank for rank, token in enumerate(tokens)},
        special_tokens=special,
    )
    return bpe.Tokenizer.load(path, pretokenizer=request.param, special_tokens=special), encoding


def check(pair: tuple[bpe.Tokenizer, tiktoken.Encoding], texts: Iterable[str]) -> None:
    tokenizer, encoding = pair
    for text in texts:
        ids = tokenizer.encode(text)
        assert ids == encoding.encode_ordinary(text)
        assert tokenizer.decode(ids) == text


@pytest.mark.shared
@pytest.mark.parametrize("corpus", ["en", "multi"])
def test_documents_of_the_corpora(
    published: tuple[bpe.Tokenizer, tiktoken.Encoding], corpus: str
) -> None:
    tokenizer, encoding = published
    for batch in shared_rows(corpus, sample=800).to_batches(max_chunksize=2000):
        texts = batch["text"]
        rows = tokenizer.encode_arrow(texts)
        expected = encoding.encode_ordinary_batch(texts.to_pylist(), num_threads=2)
        assert len(rows) == len(expected)
        for i, row in enumerate(expected):
            assert np.array_equal(rows[i].values.to_numpy(), row), texts[i].as_py()[:100]


@pytest.mark.shared
@given(text=strings())
def test_hard_text_with_a_published_vocabulary(
    text: str, published: tuple[bpe.Tokenizer, tiktoken.Encoding]
) -> None:
    check(published, [text])


@given(text=strings())
def test_hard_text_with_a_small_vocabulary(
    text: str, small: tuple[bpe.Tokenizer, tiktoken.Encoding]
) -> None:
    check(small, [text])


def test_library_sources(small: tuple[bpe.Tokenizer, tiktoken.Encoding]) -> None:
    size = 2_000_000 if LONG else 500_000
    check(small, [source.decode("utf-8", "replace") for source in library_sources(size)])


def test_repetitions(small: tuple[bpe.Tokenizer, tiktoken.Encoding]) -> None:
    lengths = (1, 2, 63, 64, 65, 127, 5000)
    check(small, [letters * n for letters in ("a", "ab", " ", "\n ", "the ", "é") for n in lengths])
