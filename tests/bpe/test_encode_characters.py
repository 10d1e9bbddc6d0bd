"""Byte-pair encoding of characters, with an end of word and an unknown token."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest

import bpe
from bpe.errors import TokenizerError, UnknownCharacterError
from tests.bpe.models import make

STRINGS = ["<unk>", "</w>", *"ilotw", "lo", "low", "low</w>"]
PAIRS = [("l", "o"), ("lo", "w"), ("low", "</w>")]
MODEL = bpe.CharacterLevel(unknown="<unk>")


def low(**changes: Any) -> bpe.Tokenizer:
    return make(STRINGS, PAIRS, **{"special": ["<unk>"], "model": MODEL, **changes})


def test_a_word_of_a_megabyte() -> None:
    tokenizer = low(pretokenizer=bpe.Pretokenizer("none"))
    text = "low" * 350_000
    assert tokenizer.tokenize(text) == ["low"] * 349_999 + ["low</w>"]


# Without an unknown token.


def test_an_unknown_character_is_named() -> None:
    tokenizer = low(model=bpe.CharacterLevel())
    with pytest.raises(UnknownCharacterError, match=r"^the character 'ö' \(U\+00F6\) has no token"):
        tokenizer.encode("löw")
    with pytest.raises(UnknownCharacterError, match=r"^b'\\xff', which is not UTF-8, has no token"):
        tokenizer.encode(b"l\xffw")
    column = pa.chunked_array([["low", "low"], ["low", "löw", None, "ö"]])
    with pytest.raises(UnknownCharacterError, match=r"^row 3: the character 'ö'") as caught:
        tokenizer.encode_arrow(column)
    assert caught.value.rows == (3, 5)
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301  # our own
    assert (again.rows, str(again)) == (caught.value.rows, str(caught.value))
    assert tokenizer.tokenize("low") == ["low</w>"]


# What a tokenizer of characters is made of.


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"model": bpe.CharacterLevel("</e>")}, "no token is the end of a word, '</e>'"),
        ({"special": ["<unk>", "</w>"]}, "no token is the end of a word|is a special token"),
        (
            {"model": bpe.CharacterLevel(unknown="[UNK]")},
            r"the unknown token '\[UNK\]' of the model is not",
        ),
        ({"model": bpe.CharacterLevel(unknown="low")}, "is a special token"),
        ({"model": "characters"}, "the model is 'characters': give ByteLevel"),
    ],
)
def test_what_does_not_fit_the_model_is_refused(changes: dict[str, Any], named: str) -> None:
    with pytest.raises(TokenizerError, match=named):
        low(**changes)


def test_there_are_tokens_and_they_are_strings() -> None:
    words = bpe.Pretokenizer("words")
    model = bpe.CharacterLevel(end_of_word="")
    for tokens, message in (
        ([b"a", b"\xc3"], r"token 1 is b'\\xc3', which is not UTF-8"),
        ([], "at least one token"),
    ):
        with pytest.raises(TokenizerError, match=message):
            bpe.Tokenizer(tokens=tokens, merges=[], pretokenizer=words, model=model)


def test_unreachable_tokens() -> None:
    assert low().unreachable() == []
    strings = [*STRINGS, "ow", "ow</w>", "it"]
    pairs = [("l", "o"), ("o", "w"), ("ow", "</w>"), ("lo", "w"), ("low", "</w>")]
    tokenizer = make(strings, pairs, special=["<unk>"], model=MODEL)
    assert [tokenizer.token_text(id_) for id_ in tokenizer.unreachable()] == ["it"]
    # "low" is merged from "l" and "ow" only, and "lo" always comes first.
    tokenizer = make(strings, [("l", "o"), ("o", "w"), ("l", "ow")], model=MODEL)
    assert "low" in [tokenizer.token_text(id_) for id_ in tokenizer.unreachable()]


def test_bytes_are_reached_also_where_words_end() -> None:
    model = bpe.CharacterLevel(byte_fallback=True)
    tokenizer = make(["</w>", *(f"<0x{byte:02X}>" for byte in range(256)), "ab"], model=model)
    assert tokenizer.unreachable() == [tokenizer.token_id(b"ab")]
