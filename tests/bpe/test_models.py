from __future__ import annotations

from typing import Any

import pytest

from bpe import CharacterLevel, WordPiece
from bpe.errors import TokenizerError


@pytest.mark.parametrize(
    ("model", "settings", "named"),
    [
        (CharacterLevel, {"end_of_word": None}, "end_of_word None is not a string"),
        (CharacterLevel, {"end_of_word": "\ud800"}, "end_of_word .* lone surrogate"),
        (CharacterLevel, {"unknown": ""}, "unknown '' is not a string of at least one character"),
        (CharacterLevel, {"byte_fallback": 1}, "byte_fallback 1 is not True or False"),
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
