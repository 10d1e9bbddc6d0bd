"""Limits: long pre-tokens, memory, growth; and the gain of a second core."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.cells import OURS, Growth, Limit, Speedup
from benchmarks.corpora import ENGLISH, described
from benchmarks.scale import MB
from benchmarks.work import Contender, Work

if TYPE_CHECKING:
    from benchmarks.scale import Scale

# Those whose output can be compared with ours.
LONG = {
    ("one letter", "train"): (OURS,),
    ("one letter", "encode"): (OURS, "tiktoken", "gigatoken"),
    ("random letters", "train"): (OURS, "gigatoken"),
    ("random letters", "encode"): (OURS, "tiktoken", "gigatoken"),
    ("random bytes", "train"): (OURS,),
    ("random bytes", "encode"): (OURS, "tiktoken"),
}
BOUNDS = {"train": (0.3, 0.2), "encode": (0.15, 0.1)}  # seconds: must, aim
LINEAR = 1.05  # an exponent that is 1 within what the machine varies


def works(scale: Scale) -> list[Work]:
    """All of them."""
    return [*_long_words(scale), _memory(scale), *_growth(scale), _threads(scale)]


def _long_words(scale: Scale) -> list[Work]:
    found = []
    for (kind, job), names in LONG.items():
        must, aim = BOUNDS[job]
        found.append(
            Work(
                name=f"long-{kind.replace(' ', '-')}-{job}",
                title=f"one pre-token, {kind}, {job}" + (" 1,000" if job == "train" else ""),
                contenders=tuple(
                    Contender(
                        name=name,
                        module="long_word",
                        arguments=(kind, str(scale.long), job),
                        slow=job == "train" and name != OURS,
                    )
                    for name in names
                ),
                cells=(Limit(measure=job, unit="s", must=must, aim=aim),),
            )
        )
    return found


def _memory(scale: Scale) -> Work:
    return Work(
        name="trainer-memory",
        title=f"memory of training, {scale.distinct:,} distinct pre-tokens of 8 bytes",
        contenders=(
            Contender(
                name=OURS,
                module="trainer_memory",
                arguments=(str(scale.distinct), str(scale.vocab_size)),
            ),
        ),
        cells=(
            Limit(measure="trainer", unit="B", must=110, aim=90),
            Limit(measure="with the counts", unit="B"),
        ),
        rounds=1,
    )


def _growth(scale: Scale) -> list[Work]:
    corpora = {f"{size // MB} MB": size for size in scale.growth}
    sizes = {f"{size // 1000}k": size for size in scale.growth_vocab}
    corpus = Work(
        name="growth-corpus",
        title=f"growth with the corpus, {described(ENGLISH)}, to {scale.vocab_size:,}",
        contenders=tuple(
            Contender(
                name=name,
                module="growth",
                who="corpus",
                arguments=(ENGLISH, str(size), str(size), str(scale.vocab_size)),
                output=name,
            )
            for name, size in corpora.items()
        ),
        cells=tuple(
            Growth(measure=measure, sizes=corpora, must=LINEAR) for measure in ("train", "encode")
        ),
        rounds=3,
    )
    vocabulary = Work(
        name="growth-vocabulary",
        title=f"growth with the vocabulary, {described(ENGLISH)} {scale.counted // MB} MB",
        contenders=tuple(
            Contender(
                name=name,
                module="growth",
                who="vocabulary",
                arguments=(ENGLISH, str(scale.counted), str(scale.english), str(size)),
                output=name,
            )
            for name, size in sizes.items()
        ),
        cells=tuple(
            Growth(measure=measure, sizes=sizes, must=LINEAR) for measure in ("train", "encode")
        ),
        rounds=3,
    )
    return [corpus, vocabulary]


def _threads(scale: Scale) -> Work:
    return Work(
        name="second-core",
        title=f"a second core, native stages, {described(ENGLISH)}",
        contenders=(
            Contender(name=OURS, module="threads", arguments=(ENGLISH, str(scale.counted))),
        ),
        cells=tuple(
            Speedup(work=work, ours="2 threads", against="1 thread", must=1.7, aim=1.9)
            for work in ("count", "encode")
        ),
        cores=2,
        rounds=3,  # of nine turns each
        compares=True,
    )
