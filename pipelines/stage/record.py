"""Records of finished units of work, the only proof that a unit is finished.

A record is written after the files it names, as ``records/UNIT.json``. When a job is complete,
``records.parquet`` holds all records, the manifest has its SHA-256, and the loose ones are removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from bpe._codec import from_jsonable, to_jsonable
from bpe.files import is_intact, with_checksum
from pipelines import storage
from pipelines.errors import InputError, VerificationError
from pipelines.output import state
from pipelines.output.names import MANIFEST, RECORDS, RECORDS_FILE, read_manifest_object
from pipelines.parquet_writer import batches_of
from pipelines.storage import join, replacing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@dataclass(frozen=True, kw_only=True)
class StoredFile:
    """A file below the output directory: its name, size in bytes, SHA-256 (hex), rows and ids."""

    file: str
    bytes: int
    sha256: str
    rows: int = 0
    tokens: int = 0

    def __post_init__(self) -> None:
        """Refuse a name that leads out of the directory.

        Raises:
            ValueError: the name does.
        """
        if not self.file or {"", ".", ".."} & set(self.file.split("/")):
            raise ValueError(f"a file is {self.file!r}")


@dataclass(frozen=True, kw_only=True)
class Record:
    """The files and totals of a finished unit.

    Attributes:
        unit: the name of the unit, unique in its stage.
        fingerprint: SHA-256 (hex) of everything that the contents of its files depend on.
        files: the files, in order.
        totals: numbers or lists of numbers, by name.
    """

    unit: str
    fingerprint: str
    files: tuple[StoredFile, ...]
    totals: Mapping[str, Any]

    def __post_init__(self) -> None:
        """Refuse a name that leads out of the folder of records.

        Raises:
            ValueError: the name does.
        """
        if "/" in self.unit:
            raise ValueError(f"a unit is {self.unit!r}")


def record_path(directory: str, unit: str) -> str:
    """Return the path of the record of a unit while the job is incomplete."""
    return join(directory, RECORDS, f"{unit}.json")


def write_record(directory: str, record: Record) -> None:
    """Write the record of a unit, whose files are complete.

    A record need not outlive a power cut: a unit whose record is missing or damaged is made again.

    Raises:
        OutputError: it cannot be written.
    """
    data = json.dumps(with_checksum(to_jsonable(record)), separators=(",", ":")).encode()
    storage.write(record_path(directory, record.unit), data, durable=False)


def finished(directory: str, unit: str, *, fingerprint: str) -> Record | None:
    """Return the record of a unit whose files are complete and intact; None if it must be made.

    Every file is read in full.

    Args:
        directory: the directory of the files and of the folder of records.
        unit: the name of the unit.
        fingerprint: the fingerprint that the record must have.
    """
    with contextlib.suppress(InputError, VerificationError, ValueError, RecursionError):
        value = json.loads(storage.read(record_path(directory, unit)))
        record = from_jsonable(Record, value)
        if is_intact(value) and (record.unit, record.fingerprint) == (unit, fingerprint):
            for file in record.files:
                check_file(directory, file)
            return record
    return None


def check_file(directory: str, file: StoredFile) -> None:
    """Compare a file with its record.

    Raises:
        VerificationError: the file is missing, or its size or SHA-256 differs.
    """
    try:
        state.check_file(join(directory, file.file), file.bytes, file.sha256)
    except VerificationError as error:
        raise VerificationError(f"{error}: make it again with `resume`") from error


_AT_ONCE = 1024
_SCHEMA = pa.schema([(name, pa.string()) for name in ("unit", "fingerprint", "files", "totals")])


def write_records(
    directory: str, records: Sequence[Record], file: str = RECORDS_FILE
) -> StoredFile:
    """Write ``records.parquet``, or another file, a row per record; files and totals are JSON.

    Raises:
        OutputError: it cannot be written.
    """
    rows = [
        {
            **vars(record),
            "files": json.dumps(to_jsonable(record.files)),
            "totals": json.dumps(to_jsonable(record.totals)),
        }
        for record in records
    ]
    with replacing(join(directory, file)) as sink:
        table = pa.Table.from_pylist(rows, _SCHEMA)
        pq.write_table(table, sink, compression="zstd", write_page_checksum=True)
    return StoredFile(file=file, **vars(sink.written()))


def loosen_records(directory: str) -> None:
    """Make a complete output incomplete again: one loose record for each unit, and no manifest.

    Nothing is done unless the records exist and have the SHA-256 that the manifest states. Without
    a readable manifest, the checksums of the records' pages are compared instead.
    """
    with contextlib.suppress(InputError):
        records = list(read_records(directory, _stated_sha256(directory)))
        storage.remove(join(directory, MANIFEST))
        for record in records:
            write_record(directory, record)
        storage.remove(join(directory, RECORDS_FILE))


def _stated_sha256(directory: str) -> str | None:
    """Return the SHA-256 of the records in the manifest; None if no manifest states one."""
    try:
        return str(read_manifest_object(join(directory, MANIFEST))["records"]["sha256"])
    except (InputError, LookupError, TypeError):
        return None


def read_records(directory: str, sha256: str | None, file: str = RECORDS_FILE) -> Iterator[Record]:
    """Yield the records in ``records.parquet``, read in batches.

    Args:
        directory: the directory of the file.
        sha256: the SHA-256 of the file in the manifest; None without a manifest: then only the
            checksums of its pages are compared.
        file: the name of the file.

    Raises:
        InputError: the file cannot be read, or its SHA-256 differs.
    """
    path = join(directory, file)
    data = storage.read(path)
    if sha256 is not None and hashlib.sha256(data).hexdigest() != sha256:
        raise InputError(
            f"{path}: its SHA-256 is not the one in the manifest: the file was changed or damaged: "
            "make it again with `resume`"
        )
    try:
        records = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)
        for batch in batches_of(records, _AT_ONCE):
            for row in batch.to_pylist():
                named = {"files": json.loads(row["files"]), "totals": json.loads(row["totals"])}
                yield from_jsonable(Record, {**row, **named})
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: not the records of a job: {error}") from error
