"""The names that settings choose from, for those who do not wait for the core."""

from __future__ import annotations

from typing import Literal, TypeAlias

# As the core lists them (a test compares).
PRETOKENIZERS = ("gpt2", "cl100k", "o200k", "llama3", "qwen2", "words", "spaces", "bert", "none")
TIES = ("bytes-min", "bytes-max", "gpt2-max", "id-min", "huggingface", "first-seen")
PAIR_COUNTS = ("overlapping", "disjoint")

# `bpe.normalizer` explains them.
NORMALIZERS: tuple[str, ...] = (
    *("nfc", "nfd", "nfkc", "nfkd", "lowercase"),
    *("strip-accents", "strip-nonspacing", "clean-text", "space-han"),
    *("mark-spaces", "prepend-mark", "ensure-mark", "ensure-first-mark"),
)

LossName: TypeAlias = Literal[
    "pretokenizer",
    "normalizer",
    "never-split",
    "special-tokens",
    "added-tokens",
    "token-flags",
    "post-processor",
    "roles",
]

Dialect: TypeAlias = Literal["huggingface", "beam-bpe"]
