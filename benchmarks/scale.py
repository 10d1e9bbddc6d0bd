"""The amount that is measured."""

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
        whole: English, and multilingual, that outgrows caches, encoded on one core.
        shuffled: multilingual, encoded three times over; and trained on.
        new_words: random words, none twice, encoded on one core.
        patterned: English that is cut by a pattern of the user's own.
        counted: counted, and trained on.
        vocab_size: trained.
        large_vocab: trained on ``shuffled``.
        copied: one copy of the English text that whole commands read.
        commands: what whole commands read, a small and a large corpus of such copies.
        second_core: what whole commands read with one worker and with two.
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
    whole: int
    shuffled: int
    new_words: int
    patterned: int
    counted: int
    vocab_size: int
    large_vocab: tuple[int, int]
    copied: int
    commands: tuple[int, int]
    second_core: int
    growth: tuple[int, ...]
    growth_vocab: tuple[int, ...]
    long: int
    distinct: int


FULL = Scale(
    name="full",
    rounds=7,
    everybody=True,
    alone=True,
    english=30 * MB,
    multilingual=30 * MB,
    whole=200 * MB,
    shuffled=30 * MB,
    new_words=50 * MB,
    patterned=10 * MB,
    counted=100 * MB,
    vocab_size=32_000,
    large_vocab=(128_000, 256_000),
    copied=100 * MB,
    commands=(200 * MB, 2_000 * MB),
    second_core=400 * MB,
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
    whole=20 * MB,
    shuffled=5 * MB,
    new_words=10 * MB,
    patterned=2 * MB,
    counted=20 * MB,
    vocab_size=8_000,
    large_vocab=(16_000, 32_000),
    copied=20 * MB,
    commands=(20 * MB, 40 * MB),
    second_core=40 * MB,
    growth=(5 * MB, 10 * MB, 20 * MB),
    growth_vocab=(4_000, 8_000, 16_000),
    long=1 * MB,
    distinct=1_000_000,
)

SHORT = Scale(
    name="short",
    rounds=0,
    everybody=False,
    alone=False,
    english=2 * MB,
    multilingual=1 * MB,
    whole=3 * MB,
    shuffled=1 * MB,
    new_words=1 * MB,
    patterned=1 * MB,
    counted=2 * MB,
    vocab_size=8_000,
    large_vocab=(8_000, 16_000),
    copied=1 * MB,
    commands=(1 * MB, 2 * MB),
    second_core=2 * MB,
    growth=(),
    growth_vocab=(),
    long=1 * MB // 10,
    distinct=0,
)

SCALES = {scale.name: scale for scale in (FULL, QUICK, SHORT)}
