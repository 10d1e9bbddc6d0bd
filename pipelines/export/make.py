"""Making the parts of an export: documents to rows to files.

A packed row belongs to the section that has its first id. So a section leaves out the ids, and
empty documents, that end a row of the section before, and reads on into the next ones until its
last row is full.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from pipelines.encode.rows import INPUT_IDS, NUM_TOKENS
from pipelines.export.choose import Pass
from pipelines.export.exchange import bucket_documents
from pipelines.export.formats import PARTS
from pipelines.export.manifest import RowTotals
from pipelines.export.outputs import Outputs
from pipelines.export.rows import row_maker, split, without_padding
from pipelines.export.sections import all_sections, units_of
from pipelines.metrics import add_to_metrics
from pipelines.stage.stage import Made

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa

    from pipelines.export.format import PartWriter
    from pipelines.export.sections import PartSection
    from pipelines.progress import SlotWriter
    from pipelines.stage.stage import Unit


@dataclass(frozen=True, kw_only=True)
class Make(Pass):
    """The last stage, which makes a part of each section."""

    name: str = "make"

    @property
    def directory(self) -> str:
        """Return the directory of the files and records of parts: the export itself."""
        return self.output

    def units(self) -> Iterator[Unit]:
        """Yield a unit for each section, or for both halves of a span."""
        units = units_of(all_sections(self))
        sizes = [sum(pin.bytes for pin in span.pins) for span in self.spans]
        of_bucket = sum(sizes) // max(len(units), 1)  # about
        for number, sections in enumerate(units):
            is_span = self.plan.settings.shuffle is None
            size = sizes[sections[0].span] if is_span else of_bucket
            yield self.unit(number, bytes=size, work=sections)

    def make(self, unit: Unit, *, slot: SlotWriter, stopped: Callable[[], bool]) -> Made:
        """Write the files of a unit's parts."""
        outputs = partial(Outputs, self.output, again=False)
        return self.write(unit, outputs, slot=slot, stopped=stopped)

    def write(
        self,
        unit: Unit,
        outputs: Callable[[], Outputs],
        *,
        slot: SlotWriter,
        stopped: Callable[[], bool],
    ) -> Made:
        """Write the rows of a unit.

        Args:
            unit: a unit of the stage.
            outputs: returns the outputs of one part.
            slot: the slot for the progress of the unit.
            stopped: returns True if nobody needs the result any more.

        Returns:
            The files of the part for training, then those for validation. Totals: ``documents`` of
            both; by name of the half, in ``halves`` its `RowTotals`, in ``files`` how many it has.
        """
        sections: Sequence[PartSection] = unit.work
        with ExitStack() as stack:
            parts = [
                _Part(section, self, outputs(), stack.enter_context(ExitStack()), stopped)
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
            files=tuple(file for part in parts for file in part.outputs.files),
            totals={
                "documents": done,
                "halves": {part.section.half: part.totals for part in parts},
                "files": {part.section.half: len(part.outputs.files) for part in parts},
            },
        )

    def documents(
        self, sections: Sequence[PartSection], *, stopped: Callable[[], bool], read: str = "all"
    ) -> Iterator[list[pa.RecordBatch]]:
        """Yield the documents of sections, which are of one span or bucket, in their order.

        Each list has the next documents of each section.
        """
        first = sections[0]
        if self.plan.settings.shuffle is not None:
            for documents in bucket_documents(self, first.span, stopped=stopped):
                yield [documents]
            return
        for block in self.blocks(first.span, stopped=stopped, read=read):
            yield [block.where(self.takes(block, one.epoch)) for one in sections]

    def after(
        self, section: PartSection, *, stopped: Callable[[], bool]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the documents of all later sections of a section's half, read on demand."""
        for later in all_sections(self)[section.half][section.number + 1 :]:
            for (documents,) in self.documents([later], stopped=stopped, read="ahead"):
                yield documents


class _Part:
    """The writer of a section's rows, whose files a stack closes.

    Attributes:
        totals: `RowTotals` and the totals of the outputs, complete after `finish`.
    """

    def __init__(
        self,
        section: PartSection,
        stage: Make,
        outputs: Outputs,
        stack: ExitStack,
        stopped: Callable[[], bool],
    ) -> None:
        self.section, self.outputs = section, outputs
        self._stage, self._stopped = stage, stopped
        settings = stage.plan.settings
        self._size = settings.pack if settings.joins else None
        self._maker = row_maker(stage.plan)
        self._writer: PartWriter | None = None
        if section.name:
            part = PARTS[settings.to]
            self._writer = part(section.name, stage.plan, outputs=outputs, stack=stack)
        self.totals = {**vars(RowTotals())}
        # Of joined rows: ids that end a row of the section before; None: all from here on are ours.
        self._skip: int | None = None
        if self._size is not None and section.number:
            self._skip = section.first_row * self._size - section.before

    def add(self, documents: pa.RecordBatch) -> None:
        """Make rows of the next documents of the section."""
        self.totals["documents"] += len(documents)
        if self._size is not None:
            if not self.section.rows:
                return
            documents = self._trimmed(documents)
        self._put(self._maker.add(documents))

    def _trimmed(self, documents: pa.RecordBatch) -> pa.RecordBatch:
        """Return documents without the ids that end a row of the section before."""
        if self._skip is None:
            return documents
        layout = self._stage.plan
        before, rest = split(documents, self._skip, layout)
        self._skip = None if len(rest) else self._skip - int(layout.lengths(before).sum())
        return rest

    def finish(self) -> None:
        """Read later sections until the last row is full, write the rest, and close the files."""
        section = self.section
        if self._size is not None and section.rows:
            end = (section.first_row + section.rows) * self._size
            self._read_on(end - section.before - section.tokens)
        self._put(self._maker.finish())
        self.outputs.see(self._maker.left)
        self.totals |= {
            "dropped_tokens": len(self._maker.left),
            "dropped_documents": self._maker.dropped_documents,
            "cut": self._maker.cut,
            **self.outputs.totals,
        }
        if self._writer is not None:
            self._writer.finish()

    def _read_on(self, missing: int) -> None:
        """Add ``missing`` ids of later sections, and the empty documents that follow these ids."""
        for documents in self._stage.after(self.section, stopped=self._stopped):
            layout = self._stage.plan
            taken, rest = split(documents, missing, layout)
            self._put(self._maker.add(taken))
            if len(rest):
                return
            missing -= int(layout.lengths(taken).sum())

    def _put(self, batches: Iterable[pa.RecordBatch]) -> None:
        for batch in batches:
            ids, _, padding = without_padding(batch.column(INPUT_IDS), batch.column(NUM_TOKENS))
            self.outputs.see(ids)
            self.totals["rows"] += len(batch)
            self.totals["tokens"] += len(ids)
            self.totals["padding"] += len(padding)
            if self._writer is not None:
                self._writer.add(batch)
