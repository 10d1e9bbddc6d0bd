"""Counts as Arrow tables, Parquet parts, messages, and a directory on a local disk.

All counts are written by these functions, so that the same counts are the same bytes.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bpe._arrow import binary_rows, int64_array, to_stream, values_of
from bpe._inputs_file import INPUTS
from bpe._native import SortedCounts
from bpe.counts.manifest import (
    MANIFEST_NAME,
    MAX_SHARDS,
    PART,
    CountsManifest,
    CountsPart,
    shard_file,
)
from bpe.errors import CountsError
from bpe.files import final_name, write_atomically

_COUNTS = (("pretoken", pa.large_binary()), ("count", pa.int64()))
_ORDER = (("first_document", pa.int64()), ("first_position", pa.int64()))

# A writer checks the size of a page only after each batch of values, and a page holds less than
# 2 GiB. So with large keys a batch is one key.
_LARGE_KEY = 1 << 16
_LARGEST_KEY = 1 << 30

_OURS = re.compile("|".join((PART.pattern, re.escape(MANIFEST_NAME), re.escape(INPUTS))))
_COMPRESSED_ROWS = 64
_TRAVEL = pa.ipc.IpcWriteOptions(compression=pa.Codec("zstd", compression_level=1))


def counts_schema(*, ordered: bool) -> pa.Schema:
    """Return the columns ``pretoken``, ``count``; if ordered, also of the first occurrence."""
    columns = (*_COUNTS, *_ORDER) if ordered else _COUNTS
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in columns])


def counts_table(counts: SortedCounts) -> pa.Table:
    """Return sorted counts as an Arrow table over the same memory."""
    columns = [binary_rows(counts.data, counts.offsets), int64_array(counts.counts)]
    if counts.documents is not None and counts.positions is not None:
        columns += [int64_array(counts.documents), int64_array(counts.positions)]
    ordered = len(columns) > len(_COUNTS)
    return pa.Table.from_arrays(columns, schema=counts_schema(ordered=ordered))


def count_items(counts: SortedCounts) -> Iterator[tuple[bytes, int]]:
    """Yield each pre-token with its count, in byte order."""
    table = counts_table(counts).select(["pretoken", "count"])
    for batch in table.to_batches(max_chunksize=1 << 16):
        yield from zip(batch[0].to_pylist(), batch[1].to_pylist(), strict=True)


def counts_from_table(table: pa.Table, *, where: str) -> SortedCounts:
    """Return the sorted counts of a table with the schema above or ``binary`` keys.

    Raises:
        CountsError: the columns differ, there are nulls, a key is empty, out of order or a
            duplicate, or a count is not positive. The message begins with ``where``.
    """
    names = table.schema.names
    ordered = len(names) > len(_COUNTS)
    schema = counts_schema(ordered=ordered)
    kinds = [pa.large_binary() if pa.types.is_binary(kind) else kind for kind in table.schema.types]
    if names != schema.names or kinds != schema.types:
        columns = ", ".join(f"{field.name}: {field.type}" for field in table.schema)
        raise CountsError(f"{where} has the columns ({columns}), not those of counts")
    for name in names:
        if table[name].null_count:
            raise CountsError(f"{where}: column {name!r} holds nulls")
    keys = _combined(table["pretoken"].cast(pa.large_binary()), pa.large_binary())
    _, offsets, data = keys.buffers()
    begin = 8 * keys.offset
    numbers = [values_of(_combined(table[name], pa.int64())) for name in names[1:]]
    try:
        return SortedCounts(
            b"" if data is None else data,
            b"" if offsets is None else memoryview(offsets)[begin : begin + 8 * (len(keys) + 1)],
            8,
            *numbers,
        )
    except ValueError as error:
        raise CountsError(f"{where}: {error}") from error


def shard_bytes(counts: SortedCounts) -> bytes:
    """Return the Parquet file of a shard.

    Page checksums, so that damage is seen before it is counted. Statistics, because keys are
    sorted: a reader that looks for one skips the rest (values over 4 KiB have none). Keys that
    share prefixes with their neighbours are written as the difference (DELTA_BYTE_ARRAY, a quarter
    smaller under zstd); no key repeats, so there are no dictionaries. No Arrow schema: every
    reader sees ``binary`` and ``int64``.

    Raises:
        CountsError: a key has more than 1 GiB, which Parquet cannot hold.
    """
    table = counts_table(counts)
    longest = pc.max(pc.binary_length(table["pretoken"])).as_py() or 0
    if longest > _LARGEST_KEY:
        raise CountsError(
            f"a pre-token of {longest} bytes does not fit a Parquet page (at most {_LARGEST_KEY}): "
            "use a pre-tokenizer that cuts finer"
        )
    encodings = dict.fromkeys(table.schema.names, "PLAIN") | {"pretoken": "DELTA_BYTE_ARRAY"}
    sink = io.BytesIO()
    pq.write_table(
        table,
        sink,
        row_group_size=1 << 20,
        compression="zstd",
        compression_level=3,
        use_dictionary=False,
        column_encoding=encodings,
        data_page_size=1 << 20,
        write_batch_size=1 if longest > _LARGE_KEY else 1024,
        write_statistics=True,
        write_page_checksum=True,
        sorting_columns=[pq.SortingColumn(0)],
        store_schema=False,
    )
    return sink.getvalue()


def counts_part(
    counts: SortedCounts, *, shard: int, shards: int, generation: int = 0
) -> tuple[CountsPart, bytes]:
    """Return a shard: its entry of the manifest, and its file; ``generation`` as in `shard_file`.

    Raises:
        CountsError: as `shard_bytes`.
    """
    data = shard_bytes(counts)
    digest = hashlib.sha256(data).hexdigest()
    file = shard_file(shard, shards, generation)
    return CountsPart(file, len(counts), len(data), digest), data


def read_part(
    data: bytes | None, part: CountsPart, *, shard: int, shards: int, where: str
) -> SortedCounts:
    """Return the counts of a part, checked against its entry in the manifest.

    Raises:
        CountsError: the file is missing (None), differs from the manifest, is no Parquet file of
            counts, or holds a pre-token of another shard. The message begins with ``where``.
    """
    if data is None:
        raise CountsError(f"{where} is missing, the manifest names it: count again")
    sha256 = hashlib.sha256(data).hexdigest()
    if sha256 != part.sha256:
        raise CountsError(
            f"{where} has {len(data)} bytes with the SHA-256 {sha256}, the manifest says "
            f"{part.bytes} bytes with {part.sha256}: it is truncated, damaged or of another run; "
            "count again"
        )
    try:
        table = pq.ParquetFile(io.BytesIO(data), page_checksum_verification=True).read()
    except (pa.ArrowException, OSError, ValueError) as error:
        raise CountsError(f"{where} cannot be read as Parquet: {error}") from error
    counts = counts_from_table(table, where=where)
    if len(counts) != part.rows:
        raise CountsError(f"{where} has {len(counts)} rows, the manifest says {part.rows}")
    row = counts.misplaced(shard, shards)
    if row >= 0:
        raise CountsError(f"{where}: the pre-token of row {row} does not belong to this part")
    return counts


def counts_to_ipc(counts: SortedCounts) -> bytes:
    """Return sorted counts as an Arrow IPC stream, for the shuffle.

    Compressed to a third or less, since runners hold in memory what they shuffle. Runs of a few
    rows would grow.
    """
    table = counts_table(counts)
    options = _TRAVEL if len(counts) >= _COMPRESSED_ROWS else None
    message: bytes = to_stream(table, options).to_pybytes()
    return message


def counts_from_ipc(message: bytes) -> SortedCounts:
    """Return the sorted counts in an Arrow IPC stream.

    Raises:
        CountsError: the message is damaged or holds something else.
    """
    try:
        table = pa.ipc.open_stream(message).read_all()
    except (pa.ArrowException, OSError) as error:
        raise CountsError(f"partial counts cannot be read: {error}") from error
    return counts_from_table(table, where="partial counts")


def _combined(column: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    """Return the chunks as one array, copied only if there are several."""
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], kind)


def write_counts(
    directory: Path, counts: SortedCounts, manifest: CountsManifest, *, shards: int
) -> None:
    """Write the parts, then the manifest; each file atomically.

    Raises:
        CountsError: the directory holds something else, or a pre-token is too large.
        OSError: a file cannot be written.
    """
    if not 1 <= shards <= MAX_SHARDS:
        raise CountsError(f"shards={shards} is not between 1 and {MAX_SHARDS}")
    directory.mkdir(parents=True, exist_ok=True)
    before = _files_of_counts(directory)
    parts = []
    for shard, part_counts in enumerate(counts.split(shards)):
        part, data = counts_part(part_counts, shard=shard, shards=shards)
        parts.append(part)
        write_atomically(directory / part.file, data)
    files = replace(manifest, parts=tuple(parts)).files()
    for name, data in files.items():
        write_atomically(directory / name, data)
    for name in before - files.keys() - {part.file for part in parts}:
        (directory / name).unlink(missing_ok=True)


def read_counts(directory: Path) -> tuple[CountsManifest, list[SortedCounts]]:
    """Return the manifest of counts on a local disk, and the counts of each part.

    Raises:
        CountsError: the manifest or a part is missing, damaged, or of another run.
    """
    manifest = _read_manifest(directory)
    counts, shards = [], len(manifest.parts)
    for shard, part in enumerate(manifest.parts):
        path = directory / part.file
        data = path.read_bytes() if path.exists() else None
        counts.append(read_part(data, part, shard=shard, shards=shards, where=str(path)))
    return manifest, counts


def _read_manifest(directory: Path) -> CountsManifest:
    path = directory / MANIFEST_NAME
    try:
        text = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise CountsError(
            f"{path} is missing: {directory} holds no counts, or counting did not finish; "
            "count again"
        ) from error
    inputs = (directory / INPUTS).read_bytes
    return CountsManifest.from_json(text, where=str(path), inputs=inputs)


def _files_of_counts(directory: Path) -> set[str]:
    """Return the files in a directory that is empty or holds counts, perhaps unfinished ones.

    Raises:
        CountsError: the directory holds something else.
    """
    files = [path for path in directory.rglob("*") if path.is_symlink() or not path.is_dir()]
    names = {path.relative_to(directory).as_posix() for path in files}
    others = {name for name in names if not _OURS.fullmatch(final_name(name))}
    if others:
        raise CountsError(
            f"{directory} holds other files than counts, like {min(others)!r}: name another"
        )
    if MANIFEST_NAME in names:
        _read_manifest(directory)
    return names
