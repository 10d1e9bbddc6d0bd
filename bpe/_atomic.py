"""Ids that ordinary text can never produce."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bpe.models import ByteLevel, CharacterLevel, WordPiece

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bpe.models import Model


def atomic_ids(
    *,
    special_tokens: Mapping[str, int],
    added_tokens: Mapping[str, int],
    merging: Iterable[int],
    model: Model,
) -> set[int]:
    """The ids that a text holds only where it is cut at the token itself.

    Every special token is one. An added token is one, unless the rest of a text can produce it:
    it is a symbol of the model, a merge uses or makes it, or it is a piece of WordPiece.

    Args:
        special_tokens: with their ids.
        added_tokens: with their ids.
        merging: the ids that merges use or make.
        model: what a pre-token consists of.
    """
    ids = set(special_tokens.values())
    if isinstance(model, WordPiece) or not added_tokens:
        return ids
    merging = set(added_tokens.values()).intersection(merging)
    return ids | {
        id_
        for content, id_ in added_tokens.items()
        if id_ not in merging and not _is_symbol(content, model)
    }


def _is_symbol(content: str, model: Model) -> bool:
    if isinstance(model, CharacterLevel):
        return len(content) == 1 or content == model.end_of_word
    return isinstance(model, ByteLevel) and len(content.encode()) == 1
