"""Plan the splits of a corpus from the names and sizes of its files alone.

The plan depends on nothing but the sorted list of files and the split size: part numbers, and so
the names of output files, are the same on every runner and for any number of workers. The first
step of a job stores its splits with its plan.
"""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from pipelines import storage
from pipelines.corpus.files import InputFile
from pipelines.corpus.inputs import MIN_SPLIT
from pipelines.errors import ConfigError, InputError
from pipelines.output.names import MAX_PARTS, SPLITS, dead_letters_file, part_file
from pipelines.storage import Version, join

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


MAX_SPLIT = 256 << 20
SPLITS_PER_CORPUS = 64
SEVERAL = 4
_SCHEMA = pa.schema(
    {
        "generation": pa.int64(),
        "part": pa.int64(),
        "path": pa.binary(),  # a name need not be text
        "name": pa.string(),
        "file_index": pa.int64(),
        "format": pa.string(),
        "compression": pa.string(),
        "start": pa.int64(),
        "end": pa.int64(),
        "file_size": pa.int64(),
        "modified": pa.int64(),
        "tag": pa.string(),
        "source": pa.string(),
    }
)
_RUN, _PARTS, _GENERATION = b"bpe.run", b"bpe.parts", b"bpe.generation"


@dataclass(frozen=True, kw_only=True)
class FileRange(InputFile):
    """Bytes ``[start, end)`` of one file, as stored (compressed files are never cut).

    A record belongs to the range that holds its first byte, so ranges that cover a file between
    them yield each of its records exactly once.

    Attributes:
        file_index: the file's number in the sorted list of inputs.
        start: first byte of the range.
        end: first byte after the range.
    """

    file_index: int
    start: int
    end: int

    @property
    def size(self) -> int:
        """Number of bytes in the range."""
        return self.end - self.start


@dataclass(frozen=True, kw_only=True)
class Split:
    """One unit of work: part ``part`` of ``parts``, a piece of one large file or whole small files.

    Small (it holds names and numbers only) and picklable: this is what travels between workers.

    Attributes:
        part: the number of the split, from 0.
        parts: the number of splits.
        pieces: the ranges of files to read.
        generation: the generation of the job: 0 if the job began the directory, more if the job
            appends to the directory.
    """

    part: int
    parts: int
    pieces: tuple[FileRange, ...]
    generation: int = 0

    @property
    def file(self) -> str:
        """Return the file of the encoded split, below the output directory."""
        return part_file(self.part, self.parts, self.generation)

    @property
    def dead_letters_file(self) -> str:
        """Return the file of the bad records of the split, below the output directory."""
        return dead_letters_file(self.part, self.parts, self.generation)

    @property
    def source(self) -> str:
        """Return the source of the pieces; empty if the source has no name."""
        return self.pieces[0].source if self.pieces else ""

    @property
    def size(self) -> int:
        """Stored bytes of the pieces."""
        return sum(piece.size for piece in self.pieces)


