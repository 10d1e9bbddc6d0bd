"""The choice of documents of an export, and their tokens; reads no ids.

Documents whose ``key`` is below a limit are held out for validation. Of the rest, a source with a
budget takes whole epochs, and in a last, partial one the documents with the smallest hashes. The
first pass over keys and sizes makes a histogram of tokens by hash, which finds the bin in which the
budget ends; the second sorts the documents of this bin alone, so the result is exact to a document.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from bpe._codec import from_jsonable, to_jsonable
from pipelines import storage
from pipelines.errors import ConfigError
from pipelines.export.numbers import choice_hashes, range_of
from pipelines.export.plan import spans_of, stored_pins
from pipelines.export.source import read_blocks, read_sizes
from pipelines.output.names import DATA, TRAIN, VALIDATION, fingerprint, json_bytes
from pipelines.stage.stage import Made, Unit
from pipelines.storage import join
from pipelines.totals import Limit, Taken

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy.typing as npt

    from bpe.splitmix import Hashes
    from pipelines.export.plan import ExportPlan, Pin, Span
    from pipelines.export.source import IdBlock
    from pipelines.progress import SlotWriter
    from pipelines.stage.record import Record

BINS = 1 << 10  # of the histogram
MEASURED = "measured.json"
CHOSEN = "chosen.json"


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The rule that assigns each document to a half, and to the epochs that take the document.

    Attributes:
        plan: the plan of the export.
        taken: the documents and tokens taken of each source.
    """

    plan: ExportPlan
    taken: tuple[Taken, ...]

    def validation(self, keys: Hashes) -> npt.NDArray[np.bool_]:
        """Return, for each document, True if the document is held out for validation."""
        mask: npt.NDArray[np.bool_] = keys < np.uint64(int(self.plan.validation * (1 << 64)))
        return mask

    def takes(self, block: IdBlock, epoch: int | None) -> npt.NDArray[np.bool_]:
        """Return, for each document, True if the epoch of its source takes it; None: validation."""
        mask = self.validation(block.keys)
        if epoch is None:
            return mask
        mask, taken = ~mask, self.taken[block.source]
        if not taken.is_partial(epoch):
            return mask
        limit = taken.limit
        if limit is None:
            return np.zeros(len(mask), bool)
        hashes = self.hashes(block.keys, block.source)
        last = np.uint64(limit.hash)
        before = hashes < last
        equal = (hashes == last) & (
            (block.file < limit.file) | ((block.file == limit.file) & (block.rows <= limit.row))
        )
        chosen: npt.NDArray[np.bool_] = mask & (before | equal)
        return chosen

    def hashes(self, keys: Hashes, source: int) -> Hashes:
        """Return the hashes by which the documents of a source are chosen, smallest first."""
        name = self.plan.sources[source].name
        return choice_hashes(keys, source=name, seed=self.plan.settings.mix_seed)


FAN_IN = 256


@dataclass(frozen=True, kw_only=True)
class Pass:
    """A stage that reads the parts of the sources, with the fields of all stages of an export.

    Attributes:
        plan: the plan of the export.
        output: the directory of the export, which has the pins.
        work: the directory of records and results.
        run: the id of the run.
        fan_in: how many files a unit of a shuffle may read.
    """

    plan: ExportPlan
    output: str
    work: str
    run: str
    fan_in: int = FAN_IN
    name: str = ""

    @property
    def directory(self) -> str:
        """Return the directory of the records."""
        return self.work

    def pins(self) -> list[Pin]:
        """Return the pinned parts of all sources.

        Raises:
            InputError: the pinned parts cannot be read.
        """
        return _pins(self.output, self.run)

    def spans(self) -> tuple[Span, ...]:
        """Return the spans of all pinned parts; raise the errors of `pins`."""
        return _spans(self.output, self.run, self.plan.unit_tokens)

    def blocks(
        self, span: int, *, stopped: Callable[[], bool], ahead: bool = False
    ) -> Iterator[IdBlock]:
        """Yield the documents of the span of this number; arguments and errors of `read_blocks`."""
        pins, found = self.pins(), self.spans()[span]
        for file in range(found.first, found.first + found.files):
            yield from read_blocks(self.plan, pins[file], file, stopped=stopped, ahead=ahead)

    def selection(self) -> Selection:
        """Return the selection of documents; needs the results of `Measure` and `Choose`.

        Raises:
            InputError: the results cannot be read.
        """
        return _selection(self.plan, self.work, self.run)

    def units(self) -> Iterator[Unit]:
        """Yield one unit for each span."""
        for number in range(len(self.spans())):
            yield self.unit(number)

    def unit(self, number: int, *more: Any, bytes: int = 0) -> Unit:  # noqa: A002 - as `Unit` has it
        """Return the unit of this number; its fingerprint is of the plan and of ``more``."""
        return Unit(
            name=f"{self.name}-{number:05d}",
            fingerprint=fingerprint([self.plan.fingerprint, self.name, number, *more]),
            number=number,
            bytes=bytes,
        )


# Of one run, in one process.


@lru_cache(maxsize=2)
def _pins(output: str, run: str) -> list[Pin]:  # noqa: ARG001 - a run has its own
    return stored_pins(output)


