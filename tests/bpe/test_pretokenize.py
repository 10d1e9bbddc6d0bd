from __future__ import annotations

import pickle

import pytest

from bpe._native import scan
from bpe.errors import EncodingError, PretokenizerError
from bpe.pretokenizer import LOSSY, PRETOKENIZERS, Pretokenizer
from bpe.reference import pretokenize as reference
from tests.bpe.steps import assert_linear, counts_steps
from tests.shared_data import LONG

Ends = tuple[bytes, bytes]

# What a careless scanner or pattern takes quadratic time for.
HOSTILE = {
    "spaces": b" ",
    "spaces before a word": b" " * 1000 + b"a",
    "newlines": b"\n",
    "line ends": b"\r\n",
    "spaces and newlines": b" \n",
    "no-break spaces": "\xa0".encode(),
    "ideographic spaces": "\u3000".encode(),
    "line separators": "\u2028".encode(),
    "capital letters": b"A",
    "small letters": b"a",
    "title-case letters": "ǅ".encode(),
    "letters without case": "漢".encode(),
    "modifier letters": "ʰ".encode(),
    "marks": "\u0301".encode(),
    "a mark, capitals": "\u0301A".encode(),
    "capitals with one caseless letter": b"A" * 1000 + "漢".encode() + b"A" * 1000,
    "camel case": b"Aa",
    "digits": b"7",
    "digits of two bytes": "٣".encode(),
    "symbols": b"!",
    "slashes": b"/",
    "slashes and newlines": b"/\n",
    "symbols and newlines": b"!\n",
    "spaces and symbols": b" !",
    "apostrophes": b"'",
    "contractions": b"'s'll",
    "half contractions": b"'l",
    "long s": "'ſ".encode(),
    "NUL": b"\0",
    "continuation bytes": b"\x80",
    "first bytes of four": b"\xf0",
    "cut-off characters": b"\xf0\x9f\x99",
    "surrogates": b"\xed\xa0\x80",
    "bytes of no character": b"\xff",
}


def native(name: str, text: bytes) -> list[bytes]:
    return Pretokenizer(name).split(text)


ENDS = ("", "s", "B", " ") if LONG else ("",)  # after triples
# Where a class begins or ends in ASCII, and all kinds of bytes of sequences.
EDGES = {ord(c) for c in "\0\x1c '/9AZ[s\x80\xbf\xc3\xf0"}


@pytest.mark.parametrize(
    "character",
    [
        pytest.param(chr(c), id=f"{c:02x}", marks=() if c in EDGES else pytest.mark.long)
        for c in range(256)
    ],
)
def test_every_byte_at_every_place_of_a_block(character: str) -> None:
    for word in (b" word", b"Word", b" 1234", b"....", b"    ", b"\n \n\n"):
        line = (word * 24)[:96]
        places = [*range(20), *range(58, 68)] if LONG else [0, 1, 14, 15, 16, 62, 63, 64, 65]
        texts = [line[:i] + character.encode("latin-1") + line[i:] for i in places]
        for name in PRETOKENIZERS:
            for text in texts:
                assert native(name, text) == reference.split(name, text), name


def test_every_pretokenizer_is_its_pattern_on_all_triples_of_hard_characters() -> None:
    # One of each class, so that three in a row walk every path that backtracking takes.
    few = ["'", "s", "ſ", "B", "ǅ", "ʰ", "漢", "\u0301", "1", " ", "\xa0", "\n", "!", "/", "\udc80"]
    texts = [a + b + c + d for a in few for b in few for c in few for d in ENDS]
    texts = texts if LONG else texts[::4]
    for name in PRETOKENIZERS:
        for text in texts:
            data = text.encode("utf-8", "surrogateescape")
            assert native(name, data) == reference.split(name, data), (name, text)


def test_few_lose_anything() -> None:
    assert {name for name in PRETOKENIZERS if not Pretokenizer(name).lossless} == LOSSY
    assert Pretokenizer(pattern=r"\w+").lossless


