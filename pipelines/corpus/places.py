"""Where files are waited for, which are there, and what they are called."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines import storage
from pipelines.corpus.inputs import (
    Matches,
    common_parts,
    cut,
    input_file,
    match_below,
    printable_name,
)
from pipelines.corpus.patterns import glob_escaped, is_glob
from pipelines.errors import ConfigError, InputError
from pipelines.settings import split_name
from pipelines.storage import is_local

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from pipelines.corpus.inputs import InputFile, Listed
    from pipelines.settings import Format, InputSettings

MARKER = ".done"
# What programs call a file while they write it.
TEMPORARY = (".tmp", ".temp", ".part", ".partial", ".crdownload", ".filepart", "._COPYING_", "~")


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where one pattern looks: below ``folder``, at what ``glob`` matches.

    Attributes:
        folder: an absolute path or a URL, without a slash at its end.
        glob: a pattern relative to it.
        pattern: both, as they were given.
    """

    folder: str
    glob: str
    pattern: str

    @classmethod
    def of(cls, pattern: str) -> Place:
        """Where a pattern of the command line looks.

        Raises:
            InputError: nothing is there, so that it could become a file or a folder.
        """
        if is_local(pattern):
            literal = Path(os.path.abspath(pattern))  # noqa: PTH100 - links are not followed
            if literal.is_dir():
                return cls(folder=str(literal), glob="**", pattern=pattern)
            if literal.exists():
                name = glob_escaped(literal.name)
                return cls(folder=str(literal.parent), glob=name, pattern=pattern)
            if not is_glob(pattern):
                raise InputError(
                    f"nothing is at {pattern!r} yet: make the directory first, or give a pattern "
                    "such as 'DIR/*.jsonl'"
                )
            head, glob = cut(pattern)
            folder = os.path.abspath(head or ".")  # noqa: PTH100 - links are not followed
            return cls(folder=folder, glob=glob, pattern=pattern)
        storage.check_filesystem(pattern)
        head, glob = cut(pattern) if is_glob(pattern) else (pattern, "**")
        return cls(folder=head.rstrip("/"), glob=glob, pattern=pattern)


@dataclass(frozen=True, kw_only=True)
class Places:
    """All places where files are waited for.

    Attributes:
        places: one for each pattern.
        output: the directory that is written to; nothing in it is an input.
        format: of all files, or ``auto``.
    """

    places: tuple[Place, ...]
    output: str
    format: Format = "auto"

    @classmethod
    def of(cls, patterns: Iterable[str], *, output: str, format_: Format = "auto") -> Places:
        """Those of the patterns of a command line.

        Raises:
            ConfigError: one has a name.
            InputError: as `Place.of`.
        """
        patterns = tuple(patterns)
        for pattern in patterns:
            if split_name(pattern)[0]:
                raise ConfigError(
                    f"`watch` {pattern!r}: inputs that are watched have no names: for a path, "
                    f"write ./{pattern}"
                )
        return cls(places=tuple(map(Place.of, patterns)), output=output, format=format_)

    @functools.cached_property
    def root(self) -> str:
        """The deepest folder that holds them all."""
        return "/".join(common_parts([place.folder.split("/") for place in self.places]))

    def name(self, path: str) -> str:
        """What a file is called in ids and in the log: its path below the folder of all."""
        return printable_name(path[len(self.root) + 1 :])

    def look(self, *places: Place) -> Matches:
        """What is at these places, or at all of them; and what is passed over.

        Raises:
            InputError: they cannot be listed, or a pattern matches files of records and text.
        """
        matches = Matches()
        for place in places or self.places:
            try:
                found = match_below(
                    place.folder,
                    place.glob,
                    self.format,
                    named=place.pattern,
                    unfinished=(MARKER, *TEMPORARY),
                )
            except (OSError, ValueError) as error:
                raise InputError(f"{place.pattern!r} cannot be listed: {error}") from error
            matches.update(found)
        written = self.output + "/"
        for path in [path for path in matches.files if path.startswith(written)]:
            del matches.files[path]
        return matches

    def find(self) -> list[Listed]:
        """All files that are there now, sorted by path, each once.

        Raises:
            InputError: as `look`.
        """
        return [file for _, file in sorted(self.look().files.items())]

    def inputs(self) -> list[InputFile]:
        """All files that are there now, as inputs of a job, sorted by name.

        Raises:
            InputError: as `look`; or a file cannot hold documents.
        """
        files = [input_file(f.path, self.name(f.path), f.size, self.format) for f in self.find()]
        return sorted(files, key=lambda file: file.name)


def watched_inputs(
    directory: str, inputs: InputSettings, failed: Collection[str]
) -> tuple[InputFile, ...]:
    """The files that a watch into ``directory`` took, as it called them, but those that failed.

    Raises:
        InputError: they cannot be listed.
    """
    places = Places.of(inputs.patterns, output=directory, format_=inputs.format)
    return tuple(file for file in places.inputs() if file.name not in failed)
