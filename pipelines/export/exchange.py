"""A shuffle through files, in bounded memory.

Every document that is taken has a hash of 64 bits: of the seed, its source, epoch, part and row.
The shuffled order is the order of these hashes; ties go by source, epoch, part and row. Buckets are
equal ranges of hashes, as many as the tokens need. A span writes its documents into one file, by
bucket; a bucket reads its documents in the files of all spans, and sorts them.

Of more than `FAN_IN` files, groups are merged first: a merged file holds a few buckets of up to
`FAN_IN` spans, so that a bucket never reads more files than that.

A bucket has a head, its first 1/64, which is stored apart: a packed row that begins in the bucket
before it reads on into this bucket without reading all of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from bpe._arrow import to_stream
from bpe.splitmix import numbers_at
from pipelines import storage
from pipelines.corpus.keys import seed64
from pipelines.errors import StoppedError
from pipelines.export.choose import Pass, choice_of, range_of, spans_in
from pipelines.output.names import json_bytes
from pipelines.spill import SpillWriter, read_segment
from pipelines.stage.record import StoredFile
from pipelines.stage.stage import Made
from pipelines.storage import join, replacing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from bpe.splitmix import Hashes
    from pipelines.encode.rows import Numbers
    from pipelines.export.plan import ExportPlan
    from pipelines.export.rows import ExportLayout
    from pipelines.export.source import Block
    from pipelines.progress import SlotWriter
    from pipelines.stage.record import Record
    from pipelines.stage.stage import Unit
    from pipelines.storage import HashingFile

BUCKETS = "buckets.json"
MAX_BUCKETS = 1 << 16
FAN_IN = 256  # how many files a unit may read
RUN_BYTES = 64 << 20  # of documents that are held before they are sorted and written
_HEAD = 64  # a bucket's head is one part of so many
_PORTION_IDS = 1 << 18  # documents of a bucket are handed out by so many ids,
_PORTION_DOCUMENTS = 1 << 14  # or so many documents
_HASH, _EPOCH, _FILE, _ROW = "hash", "epoch", "file", "row"
_SEGMENT = "segment"  # twice the number of the bucket, and one more but in its head


@dataclass(frozen=True, kw_only=True)
class Buckets:
    """The assignment of the documents of both halves to buckets.

    Attributes:
        training: how many buckets training has.
        validation: how many validation has; their numbers follow those of training.
        spans: how many spans there are.
    """

    training: int
    validation: int
    spans: int

    @property
    def count(self) -> int:
        """Return the number of buckets of both halves."""
        return self.training + self.validation

    @property
    def groups(self) -> int:
        """Return the number of groups of spans; if above 1, the files of each are merged first."""
        return -(-self.spans // FAN_IN)

    @property
    def merged(self) -> int:
        """Return the number of consecutive buckets in a merged file."""
        return -(-self.count // FAN_IN)

    @property
    def ranges(self) -> int:
        """Return the number of merged files of a group."""
        return -(-self.count // self.merged)

    def segments(self, hashes: Hashes, *, validation: bool) -> Numbers:
        """Return the segments of documents: twice the bucket's number, plus 1 outside its head."""
        buckets = self.validation if validation else self.training
        bucket = range_of(hashes, buckets)
        is_tail = range_of(hashes, buckets * _HEAD) > bucket * _HEAD
        return 2 * (bucket + (self.training if validation else 0)) + is_tail

    def files(self, segment: int) -> list[str]:
        """Return the names of the files that may hold documents of a segment."""
        if self.groups == 1:
            return [_spill_name(span) for span in range(self.spans)]
        number = segment // 2 // self.merged
        return [_merged_name(group, number) for group in range(self.groups)]


def _spill_name(number: int) -> str:
    return f"exchange-{number:05d}.spill"


def _merged_name(group: int, number: int) -> str:
    return f"merge-{group:05d}-{number:05d}.spill"


def stored_schema(plan: ExportPlan) -> pa.Schema:
    """Return the schema of documents in the files of the shuffle."""
    small = [(name, pa.int32()) for name in (_EPOCH, _FILE, _SEGMENT)]
    return pa.schema([(_HASH, pa.uint64()), (_ROW, pa.int64()), *small, *plan.documents])


