"""Counting pre-tokens, merging, and both, on one core."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.cells import OURS, Ratio
from benchmarks.corpora import ENGLISH, MULTILINGUAL, described
from benchmarks.scale import MB
from benchmarks.work import Contender, Work

if TYPE_CHECKING:
    from benchmarks.scale import Scale


def works(scale: Scale) -> list[Work]:
    """All of them."""
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
            Ratio(measure="merges", against="gigatoken", must=5, aim=8),
            Ratio(measure="merges", against="rustbpe", must=5, aim=8, ours=f"{OURS}, id-min"),
            Ratio(measure="merges", against="tokenizers", must=5, aim=8),
        ),
        rounds=3,  # each contender takes the least of three, and rustbpe counts again each time
    )
    large, largest = scale.large_vocab
    return [
        count,
        merges,
        _whole(scale, "train-large", large, large),
        _whole(scale, "train-largest", largest, large),
    ]


def _whole(scale: Scale, name: str, vocab_size: int, theirs: int) -> Work:
    """Training to ``vocab_size`` against training to ``theirs``, which is a part of the same work.

    (gigatoken to 256,000 was stopped after 25 minutes.)
    """
    title = f"train to {vocab_size:,}, counting included, {described(MULTILINGUAL)}"
    if theirs < vocab_size:
        title += f" (gigatoken: to {theirs:,} only)"
    return Work(
        name=name,
        title=title,
        contenders=tuple(
            Contender(
                name=name,
                module="train",
                arguments=(MULTILINGUAL, str(scale.shuffled), str(size), str(theirs)),
            )
            for name, size in ((OURS, vocab_size), ("gigatoken", theirs))
        ),
        cells=(Ratio(measure="train", against="gigatoken", must=3, aim=5),),
        rounds=1,  # gigatoken takes minutes
    )
