"""Counting pre-tokens and merging, on one core."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.cells import OURS, Ratio
from benchmarks.corpora import ENGLISH, described
from benchmarks.scale import MB
from benchmarks.work import Contender, Work

if TYPE_CHECKING:
    from benchmarks.scale import Scale


def works(scale: Scale) -> list[Work]:
    """Both."""
    size = str(scale.counted)
    count = Work(
        name="count",
        title=f"count pre-tokens, {described(ENGLISH)}",
        contenders=tuple(
            Contender(name=name, module="count", arguments=(ENGLISH, size))
            for name in (OURS, "gigatoken")
        ),
        cells=(Ratio(measure="count", against="gigatoken", must=1, aim=1.5),),
    )
    # Tie rules differ, and with them the merges: rustbpe's is compared with ours of that rule.
    rules = {
        OURS: "huggingface",
        "gigatoken": "huggingface",
        "tokenizers": "huggingface",
        f"{OURS}, id-min": "id-min",
        "rustbpe": "id-min",
    }
    merges = Work(
        name="merges",
        title=f"merge loop to {scale.vocab_size:,}, {described(ENGLISH)} {scale.counted // MB} MB",
        contenders=tuple(
            Contender(
                name=name,
                module="merges",
                arguments=(ENGLISH, size, str(scale.vocab_size)),
                output=rule,
                slow=name == "tokenizers",
            )
            for name, rule in rules.items()
        ),
        cells=(
            Ratio(measure="merges", against="gigatoken", must=3, aim=5),
            Ratio(measure="merges", against="rustbpe", must=3, aim=5, ours=f"{OURS}, id-min"),
        ),
        rounds=3,
    )
    return [count, merges]
