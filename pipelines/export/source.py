"""Reading the pinned parts of a source: blocks of documents, a row group at a time."""

from __future__ import annotations

import contextlib
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines import storage
from pipelines.errors import InputError, StoppedError
from pipelines.export.rows import ID, INPUT_IDS, NUM_TOKENS, Documents
from pipelines.storage import join

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from typing_extensions import Self

    from pipelines.export.numbers import Hashes
    from pipelines.export.plan import ExportPlan, Pin
    from pipelines.export.rows import Numbers

KEY = "key"
_IN_MEMORY = 256 << 20  # a part of at most so many bytes is read once, hashed, and parsed


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Documents of a part: their keys, ids in each, and the row of the first one."""

    first: int
    keys: Hashes
    tokens: Numbers


@dataclass(frozen=True, kw_only=True)
class Block:
    """Consecutive documents of a part: their keys, and the row of the first one."""

    first: int
    keys: Hashes
    documents: Documents

    def rows(self) -> Numbers:
        """The row of each, from 0."""
        return self.first + np.arange(len(self.keys))

    def where(self, mask: Any) -> Documents:
        """The documents that a mask of booleans selects."""
        if mask.all():
            return self.documents
        rows = pa.array(np.flatnonzero(mask))
        return Documents(
            ids=self.documents.ids.take(rows),
            kept=tuple(column.take(rows) for column in self.documents.kept),
            input_ids=self.documents.input_ids.take(rows),
        )


def read_sizes(plan: ExportPlan, pin: Pin, *, stopped: Callable[[], bool]) -> Iterator[Sizes]:
    """How many tokens each document of a part has; no ids are read.

    Raises:
        InputError: the part is missing, has another size, or is damaged.
        StoppedError: nobody needs the result any more.
    """
    first = 0
    with _Part(plan, pin, verify=False) as part:
        for table in part.tables([KEY, NUM_TOKENS], stopped):
            tokens = table[NUM_TOKENS].to_numpy().astype(np.int64)
            yield Sizes(first=first, keys=table[KEY].to_numpy(), tokens=tokens)
            first += len(table)
    _check_documents(plan, pin, first)


def read_blocks(
    plan: ExportPlan, pin: Pin, *, stopped: Callable[[], bool], verify: bool = True
) -> Iterator[Block]:
    """The documents of a part.

    Args:
        plan: of the export.
        pin: the part.
        stopped: asked between row groups, whether nobody needs the result any more.
        verify: whether the part must be read in full, and have the SHA-256 of its pin. Without,
            only the pages that are read are checked.

    Raises:
        InputError: the part is missing, was changed, or is damaged.
        StoppedError: nobody needs the result any more.
    """
    first = 0
    with _Part(plan, pin, verify=verify) as part:
        names = set(part.schema.names)
        kept = [column.name for column in plan.columns if column.name in names]
        for table in part.tables([ID, *kept, KEY, INPUT_IDS], stopped):
            columns = tuple(
                _one(table[column.name])
                if column.name in kept
                else pa.nulls(len(table), column.type)
                for column in plan.columns
            )
            documents = Documents(
                ids=_one(table[ID]), kept=columns, input_ids=_one(table[INPUT_IDS])
            )
            yield Block(first=first, keys=table[KEY].to_numpy(), documents=documents)
            first += len(table)
    _check_documents(plan, pin, first)


class _Part:
    """A pinned part, opened; every page that is read is checked against its checksum."""

    def __init__(self, plan: ExportPlan, pin: Pin, *, verify: bool) -> None:
        self._pin = pin
        source = plan.sources[pin.source]
        self._directory = source.directory
        self._path = join(source.directory, pin.file)
        self._name = f"{self._path} (source {source.name})"
        self._verify = verify

    def __enter__(self) -> Self:
        try:
            self._file = storage.open_binary(self._path)
        except InputError as error:
            raise InputError(
                f"{error}: it was there when the export began: check it with bpe verify "
                f"{self._directory}, or begin again with `overwrite`"
            ) from error
        try:
            self._check_size(self._file.size())
            source: Any = self._file
            if self._verify and self._pin.bytes <= _IN_MEMORY:
                data = self._read_all()
                source = pa.BufferReader(data)
                self._check_digest(hashlib.sha256(data).hexdigest())
            elif self._verify:
                self._check_digest(storage.digest(self._path).sha256)
            with _damage(self._name, self._directory):
                self._parquet = pq.ParquetFile(source, page_checksum_verification=True)
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._file.close()

    @property
    def schema(self) -> pa.Schema:
        """Of the part."""
        return self._parquet.schema_arrow

    def tables(self, columns: Sequence[str], stopped: Callable[[], bool]) -> Iterator[pa.Table]:
        """These columns, a row group at a time.

        Raises:
            InputError: the part is damaged, or has no such column.
            StoppedError: nobody needs the result any more.
        """
        names = self._parquet.schema_arrow.names
        if missing := [name for name in columns if name not in names]:
            raise InputError(
                f"{self._name}: there is no column {missing[0]!r} (its columns: "
                f"{', '.join(names)}): encode the corpus again with this release"
            )
        for group in range(self._parquet.metadata.num_row_groups):
            if stopped():
                raise StoppedError
            with _damage(self._name, self._directory):
                table = self._parquet.read_row_group(
                    group, columns=list(columns), use_threads=False
                )
            if table[columns[-1]].null_count:
                raise InputError(f"{self._name}: row group {group} holds nulls: damaged")
            yield table

    def _read_all(self) -> Any:
        with storage.reading(self._path):
            return self._file.read_buffer(self._pin.bytes)

    def _check_size(self, size: int) -> None:
        if size != self._pin.bytes:
            raise self._changed(f"it has {size:,} bytes, not {self._pin.bytes:,}")

    def _check_digest(self, sha256: str) -> None:
        if sha256 != self._pin.sha256:
            raise self._changed(f"its SHA-256 is {sha256}, not {self._pin.sha256}")

    def _changed(self, how: str) -> InputError:
        return InputError(
            f"{self._name} was changed since the export began, or is damaged: {how}: check it with "
            f"bpe verify {self._directory}, or begin again with `overwrite`"
        )


@contextlib.contextmanager
def _damage(name: str, directory: str) -> Iterator[None]:
    """Name the part in errors of Arrow."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        said = " ".join(str(error).split())
        raise InputError(
            f"{name}: damaged: {said}: check it with bpe verify {directory}"
        ) from error


def _one(column: pa.ChunkedArray) -> pa.Array:
    """The column of a row group as one array; one chunk is not copied."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _check_documents(plan: ExportPlan, pin: Pin, documents: int) -> None:
    if documents != pin.documents:
        path = join(plan.sources[pin.source].directory, pin.file)
        raise InputError(
            f"{path}: it holds {documents:,} documents, its manifest says {pin.documents:,}: check "
            f"it with bpe verify {plan.sources[pin.source].directory}"
        )
