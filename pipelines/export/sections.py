"""The sections of an export: the documents and the rows of each part.

A section becomes a part: a span in one half and epoch, or a bucket of a shuffle. Its place follows
from prefix sums of tokens in the final order, so each part begins at a row, and packed rows are the
same however the documents are divided.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from pipelines import storage
from pipelines.export.choose import choice_of, spans_in
from pipelines.export.exchange import BUCKETS, buckets_of
from pipelines.output.names import DATA, TRAIN, VALIDATION
from pipelines.storage import join

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipelines.export.choose import Pass
    from pipelines.settings import ExportSettings


@dataclass(frozen=True)
class PartSection:
    """The documents of one part: a span in one half and epoch, or a bucket of a shuffle.

    Attributes:
        epoch: the epoch of the source, 0 for a bucket; None if the documents are held out.
        span: the number of the span, or of the bucket.
        documents: the number of documents.
        tokens: the number of tokens.
        number: the position among the sections of the half.
        before: the number of tokens in earlier sections of the half.
        first_row: with joined rows, the number of the first row that begins in the section.
        rows: with joined rows, the number of rows that begin in the section, a dropped one too.
        name: the name of the part below the export, without ending; empty if it makes no part.
    """

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


def units_of(sections: Mapping[str, Sequence[PartSection]]) -> list[list[PartSection]]:
    """Return the sections of each unit: one, or both halves of a span that is read once."""
    units: dict[tuple[int, int], list[PartSection]] = {}
    for section in (*sections[TRAIN], *sections[VALIDATION]):
        units.setdefault((section.epoch or 0, section.span), []).append(section)
    return [*units.values()]


@lru_cache(maxsize=2)
def all_sections(stage: Pass) -> Mapping[str, Sequence[PartSection]]:
    """Return the sections of each half of an export, in their final order.

    Args:
        stage: a stage after choice and exchange.

    Raises:
        InputError: the results of earlier stages cannot be read.
    """
    settings = stage.plan.settings
    found = _of_spans(stage) if settings.shuffle is None else _of_buckets(stage)
    found = [one for one in found if one.documents]
    return {
        half: _placed([one for one in found if one.half == half], half, settings)
        for half in (TRAIN, VALIDATION)
    }


def _of_spans(stage: Pass) -> list[PartSection]:
    chosen, found = choice_of(stage), list[PartSection]()
    for source, taken in enumerate(chosen.taken):
        for epoch in taken.all_epochs:
            kind = 1 if epoch is None else 2 if taken.is_partial(epoch) else 0
            for number, span in enumerate(spans_in(stage)):
                if span.source == source:
                    found.append(PartSection(epoch, number, *chosen.counts[number][kind]))
    return found


def _of_buckets(stage: Pass) -> list[PartSection]:
    training, all_counts = buckets_of(stage).training, storage.read(join(stage.work, BUCKETS))
    return [
        PartSection(0 if number < training else None, number, *counts)
        for number, counts in enumerate(json.loads(all_counts))
    ]


def _placed(
    sections: Sequence[PartSection], half: str, settings: ExportSettings
) -> list[PartSection]:
    """Return the sections of a half with their places, rows and names of parts."""
    total = sum(section.tokens for section in sections)
    size = settings.pack if settings.joins else None
    # Rows without tokens are stored, but bin and litdata store padded ones alone.
    stores_all = settings.to not in ("bin", "litdata") or settings.pack_remainder == "pad"
    placed, makes = list[PartSection](), list[bool]()
    before = row = 0
    for number, section in enumerate(sections):
        after = before + section.tokens
        if size is None:
            end, makes_part = 0, section.tokens > 0 or stores_all
        else:
            end = max(-(-after // size), 1)  # row 0 begins in the first section
            drops_last = settings.pack_remainder == "drop" and end * size > total
            makes_part = end - drops_last > row and (total > 0 or stores_all)
        placed.append(replace(section, number=number, before=before, first_row=row, rows=end - row))
        makes.append(makes_part)
        before, row = after, end
    folder = f"{DATA}/" if settings.to == "parquet" else ""
    if half == VALIDATION and settings.to in ("mds", "litdata"):
        folder = f"{VALIDATION}/"
    names = (f"{folder}{half}-{part:05d}-of-{sum(makes):05d}" for part in range(sum(makes)))
    return [
        replace(section, name=next(names)) if makes_part else section
        for section, makes_part in zip(placed, makes, strict=True)
    ]
