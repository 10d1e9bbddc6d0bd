"""Tokenizers from the command line: ``[NAME=]FILE[:PRETOKENIZER]``."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from bpe import PRETOKENIZERS, Tokenizer
from bpe.formats import USUAL_NAMES
from pipelines.errors import ConfigError, InputError
from pipelines.tokenizer_files import load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, kw_only=True)
class ComparedTokenizer:
    """A tokenizer to compare, not yet loaded.

    Attributes:
        name: its name in the result.
        path: the path of its file.
        pretokenizer: the name of its pre-tokenizer; None if the file has it.
    """

    name: str
    path: str
    pretokenizer: str | None = None

    @classmethod
    def parse(cls, text: str) -> ComparedTokenizer:
        """Parse ``[NAME=]FILE[:PRETOKENIZER]``; a name is letters, digits, ``.``, ``_`` and ``-``.

        Raises:
            ConfigError: the text names no file.
        """
        match = re.fullmatch(r"([\w.-]+)=(.+)", text, re.DOTALL)
        name, rest = (match[1], match[2]) if match else ("", text)
        path, colon, suffix = rest.rpartition(":")
        if not (colon and path and suffix in PRETOKENIZERS):
            path, suffix = rest, ""
        if not path:
            raise ConfigError("a tokenizer is empty: name a file")
        return cls(name=name, path=path, pretokenizer=suffix or None)


def parse_tokenizers(texts: Sequence[str]) -> tuple[ComparedTokenizer, ...]:
    """Parse the tokenizers of a command line; name those without a name after their paths.

    Raises:
        ConfigError: there are fewer than two, or two have the same name.
    """
    if len(texts) < 2:
        raise ConfigError("name two tokenizers to compare, or more")
    files = [ComparedTokenizer.parse(text) for text in texts]
    short, paths = [_short_name(file.path) for file in files], [file.path for file in files]
    for i, file in enumerate(files):
        shown = (names[i] for names in (short, paths) if names.count(names[i]) == 1)
        files[i] = replace(file, name=file.name or next(shown, texts[i]))
    names = [file.name for file in files]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(
                f"two tokenizers are called {name}: give them names, as in old={files[0].path}"
            )
    return tuple(files)


def _short_name(path: str) -> str:
    """Return the file's name, or its folder's if such a file is always named the same."""
    parts = PurePosixPath(path.replace("\\", "/"))
    if parts.name in USUAL_NAMES and parts.parent.name:
        return parts.parent.name
    return parts.stem or path


def load(file: ComparedTokenizer) -> Tokenizer:
    """Load the tokenizer.

    Raises:
        InputError: the file cannot be read.
        ConfigError: its pre-tokenizer is not known.
    """
    try:
        return load_tokenizer(file.path, partial(Tokenizer.load, pretokenizer=file.pretokenizer))
    except InputError as error:
        if "`pretokenizer`" in str(error):
            raise ConfigError(
                f"{error}; append it after a colon, as in {file.path}:cl100k, or write a "
                "tokenizer.json with bpe convert"
            ) from error
        raise
