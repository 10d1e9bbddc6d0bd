"""Vocabularies that are hard to encode with."""

from __future__ import annotations

import functools
from collections import Counter
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

import bpe
from tests.bpe.texts import library_sources

if TYPE_CHECKING:
    from collections.abc import Sequence

BYTES = [bytes([byte]) for byte in range(256)]
SPECIAL = ["<|endoftext|>", "<|end|>", "<|end|><|end|>", "Ġ é🙂"]

Merge = tuple[int, int, int]
MergeTable = tuple[list[bytes], list[Merge]]


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
    whole = {}
    for content in (*special_tokens, *added_tokens):
        whole[content] = len(tokens)
        tokens.append(content.encode())
    return bpe.Tokenizer(
        tokens=tokens,
        merges=merges,
        pretokenizer=bpe.Pretokenizer.of(pretokenizer, pattern),
        special_tokens={content: whole[content] for content in special_tokens},
        added_tokens={content: whole[content] for content in added_tokens},
        ignore_merges=ignore_merges,
    )


@st.composite
def merge_tables(draw: st.DrawFn, letters: str = "abc", most_merges: int = 14) -> MergeTable:
    """Tokens and merges over the bytes of some letters in any order.

    Merges overlap, make the same string in several ways, or are never reached, and some tokens
    nothing makes.
    """
    tokens = list(BYTES)
    ids = {token: id_ for id_, token in enumerate(tokens)}
    merges: dict[tuple[int, int], int] = {}
    given_bytes = sorted(set(letters.encode()))
    for _ in range(draw(st.integers(0, most_merges))):
        usable = st.sampled_from([*given_bytes, *range(256, len(tokens))])
        left, right = draw(usable), draw(usable)
        made = tokens[left] + tokens[right]
        if len(made) > 12:
            continue
        if made not in ids:
            ids[made] = len(tokens)
            tokens.append(made)
        merges[left, right] = ids[made]
    for lonely in draw(st.lists(st.text(letters, min_size=2, max_size=6), max_size=3, unique=True)):
        if lonely.encode() not in ids:
            ids[lonely.encode()] = len(tokens)
            tokens.append(lonely.encode())
    return tokens, draw(st.permutations([(*pair, result) for pair, result in merges.items()]))
