"""Runs of counts as Arrow tables, Parquet parts and messages.

Whoever writes counts writes them with these functions, so that the same counts are the same bytes.
"""

from __future__ import annotations

import hashlib
import io

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bpe._arrow import int64_bytes
from bpe._native import Buffer, CountRun
from bpe.counts.manifest import CountsPart, shard_file
from bpe.errors import CountsError

_COUNTS = (("pretoken", pa.large_binary()), ("count", pa.int64()))
_ORDER = (("first_document", pa.int64()), ("first_position", pa.int64()))

# A writer looks at the size of a page only after each batch of values, and a page holds less than
# 2 GiB: with large keys a batch is one key.
_LARGE_KEY = 1 << 16
_LARGEST_KEY = 1 << 30

_COMPRESSED_ROWS = 64
_TRAVEL = pa.ipc.IpcWriteOptions(compression=pa.Codec("zstd", compression_level=1))


def counts_schema(*, ordered: bool) -> pa.Schema:
    """Columns of a run: ``pretoken``, ``count``; with order, where each was first seen."""
    columns = (*_COUNTS, *_ORDER) if ordered else _COUNTS
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in columns])


def run_table(run: CountRun) -> pa.Table:
    """A run as an Arrow table over the same memory."""
    rows = len(run)
    columns = [
        pa.LargeBinaryArray.from_buffers(
            pa.large_binary(), rows, [None, pa.py_buffer(run.offsets), pa.py_buffer(run.data)]
        ),
        _numbers(run.counts, rows),
    ]
    ordered = run.documents is not None and run.positions is not None
    if run.documents is not None and run.positions is not None:
        columns += [_numbers(run.documents, rows), _numbers(run.positions, rows)]
    return pa.Table.from_arrays(columns, schema=counts_schema(ordered=ordered))


def run_from_table(table: pa.Table, *, where: str) -> CountRun:
    """A run from a table of the schema above; ``binary`` keys will do.

    Raises:
        CountsError: the columns are others, there are nulls, or the rows are not a run: a key is
            empty, out of order or there twice, a count not positive. The message begins with
            ``where``.
    """
    names = table.schema.names
    ordered = len(names) > len(_COUNTS)
    schema = counts_schema(ordered=ordered)
    kinds = [pa.large_binary() if pa.types.is_binary(kind) else kind for kind in table.schema.types]
    if names != schema.names or kinds != schema.types:
        found = ", ".join(f"{field.name}: {field.type}" for field in table.schema)
        raise CountsError(f"{where} has the columns ({found}), not those of counts")
    for name in names:
        if table[name].null_count:
            raise CountsError(f"{where}: column {name!r} holds nulls")
    keys = _combined(table["pretoken"].cast(pa.large_binary()), pa.large_binary())
    _, offsets, data = keys.buffers()
    begin = 8 * keys.offset
    numbers = [int64_bytes(_combined(table[name], pa.int64())) for name in names[1:]]
    try:
        return CountRun(
            b"" if data is None else data,
            b"" if offsets is None else memoryview(offsets)[begin : begin + 8 * (len(keys) + 1)],
            8,
            *numbers,
        )
    except ValueError as error:
        raise CountsError(f"{where}: {error}") from error


def shard_bytes(run: CountRun) -> bytes:
    """The Parquet file of a shard.

    Page checksums, so that damage is seen before it is counted. Statistics, because keys are
    sorted: a reader that looks for one skips the rest (values over 4 KiB have none). Keys that
    share prefixes with their neighbours are written as the difference (DELTA_BYTE_ARRAY, a quarter
    smaller under zstd); no key repeats, so there are no dictionaries. No Arrow schema: every
    reader sees ``binary`` and ``int64``.

    Raises:
        CountsError: a key has more than 1 GiB, which Parquet cannot hold.
    """
    table = run_table(run)
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


def counts_part(data: bytes, *, rows: int, shard: int, shards: int) -> CountsPart:
    """What the manifest says about the file of a shard."""
    digest = hashlib.sha256(data).hexdigest()
    return CountsPart(shard_file(shard, shards), rows, len(data), digest)


def read_part(data: bytes, part: CountsPart, *, shard: int, shards: int, where: str) -> CountRun:
    """The run of a part, checked against what the manifest says about it.

    Raises:
        CountsError: the bytes are not those of the manifest, are no Parquet file of counts, or
            hold a pre-token of another shard. The message begins with ``where``.
    """
    if len(data) != part.bytes:
        raise CountsError(
            f"{where} has {len(data)} bytes, the manifest says {part.bytes}: "
            "it is truncated or of another run; count again"
        )
    if hashlib.sha256(data).hexdigest() != part.sha256:
        raise CountsError(
            f"{where} has not the SHA-256 of the manifest: "
            "it is damaged or of another run; count again"
        )
    try:
        table = pq.ParquetFile(io.BytesIO(data), page_checksum_verification=True).read()
    except (pa.ArrowException, OSError, ValueError) as error:
        raise CountsError(f"{where} cannot be read as Parquet: {error}") from error
    run = run_from_table(table, where=where)
    if len(run) != part.rows:
        raise CountsError(f"{where} has {len(run)} rows, the manifest says {part.rows}")
    row = run.misplaced(shard, shards)
    if row >= 0:
        raise CountsError(f"{where}: the pre-token of row {row} does not belong to this part")
    return run


def run_to_ipc(run: CountRun) -> bytes:
    """A run as an Arrow IPC stream: how partial counts travel.

    Compressed, to a third or less: runners hold in memory what they shuffle. Runs of a few rows
    would become larger by it.
    """
    table = run_table(run)
    sink = io.BytesIO()
    options = _TRAVEL if len(run) >= _COMPRESSED_ROWS else None
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return sink.getvalue()


def run_from_ipc(message: bytes) -> CountRun:
    """The run in an Arrow IPC stream.

    Raises:
        CountsError: the message is damaged or holds something else.
    """
    try:
        table = pa.ipc.open_stream(message).read_all()
    except (pa.ArrowException, OSError) as error:
        raise CountsError(f"partial counts cannot be read: {error}") from error
    return run_from_table(table, where="partial counts")


def _numbers(buffer: Buffer, rows: int) -> pa.Int64Array:
    return pa.Int64Array.from_buffers(pa.int64(), rows, [None, pa.py_buffer(buffer)])


def _combined(column: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    """One array; a copy only where there are several chunks."""
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], kind)
