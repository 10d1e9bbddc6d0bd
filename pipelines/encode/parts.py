"""One Parquet file of token ids for each split: written, recognised, read back.

The bytes of a part depend on its split, the options and the tokenizer alone. What they were, and
what is in the part, stands in the Parquet footer under `META`, so that a later run can tell a
finished part of the same job from any other file. The SHA-256 of the file stands there too, taken
with zeros in its own place: damage anywhere is found, and before any of the file is parsed.
"""

from __future__ import annotations

import hashlib
import io
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from bpe._codec import decode
from bpe.counts.manifest import DeadLetters
from pipelines import storage
from pipelines.encode.rows import INPUT_IDS, OWN, count_id, flat
from pipelines.errors import InputError
from pipelines.parquet_writer import RowWriter
from pipelines.storage import Written, join

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from typing_extensions import Buffer, Self

    from pipelines.corpus.splits import Split
    from pipelines.encode.rows import RowLayout
    from pipelines.storage import HashingFile

META = b"bpe.part"
_SELF = b'{"sha256_with_zeros_here": "'
_ZEROS = b"0" * 64
_MAX_FOOTER = 64 << 20


@dataclass(frozen=True, kw_only=True)
class Sums:
    """What some rows hold.

    Attributes:
        documents: a row each.
        tokens: ids.
        unknown: of these, ids of the unknown token.
        text_bytes: bytes of UTF-8 text that were encoded.
    """

    documents: int = 0
    tokens: int = 0
    unknown: int = 0
    text_bytes: int = 0

    @classmethod
    def of(cls, rows: pa.RecordBatch, *, text_bytes: int, unknown: int | None) -> Sums:
        """The sums of rows; ``unknown`` is the id of the unknown token, or None."""
        ids, _ = flat(rows.column(INPUT_IDS))
        return cls(
            documents=len(rows),
            tokens=len(ids),
            unknown=count_id(ids, unknown),
            text_bytes=text_bytes,
        )

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            documents=self.documents + other.documents,
            tokens=self.tokens + other.tokens,
            unknown=self.unknown + other.unknown,
            text_bytes=self.text_bytes + other.text_bytes,
        )


@dataclass(frozen=True, kw_only=True)
class Contents:
    """What is in a part, as its own footer says.

    Attributes:
        fingerprint: SHA-256 of the split, the options and the tokenizer it was made from.
        sums: over its rows.
        dead_letters: where the split's bad records are; None where there was none.
    """

    fingerprint: str
    sums: Sums
    dead_letters: DeadLetters | None


@dataclass(frozen=True, kw_only=True)
class FinishedPart:
    """A part under its final name: the split it is of, what is in it, and the file itself."""

    split: Split
    contents: Contents
    written: Written


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
    """

    def __init__(self, sink: HashingFile, layout: RowLayout) -> None:
        self._sink = sink
        self._footer = _Footer(sink)
        encoding = layout.settings.parquet_encoding
        self._writer = RowWriter(self._footer, layout.schema, encoding=encoding)

    def add(self, rows: pa.RecordBatch) -> None:
        """Append rows."""
        self._writer.add(rows, len(flat(rows.column(INPUT_IDS))[0]))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._writer.discard()

    def finish(self, contents: Contents) -> None:
        """Write what is left, and the footer, which says what is in the part."""
        self._writer.flush()
        meta = _SELF + _ZEROS + b'", ' + json.dumps(asdict(contents)).encode()[1:]
        self._footer.kept = bytearray()
        self._writer.close({META: meta})
        footer, self._footer.kept = bytes(self._footer.kept), None
        sha256 = self._sink.sha256_with(footer).encode()
        before, _, after = footer.rpartition(_SELF + _ZEROS)
        self._sink.write(before + _SELF + sha256 + after)


def read_contents(file: pq.ParquetFile) -> Contents:
    """What a part says is in it.

    Raises:
        ValueError: it is not a part, or its footer contradicts itself.
    """
    contents = _contents((file.metadata.metadata or {}).get(META, b""))
    if contents.sums.documents != file.metadata.num_rows:
        raise ValueError(
            f"its footer says {contents.sums.documents} documents, its row groups hold "
            f"{file.metadata.num_rows}"
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


def read_rows(file: pq.ParquetFile, layout: RowLayout) -> Iterator[pa.Table]:
    """The rows of a part, one row group at a time.

    Args:
        file: opened with ``page_checksum_verification=True``.
        layout: that the rows must have.

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
        if any(table[name].null_count for name in OWN):
            raise ValueError(f"row group {group} holds nulls")
        yield table


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
