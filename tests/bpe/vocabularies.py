"""Vocabularies that are hard to encode with."""

from __future__ import annotations

import base64
import functools
from collections import Counter
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

import bpe
from tests.bpe.texts import library_sources

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable, Sequence

BYTES = [bytes([byte]) for byte in range(256)]
SPECIAL = ["<|endoftext|>", "<|end|>", "<|end|><|end|>", "Ġ é🙂"]

Merge = tuple[int, int, int]
MergeTable = tuple[list[bytes | None], list[Merge]]


def byte_tokenizer(
    *tokens: str | None,
    joins: Sequence[str] = (),
    superwords: Sequence[str] = (),
    **settings: Any,
) -> bpe.Tokenizer:
    """The bytes and these tokens, None for a gap; ``a|b`` merges a and b. Cut by gpt2."""
    table = [*BYTES, *(token and token.encode() for token in tokens)]

    def merges(joins: Sequence[str]) -> list[Merge]:
        pairs = [join.encode().split(b"|") for join in joins]
        return [(table.index(a), table.index(b), table.index(a + b)) for a, b in pairs]

    settings.setdefault("pretokenizer", bpe.Pretokenizer("gpt2"))
    across = merges(superwords)
    return bpe.Tokenizer(tokens=table, merges=merges(joins), superwords=across, **settings)


def rank_lines(tokens: Iterable[bytes]) -> bytes:
    """A .tiktoken file in which tokens have the ranks of their places."""
    return b"".join(base64.b64encode(token) + b" %d\n" % n for n, token in enumerate(tokens))


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


@functools.cache
def small_tokenizer(
    pretokenizer: str | None = "gpt2",
    *,
    pattern: str | None = None,
    ignore_merges: bool = False,
    special_tokens: tuple[str, ...] = tuple(SPECIAL),
    added_tokens: tuple[str, ...] = (),
) -> bpe.Tokenizer:
    """3,256 tokens, merged from two halves where these are tokens; special ones after a gap."""
    tokens: list[bytes | None] = list(ranked_tokens())
    ids = {token: id_ for id_, token in enumerate(tokens)}
    merges = []
    for id_, token in enumerate(ranked_tokens()):
        for cut in range(1, len(token)):
            left, right = ids.get(token[:cut]), ids.get(token[cut:])
            if left is not None and right is not None:
                merges.append((left, right, id_))
    tokens += [None, None]
    named = enumerate((*special_tokens, *added_tokens), start=len(tokens))
    whole = {content: id_ for id_, content in named}
    return bpe.Tokenizer(
        tokens=[*tokens, *map(str.encode, whole)],
        merges=merges,
        pretokenizer=bpe.Pretokenizer.of(pretokenizer, pattern),
        special_tokens={content: whole[content] for content in special_tokens},
        added_tokens={content: whole[content] for content in added_tokens},
        ignore_merges=ignore_merges,
    )


def drawn_merges(
    tokens: list[bytes | None], usable: Sequence[int], tries: int, dice: random.Random
) -> list[Merge]:
    """Merges in any order that overlap, make a string in several ways, or are never reached.

    The tokens that they make are put after the others.
    """
    ids = {token: id_ for id_, token in enumerate(tokens)}
    first = len(tokens)
    merges: dict[tuple[int, int], int] = {}
    for _ in range(tries):
        left, right = (dice.choice([*usable, *range(first, len(tokens))]) for _ in range(2))
        token = (tokens[left] or b"") + (tokens[right] or b"")
        if len(token) <= 24:
            if token not in ids:
                ids[token] = len(tokens)
                tokens.append(token)
            merges.setdefault((left, right), ids[token])
    return dice.sample([(*pair, result) for pair, result in merges.items()], len(merges))


@st.composite
def merge_tables(draw: st.DrawFn) -> MergeTable:
    """Tokens and merges over three letters, and some tokens that nothing makes."""
    tokens: list[bytes | None] = [*BYTES]
    dice = draw(st.randoms(use_true_random=False))
    merges = drawn_merges(tokens, list(b"abc"), draw(st.integers(0, 14)), dice)
    lonely = draw(st.lists(st.text("abc", min_size=2, max_size=6).map(str.encode), max_size=3))
    return [*dict.fromkeys([*tokens, *lonely])], merges
