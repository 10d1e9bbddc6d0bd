"""The sections of an export: the documents and the rows of each part.

A section becomes a part: a span in one half and epoch, or a bucket of a shuffle. Its place follows
from prefix sums of tokens in the final order, so each part begins at a row, and packed rows are the
same however the documents are divided.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from pipelines.export.choose import PartSection, span_epochs
from pipelines.export.exchange import bucket_counts, buckets_of
from pipelines.output.names import DATA, TRAIN, VALIDATION

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pipelines.export.choose import Pass
    from pipelines.settings import ExportSettings

    Sections = Mapping[str, Sequence[PartSection]]


def units_of(sections: Sections) -> Iterator[tuple[PartSection, ...]]:
    """Yield the sections of each unit: one, or both halves of a span that is read once."""
    held_out = {one.span: one for one in sections[VALIDATION] if one.source >= 0}
    for section in sections[TRAIN]:
        other = None
        if section.source >= 0 and section.epoch == 0:
            other = held_out.pop(section.span, None)
        yield (section,) if other is None else (section, other)
    for section in sections[VALIDATION]:
        if section.source < 0 or section.span in held_out:
            yield (section,)


@lru_cache(maxsize=2)
def all_sections(stage: Pass) -> Sections:
    """Return the sections of each half of an export, in their final order.

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
    return {
        half: _placed([one for one in found if one.documents and one.half == half], half, settings)
        for half in (TRAIN, VALIDATION)
    }


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
