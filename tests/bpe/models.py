"""Tokenizers of characters and WordPieces, and the textbook beside them."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

import bpe
from bpe.reference.encode import encode as reference_encode

if TYPE_CHECKING:
    from collections.abc import Iterable

# Characters of one to four bytes, with and without tokens; "<" and "/" begin an end of word.
LETTERS = "ab<é漢\N{SLIGHTLY SMILING FACE}"
STRANGERS = "x/>ß語\N{GRINNING FACE}"


def make(
    strings: Iterable[str], pairs: Iterable[tuple[str, str]] = (), **settings: Any
) -> bpe.Tokenizer:
    """A tokenizer whose ids are the places of the strings; by default cut by ``words``."""
    tokens = [string.encode() for string in strings]
    ids = {token: id_ for id_, token in enumerate(tokens)}
    merges = [(ids[a.encode()], ids[b.encode()], ids[(a + b).encode()]) for a, b in pairs]
    special = settings.pop("special", ())
    settings.setdefault("pretokenizer", bpe.Pretokenizer("words"))
    settings["special_tokens"] = {content: ids[content.encode()] for content in special}
    return bpe.Tokenizer(tokens=tokens, merges=merges, **settings)


def reference(
    tokenizer: bpe.Tokenizer, text: bytes, *, dropout: float = 0.0, seed: int = 0
) -> list[int]:
    """The ids of a text without special tokens, by the textbook."""
    of = tokenizer.token_bytes
    unknown = None if isinstance(tokenizer.model, bpe.ByteLevel) else tokenizer.model.unknown
    special = {content for content in tokenizer.special_tokens if content != unknown}
    return reference_encode(
        tokenizer.pretokenizer.split(text),
        ids={
            token: id_
            for id_, token in enumerate(tokenizer.tokens)
            if token and token.decode("utf-8", "replace") not in special
        },
        ranks={(of(a), of(b)): rank for rank, (a, b, _) in enumerate(tokenizer.merges)},
        model=tokenizer.model,
        ignore_merges=tokenizer.ignore_merges,
        dropout=dropout,
        seed=seed,
    )


@st.composite
def character_tokenizers(draw: st.DrawFn, *, unknown: bool = True) -> bpe.Tokenizer:
    """Some characters, an end of word or none, and merges of them in any order."""
    end = draw(st.sampled_from(["</w>", "", "\N{BULLET}"]))
    strings = [*LETTERS, *([end] if end else [])]
    pairs: dict[tuple[str, str], None] = {}
    for _ in range(draw(st.integers(0, 14))):
        left = draw(st.sampled_from([s for s in strings if not (end and s.endswith(end))]))
        pair = (left, draw(st.sampled_from(strings)))
        if len(left + pair[1]) <= 12:
            pairs[pair] = None
            strings += [left + pair[1]] if left + pair[1] not in strings else []
    special = ["<unk>"] if unknown else []
    return make(
        [*special, *strings],
        draw(st.permutations(list(pairs))),
        special=special,
        model=bpe.CharacterLevel(end_of_word=end, unknown="<unk>" if unknown else None),
        ignore_merges=draw(st.booleans()),
    )


@st.composite
def word_pieces(draw: st.DrawFn) -> bpe.Tokenizer:
    """Pieces of words over few letters, so that the longest one leads into many dead ends."""
    prefix = draw(st.sampled_from(["##", "", "é"]))
    parts = st.lists(st.text(LETTERS, min_size=1, max_size=4), max_size=8)
    strings = dict.fromkeys(
        chain(["[UNK]"], draw(parts), (prefix + part for part in draw(parts)), draw(parts))
    )
    model = bpe.WordPiece(prefix=prefix, max_characters=draw(st.sampled_from([3, 8, 100])))
    return make(strings, special=["[UNK]"], model=model)


def texts(letters: str = LETTERS) -> st.SearchStrategy[str]:
    """Words of letters."""
    return st.lists(st.text(letters, min_size=1, max_size=20), max_size=6).map(" ".join)
