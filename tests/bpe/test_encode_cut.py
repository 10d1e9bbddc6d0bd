"""What is done to a text before it is merged: special tokens, normalizer, patterns never split."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
import unicodedata2
from hypothesis import given
from hypothesis import strategies as st

import bpe
from bpe.errors import UnknownCharacterError
from bpe.reference.encode import encode as reference_encode
from bpe.special_tokens import SpecialCutter
from tests.bpe.models import make
from tests.bpe.texts import byte_strings
from tests.bpe.vocabularies import SPECIAL, ranked_tokens, small_tokenizer
from tests.examples import examples

NORMALIZERS = [("nfc",), ("nfkc", "lowercase"), ("nfd", "strip-accents"), ("lowercase", "nfc")]
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


def by_definition(tokenizer: bpe.Tokenizer, text: bytes, special: list[str]) -> list[int]:
    """Cut at special tokens, then normalize, then cut, then merge."""
    of, cut = tokenizer.token_bytes, tokenizer.pretokenizer
    own = set(tokenizer.special_tokens.values())
    ids: list[int] = []
    for begin, end, which in SpecialCutter([token.encode() for token in special]).cut(text):
        if which is not None:
            ids.append(tokenizer.special_tokens[special[which]])
            continue
        pretokens = cut.split(text[begin:end])
        ids += reference_encode(
            pretokens,
            ids={
                token: id_ for id_, token in enumerate(tokenizer.tokens) if token and id_ not in own
            },
            ranks={(of(a), of(b)): rank for rank, (a, b, _) in enumerate(tokenizer.merges)},
            whole={pretoken for pretoken in pretokens if cut.is_never_split(pretoken)},
        )
    return ids


pieces = st.sampled_from([*SPECIAL, WIDE, "a", " É", "e\u0301", "ﬁ", "Ω", " ", "http://a.b/c", "1"])
mixed = st.lists(pieces, max_size=12).map("".join).map(str.encode) | byte_strings()


@pytest.mark.parametrize("normalizer", NORMALIZERS)
@pytest.mark.parametrize("never_split", [(), ("url", r"\d+")])
@given(text=mixed, special=st.sampled_from([[], SPECIAL, SPECIAL[1:2]]))
@examples(40)
def test_cut_then_normalized_then_cut(
    normalizer: tuple[str, ...], never_split: tuple[str, ...], text: bytes, special: list[str]
) -> None:
    tokenizer = prepared(normalizer=normalizer, never_split=never_split)
    expected = by_definition(tokenizer, text, special)
    assert tokenizer.encode(text, allowed_special=special) == expected
    column = pa.array([text, b"", None, text], pa.binary())
    rows = tokenizer.encode_arrow(column, allowed_special=special).to_pylist()
    assert rows == [expected, [], None, expected]


@pytest.mark.parametrize("last", ["gpt2", r"\s+$|\S+|\s", r"(?<=a)\d"])
@given(text=mixed, special=st.sampled_from([[], SPECIAL]))
@examples(40)
def test_several_patterns(last: str, text: bytes, special: list[str]) -> None:
    tokenizer = prepared(name=None, pattern=(r"\d", "words", last))
    expected = by_definition(tokenizer, text, special)
    assert tokenizer.encode(text, allowed_special=special) == expected
    column = pa.array([text, b"", None, text], pa.binary())
    rows = tokenizer.encode_arrow(column, allowed_special=special).to_pylist()
    assert rows == [expected, [], None, expected]


@given(text=mixed)
@examples(60)
def test_normalized_text_encodes_as_if_it_had_been_given(text: bytes) -> None:
    tokenizer = prepared(normalizer=("nfkc", "lowercase"))
    assert tokenizer.encode(text) == small_tokenizer().encode(
        tokenizer.pretokenizer.normalize(text)
    )


def test_a_text_cannot_forge_a_special_token_by_its_normal_form() -> None:
    tokenizer = prepared(normalizer=("nfkc",))
    assert unicodedata2.normalize("NFKC", WIDE) == "<|end|>"
    end = tokenizer.special_tokens["<|end|>"]
    assert end not in tokenizer.encode(WIDE, allowed_special="all")
    assert tokenizer.decode(tokenizer.encode(WIDE, allowed_special="all")) == "<|end|>"
    assert tokenizer.encode(f"{WIDE}<|end|>", allowed_special="all")[-1] == end
    assert not tokenizer.lossless


def test_dropout_of_normalized_text_is_that_of_its_normal_form() -> None:
    tokenizer = prepared(normalizer=("lowercase",))
    ids = tokenizer.encode("The OTHER thing", dropout=0.3, seed=9)
    assert ids == small_tokenizer().encode("the other thing", dropout=0.3, seed=9)


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


TRICKY = [
    ("ab|abc",),
    ("a|ab", "abc?"),
    (r"(?<!a)b+", "ca"),
    (r"[ab]+c?(?!a)", "c"),
    (r"\babc", "b"),  # which runs in `regex`
    ("(?!ab)[a-c]+",),
]


@pytest.mark.parametrize("patterns", TRICKY)
@given(text=st.text("abc ", max_size=20), dropout=st.sampled_from([0.0, 0.0, 0.5]))
@examples(60)
def test_a_pretoken_is_whole_where_a_pattern_matches_all_of_it(
    patterns: tuple[str, ...], text: str, dropout: float
) -> None:
    characters = bpe.CharacterLevel(unknown="<unk>")
    for strings, model, special in (
        (["<unk>", *"abc", "</w>", "ab</w>", "ca</w>", "bc"], characters, ["<unk>"]),
        (["[UNK]", *"abc", "##a", "##b", "##c", "ab", "bc"], bpe.WordPiece(), ["[UNK]"]),
    ):
        cut = bpe.Pretokenizer("words", never_split=patterns)
        pairs = [("b", "c")] if isinstance(model, bpe.CharacterLevel) else []
        tokenizer = make(strings, pairs, special=special, model=model, pretokenizer=cut)
        rate = dropout if isinstance(model, bpe.CharacterLevel) else 0.0
        pretokens = cut.split(text)
        whole = {pretoken for pretoken in pretokens if cut.is_never_split(pretoken)}
        expected = reference_encode(
            pretokens,
            ids={token: id_ for id_, token in enumerate(tokenizer.tokens) if token},
            ranks={(b"b", b"c"): 0} if pairs else {},
            model=model,
            whole=whole,
            dropout=rate,
            seed=3,
        )
        assert tokenizer.encode(text, dropout=rate, seed=3) == expected


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
    assert tokenizer.encode(text) == by_definition(tokenizer, text, [])
    strings = ["<unk>", "</w>", "a@b.cc</w>", *"+d@e.f"]
    characters = make(
        strings,
        special=["<unk>"],
        model=bpe.CharacterLevel(unknown="<unk>"),
        pretokenizer=tokenizer.pretokenizer,
    )
    assert characters.tokenize("a@b.cc+d@e.ff") == ["a@b.cc</w>", "<unk>"]
    assert characters.tokenize("a@b.cc+d@e.f+") == ["a@b.cc</w>", *"+d@e.f+", "</w>"]
