"""The common parts of tokenizer file formats: the content of a file, and its writing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bpe.errors import TokenizerFileError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from pathlib import Path
    from typing import TypeAlias

    from bpe.formats.export_checks import Loss, LossName
    from bpe.parts import Parts
    from bpe.pretokenizer import Pretokenizer

    SpecialIds: TypeAlias = Mapping[str, int | None] | Collection[str] | None


@dataclass(frozen=True, kw_only=True)
class Format:
    """A tokenizer file format.

    Attributes:
        files: the names of its files, for messages.
        endings: how the names of its files end.
        usual_names: the names of its files in a directory; the first is read.
        self_contained: whether its files define the pre-tokenizer and the special tokens, so that
            the caller must not.
        companions: of a path, the other files that are read with it.
        may_have: of a path, more files that are read with it where they are there.
        reads: whether a path is read as this format.
        writes: whether a path is written as this format.
        read: of a path, a pre-tokenizer and special tokens; see :func:`bpe.formats.read`.
        write: of parts, a path, ``leave_out`` and ``dialect``; see
            :func:`bpe.formats.write`.
    """

    files: str
    endings: tuple[str, ...]
    usual_names: tuple[str, ...]
    self_contained: bool
    companions: Callable[[Path], tuple[Path, ...]] = lambda _: ()
    may_have: Callable[[Path], tuple[Path, ...]] = lambda _: ()
    reads: Callable[[Path], bool]
    writes: Callable[[Path], bool]
    read: Callable[[Path, Pretokenizer | None, SpecialIds], Parts]
    write: Callable[[Parts, Path, Collection[str], str], TokenizerFiles]


@dataclass(frozen=True)
class TokenizerFiles:
    """A tokenizer as the files of a format.

    Attributes:
        contents: of each file, in the order of writing.
        losses: what the files do not hold, by its name in :data:`bpe.formats.LEAVE_OUT`: to be
            given again when they are loaded.
        dialect: why a tokenizer.json is in the dialect that only this library reads; None if it
            is Hugging Face's.
    """

    contents: Mapping[Path, bytes]
    losses: Mapping[LossName, Loss]
    dialect: str | None = None


def with_ids(
    path: Path, special_tokens: SpecialIds, *, known: Mapping[str, int]
) -> dict[str, int] | None:
    """The special tokens with their ids; None if none are given.

    Args:
        path: the file, for messages.
        special_tokens: ids by token, or tokens alone, whose ids must be known.
        known: ids by token, from the file or its publisher.

    Raises:
        TokenizerFileError: a token has no id, or one that is not an int.
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
    ids = {}
    for content, id_ in given.items():
        if id_ is None:
            id_ = known.get(content)  # noqa: PLW2901 - the id by name
        if type(id_) is not int:
            raise TokenizerFileError(
                f"{path}: the special token {content!r} has no id in this file: give it with its "
                f"id ({content}=ID, or {{{content!r}: ID}})"
                if id_ is None
                else f"{path}: the special token {content!r}: id must be an integer, got {id_!r}"
            )
        ids[content] = id_
    return ids


def id_limit(tokens: int) -> int:
    """The limit of ids in a file with this number of tokens: tokens are a table that ids index.

    Published vocabularies have gaps of a few hundred ids. One absurd id must not cost gigabytes.
    """
    return 4 * tokens + (1 << 20)
