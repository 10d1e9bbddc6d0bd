"""Hits of the cache of words: hits and misses are the pre-tokens of the textbook."""

from __future__ import annotations

import pyarrow as pa
import pytest

import bpe
from bpe.errors import UnknownCharacterError
from bpe.reference.pretokenize import count
from bpe.tokenizer import CacheUse
from tests.bpe.texts import library_sources
from tests.bpe.vocabularies import SPECIAL, small_tokenizer

TEXTS = [*library_sources(200_000), "été 漢字 🙂 été".encode(), b"", b"\xff\xfe", b"x" * 5000]
WORDS = r"\w+|\W"  # which the core does not know: cut in Python


def encoded(tokenizer: bpe.Tokenizer, texts: list[bytes], **arguments: object) -> CacheUse:
    use = CacheUse()
    column = pa.array(texts, pa.large_binary())
    tokenizer.encode_arrow(column, cache_use=use, **arguments)  # type: ignore[arg-type]
    return use


@pytest.mark.parametrize(
    ("pretokenizer", "pattern", "whole"),
    [
        *((name, None, False) for name in ("gpt2", "cl100k", "qwen2", "none")),
        ("gpt2", None, True),
        (None, WORDS, False),
    ],
)
def test_hits_and_misses_are_the_pretokens(
    pretokenizer: str | None, pattern: str | None, *, whole: bool
) -> None:
    tokenizer = small_tokenizer(pretokenizer, pattern=pattern, ignore_merges=whole)
    counts = count(TEXTS, pretokenizer=tokenizer.pretokenizer)
    first = encoded(tokenizer, TEXTS)
    assert first.hits + first.misses == counts.total()
    # Before the first text the cache holds single bytes, or all tokens that can be a word.
    known = set(tokenizer.tokens) if whole else {bytes([value]) for value in range(256)}
    long = sum(times for word, times in counts.items() if len(word) > 1024)  # never remembered
    assert first.misses == long + sum(len(word) <= 1024 for word in set(counts) - known)
    assert first.misses > long
    assert encoded(tokenizer, TEXTS) == CacheUse(
        hits=counts.total() - long,
        misses=long,
    )


def test_special_tokens_are_no_pretokens() -> None:
    tokenizer = small_tokenizer()
    texts = [f"a {SPECIAL[0]} b{SPECIAL[1]}".encode(), *TEXTS[:3]]
    specials = [token.encode() for token in SPECIAL]
    counts = count(texts, pretokenizer="gpt2", special_tokens=specials)
    use = encoded(tokenizer, texts, allowed_special="all")
    assert use.hits + use.misses == counts.total()


def test_with_dropout_every_pretoken_is_merged() -> None:
    pretokens = count(TEXTS, pretokenizer="gpt2").total()
    assert encoded(small_tokenizer(), TEXTS, dropout=0.1) == CacheUse(misses=pretokens)


def test_it_adds_up_over_calls_and_chunks_and_not_where_there_is_an_error() -> None:
    counts = bpe.count_pretokens(["low lower lowest"], pretokenizer="gpt2")
    tokenizer = bpe.train(
        counts, vocab_size=30, model=bpe.CharacterLevel(end_of_word="", unknown=None)
    )
    use = CacheUse()
    rows = pa.chunked_array([["low lower"], [None, "lowest"]], pa.string())
    for _ in range(2):
        tokenizer.encode_arrow(rows, cache_use=use)
    assert use.hits + use.misses == 2 * 3
    with pytest.raises(UnknownCharacterError):
        tokenizer.encode_arrow(pa.array(["low", "ö"]), cache_use=use)
    assert use.hits + use.misses == 2 * 3
