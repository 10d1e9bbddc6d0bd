"""Whole commands, start of Python included, on two cores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.cells import OURS, Ratio
from benchmarks.corpora import ENGLISH, described
from benchmarks.work import Contender, Work

if TYPE_CHECKING:
    from benchmarks.scale import Scale

SCRIPTS = ("gigatoken, its reader", "gigatoken, pyarrow")


def works(scale: Scale) -> list[Work]:
    """``bpe train`` and ``bpe encode`` beside the scripts of benchmarks/scripts."""
    vocab_size = str(scale.vocab_size)
    train = Work(
        name="train-command",
        title=f"bpe train to {scale.vocab_size:,}, Parquet → tokenizer.json, {described(ENGLISH)}",
        contenders=tuple(
            Contender(
                name=name,
                module="train_command",
                arguments=(ENGLISH, str(scale.counted), vocab_size),
                slow=name == "tokenizers",
            )
            for name in (OURS, *SCRIPTS, "tokenizers")
        ),
        cells=(
            Ratio(measure="seconds", against="gigatoken", must=1, aim=2),
            Ratio(measure="seconds", against="tokenizers", aim=10),
            Ratio(measure="memory", against="tokenizers", must=1),
            Ratio(measure="memory", against="gigatoken", aim=1),
        ),
        cores=2,
    )
    encode = Work(
        name="encode-command",
        title=f"bpe encode, JSON lines → Parquet, {described(ENGLISH)} four times,",
        contenders=tuple(
            Contender(
                name=name,
                module="encode_command",
                arguments=(ENGLISH, str(scale.jsonl)),
                slow=name == "datasets",
            )
            for name in (OURS, *SCRIPTS, "datasets")
        ),
        cells=(
            Ratio(measure="seconds", against="datasets", must=15),
            Ratio(measure="seconds", against="gigatoken", aim=1.5),
            Ratio(measure="memory", against="gigatoken"),
        ),
        cores=2,
    )
    return [train, encode]
