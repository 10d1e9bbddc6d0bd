"""One Parquet file of token ids for each split: written, recognised, read back.

The bytes of a part depend on its split, the options and the tokenizer alone. What they were, and
what is in the part, stands in the Parquet footer under `META`, so that a later run can tell a
finished part of the same job from any other file. The SHA-256 of the file stands there too, taken
with zeros in its own place: damage anywhere is found, and before any of the file is parsed.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bpe._codec import decode
from bpe.counts.manifest import DeadLetters
from pipelines import storage
from pipelines.encode.rows import (
    CHUNK_INDEX,
    ID,
    INPUT_IDS,
    NUM_TOKENS,
    Dropped,
    without_padding,
)
from pipelines.errors import InputError
from pipelines.storage import Written, join

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typing_extensions import Buffer, Self

    from pipelines.corpus.splits import Split
    from pipelines.encode.rows import Ids, RowLayout
    from pipelines.settings import ParquetEncoding
    from pipelines.storage import HashingFile

META = b"bpe.part"
_SELF = b'{"sha256_with_zeros_here": "'
_ZEROS = b"0" * 64
_MAX_FOOTER = 64 << 20
# A row group ends with the first block of documents that takes it past one of these. Blocks depend
# on the split alone, and so do row groups.
ROW_GROUP_TOKENS = 4 << 20
ROW_GROUP_ROWS = 1 << 17
ROW_GROUP_BYTES = 64 << 20  # in memory, of all columns: those that pass through may be large
_WITH_STATISTICS = (ID, CHUNK_INDEX, NUM_TOKENS)
# Measured beside other levels, page sizes and encodings: benchmarks/LOG.md, "Parquet of ids".
_BYTE_STREAM_SPLIT = {
    "compression_level": 2,
    "data_page_size": 4 << 20,
    "column_encoding": {
        ID: "DELTA_BYTE_ARRAY",
        f"{INPUT_IDS}.list.element": "BYTE_STREAM_SPLIT",
        NUM_TOKENS: "BYTE_STREAM_SPLIT",
    },
}
_WRITER_OPTIONS: dict[ParquetEncoding, dict[str, Any]] = {
    "byte-stream-split": _BYTE_STREAM_SPLIT,
    "plain": {"compression_level": 1},
}


@dataclass(frozen=True, kw_only=True)
class Contents:
    """What is in a part, as its own footer says.

    Attributes:
        fingerprint: SHA-256 of the split, the options and the tokenizer it was made from.
        documents: that were encoded.
        rows: that were made of them.
        tokens: token ids of documents, over all rows.
        unknown: of these, ids of the unknown token.
        text_bytes: bytes of UTF-8 text that were encoded.
        dropped: what of the documents is in no row.
        padding: ids of the pad token that fill the last row; they are none of the ``tokens``.
        cut_documents: where only documents longer than a row are cut, how many are.
        remainder: the row that is carried to the last part, as Arrow IPC in base64; empty where
            there is none. Its documents are among the ``documents``; its ids are none of the
            ``tokens``.
        dead_letters: where the split's bad records are; None where there was none.
    """

    fingerprint: str
    documents: int
    rows: int
    tokens: int
    unknown: int
    text_bytes: int
    dropped: Dropped
    dead_letters: DeadLetters | None
    padding: int = 0
    cut_documents: int = 0
    remainder: str = ""

    def to_json(self) -> dict[str, Any]:
        """JSON values, without what few parts have, where there is none."""
        value = asdict(self)
        for name in ("padding", "cut_documents", "remainder"):
            if not value[name]:
                del value[name]
        return value

    def carried(self, layout: RowLayout) -> pa.RecordBatch | None:
        """The row that is carried to the last part; None where there is none.

        Raises:
            ValueError: it is no row of this layout.
        """
        if not self.remainder:
            return None
        with pa.ipc.open_stream(base64.b64decode(self.remainder, validate=True)) as stream:
            row = stream.read_next_batch()
        row.validate(full=True)
        if row.schema != layout.schema or len(row) != 1:
            raise ValueError("what its footer carries is not one row of its columns")
        return row


@dataclass(frozen=True, kw_only=True)
class FinishedPart:
    """A part under its final name: the split it is of, what is in it, and the file itself."""

    split: Split
    contents: Contents
    written: Written

    @property
    def file(self) -> str:
        """Its name below the output directory."""
        return self.split.file


@dataclass(frozen=True, kw_only=True)
class ShuffledSplit:
    """A split whose documents are in a shuffle file.

    Attributes:
        split: that was read.
        documents: in the file.
        failures: bad records of the split.
        dead_letters: where they are; None where there was none, or nobody wants them.
    """

    split: Split
    documents: int
    failures: int
    dead_letters: DeadLetters | None


class _Footer(io.RawIOBase):
    """Passes bytes on to a file until the footer begins, which it keeps."""

    def __init__(self, sink: HashingFile) -> None:
        self._sink = sink
        self.kept: bytearray | None = None

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._sink.tell() + len(self.kept or b"")

    def write(self, data: Buffer, /) -> int:
        if self.kept is None:
            return self._sink.write(data)
        self.kept += data
        return memoryview(data).nbytes


class PartWriter:
    """Writes the rows of a part to a file; a context manager that ends with `finish`.

    Args:
        sink: the file; not closed.
        layout: of the rows.
        unknown: the id of the unknown token, which is counted; None where there is none.
    """

    def __init__(self, sink: HashingFile, layout: RowLayout, *, unknown: int | None = None) -> None:
        self._sink = sink
        self._footer = _Footer(sink)
        self._schema = schema = layout.schema
        self._writer = pq.ParquetWriter(
            self._footer,
            self._schema,
            compression="zstd",
            use_dictionary=False,  # ids hardly repeat within a page's worth of a vocabulary
            write_page_checksum=True,
            write_statistics=[name for name in _WITH_STATISTICS if name in schema.names],
            **_WRITER_OPTIONS[layout.settings.parquet_encoding],
        )
        self._pending: list[pa.RecordBatch] = []
        self._pending_tokens = 0
        self._pending_rows = 0
        self._pending_bytes = 0
        self._unknown = unknown
        self.rows = 0
        self.tokens = 0
        self.unknown = 0
        self.padding = 0

    def add(self, rows: pa.RecordBatch) -> None:
        """Append rows."""
        if not len(rows):
            return
        self._pending.append(rows)
        self._pending_rows += len(rows)
        values, _, padding = without_padding(rows.column(INPUT_IDS), rows.column(NUM_TOKENS))
        self._pending_tokens += len(values)
        self._pending_bytes += rows.nbytes
        self.unknown += count_id(values, self._unknown)
        self.padding += len(padding)
        if (
            self._pending_tokens >= ROW_GROUP_TOKENS
            or self._pending_rows >= ROW_GROUP_ROWS
            or self._pending_bytes >= ROW_GROUP_BYTES
        ):
            self._flush()

    def _flush(self) -> None:
        if self._pending_rows:
            table = pa.Table.from_batches(self._pending, self._schema)
            self._writer.write_table(table, row_group_size=self._pending_rows)
        self.rows += self._pending_rows
        self.tokens += self._pending_tokens
        self._pending, self._pending_rows = [], 0
        self._pending_tokens = self._pending_bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self._writer.is_open:  # an error is on its way: let go of the sink, whatever it says
            with contextlib.suppress(Exception):
                self._writer.close()

    def finish(
        self,
        *,
        fingerprint: str,
        documents: int,
        text_bytes: int,
        dropped: Dropped,
        dead_letters: DeadLetters | None,
        cut_documents: int = 0,
        remainder: pa.RecordBatch | None = None,
    ) -> Contents:
        """Write what is left, and the footer; the arguments are those of `Contents`."""
        self._flush()
        contents = Contents(
            fingerprint=fingerprint,
            documents=documents,
            rows=self.rows,
            tokens=self.tokens,
            unknown=self.unknown,
            text_bytes=text_bytes,
            dropped=dropped,
            dead_letters=dead_letters,
            padding=self.padding,
            cut_documents=cut_documents,
            remainder="" if remainder is None else _in_base64(remainder),
        )
        meta = _SELF + _ZEROS + b'", ' + json.dumps(contents.to_json()).encode()[1:]
        self._writer.add_key_value_metadata({META: meta})
        self._footer.kept = bytearray()
        self._writer.close()
        footer, self._footer.kept = bytes(self._footer.kept), None
        sha256 = self._sink.sha256_with(footer).encode()
        before, _, behind = footer.rpartition(_SELF + _ZEROS)
        self._sink.write(before + _SELF + sha256 + behind)
        return contents


def _in_base64(row: pa.RecordBatch) -> str:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, row.schema, options=options) as stream:
        stream.write_batch(row)
    return base64.b64encode(sink.getvalue()).decode("ascii")


def count_id(ids: Ids, wanted: int | None) -> int:
    """How many of ``ids`` are ``wanted``; 0 where that is None."""
    return 0 if wanted is None else int(np.count_nonzero(ids == wanted))


def read_contents(file: pq.ParquetFile) -> Contents:
    """What a part says is in it.

    Raises:
        ValueError: it is not a part, or its footer contradicts itself.
    """
    contents = _contents((file.metadata.metadata or {}).get(META, b""))
    if contents.rows != file.metadata.num_rows:
        raise ValueError(
            f"its footer says {contents.rows} rows, its row groups hold {file.metadata.num_rows}"
        )
    return contents


def _contents(meta: bytes) -> Contents:
    try:
        value, _ = json.JSONDecoder().raw_decode(meta.decode("ascii", "replace"))
        return decode(Contents, value)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            "its footer does not say that it is a part of an encoded corpus"
        ) from error


def read_rows(
    file: pq.ParquetFile, layout: RowLayout, *, own_rows_alone: bool = False
) -> Iterator[pa.Table]:
    """The rows of a part, one row group at a time, and the row that is carried to the last part.

    Args:
        file: opened with ``page_checksum_verification=True``.
        layout: that the rows must have.
        own_rows_alone: leaves out the row that is carried; of the last part, which has it too.

    Raises:
        ValueError: columns that are missing or of another type, or nulls in those of our own.
        pyarrow.ArrowException, OSError: the file is damaged.
    """
    found, schema = file.schema_arrow, layout.schema
    if not found.equals(schema):
        raise ValueError(
            f"its columns are {', '.join(map(str, found))}, where the manifest says "
            f"{', '.join(map(str, schema))}"
        )
    for group in range(file.metadata.num_row_groups):
        table = file.read_row_group(group)
        if any(table[name].null_count for name in layout.own):
            raise ValueError(f"row group {group} holds nulls")
        if layout.settings.carries and not own_rows_alone:
            short = pc.less(table[NUM_TOKENS], layout.settings.pack)
            if pc.any(short).as_py():
                raise ValueError(f"row group {group} has a row of fewer ids than the others")
        yield table
    if not layout.settings.carries or own_rows_alone:
        return
    row = read_contents(file).carried(layout)
    if row is not None:
        yield pa.Table.from_batches([row])


def open_part(source: Any) -> pq.ParquetFile:
    """Open a part so that every page that is read is checked against its checksum."""
    return pq.ParquetFile(source, page_checksum_verification=True)


def finished_part(directory: str, split: Split, *, fingerprint: str) -> FinishedPart | None:
    """A part that an earlier run finished, read in full; None where it must be made (again).

    Args:
        directory: of the output.
        split: that the part is of.
        fingerprint: what the part must have been made from.
    """
    try:
        with storage.open_binary(join(directory, split.file)) as source:
            place, footer = _self_description(source)
            contents = _contents(footer)
            if contents.fingerprint != fingerprint:
                return None
            written = _written(source, place, footer)
        if (dead := contents.dead_letters) is not None:
            # The name is made here: what a file says is never used as a path.
            found = storage.digest(join(directory, split.dead_letters_file))
            if found != Written(bytes=dead.bytes, sha256=dead.sha256):
                return None
    except (InputError, ValueError, OSError):
        return None
    return FinishedPart(split=split, contents=contents, written=written)


def _self_description(source: Any) -> tuple[int, bytes]:
    """Where in a part its own description begins, and the file from there to its end."""
    source.seek(0, io.SEEK_END)
    size = source.tell()
    source.seek(max(size - 8, 0))
    end = bytes(source.read(8))
    length = int.from_bytes(end[:4], "little")
    if end[4:] != b"PAR1" or not 0 < length <= min(size - 12, _MAX_FOOTER):
        raise ValueError("not a whole Parquet file")
    source.seek(size - 8 - length)
    footer = bytes(source.read(length + 8))
    # The last one: statistics of ids, which are of the corpus, stand before it.
    place = footer.rfind(_SELF)
    if place < 0:
        raise ValueError("not a part")
    return size - 8 - length + place, footer[place:]


def _written(source: Any, place: int, footer: bytes) -> Written:
    """Size and SHA-256 of a part whose own SHA-256 is right.

    Args:
        source: the part.
        place: where in it ``footer`` begins.
        footer: of `_self_description`: what was parsed is what is hashed.

    Raises:
        ValueError: it is not: the file is damaged.
    """
    source.seek(0)
    common = hashlib.sha256()
    left = place
    while left:
        chunk = bytes(source.read(min(left, storage.CHUNK)))
        if not chunk:
            raise ValueError("the file became shorter")
        common.update(chunk)
        left -= len(chunk)
    common.update(_SELF)
    rest = footer[len(_SELF) :]
    real, stated = common.copy(), rest[: len(_ZEROS)]
    real.update(rest)
    common.update(_ZEROS + rest[len(_ZEROS) :])
    if common.hexdigest().encode() != stated:
        raise ValueError("damaged")
    return Written(bytes=place + len(footer), sha256=real.hexdigest())
