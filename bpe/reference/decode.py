"""Decoding, as in the textbook: join the tokens, and make spaces of what stands for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bpe.models import CharacterLevel, WordPiece

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from bpe.models import Model


def decode(tokens: Sequence[bytes], *, model: Model, special: Container[bytes] = ()) -> bytes:
    """The text of tokens.

    Args:
        tokens: their bytes.
        model: what marks the beginning or end of a word.
        special: tokens that hold no such mark.

    >>> decode([b"low", b"er</w>", b"and</w>"], model=CharacterLevel())
    b'lower and'
    >>> decode([b"un", b"##aff", b"##able", b"men"], model=WordPiece())
    b'unaffable men'
    """
    if isinstance(model, CharacterLevel) and model.end_of_word:
        end = model.end_of_word.encode()
        spaces = [b" "] * (len(tokens) - 1) + [b""]
        return b"".join(
            token.removesuffix(end) + space
            if token.endswith(end) and token not in special
            else token
            for token, space in zip(tokens, spaces, strict=False)
        )
    if isinstance(model, WordPiece):
        prefix = model.prefix.encode()
        first, rest = tokens[:1], tokens[1:]
        return b"".join(first) + b"".join(
            token.removeprefix(prefix) if token.startswith(prefix) else b" " + token
            for token in rest
        )
    return b"".join(tokens)
