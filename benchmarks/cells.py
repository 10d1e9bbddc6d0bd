"""What is asked of the figures: a value, whether it must be large or small, and how much.

"Must" decides whether a target is met, "aim" is where the project is going.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypedDict

import numpy as np

from benchmarks.work import OURS

if TYPE_CHECKING:
    from collections.abc import Mapping

Medians = "Mapping[str, Mapping[str, float]]"


class Outcome(TypedDict):
    """A cell of the table, as the results file has it.

    ``better`` is ``greater`` or ``smaller``; ``against`` is the contender compared with, or empty.
    """

    what: str
    value: float
    unit: str
    better: str
    must: float | None
    aim: float | None
    against: str


class Cell(Protocol):
    """What is asked of the medians of a work."""

    def outcome(self, medians: Mapping[str, Mapping[str, float]]) -> Outcome:
        """The value.

        Args:
            medians: by contender and measure, in seconds or bytes.
        """


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """How many times as much the best of some contenders takes as we do.

    Attributes:
        measure: of what.
        against: names of contenders, or the word before the comma that several share.
        must: at least so many times.
        aim: the same.
        ours: our contender.
    """

    measure: str
    against: tuple[str, ...]
    must: float | None = None
    aim: float | None = None
    ours: str = OURS

    def outcome(self, medians: Mapping[str, Mapping[str, float]]) -> Outcome:
        """The least median of theirs, divided by ours."""
        theirs = {
            name: found[self.measure]
            for name, found in medians.items()
            if name in self.against or name.partition(",")[0] in self.against
        }
        best = min(theirs, key=lambda name: theirs[name])
        return Outcome(
            what=self.measure,
            value=theirs[best] / medians[self.ours][self.measure],
            unit="times",
            better="greater",
            must=self.must,
            aim=self.aim,
            against=best,
        )


@dataclass(frozen=True, kw_only=True)
class Limit:
    """Our own figure, against a bound.

    Attributes:
        measure: of what.
        unit: ``s`` or ``B``.
        must: less than that.
        aim: the same.
        ours: our contender.
    """

    measure: str
    unit: str
    must: float | None = None
    aim: float | None = None
    ours: str = OURS

    def outcome(self, medians: Mapping[str, Mapping[str, float]]) -> Outcome:
        """Our median."""
        return Outcome(
            what=f"{self.measure}, {self.ours}" if self.ours != OURS else self.measure,
            value=medians[self.ours][self.measure],
            unit=self.unit,
            better="smaller",
            must=self.must,
            aim=self.aim,
            against="",
        )


@dataclass(frozen=True, kw_only=True)
class Growth:
    """The exponent with which a figure grows, fitted over sizes: 1 is linear.

    Attributes:
        what: for the table.
        measure: of what.
        sizes: the size that each contender stands for.
        must: the greatest exponent.
    """

    what: str
    measure: str
    sizes: Mapping[str, float]
    must: float

    def outcome(self, medians: Mapping[str, Mapping[str, float]]) -> Outcome:
        """The slope of the least-squares line through the logarithms."""
        sizes = np.log(list(self.sizes.values()))
        figures = np.log([medians[name][self.measure] for name in self.sizes])
        slope = float(np.polynomial.polynomial.polyfit(sizes, figures, 1)[1])
        return Outcome(
            what=self.what,
            value=slope,
            unit="exponent",
            better="smaller",
            must=self.must,
            aim=None,
            against="",
        )


def holds(outcome: Outcome, bound: float | None) -> bool | None:
    """Whether the value keeps a bound; None where there is no bound."""
    if bound is None:
        return None
    value = outcome["value"]
    return value >= bound if outcome["better"] == "greater" else value <= bound
