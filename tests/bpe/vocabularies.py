"""Vocabularies that are hard to encode with."""

from __future__ import annotations

import functools
from collections import Counter
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from tests.bpe.texts import library_sources

if TYPE_CHECKING:
    import bpe

BYTES = [bytes([byte]) for byte in range(256)]


@functools.cache
def ranked_tokens(size: int = 3000) -> tuple[bytes, ...]:
    """The bytes in a mixed order, then frequent strings of real text, frequent ones first.

    Nobody trained them: many cannot be merged from others, many in several ways.
    """
    text = b"".join(library_sources(100_000)) + "é漢語🙂ا".encode() * 20
    counts: Counter[bytes] = Counter()
    for length in (2, 3, 4, 5, 7, 11):
        counts.update(text[i : i + length] for i in range(len(text) - length))
    mixed = sorted(BYTES, key=lambda byte: (byte[0] * 167) % 256)
    return (*mixed, *(token for token, _ in counts.most_common(size)))


@st.composite
def merge_tables(draw: st.DrawFn) -> tuple[list[bytes], list[tuple[int, int, int]]]:
    """Tokens and merges over the letters a, b, c in any order: overlaps, ties of strings, dead
    ends, and tokens that nothing makes."""
    tokens = list(BYTES)
    ids = {token: id_ for id_, token in enumerate(tokens)}
    merges: list[tuple[int, int, int]] = []
    for _ in range(draw(st.integers(0, 14))):
        usable = [ids[b"a"], ids[b"b"], ids[b"c"], *range(256, len(tokens))]
        left, right = draw(st.sampled_from(usable)), draw(st.sampled_from(usable))
        made = tokens[left] + tokens[right]
        if len(made) > 12 or any((left, right) == merge[:2] for merge in merges):
            continue
        if made not in ids:
            ids[made] = len(tokens)
            tokens.append(made)
        merges.append((left, right, ids[made]))
    for lonely in draw(st.lists(st.text("abc", min_size=2, max_size=6), max_size=3, unique=True)):
        if lonely.encode() not in ids:
            ids[lonely.encode()] = len(tokens)
            tokens.append(lonely.encode())
    return tokens, draw(st.permutations(merges))


def ranks_of(tokenizer: bpe.Tokenizer) -> dict[tuple[bytes, bytes], int]:
    """The merges as the reference takes them."""
    of = tokenizer.token_bytes
    return {(of(left), of(right)): rank for rank, (left, right, _) in enumerate(tokenizer.merges)}


__all__ = ["BYTES", "merge_tables", "ranked_tokens", "ranks_of"]
