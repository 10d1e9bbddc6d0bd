"""The common parts of tokenizer file formats: the content of a file, and its writing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeAlias

from bpe.errors import TokenizerFileError
from bpe.formats.export_checks import Loss
from bpe.names import LossName
from bpe.parts import Parts
from bpe.pretokenizer import Pretokenizer
from bpe.special_tokens import check_special_tokens

SpecialIds: TypeAlias = Mapping[str, int | None] | Collection[str]


@dataclass(frozen=True, kw_only=True)
class Format:
    """A tokenizer file format.

    Attributes:
        files: the names of its files, for messages.
        names: patterns of the names of its files.
        usual_names: the names of its files in a directory; the first is read.
        self_contained: whether its files define the pre-tokenizer and the special tokens, so that
            the caller must not.
        companions: of a path, the other files that are read with it, and whether they have to be
            there.
        holds: whether a file of another name is read as this format.
        read: of a path, a pre-tokenizer and special tokens; see :func:`bpe.formats.read`.
        write: of parts, a path, ``leave_out`` and ``dialect``; see
            :func:`bpe.formats.write`.
    """

    files: str
    names: tuple[str, ...]
    usual_names: tuple[str, ...] = ()
    self_contained: bool = True
    companions: Callable[[Path], Mapping[Path, bool]] = lambda _: {}
    holds: Callable[[Path], bool] = lambda _: False
    read: Callable[[Path, Pretokenizer | None, SpecialIds | None], Parts]
    write: Callable[[Parts, Path, Collection[str], str], TokenizerFiles]

    def is_named(self, path: Path) -> bool:
        """Return whether a path has the name of a file of this format."""
        return any(fnmatchcase(path.name, name) for name in self.names)


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


def with_ids(path: Path, special_tokens: SpecialIds, known: Mapping[str, int]) -> dict[str, int]:
    """Return special tokens with their ids.

    Args:
        path: the file, for messages.
        special_tokens: ids by token, or tokens alone, whose ids must be known.
        known: ids by token, from the file or its publisher.

    Raises:
        TokenizerFileError: a token has no id, or one that is not an int.
        SpecialTokenError: a token is wrong.
    """
    given = special_tokens if isinstance(special_tokens, Mapping) else {}
    ids = {}
    for content in check_special_tokens(special_tokens):
        id_ = given.get(content)
        if id_ is None:
            id_ = known.get(content)
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
    """Return the limit of ids in a file with this number of tokens.

    Tokens are a table that ids index.

    Published vocabularies have gaps of a few hundred ids. One absurd id must not cost gigabytes.
    """
    return 4 * tokens + (1 << 20)
