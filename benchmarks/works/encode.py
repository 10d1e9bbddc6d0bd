"""Encoding columns of texts in memory, on one core."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.cells import OURS, Ratio
from benchmarks.corpora import ENGLISH, MULTILINGUAL, described
from benchmarks.work import Contender, Work

if TYPE_CHECKING:
    from benchmarks.cells import Cell
    from benchmarks.scale import Scale

GIGATOKEN = tuple(f"gigatoken, {api}" for api in ("buffer", "file", "list", "Arrow"))
TITLES = {"r50k_base": "GPT-2", "cl100k_base": "cl100k", "o200k_base": "o200k"}


def works(scale: Scale) -> list[Work]:
    """Each published vocabulary on English text, two of them on multilingual text."""
    gpt2 = (
        Ratio(measure="cold", against="tiktoken", must=10),
        Ratio(measure="cold", against="gigatoken", must=1, aim=1.3),
        Ratio(measure="warm", against="tiktoken", must=15),
        Ratio(measure="warm", against="gigatoken", aim=1),
    )
    larger = (
        Ratio(measure="cold", against="tiktoken", must=8),
        Ratio(measure="cold", against="gigatoken", aim=1.3),
    )
    multilingual = (
        Ratio(measure="cold", against="tiktoken", must=5),
        Ratio(measure="cold", against="gigatoken", must=0.9, aim=1.3),
    )
    return [
        _work(scale, "r50k_base", ENGLISH, gpt2, slow=("tokenizers",)),
        _work(scale, "cl100k_base", ENGLISH, larger),
        _work(scale, "o200k_base", ENGLISH, larger),
        _work(scale, "r50k_base", MULTILINGUAL, multilingual),
        _work(scale, "o200k_base", MULTILINGUAL, multilingual),
    ]


def _work(
    scale: Scale,
    vocabulary: str,
    corpus: str,
    cells: tuple[Cell, ...],
    *,
    slow: tuple[str, ...] = (),
) -> Work:
    size = scale.english if corpus == ENGLISH else scale.multilingual
    peers = (*GIGATOKEN, "fastokens") if scale.everybody else GIGATOKEN[:1]
    return Work(
        name=f"encode-{vocabulary.removesuffix('_base')}-{corpus}",
        title=f"encode, {TITLES[vocabulary]}, {described(corpus)}",
        contenders=tuple(
            Contender(
                name=name,
                module="encode",
                arguments=(corpus, str(size), vocabulary),
                slow=name in slow,
            )
            for name in (OURS, *peers, "tiktoken", *slow)
        ),
        cells=cells,
    )
