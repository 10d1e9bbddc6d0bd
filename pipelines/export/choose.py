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
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bpe._codec import from_jsonable, to_jsonable
from bpe.files import fingerprint
from bpe.splitmix import mix64
from pipelines import storage
from pipelines.corpus.keys import seed64
from pipelines.errors import ConfigError
from pipelines.export.plan import spans_of, stored_pins
from pipelines.export.source import read_blocks
from pipelines.output.names import json_bytes
from pipelines.stage.stage import Made, Unit
from pipelines.storage import join
from pipelines.totals import Limit, Taken

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy.typing as npt

    from bpe.splitmix import Hashes
    from pipelines.export.plan import ExportPlan, Span
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
        counts: of each span, the documents and tokens of training, of those held out, and of those
            that the partial epoch takes.
        bins: of each source, the bin of the histogram in which its partial epoch ends.
    """

    taken: tuple[Taken, ...]
    counts: tuple[tuple[tuple[int, int], tuple[int, int], tuple[int, int]], ...]
    bins: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Pass:
    """A stage that reads the parts of the sources, with the fields of all stages of an export.

    Attributes:
        plan: the plan of the export.
        output: the directory of the export, which has the pins.
        work: the directory of records and results.
        run: the id of the run.
        choice: the file of the choice that the stage knows, of the last stage that chooses.
    """

    plan: ExportPlan
    output: str
    work: str
    run: str
    name: str = ""
    choice: ClassVar[str] = CHOSEN

    @property
    def directory(self) -> str:
        """Return the directory of the records."""
        return self.work

    def blocks(self, span: int, **how: Any) -> Iterator[Block]:
        """Yield the documents of the span of this number; arguments and errors of `read_blocks`."""
        found = spans_in(self)[span]
        for file, pin in enumerate(found.pins, found.first):
            yield from read_blocks(self.plan, pin, file, **how)

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
        mask, taken = ~mask, choice_of(self).taken[block.pin.source]
        limit = taken.limit
        if limit is None or not taken.is_partial(epoch):
            return mask
        hashes, last = self.hashes(block), np.uint64(limit.hash)
        same = block.rows <= limit.row if block.file == limit.file else block.file < limit.file
        chosen: npt.NDArray[np.bool_] = mask & ((hashes < last) | (hashes == last) & same)
        return chosen

    def hashes(self, block: Block) -> Hashes:
        """Return the hashes by which the documents of a source are chosen, smallest first."""
        name = self.plan.sources[block.pin.source].name
        return mix64(block.keys ^ seed64(f"choose {self.plan.settings.mix_seed} {name}"))

    def units(self) -> Iterator[Unit]:
        """Yield one unit for each span."""
        for number in range(len(spans_in(self))):
            yield self.unit(number)

    def unit(self, number: int, *more: Any, **known: Any) -> Unit:
        """Return the unit of this number; its fingerprint is of the plan and of ``more``."""
        return Unit(
            name=f"{self.name}-{number:05d}",
            fingerprint=fingerprint([self.plan.fingerprint, self.name, number, *more]),
            number=number,
            **known,
        )


def range_of(hashes: Hashes, ranges: int) -> npt.NDArray[np.int64]:
    """Return the number of each hash's range, of at most 2^32 equal ranges of 64 bits."""
    found: npt.NDArray[np.uint64] = ((hashes >> np.uint64(32)) * np.uint64(ranges)) >> np.uint64(32)
    return found.astype(np.int64)


# Of one run, in one process.


@lru_cache(maxsize=2)
def spans_in(stage: Pass) -> list[Span]:
    """Return the spans of all pinned parts.

    Raises:
        InputError: the pinned parts cannot be read.
    """
    return spans_of(stored_pins(stage.output, stage.plan.sources), stage.plan.unit_tokens)


