"""Characters of several bytes: the core takes their tokens at once where that changes nothing."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import bpe
from tests.bpe.models import reference
from tests.bpe.vocabularies import BYTES, MergeTable, merge_tables
from tests.examples import examples

# Bytes in common at both ends; two, three and four of them; ASCII and a space beside them.
LETTERS = "éèɩ東𐐩a "


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


@given(
    table=merge_tables(LETTERS, 24),
    texts=st.lists(
        st.one_of(
            st.text(LETTERS, max_size=20).map(str.encode),
            st.lists(st.sampled_from(LETTERS.encode()), max_size=20).map(bytes),
        ),
        min_size=1,
        max_size=6,
    ),
)
@example(table=trained("東", "é"), texts=["東é東".encode(), "東".encode()[:2] + "é".encode()])
@examples(400)
def test_any_merges_equal_the_textbook(table: MergeTable, texts: list[bytes]) -> None:
    tokenizer = tokenizer_of(table)
    for text in texts:
        assert tokenizer.encode(text) == reference(tokenizer, text)


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
        assert tokenizer.encode(repeated) == reference(tokenizer, repeated.encode())


def test_a_merge_may_make_pairs_of_lower_rank_anywhere() -> None:
    """Ranks that nobody trained: each merge of a long text makes one that comes before it."""
    tokens = [*BYTES, b"ab", b"abc"]
    merges = [(256, ord("c"), 257), (ord("a"), ord("b"), 256)]
    tokenizer = tokenizer_of((tokens, merges))
    text = "abc" * 300 + "ab" * 100
    assert tokenizer.encode(text) == reference(tokenizer, text.encode())
    assert len(tokenizer.encode("abc" * 300_000)) == 300_000