@lru_cache(maxsize=2)
def buckets_of(stage: Pass) -> Buckets:
    """Return the buckets of the chosen documents, which follow from their counts alone."""
    chosen = choice_of(stage)
    documents, held_out = np.sum(chosen.counts, axis=0)[1].tolist()
    training, validation = (
        min(max(-(-tokens // stage.plan.unit_tokens), 1), MAX_BUCKETS)
        for tokens in (sum(taken.tokens for taken in chosen.taken), held_out)
    )
    return Buckets(
        training=training,
        validation=validation if documents else 0,
        spans=len(spans_in(stage)),
    )


class _Sorter(SpillWriter):
    """The writer of a file of documents, which sorts by segment all that fit into memory.

    Args:
        sink: the file.
        joined: the number of consecutive segments that the file has as one.
    """

    def __init__(self, sink: HashingFile, joined: int = 1) -> None:
        super().__init__(sink)
        self._joined = joined
        self._held: list[pa.RecordBatch] = []
        self._bytes = 0

    def add(self, documents: pa.RecordBatch) -> None:
        """Append documents, each to its segment."""
        self._held.append(documents)
        self._bytes += documents.nbytes
        if self._bytes >= RUN_BYTES:
            self._sort()

    def _sort(self) -> None:
        table = pa.Table.from_batches(self._held).combine_chunks()
        self._held, self._bytes = [], 0
        segments = table[_SEGMENT].to_numpy() // self._joined
        order = np.argsort(segments, kind="stable")
        ordered = segments[order]
        bounds = np.flatnonzero(np.diff(ordered, prepend=-1, append=-1))
        for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            self.write(int(ordered[begin]), to_stream(table.take(pa.array(order[begin:end]))))

    def finish(self) -> None:
        """Write the documents in memory, and end the file."""
        if self._held:
            self._sort()
        super().finish()


def _tables(path: str, segment: int) -> Iterator[pa.Table]:
    """Yield the documents of a segment in a file, in the order in which they were added."""
    for blob in read_segment(path, segment):
        yield pa.ipc.open_stream(blob).read_all()


@dataclass(frozen=True, kw_only=True)
class Exchange(Pass):
    """The stage that distributes the documents of each span to buckets."""

    name: str = "exchange"

    def make(self, unit: Unit, *, slot: SlotWriter, stopped: Callable[[], bool]) -> Made:  # noqa: ARG002 - of the protocol
        """Write the documents of a span into a file, by bucket."""
        buckets = buckets_of(self)
        name = _spill_name(unit.number)
        taken = choice_of(self).taken[spans_in(self)[unit.number].source]
        counts = np.zeros((2, buckets.count), np.int64)
        joined = 2 * buckets.merged if buckets.groups > 1 else 1
        with replacing(join(self.work, name), durable=False) as sink:
            spill = _Sorter(sink, joined)
            for block in self.blocks(unit.number, stopped=stopped):
                for epoch in taken.all_epochs:
                    documents = self._taken(block, epoch)
                    bucket = documents[_SEGMENT].to_numpy() // 2
                    tokens = self.plan.lengths(documents)
                    counts[0] += np.bincount(bucket, minlength=buckets.count)
                    counts[1] += np.bincount(bucket, tokens, buckets.count).astype(np.int64)
                    spill.add(documents)
            spill.finish()
        stored = StoredFile(file=name, **vars(sink.written()))
        return Made(files=(stored,), totals={"buckets": counts.tolist()})

    def _taken(self, block: Block, epoch: int | None) -> pa.RecordBatch:
        """Return the documents of a block in an epoch, with their places in the shuffle.

        Args:
            block: the block of documents.
            epoch: the epoch; None: the documents that are held out.
        """
        mask = self.takes(block, epoch)
        rows = block.rows[mask]
        source = self.plan.sources[block.pin.source].name
        seed = f"shuffle {self.plan.settings.shuffle} {source} {epoch or 0} {block.pin.file}"
        hashes = numbers_at(rows, start=seed64(seed))
        segments = buckets_of(self).segments(hashes, validation=epoch is None)
        epochs, files = (np.full(len(rows), one) for one in (epoch or 0, block.file))
        schema = stored_schema(self.plan)
        numbers = zip((hashes, rows, epochs, files, segments), schema.types, strict=False)
        columns = [pa.array(values, kind) for values, kind in numbers]
        return pa.record_batch([*columns, *block.where(mask).columns], schema=schema)

    def fold(self, records: Sequence[Record]) -> None:
        """Store the numbers of documents and tokens of each bucket."""
        counts = sum(np.array(record.totals["buckets"], np.int64) for record in records)
        storage.write(join(self.work, BUCKETS), json_bytes(np.transpose(counts).tolist()))


@dataclass(frozen=True, kw_only=True)
class Merge(Pass):
    """The stage that merges files of up to `FAN_IN` spans, into one for each range of buckets."""

    name: str = "merge"

    def units(self) -> Iterator[Unit]:
        """Yield a unit for each group of spans and range of buckets; nothing if spans are few."""
        buckets = buckets_of(self)
        for number in range(buckets.groups * buckets.ranges if buckets.groups > 1 else 0):
            yield self.unit(number, FAN_IN)

    def make(self, unit: Unit, *, slot: SlotWriter, stopped: Callable[[], bool]) -> Made:  # noqa: ARG002 - of the protocol
        """Merge the documents that the spans of a group have in a range of buckets."""
        buckets = buckets_of(self)
        group, number = divmod(unit.number, buckets.ranges)
        name = _merged_name(group, number)
        with replacing(join(self.work, name), durable=False) as sink:
            spill = _Sorter(sink)
            for span in range(group * FAN_IN, min((group + 1) * FAN_IN, buckets.spans)):
                if stopped():
                    raise StoppedError
                for table in _tables(join(self.work, _spill_name(span)), number):
                    for batch in table.to_batches():
                        spill.add(batch)
            spill.finish()
        return Made(files=(StoredFile(file=name, **vars(sink.written())),), totals={})

    def fold(self, records: Sequence[Record]) -> None:
        """Do nothing: no later stage needs the records."""


def bucket_documents(
    stage: Pass, bucket: int, *, stopped: Callable[[], bool]
) -> Iterator[pa.RecordBatch]:
    """Yield the documents of a bucket in their order; its head is read before the rest.

    Memory: the bucket, twice while the bucket is sorted.

    Raises:
        InputError: a file of the exchange is missing or damaged.
        StoppedError: nobody needs the result any more.
    """
    buckets = buckets_of(stage)
    sources = np.array([pin.source for span in spans_in(stage) for pin in span.pins])
    for segment in (2 * bucket, 2 * bucket + 1):
        tables = [stored_schema(stage.plan).empty_table()]
        for name in buckets.files(segment):
            if stopped():
                raise StoppedError
            tables += _tables(join(stage.work, name), segment)
        table = pa.concat_tables(tables).combine_chunks()
        del tables  # so that memory holds them once
        yield from _sorted(table, sources, layout=stage.plan)


def _sorted(table: pa.Table, sources: Numbers, *, layout: ExportLayout) -> Iterator[pa.RecordBatch]:
    """Yield documents in order, in portions that depend on the documents alone.

    Args:
        table: stored documents.
        sources: the number of the source of each part.
        layout: the layout of the rows.
    """
    hashes, epochs, files, rows = (table[name].to_numpy() for name in (_HASH, _EPOCH, _FILE, _ROW))
    order = np.lexsort((rows, files, epochs, sources[files], hashes))
    table = table.select(layout.documents.names)
    portion = np.cumsum(layout.lengths(table)[order]) // _PORTION_IDS
    portion += np.arange(len(order)) // _PORTION_DOCUMENTS
    bounds = np.flatnonzero(np.diff(portion, prepend=-1, append=portion[-1:] + 1))
    for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        yield from table.take(pa.array(order[begin:end])).combine_chunks().to_batches()
