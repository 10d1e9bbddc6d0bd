"""Exact byte-pair encoding: count pre-tokens, train a tokenizer, encode and decode."""

from bpe.counts import PretokenCounts, count_pretokens
from bpe.explain import MergeStep
from bpe.pretokenize import PATTERNS, PRETOKENIZERS, Pretokenizer
from bpe.tokenizer import Tokenizer

__all__ = [
    "PATTERNS",
    "PRETOKENIZERS",
    "MergeStep",
    "PretokenCounts",
    "Pretokenizer",
    "Tokenizer",
    "count_pretokens",
]