@lru_cache(maxsize=2)
def choice_of(stage: Pass) -> Choice:
    """Return the documents that are taken, as far as they are chosen before this stage.

    Raises:
        InputError: the results of earlier stages cannot be read.
    """
    if stage.plan.selects:
        return from_jsonable(Choice, json.loads(storage.read(join(stage.work, stage.choice))))
    available = [(source.documents, source.tokens) for source in stage.plan.sources]
    counts = [(span.counts, (0, 0), (0, 0)) for span in spans_in(stage)]
    return Choice(taken=_asked(stage.plan, available), counts=tuple(counts))


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
                bins, tokens = range_of(self.hashes(block), BINS), block.tokens * ~mask
                histogram += np.bincount(bins, tokens, BINS).astype(np.int64)
        totals = {"halves": halves.tolist()}
        if self.plan.settings.chooses:
            totals["histogram"] = histogram.tolist()
        return Made(files=(), totals=totals)

    def fold(self, records: Sequence[Record]) -> None:
        """Store the epochs taken of each source, without the end of the partial epoch.

        Raises:
            ConfigError: a source has no training tokens.
        """
        plan, sources = self.plan, [span.source for span in spans_in(self)]
        halves = np.array([record.totals["halves"] for record in records], np.int64)
        available = np.zeros((len(plan.sources), 2), np.int64)
        np.add.at(available, sources, halves[:, 0])
        taken = _asked(plan, available.tolist())
        bins = list[int]()
        if plan.settings.chooses:
            histograms = np.zeros((len(plan.sources), BINS), np.int64)
            for source, record in zip(sources, records, strict=True):
                histograms[source] += record.totals["histogram"]
            tokens = zip(np.cumsum(histograms, axis=1), taken, strict=True)
            bins = [int(np.searchsorted(ends, _rest(one))) for ends, one in tokens]
        counts = np.pad(halves, ((0, 0), (0, 1), (0, 0))).tolist()
        choice = Choice(taken=taken, bins=tuple(bins), counts=counts)
        self.store(MEASURED if plan.settings.chooses else CHOSEN, choice)


def _rest(taken: Taken) -> int:
    """Return the number of tokens of a source that its partial epoch takes."""
    return taken.asked - taken.epochs * taken.available_tokens


def _asked(plan: ExportPlan, available: Sequence[Sequence[int]]) -> tuple[Taken, ...]:
    """Return the tokens asked of each source, given its numbers of documents and tokens.

    Raises:
        ConfigError: a source has no training tokens.
    """
    settings, given = plan.settings, plan.settings.shares
    asked = [tokens for _, tokens in available]
    shares = [given.get(source.name, Fraction(1)) for source in plan.sources]
    if settings.chooses:
        for source, directory, tokens in zip(plan.sources, plan.directories, asked, strict=True):
            if not tokens:
                raise ConfigError(
                    f"the source {source.name} ({directory}) has no training tokens to take: "
                    "leave it out"
                )
        most = min(int(one / share) for one, share in zip(asked, shares, strict=True))
        asked = [int((settings.token_budget or most) * share) for share in shares]
    taken = []
    for source, share, count, wanted in zip(plan.sources, shares, available, asked, strict=True):
        documents, tokens = count
        epochs = wanted // tokens if settings.chooses else 1
        taken.append(
            Taken(
                name=source.name,
                share=str(share) if settings.chooses else "",
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
    choice = MEASURED

    def make(self, unit: Unit, *, slot: SlotWriter, stopped: Callable[[], bool]) -> Made:  # noqa: ARG002 - of the protocol
        """Count the documents of a span below the bin of its source, and list those in the bin."""
        source = spans_in(self)[unit.number].source
        last = choice_of(self).bins[source]
        below = np.zeros(2, np.int64)
        listed: list[tuple[int, int, int, int]] = []
        is_partial = _rest(choice_of(self).taken[source]) > 0
        reading = self.blocks(unit.number, read="sizes", stopped=stopped)
        for block in reading if is_partial else ():
            hashes = self.hashes(block)
            bins = np.where(self.held_out(block.keys), BINS, range_of(hashes, BINS))
            under, inside = bins < last, bins == last
            below += under.sum(), block.tokens[under].sum()
            columns = (hashes, np.full(len(bins), block.file), block.rows, block.tokens)
            listed += zip(*(column[inside].tolist() for column in columns), strict=True)
        return Made(files=(), totals={"below": below.tolist(), "listed": listed})

    def fold(self, records: Sequence[Record]) -> None:
        """Find the end of each partial epoch, and count the documents of each span in the epoch."""
        taken, counts = [*choice_of(self).taken], np.array(choice_of(self).counts)
        counts[:, 2] = [record.totals["below"] for record in records]
        for source, one in enumerate(taken):
            of_source = [
                number for number, span in enumerate(spans_in(self)) if span.source == source
            ]
            listed = sorted(
                (*document, number)
                for number in of_source
                for document in records[number].totals["listed"]
            )
            missing, limit = _rest(one) - int(counts[of_source, 2, 1].sum()), None
            for hash_, file, row, size, number in listed:
                if missing <= 0:
                    break
                missing -= size
                counts[number, 2] += 1, size
                limit = Limit(hash=hash_, file=file, row=row)
            documents, tokens = counts[of_source, 2].sum(axis=0).tolist()
            taken[source] = replace(
                one,
                documents=one.documents + documents,
                tokens=one.tokens + tokens,
                limit=limit,
            )
        self.store(CHOSEN, replace(choice_of(self), taken=tuple(taken), counts=counts.tolist()))
