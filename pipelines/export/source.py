"""Reading the pinned parts of a source, in blocks of documents."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines import storage
from pipelines.encode.rows import ID, INPUT_IDS, NUM_TOKENS
from pipelines.errors import InputError, StoppedError
from pipelines.export.rows import Documents, as_bytes, as_lists
from pipelines.parquet_writer import batches_of
from pipelines.storage import join

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from typing_extensions import Self

    from pipelines.corpus.keys import Hashes
    from pipelines.encode.rows import Numbers
    from pipelines.export.plan import ExportPlan, Pin

KEY = "key"
_IN_MEMORY = 256 << 20  # a part of at most so many bytes is read once, hashed, and parsed
_SIZES_AT_ONCE = 1 << 17
_BLOCK_TOKENS = 1 << 18  # of a block, about: what is decoded at once
_AHEAD_TOKENS = 1 << 13  # likewise, where only the first documents are needed


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Documents of a part: their keys, ids in each, and the row of the first one."""

    first: int
    keys: Hashes
    tokens: Numbers


@dataclass(frozen=True, kw_only=True)
class IdBlock:
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
        rows, lists = pa.array(np.flatnonzero(mask)), self.documents.input_ids
        return Documents(
            ids=self.documents.ids.take(rows),
            kept=tuple(column.take(rows) for column in self.documents.kept),
            input_ids=as_lists(as_bytes(lists).take(rows), lists.type),
        )


def read_sizes(plan: ExportPlan, pin: Pin, *, stopped: Callable[[], bool]) -> Iterator[Sizes]:
    """Return how many tokens each document of a part has; no ids are read.

    Raises:
        InputError: the part is missing, has another size, or is damaged.
        StoppedError: nobody needs the result any more.
    """
    first = 0
    with _Part(plan, pin, verify=False) as part:
        for batch in part.batches([KEY, NUM_TOKENS], _SIZES_AT_ONCE, stopped=stopped):
            tokens = batch[NUM_TOKENS].to_numpy().astype(np.int64)
            yield Sizes(first=first, keys=batch[KEY].to_numpy(), tokens=tokens)
            first += len(batch)
    _check_sums(plan, pin, documents=first)


def read_blocks(
    plan: ExportPlan, pin: Pin, *, stopped: Callable[[], bool], ahead: bool = False
) -> Iterator[IdBlock]:
    """The documents of a part.

    Args:
        plan: of the export.
        pin: the part.
        stopped: asked between blocks, whether nobody needs the result any more.
        ahead: whether only some of the first documents are needed: blocks are small, and only the
            pages that are read are checked. Without, the part must have the SHA-256 of its pin.

    Raises:
        InputError: the part is missing, was changed, or is damaged.
        StoppedError: nobody needs the result any more.
    """
    first = tokens = 0
    size = _AHEAD_TOKENS if ahead else _BLOCK_TOKENS
    rows = min(max(size * pin.documents // max(pin.tokens, 1), 1), _SIZES_AT_ONCE)
    with _Part(plan, pin, verify=not ahead) as part:
        names = set(part.schema.names)
        kept = [name for name in plan.columns if name in names]
        for batch in part.batches([ID, *kept, KEY, INPUT_IDS], rows, stopped=stopped):
            columns = tuple(
                batch[column.name] if column.name in kept else pa.nulls(len(batch), column.type)
                for column in plan.kept
            )
            documents = Documents(ids=batch[ID], kept=columns, input_ids=batch[INPUT_IDS])
            yield IdBlock(first=first, keys=batch[KEY].to_numpy(), documents=documents)
            first += len(batch)
            tokens += len(documents.input_ids.flatten())
    _check_sums(plan, pin, documents=first, tokens=tokens)


class _Part:
    """A pinned part, opened; what is read of it is checked against its SHA-256 or checksums."""

    def __init__(self, plan: ExportPlan, pin: Pin, *, verify: bool) -> None:
        self._pin = pin
        self._directory = plan.directories[pin.source]
        self._path = join(self._directory, pin.file)
        self._name = f"{self._path} (source {plan.sources[pin.source].name})"
        self._verify = verify
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        with self._stack:
            sha256 = self._pin.sha256
            try:
                if self._verify:
                    once = storage.read_once(self._path, in_memory=_IN_MEMORY)
                    source, found = self._stack.enter_context(once)
                    size, sha256 = found.bytes, found.sha256
                else:
                    source = self._stack.enter_context(storage.open_binary(self._path))
                    size = source.size()
            except InputError as error:
                raise InputError(
                    f"{error}: it was there when the export began: check it with bpe verify "
                    f"{self._directory}, or begin again with `overwrite`"
                ) from error
            if size != self._pin.bytes:
                raise self._changed(f"it has {size:,} bytes, not {self._pin.bytes:,}")
            if sha256 != self._pin.sha256:
                raise self._changed(f"its SHA-256 is {sha256}, not {self._pin.sha256}")
            with _damage(self._name, self._directory):
                # Bytes that were compared need no checksum of each page.
                self._parquet = pq.ParquetFile(source, page_checksum_verification=not self._verify)
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._stack.close()

    @property
    def schema(self) -> pa.Schema:
        """Of the part."""
        return self._parquet.schema_arrow

    def batches(
        self, columns: list[str], rows: int, *, stopped: Callable[[], bool]
    ) -> Iterator[pa.RecordBatch]:
        """So many rows at a time of these columns.

        Raises:
            InputError: the part is damaged.
            StoppedError: nobody needs the result any more.
        """
        with _damage(self._name, self._directory):
            for batch in batches_of(self._parquet, rows, columns=columns):
                if stopped():
                    raise StoppedError
                yield batch

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


def _check_sums(plan: ExportPlan, pin: Pin, **found: int) -> None:
    """Refuse a part that holds other numbers of documents or tokens than its pin says."""
    for what, number in found.items():
        if number != getattr(pin, what):
            directory = plan.directories[pin.source]
            raise InputError(
                f"{join(directory, pin.file)}: it holds {number:,} {what}, its manifest says "
                f"{getattr(pin, what):,}: check it with bpe verify {directory}"
            )
