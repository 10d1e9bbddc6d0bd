"""How much is measured."""

from __future__ import annotations

from dataclasses import dataclass

MB = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Sizes of texts in bytes of UTF-8, vocabulary sizes in tokens.

    Attributes:
        name: for results and the command line.
        rounds: of each work.
        everybody: whether those run too that are many times slower, in two rounds, or seldom the
            best.
        alone: whether works run in which nobody is compared with anybody.
        english: encoded on one core.
        multilingual: the same.
        counted: counted, and trained on.
        vocab_size: trained.
        jsonl: in each of the four copies that whole commands encode.
        growth: corpora that are trained on and encoded, to see how time grows.
        growth_vocab: vocabularies that are trained and encoded with, for the same.
        long: of one pre-token.
        distinct: pre-tokens that the memory of the trainer is measured with.
    """

    name: str
    rounds: int
    everybody: bool
    alone: bool
    english: int
    multilingual: int
    counted: int
    vocab_size: int
    jsonl: int
    growth: tuple[int, ...]
    growth_vocab: tuple[int, ...]
    long: int
    distinct: int


FULL = Scale(
    name="full",
    rounds=5,
    everybody=True,
    alone=True,
    english=30 * MB,
    multilingual=15 * MB,
    counted=100 * MB,
    vocab_size=32_000,
    jsonl=100 * MB,
    growth=(25 * MB, 50 * MB, 100 * MB, 400 * MB),
    growth_vocab=(8_000, 16_000, 32_000, 64_000, 128_000, 256_000),
    long=1 * MB,
    distinct=10_000_000,
)

QUICK = Scale(
    name="quick",
    rounds=2,
    everybody=False,
    alone=True,
    english=10 * MB,
    multilingual=5 * MB,
    counted=20 * MB,
    vocab_size=8_000,
    jsonl=10 * MB,
    growth=(5 * MB, 10 * MB, 20 * MB),
    growth_vocab=(4_000, 8_000, 16_000),
    long=1 * MB,
    distinct=1_000_000,
)

SHORT = Scale(
    name="short",
    rounds=1,
    everybody=False,
    alone=False,
    english=2 * MB,
    multilingual=1 * MB,
    counted=2 * MB,
    vocab_size=8_000,
    jsonl=1 * MB,
    growth=(),
    growth_vocab=(),
    long=1 * MB // 10,
    distinct=0,
)

SCALES = {scale.name: scale for scale in (FULL, QUICK, SHORT)}
