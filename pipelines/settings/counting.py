"""The settings of counts."""

from __future__ import annotations

from dataclasses import dataclass

from pipelines.option import Positive, Settings, advanced, option

SHARDS = 16  # of counts
MAX_GROUPS = 10_000  # a field with more, such as an id, was not meant
MERGE_PATTERN = r"\p{L}"


@dataclass(frozen=True, kw_only=True)
class PruneSettings(Settings):
    """The choice, of counting and of training, to leave rare pre-tokens out.

    Attributes:
        prune_below: Drop pre-tokens that occur fewer than N times. The output records the loss.
    """

    prune_below: Positive = advanced(1, group="Text")


@dataclass(frozen=True, kw_only=True)
class CountSettings(PruneSettings, group="Output"):
    """The contents of counts, and the number of their files.

    Attributes:
        track_order: Also record where each pre-token first occurs. --ties first-seen needs it.
        shards: Number of Parquet files of counts.
        group_by: Count each value of this field or column apart, in DIR/NAME=VALUE. A record
            without a string or number there is a bad record; more than 10,000 values end the job.
    """

    track_order: bool = advanced(False)
    shards: Positive = advanced(SHARDS, maximum=99_999)
    group_by: str | None = option(None, metavar="NAME")


@dataclass(frozen=True, kw_only=True)
class RunSettings(Settings, group="Text"):
    """The adjacent tokens that are a run, of which superwords are learnt.

    Attributes:
        merge_pattern: With runs: every pre-token of a run contains a match of this regular
            expression. The default matches a letter.
        max_run: With runs: cut longer runs into pieces of N tokens. Pairs across a cut are not
            counted; the output records the loss.
    """

    merge_pattern: str = advanced(
        MERGE_PATTERN, needs="input & runs | superwords | boundless", metavar="REGEX"
    )
    max_run: int | None = advanced(
        None, needs="input & runs | superwords | boundless", minimum=2, default_is="no limit"
    )
