"""Encoding the elements of a Beam pipeline, compared with the columns that they are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.cells import OURS, Ratio
from benchmarks.corpora import ENGLISH
from benchmarks.work import Contender, Work

if TYPE_CHECKING:
    from benchmarks.scale import Scale

# What of the speed of `encode_arrow` must be left. Lines are Beam's own cost, whoever encodes.
SHAPES = {
    "documents": ("documents of 6 kB", 0.7),
    "tables": ("tables", 0.9),
    "lines": ("lines of 100 bytes", None),
}


def works(scale: Scale) -> list[Work]:
    """Documents, tables and lines as elements.

    Of a whole corpus: Beam pickles the first ten elements of each step, then ever fewer, to learn
    their size. Of a few tables that is much of the time.
    """
    return [
        Work(
            name=f"transform-{shape}",
            title=f"EncodeDocuments, {title}",
            contenders=tuple(
                Contender(
                    name=name,
                    module="transform",
                    who=who,
                    arguments=(ENGLISH, str(scale.whole), shape),
                )
                for name, who in ((OURS, "EncodeDocuments"), ("encode_arrow", "encode_arrow"))
            ),
            cells=(Ratio(measure="seconds", against="encode_arrow", must=must),),
        )
        for shape, (title, must) in SHAPES.items()
    ]
