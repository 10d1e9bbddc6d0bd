"""Special tokens of files that do not say which they are: given with their ids, or by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bpe.errors import TokenizerFileError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path
    from typing import TypeAlias

    SpecialIds: TypeAlias = Mapping[str, int | None] | Collection[str] | None


def with_ids(
    path: Path, special_tokens: SpecialIds, *, known: Mapping[str, int]
) -> dict[str, int] | None:
    """The special tokens with their ids; None where nothing is given.

    Args:
        path: the file, for messages.
        special_tokens: ids by token; one without an id, or a token alone, has a known one.
        known: the ids that tokens have by what the file, or its publisher, says.

    Raises:
        TokenizerFileError: a token is given without an id and not known.
    """
    if special_tokens is None:
        return None
    if isinstance(special_tokens, str):
        raise TokenizerFileError(
            f"{path}: special tokens are given as one str, {special_tokens!r}: give a list, "
            f"[{special_tokens!r}]"
        )
    given = (
        dict(special_tokens.items())
        if hasattr(special_tokens, "items")
        else dict.fromkeys(special_tokens)
    )
    found = {}
    for content, id_ in given.items():
        if id_ is None:
            id_ = known.get(content)  # noqa: PLW2901 - the id by name
        if type(id_) is not int:
            raise TokenizerFileError(
                f"{path}: the special token {content!r} has no id in this file: give it with its "
                f"id ({content}=ID, or {{{content!r}: ID}})"
                if id_ is None
                else f"{path}: the special token {content!r} has the id {id_!r}, which is no number"
            )
        found[content] = id_
    return found
