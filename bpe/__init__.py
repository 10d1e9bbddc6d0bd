"""Exact byte-pair encoding: count pre-tokens, train a tokenizer, encode and decode."""

from bpe import presets
from bpe._native import TIES
from bpe.cache import CacheUse
from bpe.counts import PretokenCounts
from bpe.counts.texts import count_pretokens
from bpe.dropout import row_seeds
from bpe.errors import (
    BpeError,
    CountsError,
    EncodingError,
    PretokenizerError,
    SpecialTokenError,
    TokenizerError,
    TokenizerFileError,
    TrainingError,
    UnknownCharacterError,
)
from bpe.explain import MergeStep
from bpe.models import ByteLevel, CharacterLevel, Model, WordPiece
from bpe.never_split import NEVER_SPLIT
from bpe.normalize import NORMALIZERS
from bpe.pretokenize import PATTERNS, PRETOKENIZERS, Pretokenizer
from bpe.sizes import VocabularySize, common_root, vocabulary_sizes
from bpe.tokenizer import Tokenizer
from bpe.train import train
from bpe.training import TrainedMerge, Training

__all__ = [
    "NEVER_SPLIT",
    "NORMALIZERS",
    "PATTERNS",
    "PRETOKENIZERS",
    "TIES",
    "BpeError",
    "ByteLevel",
    "CacheUse",
    "CharacterLevel",
    "CountsError",
    "EncodingError",
    "MergeStep",
    "Model",
    "PretokenCounts",
    "Pretokenizer",
    "PretokenizerError",
    "SpecialTokenError",
    "Tokenizer",
    "TokenizerError",
    "TokenizerFileError",
    "TrainedMerge",
    "Training",
    "TrainingError",
    "UnknownCharacterError",
    "VocabularySize",
    "WordPiece",
    "common_root",
    "count_pretokens",
    "presets",
    "row_seeds",
    "train",
    "vocabulary_sizes",
]