@lru_cache(maxsize=2)
def _spans(output: str, run: str, unit_tokens: int) -> tuple[Span, ...]:
    return spans_of(_pins(output, run), unit_tokens)


@lru_cache(maxsize=2)
def _selection(plan: ExportPlan, work: str, run: str) -> Selection:  # noqa: ARG001 - the same
    if not plan.selects:
        available = [(source.documents, source.tokens) for source in plan.sources]
        return Selection(plan=plan, taken=tuple(_asked(plan, available)))
    value = json.loads(storage.read(join(work, CHOSEN)))
    return Selection(plan=plan, taken=tuple(from_jsonable(Taken, one) for one in value["taken"]))


@dataclass(frozen=True, kw_only=True)
class Measure(Pass):
    """The first pass, which counts the tokens of each half, and those of training by hash."""

    name: str = "measure"

    def make(self, unit: Unit, *, slot: SlotWriter, stopped: Callable[[], bool]) -> Made:  # noqa: ARG002 - of the protocol
        """Count the documents and tokens of a span."""
        plan, pins, span = self.plan, self.pins(), self.spans()[unit.number]
        selection = Selection(plan=plan, taken=())
        halves = np.zeros((2, 2), np.int64)
        histogram = np.zeros(BINS, np.int64)
        for number in range(span.first, span.first + span.files):
            for sizes in read_sizes(plan, pins[number], stopped=stopped):
                mask = selection.validation(sizes.keys)
                for half, of_half in enumerate((~mask, mask)):
                    halves[half] += of_half.sum(), sizes.tokens[of_half].sum()
                if plan.settings.chooses:
                    bins = range_of(selection.hashes(sizes.keys[~mask], span.source), BINS)
                    histogram += np.bincount(bins, sizes.tokens[~mask], BINS).astype(np.int64)
        totals = {"halves": halves.tolist()}
        if plan.settings.chooses:
            totals["histogram"] = histogram.tolist()
        return Made(files=(), totals=totals)

    def fold(self, records: Sequence[Record]) -> None:
        """Store the epochs taken of each source, without the end of the partial epoch.

        Raises:
            ConfigError: a source has no training tokens.
        """
        plan, found = self.plan, self.spans()
        available = np.zeros((len(plan.sources), 2), np.int64)
        histograms = np.zeros((len(plan.sources), BINS), np.int64)
        for span, record in zip(found, records, strict=True):
            available[span.source] += record.totals["halves"][0]
            if plan.settings.chooses:
                histograms[span.source] += record.totals["histogram"]
        taken = _asked(plan, available.tolist())
        bins = [
            int(np.searchsorted(np.cumsum(histograms[number]), _rest(one)))
            for number, one in enumerate(taken)
        ]
        halves = [record.totals["halves"] for record in records]
        value = {"taken": to_jsonable(taken), "bins": bins, "halves": halves}
        storage.write(join(self.work, MEASURED), json_bytes(value))
        if not plan.settings.chooses:
            write_chosen(self.work, taken, [])


def _rest(taken: Taken) -> int:
    """Return the number of tokens of a source that its partial epoch takes."""
    return taken.asked - taken.epochs * taken.available_tokens


def _asked(plan: ExportPlan, available: Sequence[Sequence[int]]) -> list[Taken]:
    """Return the tokens asked of each source, given its numbers of documents and tokens.

    Raises:
        ConfigError: a source has no training tokens.
    """
    settings, asked = plan.settings, [tokens for _, tokens in available]
    shares = settings.shares or {plan.sources[0].name: Fraction(1)}
    if settings.chooses:
        for source, directory, tokens in zip(plan.sources, plan.directories, asked, strict=True):
            if not tokens:
                raise ConfigError(
                    f"the source {source.name} ({directory}) has no training tokens to take: "
                    "leave it out"
                )
        of_each = [shares[source.name] for source in plan.sources]
        budget = settings.token_budget
        if budget is None:
            budget = min(int(one / share) for one, share in zip(asked, of_each, strict=True))
        asked = [int(budget * share) for share in of_each]
    taken = []
    for source, count, wanted in zip(plan.sources, available, asked, strict=True):
        documents, tokens = count
        epochs = wanted // tokens if settings.chooses else 1
        taken.append(
            Taken(
                name=source.name,
                share=str(shares[source.name]) if settings.chooses else "",
                asked=wanted,
                available_documents=documents,
                available_tokens=tokens,
                epochs=epochs,
                documents=documents * epochs,
                tokens=tokens * epochs,
            )
        )
    return taken


