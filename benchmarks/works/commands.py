"""Whole commands, start of Python included, on two cores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.cells import OURS, Limit, Ratio, Speedup
from benchmarks.corpora import ENGLISH, described
from benchmarks.scale import MB
from benchmarks.work import Contender, Work

if TYPE_CHECKING:
    from benchmarks.cells import Cell
    from benchmarks.scale import Scale

OWN_READER = "gigatoken, its reader"
SCRIPTS = (OWN_READER, "gigatoken, pyarrow")


def works(scale: Scale) -> list[Work]:
    """``bpe train`` and ``bpe encode`` beside the scripts of benchmarks/scripts."""
    small, large = scale.commands
    return [
        _train(
            scale,
            "train-command",
            small,
            (*SCRIPTS, "tokenizers"),
            Ratio(measure="seconds", against="gigatoken", must=1.3, aim=2),
            Ratio(measure="seconds", against="tokenizers", aim=10),
            Ratio(measure="memory", against="tokenizers", must=1),
            Ratio(measure="memory", against="gigatoken", aim=1),
        ),
        # What the script with pyarrow takes grows with the corpus more than its reader's.
        _train(
            scale,
            "train-command-large",
            large,
            (OWN_READER,),
            Ratio(measure="seconds", against="gigatoken", must=2.2, aim=3),
            Ratio(measure="memory", against="gigatoken"),
        ),
        _train(
            scale,
            "train-memory",
            scale.copied,
            (OWN_READER,),
            Limit(measure="memory", unit="B", must=400 * MB, aim=322 * MB),
            Ratio(measure="memory", against="gigatoken", aim=1),
            rounds=1,
        ),
        _encode(
            scale,
            "encode-command",
            small,
            (*SCRIPTS, "datasets"),
            Ratio(measure="seconds", against="datasets", must=15),
            Ratio(measure="seconds", against="gigatoken", must=1, aim=1.5),
            Ratio(measure="memory", against="gigatoken"),
        ),
        _encode(
            scale,
            "encode-command-large",
            large,
            (OWN_READER,),
            Ratio(measure="seconds", against="gigatoken", must=1.6, aim=2.5),
            Limit(measure="memory", unit="B", must=450 * MB, aim=300 * MB),
            Ratio(measure="memory", against="gigatoken"),
        ),
        _second_core(scale),
    ]


def _copies(scale: Scale, size: int) -> tuple[str, str, str]:
    """Which corpus, bytes of a copy, and how many copies."""
    return ENGLISH, str(scale.copied), str(size // scale.copied)


def _train(
    scale: Scale,
    name: str,
    size: int,
    peers: tuple[str, ...],
    *cells: Cell,
    rounds: int | None = None,
) -> Work:
    return Work(
        name=name,
        title=f"bpe train to {scale.vocab_size:,}, Parquet → tokenizer.json, {described(ENGLISH)}",
        contenders=tuple(
            Contender(
                name=peer,
                module="train_command",
                arguments=(*_copies(scale, size), str(scale.vocab_size)),
                slow=peer == "tokenizers",
            )
            for peer in (OURS, *peers)
        ),
        cells=cells,
        cores=2,
        rounds=rounds,
    )


def _encode(scale: Scale, name: str, size: int, peers: tuple[str, ...], *cells: Cell) -> Work:
    return Work(
        name=name,
        title=f"bpe encode, JSON lines → Parquet, {described(ENGLISH)}",
        contenders=tuple(
            Contender(
                name=peer,
                module="encode_command",
                arguments=_copies(scale, size),
                slow=peer == "datasets",
            )
            for peer in (OURS, *peers)
        ),
        cells=cells,
        cores=2,
    )


def _second_core(scale: Scale) -> Work:
    return Work(
        name="second-core-commands",
        title=f"a second core, whole commands without their start, {described(ENGLISH)}",
        contenders=(
            Contender(
                name=OURS,
                module="second_core",
                arguments=(*_copies(scale, scale.second_core), str(scale.vocab_size)),
            ),
        ),
        cells=tuple(
            Speedup(work=work, ours="2 workers", against="1 worker", must=1.7, aim=1.9)
            for work in ("train", "encode")
        ),
        cores=2,
        rounds=3,  # of three turns each
        compares=True,
    )
