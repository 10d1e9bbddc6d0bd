"""The rows of the table: what is measured, by whom, and how good it must be.

The targets were set before the work on them began; LOG.md says how they were reached, or not.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from benchmarks.works import commands, encode, limits, train, transforms

if TYPE_CHECKING:
    from benchmarks.scale import Scale
    from benchmarks.work import Work


# What the project promises in comparison with its peers (`make bench-must`).
MUST = (
    *("encode-r50k-en", "encode-r50k-en-whole", "encode-r50k-multi", "encode-o200k-multi"),
    *("encode-normalizer", "encode-never-split", "encode-several-patterns"),
    *("encode-short-documents", "encode-command", "encode-command-large"),
    *("second-core-commands", "start", "ids-size"),
)


def all_works(scale: Scale) -> list[Work]:
    """Every row, in the order of the table."""
    works = [
        *encode.works(scale),
        *train.works(scale),
        *commands.works(scale),
        *transforms.works(scale),
        *limits.works(scale),
    ]
    if not scale.everybody:
        works = [_without_slow(work) for work in works]
    if scale.alone:
        return works
    # A row named after another one compares the same programs, on more data or on other data.
    again = tuple(f"{work.name}-" for work in works)
    return [work for work in works if _compares(work) and not work.name.startswith(again)]


def _without_slow(work: Work) -> Work:
    return replace(work, contenders=tuple(one for one in work.contenders if not one.slow))


def _compares(work: Work) -> bool:
    outputs = [contender.output for contender in work.contenders]
    return work.compares or len(set(outputs)) < len(outputs)
