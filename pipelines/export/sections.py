"""The sections of an export: the documents and the rows of each part.

A section becomes a part: a span in one half and epoch, or a bucket of a shuffle. Its place follows
from prefix sums of tokens in the final order, so each part begins at a row, and packed rows are the
same however the documents are divided.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from pipelines.export.choose import PartSection, span_epochs
from pipelines.export.exchange import bucket_counts, buckets_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipelines.export.choose import Pass
    from pipelines.settings import ExportSettings


@dataclass(frozen=True)
class Sections:
    """All sections of an export, in the final order of each half."""

    training: tuple[PartSection, ...]
    validation: tuple[PartSection, ...]

    def half(self, *, validation: bool) -> tuple[PartSection, ...]:
        """Return the sections of one half."""
        return self.validation if validation else self.training

    @property
    def units(self) -> list[tuple[PartSection, ...]]:
        """Return the sections of each unit: one, or both halves of a span that is read once."""
        of_validation = {
            section.span: section for section in self.validation if section.source >= 0
        }
        units = []
        for section in self.training:
            other = None
            if section.source >= 0 and section.epoch == 0:
                other = of_validation.pop(section.span, None)
            units.append((section,) if other is None else (section, other))
        rest = [one for one in self.validation if one.source < 0 or one.span in of_validation]
        return [*units, *((section,) for section in rest)]


@lru_cache(maxsize=2)
def all_sections(stage: Pass) -> Sections:
    """Return the sections of an export whose documents are chosen and, if shuffled, in buckets.

    Args:
        stage: a stage after choice and exchange.

    Raises:
        InputError: the results of earlier stages cannot be read.
    """
    settings = stage.plan.settings
    if settings.shuffle is None:
        found = span_epochs(stage)
    else:
        training = buckets_of(stage).training
        found = [
            PartSection(
                source=-1,
                epoch=0 if number < training else None,
                span=number,
                documents=documents,
                tokens=tokens,
            )
            for number, (documents, tokens) in enumerate(bucket_counts(stage.work))
        ]
    found = [section for section in found if section.documents]
    halves = ([one for one in found if one.validation is half] for half in (False, True))
    return Sections(*(_numbered(half, settings) for half in halves))


def _numbered(half: Sequence[PartSection], settings: ExportSettings) -> tuple[PartSection, ...]:
    """Return the sections of a half with their places, rows and parts."""
    total = sum(section.tokens for section in half)
    placed, before = [], 0
    for number, section in enumerate(half):
        one = replace(section, number=number, before=before)
        if settings.joins and settings.pack is not None:
            one = _with_rows(one, settings.pack)
        placed.append(one)
        before += section.tokens
    makes = [_makes_part(section, settings, total) for section in placed]
    numbers = iter(range(sum(makes)))
    return tuple(
        replace(section, part=next(numbers) if makes_part else -1, parts=sum(makes))
        for section, makes_part in zip(placed, makes, strict=True)
    )


def _with_rows(section: PartSection, size: int) -> PartSection:
    """Return a section with its joined rows; row 0 begins in the first section."""
    first, end = -(-section.before // size), -(-(section.before + section.tokens) // size)
    if section.number == 0:
        end = max(end, 1)
    elif section.before == 0:
        first = 1
    return replace(section, first_row=first, rows=max(end - first, 0))


def _makes_part(section: PartSection, settings: ExportSettings, total: int) -> bool:
    """Return True if rows of a section are written."""
    if settings.joins and settings.pack is not None:
        rows = section.rows
        last = section.first_row + section.rows
        if settings.pack_remainder == "drop" and last * settings.pack > total:
            rows -= 1
        return rows > 0 and (total > 0 or _has_rows(settings))
    return section.documents > 0 and (section.tokens > 0 or _has_rows(settings))


def _has_rows(settings: ExportSettings) -> bool:
    """Return True if rows without tokens are stored: ``bin``, ``litdata`` store padded ones."""
    return settings.to not in ("bin", "litdata") or settings.pack_remainder == "pad"
