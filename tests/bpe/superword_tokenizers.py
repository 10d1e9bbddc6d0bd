"""Tokenizers with superwords that nobody trained, texts full of runs, and the textbook's ids."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import strategies as st

import bpe
from bpe.reference import pretokenize
from bpe.reference.superwords import encode as reference_encode
from tests.bpe.texts import byte_strings
from tests.bpe.vocabularies import merge_tables

SPECIAL = "<s>"
ADDED = "<+>"

# Cut by the core, by a table, and by Python; with a match that is never split.
CUTS: list[dict[str, Any]] = [
    {"name": "gpt2"},
    {"name": "o200k"},
    {"name": "words"},
    {"name": "none"},
    {"pattern": r" ?[a-c]|\d+"},
    {"pattern": [r" ?\w+", r"[ab]+|c"]},
    {"pattern": r"( ?[abc])\1|."},
    {"name": "gpt2", "never_split": ["b+"]},
    {"pattern": r" ?[a-c]", "never_split": ["ab", r"\d"]},
    {"name": "gpt2", "normalizer": ["lowercase", "nfc"]},
]

_PIECES = [
    *(b"a", b"b", b"c", b" a", b" b", b" c", b" ab", b" abc", b"ab", b"A", b" B"),
    *(b" ", b"  ", b"1", b"23", b"\n", b"\xff", b"\xc3", "é".encode(), "e\u0301".encode()),
    *(SPECIAL.encode(), ADDED.encode(), b"<", b"s>"),
]
texts = st.lists(st.sampled_from(_PIECES) | byte_strings(), max_size=24).map(b"".join)


@st.composite
def superword_tokenizers(draw: st.DrawFn) -> bpe.Tokenizer:
    """Superwords overlap, make a string in several ways, or one that words make too."""
    tokens, merges = draw(merge_tables(" abc"))
    ids = {token: id_ for id_, token in enumerate(tokens)}
    words = [*b" abcA1\xff", *range(256, len(tokens))]
    superwords: dict[tuple[int, int], int] = {}
    for _ in range(draw(st.integers(0, 12))):
        usable = st.sampled_from([*words, *range(max(words) + 1, len(tokens))])
        left, right = draw(usable), draw(usable)
        made = tokens[left] + tokens[right]
        if len(made) > 16:
            continue
        if made not in ids:
            ids[made] = len(tokens)
            tokens.append(made)
        superwords[left, right] = ids[made]
    special, added = len(tokens), len(tokens) + 1
    cut = draw(st.sampled_from(CUTS))
    return bpe.Tokenizer(
        tokens=[*tokens, SPECIAL.encode(), ADDED.encode()],
        merges=merges,
        superwords=draw(st.permutations([(*pair, made) for pair, made in superwords.items()])),
        pretokenizer=bpe.Pretokenizer.of(**{"name": None, "pattern": None} | cut),
        special_tokens={SPECIAL: special},
        added_tokens={ADDED: added} if draw(st.booleans()) else {},
        ignore_merges=draw(st.booleans()),
    )


def segments_of(
    tokenizer: bpe.Tokenizer, text: bytes, *, special: bool
) -> tuple[list[list[bytes]], list[bytes]]:
    """The pre-tokens between tokens that are cut out, and these tokens."""
    cut_out = [*tokenizer.added_tokens, *(tokenizer.special_tokens if special else ())]
    pattern = "|".join(map(re.escape, cut_out)).encode() or b"(?!)"
    between = re.split(pattern, text)
    pieces = [
        pretokenize.split(tokenizer.pretokenizer, part, behind_special=number > 0)
        for number, part in enumerate(between)
    ]
    return pieces, re.findall(pattern, text)


def reference(
    tokenizer: bpe.Tokenizer,
    text: bytes,
    *,
    special: bool = False,
    dropout: float = 0.0,
    seed: int = 0,
) -> list[int]:
    """The textbook's ids of a text."""
    segments, between = segments_of(tokenizer, text, special=special)
    cut_out = {*tokenizer.special_tokens.values(), *tokenizer.added_tokens.values()}
    encoded = reference_encode(
        segments,
        ids={
            token: id_
            for id_, token in enumerate(tokenizer.tokens)
            if token is not None and id_ not in cut_out
        },
        ranks=tokenizer.parts.ranks(tokenizer.parts.merges),
        superwords=tokenizer.parts.ranks(tokenizer.parts.superwords),
        alone={tokenizer.token_bytes(id_) for id_ in tokenizer.parts.superword_ids},
        ignore_merges=tokenizer.ignore_merges,
        whole={
            pretoken
            for segment in segments
            for pretoken in segment
            if tokenizer.pretokenizer.is_never_split(pretoken)
        },
        dropout=dropout,
        seed=seed,
    )
    ids = encoded[0]
    for token, segment in zip(between, encoded[1:], strict=True):
        ids += [tokenizer.token_id(token) or 0, *segment]
    return ids
