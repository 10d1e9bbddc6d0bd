from __future__ import annotations

from typing import Any

import pytest

from bpe import ByteLevel, CharacterLevel, WordPiece
from bpe.errors import TokenizerError


def test_what_a_word_consists_of_before_it_is_merged() -> None:
    word = "né\N{SLIGHTLY SMILING FACE}".encode() + b"\xff"
    characters = (b"n", "é".encode(), "\N{SLIGHTLY SMILING FACE}".encode(), b"\xff")
    assert ByteLevel().symbols(word) == tuple(bytes([byte]) for byte in word)
    assert CharacterLevel().symbols(word) == (*characters, b"</w>")
    assert CharacterLevel(end_of_word="").symbols(word) == characters
    assert WordPiece().symbols(word) == (b"n", *(b"##" + part for part in characters[1:]))


def test_the_token_that_is_a_whole_word() -> None:
    assert ByteLevel().as_token(b"low") == b"low"
    assert CharacterLevel().as_token(b"low") == b"low</w>"
    assert CharacterLevel(end_of_word="").as_token(b"low") == b"low"
    assert WordPiece().as_token(b"low") == b"low"


@pytest.mark.parametrize(
    ("model", "settings", "named"),
    [
        (CharacterLevel, {"end_of_word": None}, "end_of_word None is not a string"),
        (CharacterLevel, {"end_of_word": "\ud800"}, "end_of_word .* lone surrogate"),
        (CharacterLevel, {"unknown": ""}, "unknown '' is not a string of at least one character"),
        (CharacterLevel, {"unknown": 0}, "unknown 0 is not a string"),
        (WordPiece, {"prefix": b"##"}, "prefix b'##' is not a string"),
        (WordPiece, {"unknown": None}, "unknown None is not a string"),
        (WordPiece, {"max_characters": 0}, "max_characters 0 is not a number from 1"),
        (WordPiece, {"max_characters": True}, "max_characters True is not a number from 1"),
        (WordPiece, {"max_characters": 2**32}, "max_characters 4294967296 is not a number"),
    ],
)
def test_settings_that_no_model_has(model: Any, settings: dict[str, Any], named: str) -> None:
    with pytest.raises(TokenizerError, match=named):
        model(**settings)
