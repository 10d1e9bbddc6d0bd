"""Characters of several bytes: the core takes their tokens at once where that changes nothing."""

from __future__ import annotations

import pytest

import bpe
from tests.bpe.oracle import ByReference
from tests.bpe.vocabularies import BYTES, MergeTable


def tokenizer_of(table: MergeTable) -> bpe.Tokenizer:
    tokens, merges = table
    return bpe.Tokenizer(tokens=tokens, merges=merges, pretokenizer=bpe.Pretokenizer("none"))


def trained(*strings: str, first: tuple[bytes, ...] = ()) -> MergeTable:
    """Tokens for some strings, each made byte after byte; those of ``first`` come before them."""
    tokens = list(BYTES)
    merges: list[tuple[int, int, int]] = []
    for string in (*first, *(one.encode() for one in strings)):
        left = string[0]
        for at in range(1, len(string)):
            made = string[: at + 1]
            if made not in tokens:
                tokens.append(made)
                merges.append((left, string[at], len(tokens) - 1))
            left = tokens.index(made)
    return tokens, merges


@pytest.mark.parametrize(
    ("table", "text"),
    [
        # A token that ends before the character takes its first byte, or its first two.
        (trained("é", first=(b" \xc3",)), " é"),
        (trained("é", first=("a\xc3".encode("latin-1"),)), "aé"),
        (trained("é", first=(b"\xa9\xc3",)), "éé"),
        (trained("東", first=(b"\xe6\x9d", b" \xe6\x9d")), " 東"),
        # One that begins behind it takes its last byte.
        (trained("é", first=(b"\xa9a",)), "éa"),
        (trained("é", first=(b"\xa9\xc3",)), "éè"),
        # What takes the whole character was made before the character can be.
        (
            (
                [*BYTES, "é".encode(), "éa".encode(), b"aa"],
                [(256, ord("a"), 257), (ord("a"), ord("a"), 258), (0xC3, 0xA9, 256)],
            ),
            "éaa",
        ),
    ],
)
def test_neighbours_that_come_first_are_seen(table: MergeTable, text: str) -> None:
    tokenizer = tokenizer_of(table)
    for repeated in (text, text * 3, f"{text}x{text}"):
        assert tokenizer.encode(repeated) == ByReference(tokenizer).ids(repeated.encode())


def test_a_merge_may_make_pairs_of_lower_rank_anywhere() -> None:
    """Ranks that nobody trained: each merge of a long text makes one that comes before it."""
    tokens = [*BYTES, b"ab", b"abc"]
    merges = [(256, ord("c"), 257), (ord("a"), ord("b"), 256)]
    tokenizer = tokenizer_of((tokens, merges))
    text = "abc" * 300 + "ab" * 100
    assert tokenizer.encode(text) == ByReference(tokenizer).ids(text.encode())
    assert len(tokenizer.encode("abc" * 300_000)) == 300_000
