"""What is done to a text before it is merged: special tokens, normalizer, patterns never split."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
import unicodedata2

import bpe
from bpe.errors import UnknownCharacterError
from tests.bpe.models import make
from tests.bpe.oracle import ByReference
from tests.bpe.vocabularies import ranked_tokens, small_tokenizer

WIDE = "".join(chr(ord(char) + 0xFEE0) for char in "<|end|>")


def prepared(**changes: Any) -> bpe.Tokenizer:
    """The small tokenizer with another way to cut."""
    plain = small_tokenizer()
    return bpe.Tokenizer(
        tokens=plain.tokens,
        merges=plain.merges,
        pretokenizer=bpe.Pretokenizer(**{"name": "gpt2", **changes}),
        special_tokens=plain.special_tokens,
    )


def test_a_text_cannot_forge_a_special_token_by_its_normal_form() -> None:
    tokenizer = prepared(normalizer=("nfkc",))
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
    assert tokenizer.tokenize("se http://a.b") == ["se</w>", "http://a.b</w>"]
    assert tokenizer.tokenize("http://a.be se") == ["<unk>", "se</w>"]
    assert tokenizer.decode(tokenizer.encode("se http://a.b se")) == "se http://a.b se"
    assert tokenizer.tokenize("http://a.b", dropout=1) == ["http://a.b</w>"]
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


def test_word_pieces_never_split() -> None:
    strings = ["[UNK]", "http://a.b", *"htp:/a.bse", *(f"##{char}" for char in "htp:/a.bse")]
    tokenizer = make(strings, special=["[UNK]"], model=bpe.WordPiece(), pretokenizer=CUT)
    assert tokenizer.tokenize("se http://a.b") == ["s", "##e", "http://a.b"]
    assert tokenizer.tokenize("se http://a.be") == ["s", "##e", "[UNK]"]
    assert tokenizer.explain("http://a.be")[-1] == ((b"[UNK]",), None)


def test_bytes_never_split_are_a_token_or_merged() -> None:
    tokens = [*ranked_tokens(0), b"th", b"http://a.b"]
    ids = {token: id_ for id_, token in enumerate(tokens)}
    tokenizer = bpe.Tokenizer(
        tokens=tokens,
        merges=[(ids[b"t"], ids[b"h"], ids[b"th"])],
        pretokenizer=bpe.Pretokenizer("gpt2", never_split=("url",)),
    )
    assert tokenizer.tokenize("th http://a.b") == ["th", "Ġ", "http://a.b"]
    assert tokenizer.tokenize("http://th") == [*"http://", "th"]
    assert tokenizer.unreachable() == []
    assert tokenizer.lossless


def test_a_piece_that_is_whole_only_by_itself_is_whole() -> None:
    # Behind the first address stands "+", which may belong to an address but begins none here;
    # cut there, the rest is an address by itself.
    tokenizer = prepared(name="words", never_split=("email",))
    text = b"mail a@b.cc+d@e.ff now"
    pretokens = tokenizer.pretokenizer.split(text)
    wholes = [pretoken for pretoken in pretokens if tokenizer.pretokenizer.is_never_split(pretoken)]
    assert wholes == [b"a@b.cc", b"+d@e.ff"]
    assert tokenizer.encode(text) == ByReference(tokenizer).ids(text)
    strings = ["<unk>", "</w>", "a@b.cc</w>", *"+d@e.f"]
    characters = make(
        strings,
        special=["<unk>"],
        model=bpe.CharacterLevel(unknown="<unk>"),
        pretokenizer=tokenizer.pretokenizer,
    )
    assert characters.tokenize("a@b.cc+d@e.ff") == ["a@b.cc</w>", "<unk>"]
    assert characters.tokenize("a@b.cc+d@e.f+") == ["a@b.cc</w>", *"+d@e.f+", "</w>"]
