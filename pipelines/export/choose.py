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
from pipelines.export.source import read_blocks
from pipelines.output.names import TRAIN, VALIDATION, fingerprint, json_bytes
from pipelines.stage.stage import Made, Unit
from pipelines.storage import join
from pipelines.totals import Limit, Taken

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy.typing as npt

    from bpe.splitmix import Hashes
    from pipelines.export.plan import ExportPlan, Pin, Span
    from pipelines.export.source import Block
    from pipelines.progress import SlotWriter
    from pipelines.stage.record import Record

BINS = 1 << 10  # of the histogram
MEASURED = "measured.json"
CHOSEN = "chosen.json"


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The documents that an export takes, in numbers.

    Attributes:
        taken: the documents and tokens taken of each source.
        halves: of each span, the documents and tokens of training, and those held out.
        bins: of each source, the bin of the histogram in which its partial epoch ends.
        partial: of each span, the documents and tokens that the partial epoch takes.
    """

    taken: tuple[Taken, ...]
    halves: tuple[tuple[tuple[int, int], tuple[int, int]], ...]
    bins: tuple[int, ...] = ()
    partial: tuple[tuple[int, int], ...] = ()


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

    def blocks(self, span: int, **how: Any) -> Iterator[Block]:
        """Yield the documents of the span of this number; arguments and errors of `read_blocks`."""
        pins, found = self.pins(), self.spans()[span]
        for file in range(found.first, found.first + found.files):
            yield from read_blocks(self.plan, pins[file], file, **how)

    def chosen(self) -> Choice:
        """Return the documents that are taken; needs the results of `Measure` and `Choose`.

        Raises:
            InputError: the results cannot be read.
        """
        return self.stored(CHOSEN) if self.plan.selects else _all_documents(self)

    def stored(self, name: str) -> Choice:
        """Return the choice that the fold of an earlier stage stored; errors of `chosen`."""
        return _stored(join(self.work, name), self.run)

    def store(self, name: str, choice: Choice) -> None:
        """Store a choice for later stages."""
        storage.write(join(self.work, name), json_bytes(to_jsonable(choice)))

    def held_out(self, keys: Hashes) -> npt.NDArray[np.bool_]:
        """Return, for each document, True if the document is held out for validation."""
        mask: npt.NDArray[np.bool_] = keys < np.uint64(int(self.plan.validation * (1 << 64)))
        return mask

    def takes(self, block: Block, epoch: int | None) -> npt.NDArray[np.bool_]:
        """Return, for each document, True if the epoch of its source takes it; None: validation."""
        mask = self.held_out(block.keys)
        if epoch is None:
            return mask
        mask, taken = ~mask, self.chosen().taken[block.source]
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

    def units(self) -> Iterator[Unit]:
        """Yield one unit for each span."""
        for number in range(len(self.spans())):
            yield self.unit(number)

    def unit(self, number: int, *more: Any, **known: Any) -> Unit:
        """Return the unit of this number; its fingerprint is of the plan and of ``more``."""
        return Unit(
            name=f"{self.name}-{number:05d}",
            fingerprint=fingerprint([self.plan.fingerprint, self.name, number, *more]),
            number=number,
            **known,
        )


# Of one run, in one process.


@lru_cache(maxsize=2)
def _pins(output: str, run: str) -> list[Pin]:  # noqa: ARG001 - a run has its own
    return stored_pins(output)


@lru_cache(maxsize=2)
def _spans(output: str, run: str, unit_tokens: int) -> tuple[Span, ...]:
    return spans_of(_pins(output, run), unit_tokens)


@lru_cache(maxsize=2)
def _stored(path: str, run: str) -> Choice:  # noqa: ARG001 - the same
    return from_jsonable(Choice, json.loads(storage.read(path)))


@lru_cache(maxsize=2)
def _all_documents(stage: Pass) -> Choice:
    available = [(source.documents, source.tokens) for source in stage.plan.sources]
    halves = [((span.documents, span.tokens), (0, 0)) for span in stage.spans()]
    return Choice(taken=_asked(stage.plan, available), halves=tuple(halves))


@dataclass(frozen=True, kw_only=True)
class Measure(Pass):
    """The first pass, which counts the tokens of each half, and those of training by hash."""

    name: str = "measure"

    def make(self, unit: Unit, *, slot: SlotWriter, stopped: Callable[[], bool]) -> Made:  # noqa: ARG002 - of the protocol
        """Count the documents and tokens of a span."""
        halves = np.zeros((2, 2), np.int64)
        histogram = np.zeros(BINS, np.int64)
        for block in self.blocks(unit.number, read="sizes", stopped=stopped):
            mask = self.held_out(block.keys)
            for half, of_half in enumerate((~mask, mask)):
                halves[half] += of_half.sum(), block.tokens[of_half].sum()
            if self.plan.settings.chooses:
                bins = range_of(self.hashes(block.keys[~mask], block.source), BINS)
                histogram += np.bincount(bins, block.tokens[~mask], BINS).astype(np.int64)
        totals = {"halves": halves.tolist()}
        if self.plan.settings.chooses:
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
        halves = tuple(record.totals["halves"] for record in records)
        choice = Choice(taken=taken, bins=tuple(bins), halves=halves)
        self.store(MEASURED if plan.settings.chooses else CHOSEN, choice)


def _rest(taken: Taken) -> int:
    """Return the number of tokens of a source that its partial epoch takes."""
    return taken.asked - taken.epochs * taken.available_tokens


def _asked(plan: ExportPlan, available: Sequence[Sequence[int]]) -> tuple[Taken, ...]:
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
    return tuple(taken)


@dataclass(frozen=True, kw_only=True)
class Choose(Pass):
    """The second pass, which lists the documents of the bin in which a partial epoch ends."""

    name: str = "choose"

    def make(self, unit: Unit, *, slot: SlotWriter, stopped: Callable[[], bool]) -> Made:  # noqa: ARG002 - of the protocol
        """Count the documents of a span below the bin of its source, and list those in the bin."""
        measured, source = self.stored(MEASURED), self.spans()[unit.number].source
        last = measured.bins[source]
        below = np.zeros(2, np.int64)
        listed: list[tuple[int, int, int, int]] = []
        ends_here = _rest(measured.taken[source]) > 0
        reading = self.blocks(unit.number, read="sizes", stopped=stopped)
        for block in reading if ends_here else ():
            hashes = self.hashes(block.keys, source)
            bins = np.where(self.held_out(block.keys), BINS, range_of(hashes, BINS))
            under, inside = bins < last, bins == last
            below += under.sum(), block.tokens[under].sum()
            columns = (hashes, np.full(len(bins), block.file), block.rows, block.tokens)
            listed += zip(*(column[inside].tolist() for column in columns), strict=True)
        return Made(files=(), totals={"below": below.tolist(), "listed": listed})

    def fold(self, records: Sequence[Record]) -> None:
        """Find the end of each partial epoch, and count the documents of each span in the epoch."""
        measured, found = self.stored(MEASURED), self.spans()
        taken = [*measured.taken]
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
        counts = tuple(map(tuple, partial.tolist()))
        self.store(CHOSEN, replace(measured, taken=tuple(taken), partial=counts))


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
        name: the name of the part below the export, without ending; empty if it makes no part.
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
    name: str = ""

    @property
    def half(self) -> str:
        """Return the name of the half: ``train`` or ``validation``."""
        return VALIDATION if self.epoch is None else TRAIN


def span_epochs(stage: Pass) -> list[PartSection]:
    """Return the sections of an export that is not shuffled, in order, without their places.

    Args:
        stage: a stage after `Choose`.
    """
    found, chosen = stage.spans(), stage.chosen()
    ordered = []
    for validation in (False, True):
        for source, taken in enumerate(chosen.taken):
            for epoch in [None] if validation else taken.all_epochs:
                is_partial = epoch is not None and taken.is_partial(epoch)
                for number, span in enumerate(found):
                    if span.source == source:
                        halves = chosen.halves[number]
                        counts = chosen.partial[number] if is_partial else halves[validation]
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