@pytest.mark.parametrize(
    ("name", "text", "pieces"),
    [
        ("gpt2", "don't DON'T", ["don", "'t", " DON", "'", "T"]),
        ("gpt2", "a   b", ["a", "  ", " b"]),
        ("gpt2", "a\n\n", ["a", "\n\n"]),
        ("cl100k", "12345", ["123", "45"]),
        ("cl100k", "a\n  ", ["a", "\n  "]),  # \s++$ comes before \s*[\r\n]
        ("llama3", "a\n  ", ["a", "\n", "  "]),
        ("cl100k", "it'ſx", ["it", "'ſ", "x"]),
        ("gpt2", "it'ſx", ["it", "'", "ſx"]),
        ("cl100k", "\xa0a", ["\xa0a"]),
        ("qwen2", "x 12", ["x", " ", "1", "2"]),
        ("o200k", "don't", ["don't"]),
        ("o200k", "camelCaseHTTPServer", ["camel", "Case", "HTTPServer"]),
        ("o200k", "HTTP漢AB", ["HTTP漢", "AB"]),  # [upper]* gives AB back, then [lower]+ is 漢
        ("o200k", "\u0301AB", ["\u0301", "AB"]),  # the mark is a word, not the prefix of one
        ("o200k", "\u0301ab", ["\u0301ab"]),
        ("o200k", "!\u0301", ["!\u0301"]),
        ("o200k", "a!\n/\nb", ["a", "!\n/\n", "b"]),
        ("words", "  a \u2028 b\x1c ", ["a", "b\x1c"]),
        ("spaces", "  a\tb\xa0 c\n", ["a\tb\xa0", "c\n"]),
        ("none", " a b ", [" a b "]),
    ],
)
def test_cuts_worth_knowing(name: str, text: str, pieces: list[str]) -> None:
    assert Pretokenizer(name).split(text) == [piece.encode() for piece in pieces]
    assert reference.split(name, text.encode()) == [piece.encode() for piece in pieces]


@counts_steps
@pytest.mark.parametrize("unit", HOSTILE.values(), ids=HOSTILE.keys())
def test_anything_takes_linear_work(unit: bytes) -> None:
    for before, after in ((b"", b""), (b"\n", b"a"), (b"A", "漢".encode())):
        for name in PRETOKENIZERS:

            def work(size: int, name: str = name, ends: Ends = (before, after)) -> None:
                scan([name], ends[0] + unit * (size // len(unit)) + ends[1])

            assert_linear(work, 40_000)


# Patterns by value.


@pytest.mark.parametrize(
    ("pattern", "text", "pieces"),
    [
        (r"\d", "ab12c", ["ab", "1", "2", "c"]),
        (r"\S+", " a  b ", [" ", "a", "  ", "b", " "]),
        (r"x*", "axxb", ["a", "xx", "b"]),
        (r"(?=b)", "abab", ["abab"]),
        (r"nothing", "some text", ["some text"]),
        (r"\p{Lu}\p{Ll}*+", "ÉtéAutomne", ["Été", "Automne"]),
        (r"", "é", ["é"]),
    ],
)
def test_a_pattern_keeps_what_lies_between_its_matches(
    pattern: str, text: str, pieces: list[str]
) -> None:
    pretokenizer = Pretokenizer(pattern=pattern)
    assert pretokenizer.split(text) == [piece.encode() for piece in pieces]
    assert pretokenizer.split("") == []


def test_a_name_or_a_pattern() -> None:
    named, given_by_value = Pretokenizer("gpt2"), Pretokenizer(pattern=r"\S")
    assert named.is_native
    assert given_by_value.is_native
    assert not Pretokenizer(pattern=r"(?<=a)b").is_native
    assert Pretokenizer.of("gpt2", None) == named
    assert Pretokenizer.of("gpt2", r"\S") == given_by_value
    for one in (named, given_by_value):
        assert pickle.loads(pickle.dumps(one)) == one  # noqa: S301
        assert hash(one) == hash(Pretokenizer(one.name, one.pattern))


def test_clear_errors() -> None:
    with pytest.raises(
        PretokenizerError,
        match=r"unknown pre-tokenizer 'gpt3' \(did you mean 'gpt2'\?\); valid: gpt2, ",
    ):
        Pretokenizer("gpt3")
    with pytest.raises(PretokenizerError, match=r"the pattern '\(' does not compile: missing \)"):
        Pretokenizer(pattern="(")
    with pytest.raises(PretokenizerError, match="either a name or a pattern"):
        Pretokenizer()
    with pytest.raises(PretokenizerError, match="either a name or a pattern"):
        Pretokenizer("gpt2", r"\S")
    with pytest.raises(EncodingError, match=r"lone surrogate at character 2: '\\ud800'"):
        Pretokenizer("gpt2").split("ab\ud800")
