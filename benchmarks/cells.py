"""Targets of the figures: a value, whether it must be large or small, and how much.

"Must" decides whether a target is met, "aim" is where the project is going.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypedDict

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

OURS = "beam-bpe"


class Outcome(TypedDict):
    """A cell of the table, as the results file has it.

    ``better`` is ``greater`` or ``smaller``; ``ours`` is our contender, ``against`` the one that it
    is compared with, each empty where there is none.
    """

    what: str
    value: float
    unit: str
    better: str
    must: float | None
    aim: float | None
    ours: str
    against: str


class Cell(Protocol):
    """The target of the medians of a work."""

    def outcome(self, medians: Mapping[str, Mapping[str, float]]) -> Outcome | None:
        """The value, where there is one.

        Args:
            medians: by contender and measure, in seconds or bytes.
        """


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """The ratio of another contender, or of the best of several, to us.

    Attributes:
        measure: of what.
        against: a contender, or the word before the comma that several share.
        must: at least so many times.
        aim: the same.
        ours: our contender.
    """

    measure: str
    against: str
    must: float | None = None
    aim: float | None = None
    ours: str = OURS

    def outcome(self, medians: Mapping[str, Mapping[str, float]]) -> Outcome | None:
        """The least median of theirs, divided by ours; None where none of them took part."""
        theirs = {
            name: found[self.measure]
            for name, found in medians.items()
            if self.against in (name, name.partition(",")[0])
        }
        if not theirs:
            return None
        best = min(theirs, key=lambda name: theirs[name])
        return Outcome(
            what=self.measure,
            value=theirs[best] / medians[self.ours][self.measure],
            unit="times",
            better="greater",
            must=self.must,
            aim=self.aim,
            ours=self.ours,
            against=best,
        )


@dataclass(frozen=True, kw_only=True)
class Speedup:
    """The ratio of two of our ways, both timed in turns by one process.

    Attributes:
        work: what is done; the measures are named ``work, way``.
        ours: the way that should be fast.
        against: the other.
        must: at least so many times.
        aim: the same.
    """

    work: str
    ours: str
    against: str
    must: float | None = None
    aim: float | None = None

    def outcome(self, medians: Mapping[str, Mapping[str, float]]) -> Outcome:
        """Our median of the other way, divided by that of the fast one."""
        figures = medians[OURS]
        measure = f"{self.work}, {self.ours}"
        return Outcome(
            what=measure,
            value=figures[f"{self.work}, {self.against}"] / figures[measure],
            unit="times",
            better="greater",
            must=self.must,
            aim=self.aim,
            ours=OURS,
            against=self.against,
        )


@dataclass(frozen=True, kw_only=True)
class Limit:
    """Our own figure, against a bound.

    Attributes:
        measure: of what.
        unit: ``s`` or ``B``.
        must: no more than that.
        aim: the same.
    """

    measure: str
    unit: str
    must: float | None = None
    aim: float | None = None

    def outcome(self, medians: Mapping[str, Mapping[str, float]]) -> Outcome:
        """Our median."""
        return Outcome(
            what=self.measure,
            value=medians[OURS][self.measure],
            unit=self.unit,
            better="smaller",
            must=self.must,
            aim=self.aim,
            ours=OURS,
            against="",
        )


@dataclass(frozen=True, kw_only=True)
class Growth:
    """The exponent with which a figure grows, fitted over sizes: 1 is linear.

    Attributes:
        measure: of what.
        sizes: the size that each contender represents.
        must: the greatest exponent.
    """

    measure: str
    sizes: Mapping[str, float]
    must: float

    def outcome(self, medians: Mapping[str, Mapping[str, float]]) -> Outcome:
        """The slope of the least-squares line through the logarithms."""
        sizes = np.log(list(self.sizes.values()))
        figures = np.log([medians[name][self.measure] for name in self.sizes])
        slope = float(np.polynomial.polynomial.polyfit(sizes, figures, 1)[1])
        return Outcome(
            what=self.measure,
            value=slope,
            unit="exponent",
            better="smaller",
            must=self.must,
            aim=None,
            ours="",
            against="",
        )


def holds(outcome: Outcome, bound: float | None) -> bool | None:
    """Return whether the value keeps a bound; None where there is no bound."""
    if bound is None:
        return None
    value = outcome["value"]
    return value >= bound if outcome["better"] == "greater" else value <= bound
