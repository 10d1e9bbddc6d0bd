"""How long to wait, when to stop, and what to warn of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from pipelines.errors import ConfigError
from pipelines.option import Option, check_declared, option

CompleteWhen = Literal["settled", "marker"]
COMPLETE_WHEN: tuple[str, ...] = get_args(CompleteWhen)


def _watching(**declaration: Any) -> dict[str, Option]:
    """An option that goes with ``--watch``."""
    return option(group="Watching", advanced=True, **declaration)


@dataclass(frozen=True, kw_only=True)
class WatchSettings:
    """How a job that watches goes about it; times in seconds."""

    interval: float = field(
        default=10.0,
        metadata=_watching(
            kind="number",
            minimum=0.1,
            metavar="SECONDS",
            help="With --watch: time between two looks at what is there.",
        ),
    )
    complete_when: CompleteWhen = field(
        default="settled",
        metadata=_watching(
            choices=COMPLETE_WHEN,
            metavar="RULE",
            help="With --watch: when a file is complete. settled: nothing has changed in it for "
            "--settle SECONDS; marker: NAME.done stands beside it. Hidden files and names such as "
            "NAME.tmp and NAME.part are never taken.",
        ),
    )
    settle: float = field(
        default=5.0,
        metadata=_watching(
            kind="number",
            minimum=0,
            metavar="SECONDS",
            help="With --watch: seconds a file must stay unchanged; 0 if files are renamed into "
            "place.",
        ),
    )
    stop_after: float | None = field(
        default=None,
        metadata=_watching(
            kind="number",
            minimum=0,
            metavar="SECONDS",
            default_is="never",
            help="With --watch: stop after this time.",
        ),
    )
    stop_idle: float | None = field(
        default=None,
        metadata=_watching(
            kind="number",
            minimum=0,
            metavar="SECONDS",
            default_is="never",
            help="With --watch: stop when all is taken, and nothing has come for so long.",
        ),
    )

    def __post_init__(self) -> None:
        check_declared(self)


@dataclass(frozen=True, kw_only=True)
class DriftSettings:
    """How the fit of the tokenizer is measured, and when to warn."""

    every: float = field(
        default=60.0,
        metadata=_watching(
            name="drift_every",
            kind="number",
            minimum=0,
            metavar="SECONDS",
            help="With --watch: time between two rows of drift/DATE.jsonl, at least.",
        ),
    )
    baseline: str | None = field(
        default=None,
        metadata=_watching(
            metavar="COUNTS",
            default_is="they are not measured",
            help="With --watch: counts that the tokenizer was trained on, which tell unseen "
            "pre-tokens.",
        ),
    )
    warn_bytes_per_token: float = field(
        default=0.8,
        metadata=_watching(
            kind="number",
            minimum=0,
            metavar="SHARE",
            help="With --watch: warn below this share of the bytes per token of the training.",
        ),
    )
    warn_single_bytes: float | None = field(
        default=None,
        metadata=_watching(
            kind="number",
            minimum=0,
            metavar="SHARE",
            default_is="never",
            help="With --watch: warn above this share of tokens that are one byte.",
        ),
    )
    warn_unseen: float | None = field(
        default=None,
        metadata=_watching(
            kind="number",
            minimum=0,
            metavar="N",
            default_is="never",
            help="With --watch: warn above so many unseen in a million pre-tokens (--baseline).",
        ),
    )

    def __post_init__(self) -> None:
        check_declared(self)
        if self.warn_unseen is not None and self.baseline is None:
            raise ConfigError(
                "`warn_unseen`: what is unseen is told by `baseline` COUNTS, the counts that the "
                "tokenizer was trained on"
            )