def default_split_size(total: int) -> int:
    """Return the split size for ``total`` bytes: 1/64 of them, between 8 and 256 MiB."""
    return min(max(total // SPLITS_PER_CORPUS, MIN_SPLIT), MAX_SPLIT)


def plan_splits(
    files: Iterable[InputFile],
    split_size: int | None = None,
    *,
    generation: int = 0,
    whole: bool = False,
) -> list[Split]:
    """Cut large files and pack small ones, so that each split has about ``split_size`` bytes.

    Files larger than ``split_size`` are cut into equal ranges, except for compressed files and
    files that are one document (``text``), which cannot be cut. Consecutive files that are not cut
    share a split as long as they fit into it together, and are of the same format and source.

    Args:
        files: the inputs in their sorted order.
        split_size: target bytes of a split; None follows the corpus (`default_split_size`), and
            grows until there are at most `MAX_PARTS` splits.
        generation: the generation of the job.
        whole: whether no file is cut, because each file counts as a whole or not at all.

    Returns:
        The splits in the order of the files; their parts are numbered from 0.

    Raises:
        ConfigError: ``split_size`` makes more than `MAX_PARTS` splits, or each size does.
    """
    files = list(files)
    total = sum(file.size for file in files)
    size = default_split_size(total) if split_size is None else split_size
    while (
        len(groups := list(islice(_grouped(files, size, whole=whole), MAX_PARTS + 1))) > MAX_PARTS
    ):
        if size > total:
            raise ConfigError(
                f"the files of the input change from one format or source to another so often, in "
                f"the order of their names, that they make more than {MAX_PARTS:,} splits, the "
                "maximum: give the files of each format an input of their own with a name, "
                "--input NAME=PATTERN"
            )
        size *= 2
    if split_size not in (None, size):
        raise ConfigError(
            f"`split_size` {split_size} makes more than {MAX_PARTS:,} splits of the input, the "
            f"maximum: use {size} bytes or more"
        )
    return [
        Split(part=part, parts=len(groups), pieces=tuple(group), generation=generation)
        for part, group in enumerate(groups)
    ]


def _grouped(
    files: Iterable[InputFile], split_size: int, *, whole: bool
) -> Iterator[list[FileRange]]:
    """Yield the pieces of each split."""
    group: list[FileRange] = []
    room = 0  # bytes that still fit into the group; negative if it is too large already
    for index, file in enumerate(files):
        ranges = -(-file.size // split_size) if file.can_be_cut and not whole else 1
        joins = group and (group[0].format, group[0].source) == (file.format, file.source)
        if group and not (joins and file.size <= room):
            yield group
            group = []
        if ranges > 1:
            for i in range(ranges):
                start, end = file.size * i // ranges, file.size * (i + 1) // ranges
                yield [_range(file, index, start, end)]
            continue
        if not group:
            room = split_size
        group.append(whole_file(file, index))
        room -= file.size
    if group:
        yield group


def straggler(files: Sequence[InputFile], split_size: int | None = None) -> InputFile | None:
    """Return the largest file that cannot be cut, if it is much larger than a split.

    Return None if there is no such file. The file must have more than `SEVERAL` times the size of a
    split, and more than `SEVERAL` times `MIN_SPLIT`; ``split_size`` is as for `plan_splits`.
    """
    uncut = (file for file in files if not file.can_be_cut)
    largest = max(uncut, key=lambda file: file.size, default=None)
    usual = split_size or default_split_size(sum(file.size for file in files))
    is_large = largest is not None and largest.size > SEVERAL * max(usual, MIN_SPLIT)
    return largest if is_large else None


def whole_file(file: InputFile, index: int) -> FileRange:
    """Return the range of a whole file; ``index`` is the number of the file."""
    return _range(file, index, 0, file.size)


def _range(file: InputFile, index: int, start: int, end: int) -> FileRange:
    return FileRange(**vars(file), file_index=index, start=start, end=end)


def write_splits(
    directory: str, run: str, splits: Sequence[Split], *, earlier: pa.Table | None = None
) -> None:
    """Store the splits of a run in one file.

    Args:
        directory: the output directory.
        run: the id of the run.
        splits: the splits of the run.
        earlier: the table of `earlier_pieces`, if the run appends to a directory.

    Raises:
        OutputError: the file cannot be written.
    """
    pieces = [(split.part, piece) for split in splits for piece in split.pieces]
    generation = splits[0].generation if splits else 0
    columns = {
        "generation": [generation] * len(pieces),
        "part": [part for part, _ in pieces],
        "path": [os.fsencode(piece.path) for _, piece in pieces],
        "modified": [piece.version and piece.version.modified for _, piece in pieces],
        "tag": [piece.version and piece.version.tag for _, piece in pieces],
    }
    for name in set(_SCHEMA.names) - columns.keys():
        columns[name] = [getattr(piece, name) for _, piece in pieces]
    metadata = {
        _RUN: run.encode(),
        _PARTS: str(splits[0].parts if splits else 0).encode(),
        _GENERATION: str(generation).encode(),
    }
    table = pa.table(columns, schema=_SCHEMA)
    if earlier is not None:
        table = pa.concat_tables([earlier, table])
    table = table.replace_schema_metadata(metadata)
    sink = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    storage.write(join(directory, SPLITS), sink.getvalue())


def read_splits(directory: str, run: str) -> list[Split] | None:
    """Read the splits that a run has stored in its directory; None if there are none of the run."""
    table = _stored(directory)
    if table is None or table.schema.metadata[_RUN] != run.encode():
        return None
    parts, generation = (int(table.schema.metadata[key]) for key in (_PARTS, _GENERATION))
    table = table.filter(pc.equal(table["generation"], generation))
    return [
        Split(
            part=part,
            parts=parts,
            pieces=tuple(_piece(row) for row in rows),
            generation=generation,
        )
        for part, rows in groupby(table.to_pylist(), lambda row: int(row["part"]))
    ]


def _piece(row: dict[str, Any]) -> FileRange:
    del row["part"], row["generation"]
    modified, tag = row.pop("modified"), row.pop("tag")
    path = os.fsdecode(row.pop("path"))
    version = None if modified is None else Version(modified, tag)
    return FileRange(path=path, version=version, **row)


def _stored(directory: str) -> pa.Table | None:
    try:
        data = storage.read_if_there(join(directory, SPLITS))
        table = None if data is None else pa.ipc.open_file(data).read_all()
    except (pa.ArrowException, OSError, InputError):
        return None
    is_ours = table is not None and table.schema.equals(_SCHEMA) and _RUN in table.schema.metadata
    return table if is_ours else None


def earlier_pieces(directory: str, generation: int) -> pa.Table | None:
    """Return the pieces in the plans up to a generation, one row each; None if unknown.

    Of a file that is in more than one generation, only the pieces of the last are returned.
    """
    table = _stored(directory)
    if table is None:
        return None
    table = table.filter(pc.less_equal(table["generation"], generation))
    names, generations = (table[name].to_pylist() for name in ("name", "generation"))
    last = dict(zip(names, generations, strict=True))
    is_last = [last[name] == one for name, one in zip(names, generations, strict=True)]
    return table.filter(pa.array(is_last, pa.bool_()))


def changed_inputs(directory: str, files: Sequence[InputFile], *, generation: int = 0) -> set[int]:
    """Return the numbers of the files that changed since ``directory`` got its splits.

    Return the numbers of all files if the changes are unknown.

    Args:
        directory: the output directory of an earlier run of the same job.
        files: the inputs of the job now.
        generation: the generation of the job.
    """
    table = _stored(directory)
    if table is None or int(table.schema.metadata[_GENERATION]) != generation:
        return set(range(len(files)))
    then = versions_of(table.filter(pc.equal(table["generation"], generation)))
    return {
        index
        for index, file in enumerate(files)
        for _, known in [then.get(file.name, (0, None))]
        if file.version is None or known is None or not file.version.may_be(known)
    }


def versions_of(pieces: pa.Table) -> dict[str, tuple[int, Version | None]]:
    """Return the size and version of each file of stored pieces, by name."""
    columns = pieces.select(["name", "file_size", "modified", "tag"]).to_pydict().values()
    return {
        name: (size, None if modified is None else Version(modified, tag))
        for name, size, modified, tag in zip(*columns, strict=True)
    }


def inputs_of(splits: Iterable[Split]) -> list[FileRange]:
    """Return one piece of each file of the splits, in the order of the files."""
    files = {piece.file_index: piece for split in splits for piece in split.pieces}
    return [piece for _, piece in sorted(files.items())]
