from __future__ import annotations

import pickle

import pytest

from bpe._native import scan
from bpe.errors import EncodingError, PretokenizerError
from bpe.pretokenizer import LOSSY, PRETOKENIZERS, Pretokenizer
from bpe.reference import pretokenize as reference
from tests.bpe.steps import assert_linear, counts_steps
from tests.bpe.texts import CHARACTERS, MALFORMED
from tests.shared_data import LONG

Ends = tuple[bytes, bytes]

# What a careless scanner or pattern takes quadratic time for, beside single characters.
MIXED = [
    *(" " * 1000 + "a", " \n", "\u0301A", "A" * 1000 + "漢" + "A" * 1000, "Aa", "/\n", "!\n", " !"),
    *("'s'll", "'l"),
]
HOSTILE = [*MALFORMED, *(character.encode() for character in [*CHARACTERS, *MIXED])]
ENDS = ("", "s", "B", " ") if LONG else ("",)  # after triples


def test_every_pretokenizer_is_its_pattern_on_all_triples_of_hard_characters() -> None:
    # One of each class, so that three in a row walk every path that backtracking takes.
    few = ["'", "s", "ſ", "B", "ǅ", "ʰ", "漢", "\u0301", "1", " ", "\xa0", "\n", "!", "/", "\udc80"]
    texts = [a + b + c + d for a in few for b in few for c in few for d in ENDS]
    texts = texts if LONG else texts[::4]
    for name in PRETOKENIZERS:
        for text in texts:
            data = text.encode("utf-8", "surrogateescape")
            assert Pretokenizer(name).split(data) == reference.split(name, data), (name, text)


def test_few_lose_anything() -> None:
    assert {name for name in PRETOKENIZERS if not Pretokenizer(name).lossless} == LOSSY
    assert Pretokenizer(pattern=r"\w+").lossless


@counts_steps
@pytest.mark.parametrize("unit", HOSTILE, ids=lambda unit: ascii(unit[:20]))
def test_anything_takes_linear_work(unit: bytes) -> None:
    for before, after in ((b"", b""), (b"\n", b"a"), (b"A", "漢".encode())):
        for name in PRETOKENIZERS:

            def work(size: int, name: str = name, ends: Ends = (before, after)) -> None:
                scan([name], ends[0] + unit * (size // len(unit)) + ends[1])

            assert_linear(work, 40_000)


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
        Pretokenizer("gpt2", r"\S")
    with pytest.raises(EncodingError, match=r"lone surrogate at character 2: '\\ud800'"):
        Pretokenizer("gpt2").split("ab\ud800")
