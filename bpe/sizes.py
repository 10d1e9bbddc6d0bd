"""What a vocabulary's size does to a corpus, and what words have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from bpe.errors import TokenizerError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bpe.tokenizer import Tokenizer
    from bpe.training import Training


class VocabularySize(NamedTuple):
    """The corpus that a vocabulary was trained on, in tokens of its first part.

    Attributes:
        vocab_size: tokens in the vocabulary.
        tokens: the length of the corpus.
        tokens_per_word: tokens on average of a word (pre-token), its end included where the model
            has one; 0.0 for an empty corpus.
        bytes_per_token: bytes on average of a token; 0.0 for an empty corpus.
    """

    vocab_size: int
    tokens: int
    tokens_per_word: float
    bytes_per_token: float


def vocabulary_sizes(
    training: Training, sizes: Iterable[int] | None = None
) -> list[VocabularySize]:
    """How well smaller vocabularies do on the corpus, from one training.

    Each is what training with that ``vocab_size`` ends with (see ``Tokenizer.truncated``).

    Args:
        training: of the largest vocabulary.
        sizes: vocabulary sizes; None for all. One that does not hold the alphabet is that of the
            alphabet alone, one above what was trained is that of all tokens.

    Raises:
        TokenizerError: a size is not a number from 1.
    """
    curve = training.curve()
    if sizes is not None:
        curve = [curve[_place(size, curve[0].vocab_size, len(curve))] for size in sizes]
    words = training.initial_words
    return [
        VocabularySize(
            point.vocab_size,
            point.tokens,
            point.tokens / words if words else 0.0,
            point.bytes_per_token,
        )
        for point in curve
    ]


def _place(size: int, smallest: int, points: int) -> int:
    if type(size) is not int or size < 1:
        raise TokenizerError(f"the vocabulary size {size!r:.60} is not a number from 1")
    return min(max(size - smallest, 0), points - 1)


def common_root(tokenizer: Tokenizer, words: Iterable[str]) -> list[str]:
    """The tokens with which all words begin: whether related words share a root.

    Raises:
        UnknownCharacterError: a word holds a character without a token.
    """
    root = []
    for first, *others in zip(*map(tokenizer.tokenize, words), strict=False):
        if any(one != first for one in others):
            break
        root.append(first)
    return root
