"""Encoding against the textbook, and on input that nobody would write."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import bpe
from bpe.errors import EncodingError
from bpe.tokenizer import CacheUse
from tests.bpe.steps import INSTRUMENTED, assert_linear
from tests.bpe.texts import library_sources
from tests.bpe.vocabularies import byte_tokenizer, small_tokenizer

MEGABYTE = 1 << 20
RANDOM = random.Random(1)  # the same texts every time


def test_a_lone_surrogate_is_refused_with_its_place() -> None:
    for text, place in (("\ud800", 0), ("a\udfff", 1), ("\ud83d \ude00", 0)):
        with pytest.raises(EncodingError, match=f"lone surrogate .* character {place}"):
            small_tokenizer().encode(text)


@pytest.mark.parametrize("text", [None, 5, ["a"], bytearray(b"a")])
def test_what_is_no_text_is_named(text: Any) -> None:
    with pytest.raises(TypeError, match=r"the text is .*, not a str or bytes"):
        small_tokenizer().encode(text)


# Special tokens.


def test_what_is_not_special_cannot_be_allowed() -> None:
    with pytest.raises(EncodingError, match=r"'<s>' is not a special token.*'<\|endoftext\|>'"):
        small_tokenizer().encode("a", allowed_special=["<s>"])
    with pytest.raises(EncodingError, match="collection of special tokens or 'all'"):
        small_tokenizer().encode("a", allowed_special="<|endoftext|>")


# Long pieces.

LONG_PIECES = {
    "one letter": b"a" * MEGABYTE,
    "spaces": b" " * MEGABYTE,
    "letters": bytes(RANDOM.choices(b"abcdefghijklmnopqrstuvwxyz", k=MEGABYTE)),
    "bytes": RANDOM.randbytes(MEGABYTE),
    "almost special": b"<|end" * (MEGABYTE // 5),
}


@pytest.mark.parametrize("name", ["none", "gpt2"])
@pytest.mark.parametrize("text", LONG_PIECES.values(), ids=LONG_PIECES)
def test_a_piece_of_a_megabyte_takes_linear_work(name: str, text: bytes) -> None:
    tokenizer = small_tokenizer(name)
    ids = tokenizer.encode(text, allowed_special="all")
    assert tokenizer.decode_bytes(ids) == text
    if INSTRUMENTED:
        assert_linear(lambda size: tokenizer.encode(text[:size], allowed_special="all"), 50_000)


def test_doubling_merges_on_a_megabyte() -> None:
    runs = ["a" * 2**k for k in range(16)]
    joins = [f"{half}|{half}" for half in runs[:-1]]
    tokenizer = byte_tokenizer(*runs[1:], joins=joins, pretokenizer=bpe.Pretokenizer("none"))
    last = len(tokenizer) - 1
    assert tokenizer.encode("a" * (MEGABYTE + 3)) == [last] * 32 + [256, 97]
    if INSTRUMENTED:
        assert_linear(lambda size: tokenizer.encode(b"a" * size), 50_000)


# Arrow.


def test_chunked_arrays_keep_their_chunks() -> None:
    tokenizer = small_tokenizer()
    texts = pa.chunked_array([["a b", None], [], ["c"]], pa.string())
    rows = tokenizer.encode_arrow(texts)
    assert [len(chunk) for chunk in rows.chunks] == [2, 0, 1]
    none = tokenizer.encode_arrow(pa.chunked_array([], pa.string()))
    assert none.type == pa.list_(pa.uint32())
    assert len(none) == 0


@pytest.mark.parametrize("size", [1 << 16, (1 << 16) + 1])
def test_narrow_ids_must_fit(size: int) -> None:
    tokens = [f"<{id_}>" for id_ in range(256, size)]
    last = tokens[-1:]
    tokenizer = byte_tokenizer(*tokens, special_tokens={last[0]: size - 1})
    if size > 1 << 16:
        with pytest.raises(EncodingError, match="it ends at 65535, and there is an id 65536"):
            tokenizer.encode_arrow(last, id_type="uint16")
        return
    ids = tokenizer.encode_arrow(last, allowed_special="all", id_type="uint16")
    assert ids.to_pylist() == [[65535]]
    with pytest.raises(EncodingError, match="id_type 'int64' is not 'uint16' or 'uint32'"):
        tokenizer.encode_arrow(last, id_type="int64")


@pytest.mark.parametrize("superwords", [0, 20])
def test_threads_encode_at_once(superwords: int) -> None:
    tokenizer = small_tokenizer("o200k")
    texts = pa.array([source.decode("utf-8", "replace") for source in library_sources(400_000)])
    if superwords:
        runs = bpe.count_runs(texts, tokenizer=tokenizer)
        tokenizer = bpe.train_superwords(runs, tokenizer=tokenizer, superwords=superwords)
    once = CacheUse()
    expected = tokenizer.encode_arrow(texts, cache_use=once)
    # Each thread allows other tokens than its neighbour: the matcher is shared.
    allowed: list[Any] = ["all", ()] * 2
    special = [tokenizer.encode("<|end|> x", allowed_special=tokens) for tokens in allowed]
    together = threading.Barrier(4)

    def work(tokens: Any) -> list[int]:
        together.wait()
        for _ in range(3):
            use = CacheUse()
            ids = tokenizer.encode("<|end|> x", allowed_special=tokens)
            assert tokenizer.encode_arrow(texts, cache_use=use) == expected
            assert use.hits + use.misses == once.hits + once.misses
        return ids

    with ThreadPoolExecutor(4) as pool:
        assert [*pool.map(work, allowed)] == special


def with_more(*tokens: str, more: int, **settings: Any) -> bpe.Tokenizer:
    """Of words: the bytes, these tokens, and as many more that no text here has."""
    others = (f"#{number:05x}" for number in range(more))
    return byte_tokenizer(*tokens, *others, pretokenizer=bpe.Pretokenizer("words"), **settings)


# Ids of a small vocabulary are kept in 16 bits, those of a large one in 32.
@pytest.mark.parametrize("more_tokens", [0, pytest.param(70_000, marks=pytest.mark.long)])
def test_a_full_cache_forgets_rare_words_only(more_tokens: int) -> None:
    joins = ["1|2", "3|4", "12|34", "0|0"]
    tokenizer = with_more("12", "34", "1234", "00", more=more_tokens, joins=joins)
    often = [f"{n:x} {n:012d} {n:024d}" for n in range(0, 2_000_000, 2_000)]
    # 2.2 million words that come once, or what is enough to fill the table: short ones, ones of
    # many ids, long ones; in an instrumented core, more short ones.
    texts = 500_000 if INSTRUMENTED else 730_000
    once = [
        f"{n:07x} g{n:06x} h{n:06x}" if INSTRUMENTED and n % 8 else f"{n:07x} {n:012d} {n:024d}"
        for n in range(10**8, 10**8 + texts)
    ]
    known = tokenizer.encode_arrow(pa.array(often))
    use = CacheUse()
    for first in range(0, len(once), 10_000):
        column = pa.array(once[first : first + 10_000])
        found = tokenizer.encode_arrow(column)
        sample = pa.array(range(0, len(column), 997))
        assert tokenizer.decode_arrow(found.take(sample)).to_pylist() == [
            text.replace(" ", "").encode() for text in column.take(sample).to_pylist()
        ]
        assert tokenizer.encode_arrow(pa.array(often), cache_use=use).equals(known)
    # Long words are kept in a ring: the frequent ones come in again when it has gone round.
    assert use.hits > 20 * use.misses
    for text, ids in zip(often[::97], known[::97].to_pylist(), strict=True):
        assert tokenizer.encode(text) == ids


@pytest.mark.parametrize("more_tokens", [0, 70_000], ids=["small", "large"])
def test_a_long_token_that_merging_does_not_make_outlasts_the_cache(more_tokens: int) -> None:
    tokenizer = with_more("a_token_of_twenty_b.", more=more_tokens, ignore_merges=True)
    # With their ids more bytes than the ring holds for long words: it goes round.
    for first in range(0, 8_000 if more_tokens else 12_000, 1_000):
        tokenizer.encode_arrow(pa.array([f"{n:01000d}" for n in range(first, first + 1_000)]))
        assert tokenizer.encode("a_token_of_twenty_b.") == [256]


# Columns of texts.

COLUMN = ["low lower", None, "", "é<|end|>"]


@pytest.mark.parametrize(
    "texts",
    [
        COLUMN,
        tuple(COLUMN),
        (text for text in COLUMN),
        [None if text is None else text.encode() for text in COLUMN],
        pd.Series(COLUMN),
        pl.Series(COLUMN),
        pd.Series(COLUMN, dtype="category"),
        pd.Series(COLUMN, dtype=pd.ArrowDtype(pa.string())),
        np.array(COLUMN, object),
        pa.array(COLUMN).dictionary_encode(),
        pa.array(COLUMN, pa.string_view()),
        pa.array(COLUMN).cast(pa.binary_view()),
        pa.chunked_array([COLUMN[:1], COLUMN[1:]]),
        pa.chunked_array([COLUMN[:1], COLUMN[1:]]).dictionary_encode(),
        pa.chunked_array([COLUMN], pa.string_view()),
    ],
    ids=lambda texts: f"{type(texts).__module__}.{type(texts).__name__}",
)
def test_columns_of_any_kind(texts: Any) -> None:
    tokenizer = small_tokenizer()
    ids = tokenizer.encode_arrow(texts).to_pylist()
    assert ids == [None if text is None else tokenizer.encode(text) for text in COLUMN]


@pytest.mark.parametrize(
    ("texts", "named"),
    [
        ("low", r"texts is a single text, 'low': give a list, \[text\]"),
        (b"low", "texts is a single text"),
        (5, "texts is 5: give a list of str, an Arrow array or a Series of strings"),
        (["low", 5], "text 1 is 5, not a str or bytes"),
        (pd.Series([1, 2]), "not int64; cast it first"),
        (pa.array([None, None]), "not null; cast it first"),
        (pa.array([["low"]]), "not list<item: string>; cast it first"),
    ],
)
def test_what_is_no_column_of_texts_is_named(texts: Any, named: str) -> None:
    with pytest.raises(TypeError, match=named):
        small_tokenizer().encode_arrow(texts)
    with pytest.raises(EncodingError, match="text 1 has a lone surrogate at character 1"):
        small_tokenizer().encode_arrow(["low", "a\ud800"])
