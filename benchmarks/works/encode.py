"""Encoding columns of texts in memory, on one core."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.cells import OURS, Limit, Ratio, Speedup
from benchmarks.corpora import ENGLISH, MULTILINGUAL, described
from benchmarks.work import Contender, Work

if TYPE_CHECKING:
    from benchmarks.cells import Cell
    from benchmarks.scale import Scale

GIGATOKEN = tuple(f"gigatoken, {api}" for api in ("buffer", "file", "list", "Arrow"))
NATIVE = "native pre-tokenizer"
TITLES = {"r50k_base": "GPT-2", "cl100k_base": "cl100k", "o200k_base": "o200k"}


def works(scale: Scale) -> list[Work]:
    """Each published vocabulary, on English and on multilingual text."""
    load = (
        Ratio(measure="load", against="gigatoken", must=1.2, aim=2),
        Limit(measure="load", unit="s", aim=0.03),
        Ratio(measure="load and cold", against="gigatoken", must=1.2, aim=1.5),
    )
    gpt2 = (
        Ratio(measure="cold", against="tiktoken", must=10),
        Ratio(measure="cold", against="gigatoken", must=1.1, aim=1.5),
        Ratio(measure="warm", against="tiktoken", must=15),
        Ratio(measure="warm", against="gigatoken", must=1.15, aim=1.4),
        *load,
    )
    larger = (
        Ratio(measure="cold", against="tiktoken", must=8),
        Ratio(measure="cold", against="gigatoken", aim=1.3),
        *load,
    )

    def multilingual(cold: tuple[float, float], warm: tuple[float, float]) -> tuple[Ratio, ...]:
        return (
            Ratio(measure="cold", against="tiktoken", must=5),
            Ratio(measure="cold", against="gigatoken", must=cold[0], aim=cold[1]),
            Ratio(measure="warm", against="gigatoken", must=warm[0], aim=warm[1]),
        )

    return [
        _work(scale, "r50k_base", ENGLISH, gpt2, slow=("tokenizers",)),
        _work(scale, "cl100k_base", ENGLISH, larger),
        _work(scale, "o200k_base", ENGLISH, larger),
        _work(scale, "r50k_base", MULTILINGUAL, multilingual((1.2, 1.6), (1.1, 1.4))),
        _work(scale, "o200k_base", MULTILINGUAL, multilingual((1.8, 2.5), (1.2, 1.6))),
        _whole(scale, "r50k_base", ENGLISH, scale.whole),
        _whole(scale, "o200k_base", ENGLISH, scale.whole),
        _whole(scale, "r50k_base", MULTILINGUAL, scale.whole),
        _whole(scale, "o200k_base", MULTILINGUAL, scale.whole),
        *_variants(scale),
        _short_documents(scale),
        _shuffled(scale, "r50k_base", must=1.1, aim=1.5),
        _shuffled(scale, "o200k_base", must=1.5, aim=2),
        _no_cliff(scale),
        _own_pattern(scale),
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
    peers = (*_apis(scale), "fastokens") if scale.everybody else _apis(scale)
    return Work(
        name=_name(vocabulary, corpus),
        title=f"encode, {TITLES[vocabulary]}, {described(corpus)}",
        contenders=tuple(
            _contender(name, corpus, size, vocabulary, slow=name in slow)
            for name in (OURS, *peers, "tiktoken", *slow)
        ),
        cells=cells,
    )


def _whole(scale: Scale, vocabulary: str, corpus: str, size: int) -> Work:
    return Work(
        name=_name(vocabulary, corpus) + "-whole",
        title=f"encode, {TITLES[vocabulary]}, {described(corpus)}",
        contenders=tuple(
            _contender(name, corpus, size, vocabulary) for name in (OURS, *_apis(scale))
        ),
        cells=(
            Ratio(measure="cold", against="gigatoken", must=1.1, aim=1.5),
            Ratio(measure="warm", against="gigatoken", must=1.15, aim=1.4),
        ),
    )


def _variants(scale: Scale) -> list[Work]:
    """The cost on one core of a normalizer, of text never split, and of several patterns."""
    plain = f"{OURS} without"
    return [
        Work(
            name=f"encode-{variant.replace(' ', '-')}",
            title=f"encode, GPT-2, with {variant}, {described(ENGLISH)}",
            contenders=tuple(
                Contender(
                    name=name,
                    module="encode",
                    who=who,
                    arguments=(ENGLISH, str(scale.patterned), "r50k_base", "twice"),
                    output=name,
                )
                for name, who in ((OURS, f"{OURS}, {variant}"), (plain, OURS))
            ),
            cells=tuple(
                Ratio(measure=measure, against=plain, must=0.5, aim=0.8)
                for measure in ("cold", "warm")
            ),
        )
        for variant in ("normalizer", "never split", "several patterns")
    ]


def _short_documents(scale: Scale) -> Work:
    long = "documents of 4 kB"
    return Work(
        name="encode-short-documents",
        title=f"encode, GPT-2, documents of 100 bytes, {described(ENGLISH)}",
        contenders=tuple(
            Contender(
                name=name,
                module="encode",
                who=OURS,
                arguments=(ENGLISH, str(scale.english), "r50k_base", size),
                output=name,
            )
            for name, size in ((OURS, "100"), (long, "4000"))
        ),
        cells=tuple(
            Ratio(measure=measure, against=long, must=0.6, aim=0.8) for measure in ("cold", "warm")
        ),
    )


def _shuffled(scale: Scale, vocabulary: str, *, must: float, aim: float) -> Work:
    return Work(
        name=_name(vocabulary, MULTILINGUAL) + "-shuffled",
        title=f"encode, {TITLES[vocabulary]}, {described(MULTILINGUAL)} three times, shuffled,",
        contenders=tuple(
            _contender(
                name,
                MULTILINGUAL,
                scale.shuffled,
                vocabulary,
                order="shuffled",
                slow=name == "tiktoken",
            )
            for name in (OURS, *_apis(scale), "tiktoken")
        ),
        cells=(
            Ratio(measure="cold", against="gigatoken", must=must, aim=aim),
            Ratio(measure="last third", against="gigatoken", must=1, aim=1.3),
        ),
    )


def _no_cliff(scale: Scale) -> Work:
    return Work(
        name="no-cliff",
        title="encode, GPT-2, random words, none twice,",
        contenders=tuple(
            _contender(name, ENGLISH, scale.new_words, "r50k_base", order="new words")
            for name in (OURS, GIGATOKEN[0])
        ),
        cells=(Speedup(work="a tenth", ours="on average", against="first", must=0.9),),
    )


def _own_pattern(scale: Scale) -> Work:
    arguments = (ENGLISH, str(scale.patterned), "o200k_base", "twice")
    whos = {OURS: f"{OURS}, own pattern", NATIVE: OURS, "tiktoken": "tiktoken"}
    return Work(
        name="own-pattern",
        title=f"encode, o200k, its regular expression as a pattern, {described(ENGLISH)}",
        contenders=tuple(
            Contender(name=name, module="encode", who=who, arguments=arguments)
            for name, who in whos.items()
        ),
        cells=(
            Ratio(measure="cold", against="tiktoken", must=1),
            Ratio(measure="cold", against=NATIVE, aim=0.5),
        ),
    )


def _name(vocabulary: str, corpus: str) -> str:
    return f"encode-{vocabulary.removesuffix('_base')}-{corpus}"


def _apis(scale: Scale) -> tuple[str, ...]:
    return GIGATOKEN if scale.everybody else GIGATOKEN[:1]


def _contender(
    name: str,
    corpus: str,
    size: int,
    vocabulary: str,
    *,
    order: str = "twice",
    slow: bool = False,
) -> Contender:
    arguments = (corpus, str(size), vocabulary, order)
    return Contender(name=name, module="encode", arguments=arguments, slow=slow)
