"""The splits of a job, stored beside its plan: its first step writes them, all others go by them.

A runner may start a job anew from its sources, when files were added or changed meanwhile. All
steps of one job know the id of its run; where the stored splits are of this run, they are the
job's, whatever the inputs are by now.
"""

from __future__ import annotations

import io
import os
from itertools import groupby
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pipelines import storage
from pipelines.corpus.splits import FileRange, Split
from pipelines.errors import InputError, OutputError
from pipelines.output.names import PLAN, RUN, SPLITS, read_json_object
from pipelines.storage import Version, join

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pipelines.corpus.inputs import InputFile

_SCHEMA = pa.schema(
    [
        pa.field("part", pa.int64()),
        pa.field("path", pa.binary()),  # a name need not be text
        pa.field("name", pa.string()),
        pa.field("file_index", pa.int64()),
        pa.field("format", pa.string()),
        pa.field("compression", pa.string()),
        pa.field("start", pa.int64()),
        pa.field("end", pa.int64()),
        pa.field("file_size", pa.int64()),
        pa.field("modified", pa.int64()),
        pa.field("tag", pa.string()),
    ]
)
_RUN, _PARTS = b"bpe.run", b"bpe.parts"


def absolute(path: str) -> str:
    """A path or pattern that means the same in every working directory."""
    return path if "://" in path else os.path.join(os.getcwd(), path)  # noqa: PTH109, PTH118 - a pattern


def plan_of_run(directory: str, run: str) -> dict[str, Any]:
    """The plan in an output directory, as the run of this id has left it.

    Raises:
        OutputError: it is of another run, or not there.
    """
    plan = read_json_object(join(directory, PLAN))
    if plan is None:
        raise OutputError(
            f"{join(directory, PLAN)} cannot be read: the first step of this job wrote it; where "
            "workers are on several machines, use a directory that all of them see"
        )
    if plan.get(RUN) != run:
        raise OutputError(
            f"{directory}: another job has been started there since this one began, so this one "
            "ends: let one job at a time write to a directory"
        )
    return plan


def write_splits(directory: str, run: str, splits: Sequence[Split]) -> None:
    """Store the splits of a run; all of them, or none appears.

    Raises:
        OutputError: they cannot be written.
    """
    pieces = [(split.part, piece) for split in splits for piece in split.pieces]
    columns = {
        "part": [part for part, _ in pieces],
        "path": [os.fsencode(piece.path) for _, piece in pieces],
        "modified": [piece.version and piece.version.modified for _, piece in pieces],
        "tag": [piece.version and piece.version.tag for _, piece in pieces],
    }
    for name in set(_SCHEMA.names) - columns.keys():
        columns[name] = [getattr(piece, name) for _, piece in pieces]
    metadata = {_RUN: run.encode(), _PARTS: str(len(splits)).encode()}
    table = pa.table(columns, schema=_SCHEMA.with_metadata(metadata))
    sink = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    storage.write(join(directory, SPLITS), sink.getvalue())


def read_splits(directory: str, run: str) -> list[Split] | None:
    """The splits of a run; None where it has not stored any."""
    plan = read_json_object(join(directory, PLAN)) or {}
    if plan.get(RUN) != run:
        return None
    table = _stored(directory)
    if table is None or table.schema.metadata[_RUN] != run.encode():
        return None
    parts = int(table.schema.metadata[_PARTS])
    return [
        Split(part=part, parts=parts, pieces=tuple(_piece(row) for row in rows))
        for part, rows in groupby(table.to_pylist(), lambda row: int(row["part"]))
    ]


def _piece(row: dict[str, Any]) -> FileRange:
    del row["part"]
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


def changed_inputs(directory: str, files: Sequence[InputFile]) -> list[int]:
    """The numbers of the files that changed since the splits in ``directory`` were stored.

    All of them where that cannot be told.

    Args:
        directory: of the output of an earlier run of the same job.
        files: its inputs, as they are now.
    """
    table = _stored(directory)
    if table is None:
        return list(range(len(files)))
    columns = table.select(["file_index", "modified", "tag"]).to_pydict().values()
    then = {
        index: Version(modified, tag)
        for index, modified, tag in zip(*columns, strict=True)
        if modified is not None
    }
    return [
        index
        for index, file in enumerate(files)
        if file.version is None or index not in then or not file.version.may_be(then[index])
    ]


def parts_with(splits: Iterable[Split], files: Sequence[int]) -> list[str]:
    """The parts of an encoded corpus that hold something of the files of these numbers."""
    wanted = set(files)
    return [
        split.file for split in splits if any(piece.file_index in wanted for piece in split.pieces)
    ]


def inputs_of(splits: Iterable[Split]) -> list[FileRange]:
    """One piece of each file that the splits are of, in the order of the files."""
    files = {piece.file_index: piece for split in splits for piece in split.pieces}
    return [piece for _, piece in sorted(files.items())]
