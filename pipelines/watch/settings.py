"""How long to wait, when to stop, and what to warn of."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from pipelines.errors import ConfigError

CompleteWhen = Literal["settled", "marker"]
COMPLETE_WHEN: tuple[str, ...] = get_args(CompleteWhen)


@dataclass(frozen=True, kw_only=True)
class WatchSettings:
    """How a job that watches goes about it; times in seconds.

    Attributes:
        interval: between two looks at what is there.
        complete_when: ``settled``: a file is complete when nothing has changed in it for
            ``settle``; ``marker``: when ``NAME.done`` stands beside it.
        settle: how long; 0 for files that appear under their names whole.
        stop_after: end the job after so long; None: never.
        stop_idle: end the job when everything that is there was taken, and nothing came for so
            long; None: never.
    """

    interval: float = 10.0
    complete_when: CompleteWhen = "settled"
    settle: float = 5.0
    stop_after: float | None = None
    stop_idle: float | None = None

    def __post_init__(self) -> None:
        if self.complete_when not in COMPLETE_WHEN:
            raise ConfigError(
                f"`complete_when` {self.complete_when!r} is unknown: use one of "
                f"{', '.join(COMPLETE_WHEN)}"
            )
        for option, value, least in (
            ("`interval`", self.interval, 0.1),
            ("`settle`", self.settle, 0.0),
            ("`stop_after`", self.stop_after, 0.0),
            ("`stop_idle`", self.stop_idle, 0.0),
        ):
            if value is not None and not (math.isfinite(value) and value >= least):
                raise ConfigError(f"{option} {value}: use {least:g} seconds or more")


@dataclass(frozen=True, kw_only=True)
class DriftSettings:
    """How the fit of the tokenizer is measured, and when to warn.

    Attributes:
        every: seconds between two rows of the series, at least.
        baseline: a directory of counts: what they do not hold is an unseen pre-token; None: these
            are not counted.
        warn_bytes_per_token: warn below this share of the bytes per token of the training.
        warn_single_bytes: warn above this share of tokens of one byte; None: never.
        warn_unseen: warn above so many unseen in a million pre-tokens; None: never.
    """

    every: float = 60.0
    baseline: str | None = None
    warn_bytes_per_token: float = 0.8
    warn_single_bytes: float | None = None
    warn_unseen: float | None = None

    def __post_init__(self) -> None:
        for option, value in (
            ("`every`", self.every),
            ("`warn_bytes_per_token`", self.warn_bytes_per_token),
            ("`warn_single_bytes`", self.warn_single_bytes),
            ("`warn_unseen`", self.warn_unseen),
        ):
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise ConfigError(f"{option} {value}: use a number from 0 upwards")
        if self.warn_unseen is not None and self.baseline is None:
            raise ConfigError(
                "`warn_unseen`: what is unseen is told by `baseline` COUNTS, the counts that the "
                "tokenizer was trained on"
            )
