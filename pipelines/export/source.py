"""Reading the pinned parts of a source, in blocks of documents."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines import storage
from pipelines.encode.rows import INPUT_IDS, NUM_TOKENS, as_bytes
from pipelines.errors import InputError, StoppedError
from pipelines.failures import one_line
from pipelines.parquet_writer import batches_of
from pipelines.storage import join

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bpe.splitmix import Hashes
    from pipelines.encode.rows import Numbers
    from pipelines.export.plan import ExportPlan, Pin
    from pipelines.export.rows import ExportLayout

KEY = "key"
_IN_MEMORY = 256 << 20  # a part of at most so many bytes is read once, hashed, and parsed
_SIZES_AT_ONCE = 1 << 17
_BLOCK_TOKENS = 3 << 17  # of a block, about: what is decoded at once
_AHEAD_TOKENS = 1 << 13  # likewise, where only the first documents are needed


@dataclass(frozen=True, kw_only=True)
class Block:
    """Consecutive documents of a part.

    Attributes:
        pin: the part.
        file: the number of the part, over all sources.
        rows: the row of each document in the part, from 0.
        keys: the keys of the documents.
        tokens: the number of ids of each document.
        documents: the documents, in the columns of `ExportLayout.documents`.
    """

    pin: Pin
    file: int
    rows: Numbers
    keys: Hashes
    tokens: Numbers
    documents: pa.RecordBatch

    def where(self, mask: Any) -> pa.RecordBatch:
        """Return the documents that a mask of booleans selects."""
        return self.documents if mask.all() else self.documents.filter(pa.array(mask))


def read_blocks(
    plan: ExportPlan,
    pin: Pin,
    file: int,
    *,
    stopped: Callable[[], bool],
    read: Literal["all", "sizes", "ahead"] = "all",
) -> Iterator[Block]:
    """Yield the documents of a part, block by block.

    Args:
        plan: the plan of the export.
        pin: the part.
        file: the number of the part, over all sources.
        stopped: returns True if nobody needs the result any more; called between blocks.
        read: ``all``: the part must have the SHA-256 of its pin; ``sizes``: no ids are read, so
            ``documents`` has no columns; ``ahead``: as only some of the first documents are
            needed, blocks are small. With the last two, only the pages read are checked.

    Raises:
        InputError: the part is missing, was changed, or is damaged.
        StoppedError: nobody needs the result any more.
    """
    documents = tokens = 0
    names, rows = [KEY, NUM_TOKENS], _SIZES_AT_ONCE
    if read != "sizes":
        size = _AHEAD_TOKENS if read == "ahead" else _BLOCK_TOKENS
        rows = min(max(size * pin.documents // max(pin.tokens, 1), 1), rows)
        names = [KEY, *plan.about.names, INPUT_IDS]
    for batch in _batches(plan, pin, names, rows, verify=read == "all", stopped=stopped):
        there = batch.select([]) if read == "sizes" else _documents(plan, batch)
        sizes = batch[NUM_TOKENS].to_numpy() if read == "sizes" else plan.lengths(there)
        block = Block(
            pin=pin,
            file=file,
            rows=documents + np.arange(len(batch)),
            keys=batch[KEY].to_numpy(),
            tokens=sizes.astype(np.int64),
            documents=there,
        )
        yield block
        documents += len(batch)
        tokens += int(block.tokens.sum())
    for what, number in (("documents", documents), ("tokens", tokens)):
        if number != getattr(pin, what):
            directory = plan.directories[pin.source]
            raise InputError(
                f"{join(directory, pin.file)}: it holds {number:,} {what}, its manifest says "
                f"{getattr(pin, what):,}: check it with bpe verify {directory}"
            )


def _documents(layout: ExportLayout, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the documents of the rows of a part, which may lack columns that pass through."""
    about = [
        rows[one.name] if one.name in rows.schema.names else pa.nulls(len(rows), one.type)
        for one in layout.about
    ]
    struct = pa.StructArray.from_arrays(about, fields=[*layout.about])
    begins = pa.array(np.zeros(len(rows), np.int64))
    return pa.record_batch([struct, as_bytes(rows[INPUT_IDS]), begins], schema=layout.documents)


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
