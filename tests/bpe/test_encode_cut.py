"""Steps before merging: special tokens, normalizer, patterns that are never split."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
import unicodedata2

import bpe
from bpe.errors import UnknownCharacterError
from tests.bpe.models import make
from tests.bpe.vocabularies import small_tokenizer

WIDE = "".join(chr(ord(char) + 0xFEE0) for char in "<|end|>")


def test_a_text_cannot_forge_a_special_token_by_its_normal_form() -> None:
    cut = bpe.Pretokenizer("gpt2", normalizer=("nfkc",))
    tokenizer = bpe.Tokenizer(replace(small_tokenizer().parts, pretokenizer=cut))
    assert unicodedata2.normalize("NFKC", WIDE) == "<|end|>"
    end = tokenizer.special_tokens["<|end|>"]
    assert end not in tokenizer.encode(WIDE, allowed_special="all")
    assert tokenizer.decode(tokenizer.encode(WIDE, allowed_special="all")) == "<|end|>"
    assert tokenizer.encode(f"{WIDE}<|end|>", allowed_special="all")[-1] == end
    assert not tokenizer.lossless


# Never split.

STRINGS = ["<unk>", "</w>", *"htp:/a.bse", "ht", "http://a.b</w>", "se", "se</w>"]
PAIRS = [("h", "t"), ("s", "e"), ("se", "</w>")]
CUT = bpe.Pretokenizer("words", never_split=("url",))


def test_what_is_never_split_is_one_token_or_unknown() -> None:
    model = bpe.CharacterLevel(unknown="<unk>")
    tokenizer = make(STRINGS, PAIRS, special=["<unk>"], model=model, pretokenizer=CUT)
    assert tokenizer.decode(tokenizer.encode("se http://a.b se")) == "se http://a.b se"
    assert [symbols for symbols, _ in tokenizer.explain("http://a.b")][1:] == [(b"http://a.b</w>",)]
    assert [symbols for symbols, _ in tokenizer.explain("http://a.be")][1:] == [(b"<unk>",)]
    assert tokenizer.unreachable() == []


def test_what_is_never_split_is_an_error_without_an_unknown_token() -> None:
    tokenizer = make(STRINGS, PAIRS, model=bpe.CharacterLevel(), pretokenizer=CUT)
    assert tokenizer.tokenize("http://a.b") == ["http://a.b</w>"]
    with pytest.raises(
        UnknownCharacterError, match=r"^row 1: 'http://a\.be', which is never split, has no token"
    ) as caught:
        tokenizer.encode_arrow(pa.array(["se", "se http://a.be", "se"]))
    assert caught.value.rows == (1,)
