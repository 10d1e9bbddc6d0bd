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
# The same scripts, writing Parquet as `bpe encode` does; those above leave it to pyarrow.
AS_OURS = "gigatoken with our encoding"
SCRIPTS_AS_OURS = tuple(name.replace("gigatoken", AS_OURS) for name in SCRIPTS)


def works(scale: Scale) -> list[Work]:
    """``bpe train`` and ``bpe encode`` compared with the scripts of benchmarks/scripts."""
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
            (*SCRIPTS, *SCRIPTS_AS_OURS, "datasets"),
            Ratio(measure="seconds", against="datasets", must=15),
            Ratio(measure="seconds", against="gigatoken", must=1.4, aim=1.8),
            Ratio(measure="seconds", against=AS_OURS, must=1.2, aim=1.8),
            Ratio(measure="memory", against="gigatoken"),
        ),
        _encode(
            scale,
            "encode-command-large",
            large,
            (OWN_READER, SCRIPTS_AS_OURS[0]),
            Ratio(measure="seconds", against="gigatoken", must=3, aim=4),
            Ratio(measure="seconds", against=AS_OURS, must=2.4, aim=4),
            Limit(measure="memory", unit="B", must=450 * MB, aim=300 * MB),
            Ratio(measure="memory", against="gigatoken"),
        ),
        _second_core(scale),
        _start(),
        _size(scale),
    ]


def _copies(scale: Scale, size: int) -> tuple[str, str, str]:
    """The corpus, the bytes of a copy, and the number of copies."""
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
            Speedup(work=work, ours="2 workers", against="1 worker", must=must, aim=aim)
            for work, must, aim in (("train", 1.45, 1.7), ("encode", 1.7, 1.9))
        ),
        cores=2,
        rounds=3,  # of three turns each
        compares=True,
    )


def _start() -> Work:
    imported = "import apache_beam"
    return Work(
        name="start",
        title="bpe encode of one line",
        contenders=tuple(
            Contender(name=name, module="start", output=name) for name in (OURS, imported)
        ),
        cells=(Ratio(measure="seconds", against=imported, must=0.87, aim=0.95),),
        cores=2,
    )


def _size(scale: Scale) -> Work:
    plain = "plain"
    return Work(
        name="ids-size",
        title=f"ids on disk, GPT-2, {described(ENGLISH)}",
        contenders=tuple(
            Contender(
                name=name, module="ids_size", who=who, arguments=_copies(scale, scale.commands[0])
            )
            for name, who in ((OURS, "byte-stream-split"), (plain, "plain"))
        ),
        cells=(
            Ratio(measure="bytes", against=plain, must=1.087, aim=1.136),
            Limit(measure="bytes", unit="B"),
        ),
        cores=2,
        rounds=1,
    )