@dataclass(frozen=True, kw_only=True)
class Choose(Pass):
    """The second pass, which lists the documents of the bin in which a partial epoch ends."""

    name: str = "choose"

    def _measured(self) -> tuple[list[Taken], list[int]]:
        value = json.loads(storage.read(join(self.work, MEASURED)))
        return [from_jsonable(Taken, one) for one in value["taken"]], value["bins"]

    def make(self, unit: Unit, *, slot: SlotWriter, stopped: Callable[[], bool]) -> Made:  # noqa: ARG002 - of the protocol
        """Count the documents of a span below the bin of its source, and list those in the bin."""
        plan, pins, span = self.plan, self.pins(), self.spans()[unit.number]
        taken, bins = self._measured()
        below = np.zeros(2, np.int64)
        listed: list[tuple[int, int, int, int]] = []
        selection = Selection(plan=plan, taken=())
        files = range(span.first, span.first + span.files) if _rest(taken[span.source]) else ()
        for number in files:
            for sizes in read_sizes(plan, pins[number], stopped=stopped):
                training = np.flatnonzero(~selection.validation(sizes.keys))
                hashes = selection.hashes(sizes.keys[training], span.source)
                tokens = sizes.tokens[training]
                of = range_of(hashes, BINS)
                under, inside = of < bins[span.source], of == bins[span.source]
                below += under.sum(), tokens[under].sum()
                rows = (sizes.first + training[inside]).tolist()
                files_ = [number] * len(rows)
                listed += zip(
                    hashes[inside].tolist(), files_, rows, tokens[inside].tolist(), strict=True
                )
        return Made(files=(), totals={"below": below.tolist(), "listed": listed})

    def fold(self, records: Sequence[Record]) -> None:
        """Find the end of each partial epoch, and count the documents of each span in the epoch."""
        taken, _ = self._measured()
        found = self.spans()
        partial = np.array([record.totals["below"] for record in records], np.int64)
        for source, one in enumerate(taken):
            if not (rest := _rest(one)):
                continue
            of_source = [number for number, span in enumerate(found) if span.source == source]
            listed = sorted(
                (*document, number)
                for number in of_source
                for document in map(tuple, records[number].totals["listed"])
            )
            tokens = int(partial[of_source, 1].sum())
            for hash_, file, row, size, number in listed:
                if tokens >= rest:
                    break
                tokens += size
                partial[number] += 1, size
                taken[source] = replace(one, limit=Limit(hash=hash_, file=file, row=row))
            documents = int(partial[of_source, 0].sum())
            taken[source] = replace(
                taken[source], documents=one.documents + documents, tokens=one.tokens + tokens
            )
        write_chosen(self.work, taken, partial.tolist())


def write_chosen(work: str, taken: Sequence[Taken], partial: Sequence[Sequence[int]]) -> None:
    """Store the epochs taken of each source, and the counts of each span in partial epochs."""
    value = {"taken": to_jsonable(taken), "partial": partial}
    storage.write(join(work, CHOSEN), json_bytes(value))


@dataclass(frozen=True, kw_only=True)
class PartSection:
    """The documents of one part: a span in one half and epoch, or a bucket of a shuffle.

    Attributes:
        source: the number of the source; -1 for a bucket.
        epoch: the epoch of the source; None if the documents are held out.
        span: the number of the span, or of the bucket.
        documents: the number of documents.
        tokens: the number of tokens.
        number: the position among the sections of the half.
        before: the number of tokens in earlier sections of the half.
        first_row: with joined rows, the number of the first row that begins in the section.
        rows: with joined rows, the number of rows that begin in the section, a dropped one too.
        part: the number of the part in the half; -1 if the section makes no part.
        parts: the number of parts of the half.
    """

    source: int
    epoch: int | None
    span: int
    documents: int
    tokens: int
    number: int = 0
    before: int = 0
    first_row: int = 0
    rows: int = 0
    part: int = -1
    parts: int = 0

    @property
    def validation(self) -> bool:
        """Return True if the documents are held out."""
        return self.epoch is None

    @property
    def half(self) -> str:
        """Return the name of the half: ``train`` or ``validation``."""
        return VALIDATION if self.validation else TRAIN

    @property
    def stem(self) -> str:
        """Return the name of the section's part, without folder and ending."""
        return f"{self.half}-{self.part:05d}-of-{self.parts:05d}"

    def folder(self, to: str) -> str:
        """Return the folder of the section's part; empty for the folder of the export."""
        if to == "parquet":
            return DATA
        return VALIDATION if self.validation and to in ("mds", "litdata") else ""


def span_epochs(stage: Pass) -> list[PartSection]:
    """Return the sections of an export that is not shuffled, in order, without their places.

    Args:
        stage: a stage after `Choose`.
    """
    found, selection = stage.spans(), stage.selection()
    halves = [[(span.documents, span.tokens), (0, 0)] for span in found]
    partial = []
    if stage.plan.selects:
        halves = json.loads(storage.read(join(stage.work, MEASURED)))["halves"]
        partial = json.loads(storage.read(join(stage.work, CHOSEN)))["partial"]
    ordered = []
    for validation in (False, True):
        for source, taken in enumerate(selection.taken):
            for epoch in [None] if validation else taken.all_epochs:
                is_partial = epoch is not None and taken.is_partial(epoch)
                for number, span in enumerate(found):
                    if span.source == source:
                        counts = partial[number] if is_partial else halves[number][validation]
                        documents, tokens = counts
                        ordered.append(
                            PartSection(
                                source=source,
                                epoch=epoch,
                                span=number,
                                documents=documents,
                                tokens=tokens,
                            )
                        )
    return ordered
