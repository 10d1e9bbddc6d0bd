"""Find the columns that pass through, and their types, when a job is planned.

A type is given, or found in the files: in the schemas of Parquet files, and in the first records of
JSON lines. If types differ between files, a type that holds all of them is used.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from bpe._codec import from_jsonable
from pipelines.corpus.documents import READERS, PassthroughColumn
from pipelines.corpus.documents.types import parse_type, type_text, undecided, unify
from pipelines.corpus.files import check_columns
from pipelines.corpus.splits import whole_file
from pipelines.encode.rows import OWN
from pipelines.errors import ConfigError
from pipelines.output.names import read_plan

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from pipelines.corpus.files import InputFile
    from pipelines.corpus.splits import FileRange

    _Records = Callable[[FileRange], Iterator[dict[str, Any]]]

SAMPLE_RECORDS = 1000
SAMPLE_FILES = 16
_FOOTERS_AT_ONCE = 16


def find_passthrough(
    files: Sequence[InputFile], keep: Sequence[str]
) -> tuple[PassthroughColumn, ...]:
    """Return the columns to keep, with their given types or their types in ``files``.

    Args:
        files: the inputs.
        keep: the names of the columns, each ``NAME`` or ``NAME:TYPE``.

    Raises:
        ConfigError: a name or type is wrong, or the files have no common type for a column.
        InputError: a file has no such column, or cannot be read.
    """
    wanted = names_and_types(keep)
    if not wanted:
        return ()
    check_columns(files, f"`keep` {keep[0]}")
    typed, sampled = [], []
    for source in (whole_file(file, index) for index, file in enumerate(files)):
        reader = READERS[source.format]
        if reader.column_types is not None:
            typed.append((source, reader.column_types))
        elif reader.records is not None:
            sampled.append((source, reader.records))
    found = _Found(wanted)
    with ThreadPoolExecutor(_FOOTERS_AT_ONCE) as pool:
        types_of = pool.map(lambda one: one[1](one[0], wanted), typed)
        for (source, _), types in zip(typed, types_of, strict=True):
            for name, kind in types.items():
                found.add(name, kind, source)
    found.sample(sampled)
    return tuple(
        PassthroughColumn(name=name, type=_written(name, found.settled(name))) for name in wanted
    )


def settled_columns(
    directory: str, files: Sequence[InputFile], keep: Sequence[str], *, begins: bool
) -> tuple[PassthroughColumn, ...]:
    """Return the columns that pass through, with the types that the first job gave them.

    Args:
        directory: the directory of the output.
        files: the input files, from which types that are not given are found.
        keep: the names of the columns, as for `find_passthrough`.
        begins: whether this is the first job.

    Raises:
        ConfigError, InputError: the errors of `find_passthrough`.
    """
    given = names_and_types(keep)
    if not begins:
        then = from_jsonable(
            tuple[PassthroughColumn, ...], read_plan(directory).get("settings", {}).get("keep", [])
        )
        if [column.name for column in then] == list(given) and all(
            given[column.name] in (None, column.field.type) for column in then
        ):
            return then
    if all(kind is not None for kind in given.values()):  # whatever files there are
        return find_passthrough((), keep)
    return find_passthrough(files, keep)


def names_and_types(
    keep: Sequence[str], *, own: Collection[str] = OWN
) -> dict[str, pa.DataType | None]:
    """Return name and type of each ``NAME`` or ``NAME:TYPE``; the type is None if not given.

    With a type, the name may have colons.

    Args:
        keep: the texts.
        own: names that the output has already.

    Raises:
        ConfigError: the text after a colon is not a type, or a name is taken.
    """
    wanted = dict(map(_name_and_type, keep))
    if len(wanted) < len(keep):
        raise ConfigError(f"`keep`: a column is named twice in {', '.join(keep)}: once is enough")
    if taken := [name for name in wanted if name in own]:
        raise ConfigError(f"`keep` {taken[0]}: a document has a column of that name already")
    return wanted


def _name_and_type(text: str) -> tuple[str, pa.DataType | None]:
    name, colon, kind = text.partition(":")
    if not colon:
        return text, None
    first_error = None
    while colon:
        try:
            if name:
                return name, parse_type(kind)
        except ValueError as error:
            first_error = first_error or error
        more, colon, kind = kind.partition(":")
        name = f"{name}:{more}"
    raise ConfigError(
        f"`keep` {text}: {first_error}: use bool, int64, double, string, list<TYPE>, "
        "struct<NAME: TYPE, …> or another type of Arrow"
    )


def _written(name: str, kind: pa.DataType) -> str:
    try:
        return type_text(kind)
    except ValueError as error:
        raise ConfigError(f"`keep` {name}: {error}") from error


class _Found:
    """The types of the columns, as far as they are known."""

    def __init__(self, given: dict[str, pa.DataType | None]) -> None:
        self._given = given
        self._types: dict[str, pa.DataType] = {}
        self._from: dict[str, FileRange] = {}  # where the type of a column was seen
        self._seen: list[FileRange] = []  # files of JSON lines that were sampled
        self._fields: list[str] = []  # of their records

    def add(self, name: str, kind: pa.DataType, source: FileRange) -> None:
        """Take the type of a column in one file into account."""
        before = self._given[name] or self._types.get(name)
        if before is None:
            self._types[name], self._from[name] = kind, source
            return
        together = unify(before, kind)
        if self._given[name] is not None and together != before:
            raise ConfigError(
                f"`keep` {name}: {source.path} has it as {kind}, which the {before} that was asked "
                "for does not hold"
            )
        if together is None:
            raise ConfigError(
                f"`keep` {name}: {self._from[name].path} has it as {before}, {source.path} as "
                f"{kind}, and no type holds both: encode them apart"
            )
        self._types[name] = together

    def sample(self, sources: Sequence[tuple[FileRange, _Records]]) -> None:
        """Read first records of files of JSON lines until every column has a type.

        Args:
            sources: the files, each with the function that reads its records.
        """
        for source, read in sources[:SAMPLE_FILES]:
            open_ = [
                name
                for name, given in self._given.items()
                if given is None and (not self._seen or undecided(self._types.get(name, pa.null())))
            ]
            if not open_:
                return
            records = list(islice(read(source), SAMPLE_RECORDS))
            self._seen.append(source)
            self._fields = list(dict.fromkeys([*self._fields, *(n for r in records for n in r)]))
            for name in open_:
                self._add_values(name, [record.get(name) for record in records], source)

    def _add_values(self, name: str, values: list[Any], source: FileRange) -> None:
        try:
            kind = pa.infer_type(values)
        except (pa.ArrowException, OverflowError) as error:
            raise ConfigError(
                f"`keep` {name}: no type holds the values in {source.path} ({error}): leave it out"
            ) from error
        self.add(name, kind, source)

    def settled(self, name: str) -> pa.DataType:
        """Return the type of a column."""
        kind = self._given[name] or self._types.get(name, pa.null())
        if not undecided(kind) or not self._seen:
            return kind
        held = "only null or empty values" if name in self._fields else "no such field"
        fields = ", ".join(repr(field[:80]) for field in self._fields[:20]) or "none"
        raise ConfigError(
            f"`keep` {name}: the first records of {self._seen[0].path} have {held} (their fields: "
            f"{fields}): give the type of what comes later, as in `keep` '{name}:string'"
        )
