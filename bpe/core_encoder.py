"""The core's encoder of a tokenizer: it merges, and cuts by names and tables of patterns."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from bpe._arrow import text_column
from bpe._native import Encoder
from bpe.byte_alphabet import is_utf8
from bpe.errors import TokenizerError
from bpe.models import ByteLevel, CharacterLevel, Model, WordPiece
from bpe.normalizer import MARK, PREPENDING
from bpe.parts import Parts
from bpe.pretokenizer import Pretokenizer
from bpe.special_tokens import special_matcher
from bpe.token_table import TokenTable

if TYPE_CHECKING:
    from typing_extensions import Buffer

WordEncoder: TypeAlias = "Callable[[pa.LargeBinaryArray], tuple[Buffer, Buffer]]"
"""Returns the ids (uint32) of words one after the other, and where each word begins (int64)."""


def make_encoder(parts: Parts, *, marks: bytes = b"") -> Encoder:
    """Return the encoder; with ``marks``, one that counts runs of the tokens whose byte there is 1.

    Raises:
        TokenizerError: the parts contradict each other, or do not go with the model.
    """
    model = parts.model
    settings = _model_settings(parts)
    if not isinstance(model, ByteLevel):
        _check_strings(model, parts.tokens)
    if isinstance(model, WordPiece) and (len(parts.merges) or parts.ignore_merges):
        raise TokenizerError(
            "a WordPiece model has no merges: give neither merges nor ignore_merges"
        )
    if len(parts.superwords) and not isinstance(model, ByteLevel):
        raise TokenizerError(
            f"superwords need a byte-level model, not {type(model).__name__}, whose tokens can "
            "hold the beginning or end of a word: joined, they would not be the text"
        )
    special_ids = set(parts.atomic_ids)
    # No text spells the unknown token of characters, and no merge uses it.
    if isinstance(model, CharacterLevel) and settings["unknown"] is not None:
        special_ids.add(settings["unknown"])
    try:
        return Encoder(
            token_data=parts.tokens.data,
            token_offsets=parts.tokens.offsets,
            merges=parts.merges.flat,
            special_ids=sorted(special_ids),
            pretokenizer=parts.pretokenizer.native,
            ignore_merges=parts.ignore_merges,
            superwords=parts.superwords.flat,
            marks=marks,
            **settings,
        )
    except ValueError as error:
        raise TokenizerError(str(error)) from None


def word_encoder(parts: Parts) -> WordEncoder:
    """Return a function that encodes words, each of which is one pre-token.

    It raises TokenizerError at the first words, as :func:`make_encoder` does.
    """
    no_tokens = special_matcher([], {})

    @functools.cache
    def encoder() -> Encoder:
        return make_encoder(replace(parts, pretokenizer=Pretokenizer("none")))

    def encode(words: pa.LargeBinaryArray) -> tuple[Buffer, Buffer]:
        ids, offsets, *_ = encoder().encode(text_column(words), no_tokens, [])
        return ids, offsets

    return encode


def encoded_words(parts: Parts, words: Iterable[bytes]) -> list[list[int]]:
    """Return the ids of words, each of which is one pre-token."""
    flat, offsets = word_encoder(parts)(pa.array(words, pa.large_binary()))
    ids = memoryview(flat).cast("B").cast("I").tolist()
    return [ids[begin:end] for begin, end in pairwise(memoryview(offsets).cast("B").cast("q"))]


_KINDS = {ByteLevel: "bytes", CharacterLevel: "characters", WordPiece: "word_piece"}


def _model_settings(parts: Parts) -> dict[str, Any]:
    model, normalizer, unknown = parts.model, parts.pretokenizer.normalizer, None
    if type(model) not in _KINDS:
        raise TokenizerError(
            f"the model is {model!r:.60}: give ByteLevel(), CharacterLevel() or WordPiece()"
        )
    if model.unknown is not None:
        unknown = parts.ids.get(model.unknown.encode())
        if unknown is None:
            raise TokenizerError(
                f"the unknown token {model.unknown!r:.60} of the model is not in the vocabulary"
            )
    has_marks = isinstance(model, CharacterLevel)
    return {
        "model": _KINDS[type(model)],
        "affix": model.end_of_word or model.prefix,
        "unknown": unknown,
        "max_characters": model.max_characters,
        "byte_fallback": model.byte_fallback,
        "fuse_unknown": model.fuse_unknown,
        "mark": MARK if has_marks and "mark-spaces" in normalizer else "",
        "drops_space": has_marks and not PREPENDING.isdisjoint(normalizer),
    }


def _check_strings(model: Model, tokens: TokenTable) -> None:
    if not len(tokens):
        raise TokenizerError("a tokenizer has at least one token: give some")
    for id_, token in enumerate(tokens):
        if token is not None and not is_utf8(token):
            raise TokenizerError(
                f"token {id_} is {token!r:.60}, which is not UTF-8: the tokens of "
                f"{type(model).__name__} are strings"
            )
