from __future__ import annotations

import unicodedata

import pyarrow as pa
import pytest
import unicodedata2

import bpe
from bpe.errors import PretokenizerError
from bpe.normalizer import normalize_column
from tests.bpe.texts import code_points, library_sources

FORMS = ("nfc", "nfd", "nfkc", "nfkd")


def column_of(values: list[str], steps: tuple[str, ...]) -> list[str]:
    column = normalize_column(pa.array(values, pa.large_string()), steps)
    found: list[str] = column.cast(pa.large_string()).to_pylist()
    return found


def test_every_code_point_has_python_s_lowercase_letter() -> None:
    # Its Unicode may be older.
    points = (chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000)
    known = [char for char in points if unicodedata.category(char) != "Cn"]
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


def test_steps_that_are_wrong() -> None:
    with pytest.raises(PretokenizerError, match="unknown normalizer 'NFC'; valid: nfc, nfd, nfkc"):
        bpe.Pretokenizer("gpt2", normalizer=("NFC",))
    with pytest.raises(PretokenizerError, match=r"one str, 'nfc': give a list, \['nfc'\]"):
        bpe.count_pretokens(["a"], normalizer="nfc")
