"""Reading the pinned parts of a source, in blocks of documents."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines import storage
from pipelines.encode.rows import ID, INPUT_IDS, NUM_TOKENS, as_bytes, as_lists
from pipelines.errors import InputError, StoppedError
from pipelines.export.rows import Documents
from pipelines.failures import one_line
from pipelines.parquet_writer import batches_of
from pipelines.storage import join

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bpe.splitmix import Hashes
    from pipelines.encode.rows import Numbers
    from pipelines.export.plan import ExportPlan, Pin

KEY = "key"
_IN_MEMORY = 256 << 20  # a part of at most so many bytes is read once, hashed, and parsed
_SIZES_AT_ONCE = 1 << 17
_BLOCK_TOKENS = 3 << 17  # of a block, about: what is decoded at once
_AHEAD_TOKENS = 1 << 13  # likewise, where only the first documents are needed


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Keys and token counts of consecutive documents of a part, and the row of the first one."""

    first: int
    keys: Hashes
    tokens: Numbers


@dataclass(frozen=True, kw_only=True)
class IdBlock:
    """Consecutive documents of a part.

    Attributes:
        source: the number of the source.
        file: the number of the part, over all sources.
        rows: the row of each document in the part, from 0.
        keys: the keys of the documents.
        documents: the documents.
    """

    source: int
    file: int
    rows: Numbers
    keys: Hashes
    documents: Documents

    def where(self, mask: Any) -> Documents:
        """Return the documents that a mask of booleans selects."""
        if mask.all():
            return self.documents
        rows, lists = pa.array(np.flatnonzero(mask)), self.documents.input_ids
        input_ids = as_lists(as_bytes(lists).take(rows), lists.type)
        return Documents(about=self.documents.about.take(rows), input_ids=input_ids)


def read_sizes(plan: ExportPlan, pin: Pin, *, stopped: Callable[[], bool]) -> Iterator[Sizes]:
    """Yield the keys and token counts of the documents of a part, without reading ids.

    Raises:
        InputError: the part is missing, has another size, or is damaged.
        StoppedError: nobody needs the result any more.
    """
    first, columns = 0, [KEY, NUM_TOKENS]
    for batch in _batches(plan, pin, columns, _SIZES_AT_ONCE, verify=False, stopped=stopped):
        tokens = batch[NUM_TOKENS].to_numpy().astype(np.int64)
        yield Sizes(first=first, keys=batch[KEY].to_numpy(), tokens=tokens)
        first += len(batch)
    _check_sums(plan, pin, documents=first)


def read_blocks(
    plan: ExportPlan, pin: Pin, file: int, *, stopped: Callable[[], bool], ahead: bool = False
) -> Iterator[IdBlock]:
    """Yield the documents of a part, block by block.

    Args:
        plan: the plan of the export.
        pin: the part.
        file: the number of the part, over all sources.
        stopped: returns True if nobody needs the result any more; called between blocks.
        ahead: True if only some of the first documents are needed: blocks are small, and only the
            pages read are checked. If False, the part must have the SHA-256 of its pin.

    Raises:
        InputError: the part is missing, was changed, or is damaged.
        StoppedError: nobody needs the result any more.
    """
    first = tokens = 0
    size = _AHEAD_TOKENS if ahead else _BLOCK_TOKENS
    rows = min(max(size * pin.documents // max(pin.tokens, 1), 1), _SIZES_AT_ONCE)
    names, about = [ID, *plan.columns, KEY, INPUT_IDS], plan.about
    for batch in _batches(plan, pin, names, rows, verify=not ahead, stopped=stopped):
        columns = [
            batch[column.name]
            if column.name in batch.schema.names
            else pa.nulls(len(batch), column.type)
            for column in about
        ]
        yield IdBlock(
            source=pin.source,
            file=file,
            rows=first + np.arange(len(batch)),
            keys=batch[KEY].to_numpy(),
            documents=Documents(
                about=pa.record_batch(columns, schema=about), input_ids=batch[INPUT_IDS]
            ),
        )
        first += len(batch)
        tokens += len(batch[INPUT_IDS].flatten())
    _check_sums(plan, pin, documents=first, tokens=tokens)


def _batches(
    plan: ExportPlan,
    pin: Pin,
    columns: list[str],
    rows: int,
    *,
    verify: bool,
    stopped: Callable[[], bool],
) -> Iterator[pa.RecordBatch]:
    """Yield batches of rows of a part, with those of ``columns`` that the part has.

    Args:
        plan: the plan of the export.
        pin: the part.
        columns: the names of the columns to read.
        rows: the number of rows of a batch.
        verify: True to compare the SHA-256 of the part; False: the checksums of its pages.
        stopped: returns True if nobody needs the result any more.

    Raises:
        InputError: the part is missing, was changed, or is damaged.
        StoppedError: nobody needs the result any more.
    """
    directory = plan.directories[pin.source]
    path, sha256 = join(directory, pin.file), pin.sha256
    name = f"{path} (source {plan.sources[pin.source].name})"
    check = f"check it with bpe verify {directory}, or begin again with `overwrite`"
    with contextlib.ExitStack() as stack:
        try:
            if verify:
                once = storage.read_once(path, in_memory=_IN_MEMORY)
                source, found = stack.enter_context(once)
                size, sha256 = found.bytes, found.sha256
            else:
                source = stack.enter_context(storage.open_binary(path))
                size = source.size()
        except InputError as error:
            raise InputError(f"{error}: it was there when the export began: {check}") from error
        how = ""
        if size != pin.bytes:
            how = f"it has {size:,} bytes, not {pin.bytes:,}"
        elif sha256 != pin.sha256:
            how = f"its SHA-256 is {sha256}, not {pin.sha256}"
        if how:
            raise InputError(
                f"{name} was changed since the export began, or is damaged: {how}: {check}"
            )
        try:
            # Bytes that were compared need no checksum of each page.
            file = pq.ParquetFile(source, page_checksum_verification=not verify)
            there = [one for one in columns if one in file.schema_arrow.names]
            for batch in batches_of(file, rows, columns=there):
                if stopped():
                    raise StoppedError
                yield batch
        except (pa.ArrowException, OSError) as error:
            raise InputError(
                f"{name}: damaged: {one_line(error)}: check it with bpe verify {directory}"
            ) from error


def _check_sums(plan: ExportPlan, pin: Pin, **found: int) -> None:
    """Check that a part has the numbers of documents and tokens of its pin."""
    for what, number in found.items():
        if number != getattr(pin, what):
            directory = plan.directories[pin.source]
            raise InputError(
                f"{join(directory, pin.file)}: it holds {number:,} {what}, its manifest says "
                f"{getattr(pin, what):,}: check it with bpe verify {directory}"
            )
