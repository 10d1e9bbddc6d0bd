from __future__ import annotations

import functools
import unicodedata
from typing import Any

import pyarrow as pa
import pytest
import unicodedata2
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import normalizers

import bpe
from bpe.errors import PretokenizerError
from bpe.normalizer import normalize, normalize_column
from tests.bpe.texts import CHARACTERS, code_points, library_sources
from tests.examples import examples

FORMS = ("nfc", "nfd", "nfkc", "nfkd")
CODE_POINTS = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]

# What normalizers change: composed and decomposed, compatible, reordered, cased, of every length.
HARD = [
    *("é", "e\u0301", "ﬁ", "Å", "\N{ANGSTROM SIGN}", "한", "\u1112\u1161\u11ab", "\u0958", "①"),
    *("a\u0315\u0300\u05ae\u0300", "\u0f71\u0f72", "\u1e9b\u0323", "ＡＢ", "…", "\ufdfa", "½"),
    *("A", "ÀÉ", "Ⱥ", "İ", "Σ", "ς", "ΟΣ", "ẞ", "ǅ", "Ა", "Ꭰ", "𐐀", "\N{KELVIN SIGN}", "\u0345"),
]


@functools.cache
def known_to_python() -> set[str]:
    """The characters whose lowercase letters this Python knows: its Unicode may be older."""
    return {c for c in CODE_POINTS if unicodedata.category(c) != "Cn"}


def column_of(values: list[str], steps: tuple[str, ...]) -> list[str]:
    column = normalize_column(pa.array(values, pa.large_string()), steps)
    found: list[str] = column.cast(pa.large_string()).to_pylist()
    return found


def test_every_code_point_has_python_s_lowercase_letter() -> None:
    known = sorted(known_to_python())
    assert column_of(known, ("lowercase",)) == [char.lower() for char in known]


@pytest.mark.parametrize("form", FORMS)
def test_every_code_point_has_its_form(form: str) -> None:
    contexts = [
        c for point in code_points() for c in (point, f"q\u0301{point}", f"{point}\u0323\u0334")
    ]
    expected = [unicodedata2.normalize(form.upper(), text) for text in contexts]
    assert column_of(contexts, (form,)) == expected


@pytest.mark.parametrize("step", [*FORMS, "strip-accents", "strip-nonspacing"])
def test_a_column_that_is_normalized_is_the_same_array(step: str) -> None:
    sources = pa.array([source for source in library_sources(100_000) if source.isascii()])
    assert normalize_column(sources, (step, "nfc")) is sources
    done = normalize_column(pa.array(["é 日本語 ﬁ한 Ωß"] * 3), (step,))
    if step not in ("strip-accents", "strip-nonspacing"):
        assert done.to_pylist() == normalize_column(done, (step,)).to_pylist()
    composed = pa.array(["é 日本語 Съешь ещё ß"])
    assert normalize_column(composed, ("nfc",)) is composed


def test_only_the_texts_that_change_are_touched() -> None:
    texts = ["one", "e\u0301", "two", "", "ﬁ\u0301", "three" * 10]
    assert column_of(texts, ("nfc",)) == ["one", "é", "two", "", "ﬁ\u0301", "three" * 10]
    assert column_of([], ("nfc", "lowercase", "strip-accents")) == []


def test_steps_that_are_wrong() -> None:
    with pytest.raises(PretokenizerError, match="unknown normalizer 'NFC'; valid: nfc, nfd, nfkc"):
        bpe.Pretokenizer("gpt2", normalizer=("NFC",))
    with pytest.raises(PretokenizerError, match=r"one str, 'nfc': give a list, \['nfc'\]"):
        bpe.count_pretokens(["a"], normalizer="nfc")


# Hugging Face's normalizers.


def bert(**flags: bool) -> normalizers.BertNormalizer:
    """With only these flags on."""
    off = ("clean_text", "handle_chinese_chars", "strip_accents", "lowercase")
    return normalizers.BertNormalizer(**{**dict.fromkeys(off, False), **flags})


THEIRS: dict[tuple[str, ...], Any] = {
    ("nfc",): normalizers.NFC(),
    ("nfd",): normalizers.NFD(),
    ("nfkc",): normalizers.NFKC(),
    ("nfkd",): normalizers.NFKD(),
    ("lowercase",): normalizers.Lowercase(),
    ("strip-accents",): normalizers.StripAccents(),
    ("clean-text",): bert(clean_text=True),
    ("space-han",): bert(handle_chinese_chars=True),
    ("nfd", "strip-nonspacing"): bert(strip_accents=True),
    ("nfd", "strip-accents", "lowercase"): normalizers.Sequence(
        [normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase()]
    ),
    ("lowercase", "nfkc"): normalizers.Sequence([normalizers.Lowercase(), normalizers.NFKC()]),
}


@functools.cache
def differences() -> frozenset[str]:
    """The `code_points` that ``tokenizers`` 0.23 treats in another way than Unicode 16.0 does.

    Its crates are of several versions: the forms and marks of Unicode 9, so that a mark assigned
    since is no mark and has no combining class there; BERT's marks and control characters of
    Unicode 8; lowercase letters of Unicode 17.
    """
    composed = {c for c in CODE_POINTS if unicodedata2.decomposition(c)}
    points = sorted({*code_points(), *"".join(HARD + CHARACTERS), *composed})
    doubtful = [c for c in points if unicodedata2.category(c)[0] != "L" or ord(c) > 0x2FF]
    found: set[str] = set()
    for steps, theirs in list(THEIRS.items())[:9]:
        for ours, c in zip(column_of(doubtful, steps), doubtful, strict=True):
            if theirs.normalize_str(c) != ours:
                found.add(c)
    # Among others, a mark tells its combining class: below, above and between those of most.
    marks = [c for c in CODE_POINTS if unicodedata2.combining(c)]
    for c in marks:
        text = f"{c}\u0345\u0334{c}\u0315\u0301{c}\u0323{c}"
        if normalizers.NFD().normalize_str(text) != unicodedata2.normalize("NFD", text):
            found.add(c)
    # What a doubtful one is made of is composed to it here, and not there.
    parts = {part for c in found for part in unicodedata2.normalize("NFD", c)}
    return frozenset(found | {part for part in parts if ord(part) > 0x2FFF})


@given(data=st.data())
@examples(200)
def test_texts_are_normalized_as_by_huggingface(data: st.DataObject) -> None:
    anything = st.sampled_from([c for c in code_points() if c not in differences()])
    hard = st.sampled_from([*HARD, *(c for c in CHARACTERS if not set(c) & differences())])
    text = "".join(data.draw(st.lists(hard | anything, max_size=20)))
    for steps, theirs in THEIRS.items():
        assert normalize(text.encode(), steps).decode() == theirs.normalize_str(text), steps


def test_few_characters_differ_from_huggingface() -> None:
    assert len(differences()) < 2_000
    assert all(ord(c) > 0x2FF for c in differences())
