"""Encoding columns of texts in memory, on one core."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.cells import Ratio
from benchmarks.corpora import ENGLISH, MULTILINGUAL, described
from benchmarks.work import OURS, Contender, Work

if TYPE_CHECKING:
    from benchmarks.cells import Cell
    from benchmarks.work import Scale

SIZES = {
    "full": {ENGLISH: 30_000_000, MULTILINGUAL: 15_000_000},
    "quick": {ENGLISH: 6_000_000, MULTILINGUAL: 3_000_000},
}
GIGATOKEN = {
    "full": tuple(f"gigatoken, {api}" for api in ("list", "Arrow", "buffer", "file")),
    "quick": ("gigatoken, buffer", "gigatoken, file"),  # its fastest
}
TITLES = {"r50k_base": "GPT-2", "cl100k_base": "cl100k", "o200k_base": "o200k"}
OTHERS: dict[str, tuple[str, ...]] = {"full": ("fastokens", "tokenizers"), "quick": ()}
_PARITY = (
    Ratio(measure="warm", against=("tiktoken",)),
    Ratio(measure="warm", against=("gigatoken",)),
)


def works(scale: Scale) -> list[Work]:
    """Each published vocabulary on English text, two of them on multilingual text."""
    large = tuple(
        Ratio(measure="cold", against=(peer,), must=must, aim=aim)
        for peer, must, aim in (("tiktoken", 8, None), ("gigatoken", None, 1.3))
    )
    multilingual = (
        Ratio(measure="cold", against=("tiktoken",), must=5),
        Ratio(measure="cold", against=("gigatoken",), must=0.9, aim=1.3),
    )
    gpt2 = (
        Ratio(measure="cold", against=("tiktoken",), must=10),
        Ratio(measure="cold", against=("gigatoken",), must=1, aim=1.3),
        Ratio(measure="warm", against=("tiktoken",), must=15),
        Ratio(measure="warm", against=("gigatoken",), aim=1),
    )
    return [
        _work(scale, "r50k_base", ENGLISH, gpt2, others=OTHERS[scale]),
        _work(scale, "cl100k_base", ENGLISH, large + _PARITY),
        _work(scale, "o200k_base", ENGLISH, large + _PARITY),
        _work(scale, "r50k_base", MULTILINGUAL, multilingual + _PARITY),
        _work(scale, "o200k_base", MULTILINGUAL, multilingual + _PARITY),
    ]


def _work(
    scale: Scale,
    vocabulary: str,
    corpus: str,
    cells: tuple[Cell, ...],
    *,
    others: tuple[str, ...] = (),
) -> Work:
    size = SIZES[scale][corpus]
    return Work(
        name=f"encode-{vocabulary.removesuffix('_base')}-{corpus}",
        title=f"encode, {TITLES[vocabulary]}, {described(corpus)}",
        contenders=tuple(
            Contender(
                name=name,
                module="encode",
                arguments=(corpus, str(size), vocabulary),
                rounds=2 if name == "tokenizers" else None,
            )
            for name in (OURS, *GIGATOKEN[scale], "tiktoken", *others)
        ),
        cells=cells,
        rounds=7 if scale == "full" else 3,
    )
