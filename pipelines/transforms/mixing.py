"""Counts of several sources to counts of their mix."""

from __future__ import annotations

from math import lcm
from typing import TYPE_CHECKING, Any, Literal, get_args

import apache_beam as beam
from apache_beam.pvalue import AsSingleton

from pipelines.elements import require_one_pane
from pipelines.errors import ConfigError, InputError
from pipelines.mix import weights_of
from pipelines.option import percent
from pipelines.settings.shares import parse_shares

if TYPE_CHECKING:
    from collections.abc import Mapping
    from fractions import Fraction

_Of = Literal["bytes", "pretokens"]
_OFS: tuple[str, ...] = get_args(_Of)


class MixCounts(beam.PTransform):  # type: ignore[misc]  # Beam has no types
    """Multiplies the counts of each source so that it has its share of the sum, in each window.

    As ``bpe train --mix`` does for files: the source that is taken least has a weight of 1, the
    others have up to four decimals, and all counts are multiplied by what makes these whole.
    Thresholds of the training, such as ``min_frequency``, are of the multiplied counts.

    Example::

        mixed = {"web": web, "code": code} | MixCounts({"web": "70%", "code": "30%"})
        tokenizer = mixed | TrainTokenizer(vocab_size=32_000)

    Args:
        shares: the share of each source by name, such as ``70%``, ``0.7`` or ``7/10``; 100% in all.
        of: the measure of the shares: the ``bytes`` of the pre-tokens, or the ``pretokens``.

    Raises:
        ConfigError: an argument is wrong, or the sources are others than those with shares.
    """

    def __init__(self, shares: Mapping[str, str], *, of: _Of = "bytes") -> None:
        super().__init__()
        if of not in _OFS:
            raise ConfigError(f"`of` {of!r:.60}: shares are of {' or '.join(_OFS)}")
        self._shares = parse_shares([f"{name}={share}" for name, share in shares.items()])
        if not self._shares:
            raise ConfigError("`shares` is empty: give each source its share, as {'web': '100%'}")
        self._of = of

    def display_data(self) -> dict[str, Any]:
        """Return the values that a runner's web UI shows."""
        shown = (f"{name}={percent(share)}" for name, share in self._shares.items())
        return {"shares": ", ".join(shown), "of": self._of}

    def expand(self, sources: Mapping[str, beam.PCollection[tuple[bytes, int]]]) -> Any:
        """Add up the size of each source, and multiply its counts by its weight."""
        if sorted(sources) != sorted(self._shares):
            raise ConfigError(
                f"MixCounts has shares of {', '.join(self._shares)}, and is given the sources "
                f"{', '.join(sources)}: give it a dict with a PCollection for each share"
            )
        sizes = []
        for name, counts in sources.items():
            require_one_pane(counts, "MixCounts weighs the counts of each window once")
            size = beam.Map(_size, name, self._of).with_output_types(tuple[str, int])
            sizes.append(counts | f"Size in {name}" >> size)
        factors = (
            sizes
            | "Sizes" >> beam.Flatten()
            | "Size of each" >> beam.CombinePerKey(sum)
            | "By name" >> beam.CombineGlobally(beam.combiners.ToDictCombineFn()).without_defaults()
            | "Weights" >> beam.Map(_factors, self._shares)
        )
        weighed = [
            counts
            | f"Weigh {name}"
            >> beam.Map(_weighed, name, AsSingleton(factors)).with_output_types(tuple[bytes, int])
            for name, counts in sources.items()
        ]
        return weighed | "Mix" >> beam.Flatten()


def _size(counted: tuple[bytes, int], name: str, of: _Of) -> tuple[str, int]:
    """Return the source, and the part of its size that is of one pre-token."""
    pretoken, count = counted
    return name, count * len(pretoken) if of == "bytes" else count


def _weighed(
    counted: tuple[bytes, int], name: str, factors: Mapping[str, int]
) -> tuple[bytes, int]:
    """Return the pre-token with its count in the mix."""
    pretoken, count = counted
    return pretoken, count * factors[name]


def _factors(sizes: Mapping[str, int], shares: Mapping[str, Fraction]) -> dict[str, int]:
    """Return what the counts of each source are multiplied by.

    Raises:
        InputError: a source has no counts in the window.
    """
    for name in shares:
        if not sizes.get(name):
            raise InputError(f"MixCounts: {name} has no counts: it can have no share")
    weights = weights_of([share / sizes[name] for name, share in shares.items()])
    scale = lcm(*(weight.denominator for weight in weights))
    return {name: int(weight * scale) for name, weight in zip(shares, weights, strict=True)}
