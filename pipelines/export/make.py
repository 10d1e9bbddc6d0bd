"""Making the parts of an export: documents to rows to files.

A packed row belongs to the section that has its first id. So a section leaves out the ids, and
empty documents, that end a row of the section before, and reads on into the next ones until its
last row is full.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bpe.splitmix import mix64
from pipelines import storage
from pipelines.encode.rows import INPUT_IDS, NUM_TOKENS, flat
from pipelines.export.choose import Pass, choice_of, spans_in
from pipelines.export.exchange import bucket_documents
from pipelines.export.format import PartWriter
from pipelines.export.formats import PARTS
from pipelines.export.manifest import ExportManifest, RowTotals, files_of, half_totals
from pipelines.export.rows import row_maker, split
from pipelines.export.sections import all_sections, units_of
from pipelines.metrics import add_to_metrics
from pipelines.output.names import EXPORT_INDEX, MANIFEST, TRAIN, VALIDATION, json_bytes
from pipelines.stage.record import StoredFile, write_records
from pipelines.stage.stage import Made
from pipelines.storage import join, replacing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa

    from pipelines.encode.rows import Ids
    from pipelines.export.sections import PartSection
    from pipelines.progress import SlotWriter
    from pipelines.stage.record import Record
    from pipelines.stage.stage import Unit


@dataclass(frozen=True, kw_only=True)
class Make(Pass):
    """The last stage, which makes a part of each section, and the index, records and manifest."""

    name: str = "make"

    @property
    def directory(self) -> str:
        """Return the directory of the files and records of parts: the export itself."""
        return self.output

    def units(self) -> Iterator[Unit]:
        """Yield a unit for each section, or for both halves of a span."""
        units = units_of(all_sections(self))
        size = sum(pin.bytes for span in spans_in(self) for pin in span.pins)
        for number, sections in enumerate(units):  # about equal parts of all bytes
            yield self.unit(number, bytes=size // len(units), work=sections)

    def make(
        self, unit: Unit, *, slot: SlotWriter, stopped: Callable[[], bool], again: str = ""
    ) -> Made:
        """Write the files of a unit's parts.

        Args:
            unit: a unit of the stage.
            slot: the slot for the progress of the unit.
            stopped: returns True if nobody needs the result any more.
            again: a temporary directory for files that are only compared; their ids are tallied.

        Returns:
            The files of the part for training, then those for validation. Totals: ``documents`` of
            both; by name of the half, in ``halves`` its `RowTotals`, in ``files`` how many it has.
        """
        sections: Sequence[PartSection] = unit.work
        with ExitStack() as stack:
            parts = [
                _Part(section, self, stack.enter_context(ExitStack()), stopped, again)
                for section in sections
            ]
            done, total = 0, max(sum(section.documents for section in sections), 1)
            for portion in self.documents(sections, stopped=stopped):
                for part, documents in zip(parts, portion, strict=True):
                    part.add(documents)
                    done += len(documents)
                slot.update(documents=done, bytes=int(unit.bytes * min(done / total, 1)))
            for part in parts:
                part.finish()
        slot.update(documents=done, bytes=unit.bytes)
        add_to_metrics(documents_read=done, bytes_read=unit.bytes)
        return Made(
            files=tuple(file for part in parts for file in part.writer.files),
            totals={
                "documents": done,
                "halves": {part.section.half: part.totals for part in parts},
                "files": {part.section.half: len(part.writer.files) for part in parts},
            },
        )

    def fold(self, records: Sequence[Record]) -> None:
        """Write the index, the records and, last, the manifest."""
        index = []
        for half, name in ((TRAIN, EXPORT_INDEX), (VALIDATION, f"{VALIDATION}/{EXPORT_INDEX}")):
            files = [file for record in records for file in files_of(record, half)]
            contents = PARTS[self.plan.settings.to].index(files, self.plan)
            if contents and (files or half == TRAIN):
                written = storage.write(join(self.output, name), contents)
                index.append(StoredFile(file=name, **vars(written)))
        manifest = ExportManifest(
            **self.plan.head,
            taken=choice_of(self).taken,
            training=half_totals(records, TRAIN),
            validation=half_totals(records, VALIDATION),
            index=tuple(index),
            records=write_records(self.output, records),
        )
        storage.write(join(self.output, MANIFEST), json_bytes(manifest.to_json()))

    def documents(
        self, sections: Sequence[PartSection], *, stopped: Callable[[], bool], read: str = "all"
    ) -> Iterator[list[pa.RecordBatch]]:
        """Yield the documents of sections, which are of one span or bucket, in their order.

        Each list has the next documents of each section, which are read on demand.
        """
        first = sections[0]
        if self.plan.settings.shuffle is not None:
            for documents in bucket_documents(self, first.span, stopped=stopped):
                yield [documents]
            return
        for block in self.blocks(first.span, stopped=stopped, read=read):
            yield [block.where(self.takes(block, one.epoch)) for one in sections]


class _Part:
    """The writer of a section's rows, whose files a stack closes.

    Attributes:
        writer: the writer of the part's files.
        totals: `RowTotals`, complete after `finish`; where files are compared, the ``tally`` of
            the ids that are in the part, or dropped with its last row.
    """

    def __init__(
        self,
        section: PartSection,
        stage: Make,
        stack: ExitStack,
        stopped: Callable[[], bool],
        again: str,
    ) -> None:
        self.section, self._stage, self._stopped = section, stage, stopped
        self._layout, settings = stage.plan, stage.plan.settings
        self._size = settings.pack if settings.joins else None
        self._maker = row_maker(self._layout)
        self.writer = (PARTS[settings.to] if section.name else PartWriter)(
            section.name,
            self._layout,
            opened=lambda name: replacing(join(again or stage.output, name), durable=not again),
            stack=stack,
        )
        self.totals = {**vars(RowTotals()), **({"tally": 0} if again else {})}
        # Of joined rows: ids that end a row of the section before; None: all from here on are ours.
        self._skip: int | None = None
        if self._size is not None and section.number:
            self._skip = section.first_row * self._size - section.before

    def add(self, documents: pa.RecordBatch) -> None:
        """Make rows of the next documents of the section."""
        self.totals["documents"] += len(documents)
        if self._size is not None and not self.section.rows:
            return
        if self._skip is not None:
            before, documents = split(documents, self._skip, self._layout)
            ids = int(self._layout.lengths(before).sum())
            self._skip = None if len(documents) else self._skip - ids
        self._put(self._maker.add(documents))

    def finish(self) -> None:
        """Read later sections until the last row is full, write the rest, and close the files."""
        section = self.section
        if self._size is not None and section.rows:
            end = (section.first_row + section.rows) * self._size
            self._read_on(end - section.before - section.tokens)
        self._put(self._maker.finish())
        self._tally(self._maker.left)
        self.totals |= {
            "dropped_tokens": len(self._maker.left),
            "dropped_documents": self._maker.dropped_documents,
            "cut": self._maker.cut,
        }
        self.writer.finish()

    def _read_on(self, missing: int) -> None:
        """Add ``missing`` ids of later sections, and the empty documents that follow these ids."""
        of_half = all_sections(self._stage)[self.section.half]
        how: dict[str, Any] = {"stopped": self._stopped, "read": "ahead"}
        for later in of_half[self.section.number + 1 :]:
            for (documents,) in self._stage.documents([later], **how):
                taken, rest = split(documents, missing, self._layout)
                self._put(self._maker.add(taken))
                if len(rest):
                    return
                missing -= int(self._layout.lengths(taken).sum())

    def _put(self, batches: Iterable[pa.RecordBatch]) -> None:
        for batch in batches:
            ids, _ = flat(batch.column(INPUT_IDS))
            tokens = int(batch.column(NUM_TOKENS).to_numpy().sum(dtype=np.int64))
            self._tally(ids, padding=len(ids) - tokens)
            self.totals["rows"] += len(batch)
            self.totals["tokens"] += tokens
            self.totals["padding"] += len(ids) - tokens
            self.writer.add(batch)

    def _tally(self, ids: Ids, padding: int = 0) -> None:
        if "tally" in self.totals:
            pads = np.full(padding, self._layout.pad or 0)
            self.totals["tally"] = (self.totals["tally"] + tally(ids) - tally(pads)) % (1 << 64)


def tally(ids: Ids) -> int:
    """Return a checksum of 64 bits of some ids, which does not depend on their order."""
    return int(mix64(ids.astype(np.uint64) + np.uint64(1)).sum(dtype=np.uint64))
