"""Patterns as tables, compared with the package `regex` on the same pattern and text."""

from __future__ import annotations

import pytest

from bpe._native import scan
from bpe.pretokenizer import PATTERNS, Pretokenizer
from bpe.reference.pretokenize import split as reference_split
from bpe.regex.table import pattern_table
from tests.bpe.fuzz_tokenizers import PUBLISHED
from tests.bpe.steps import assert_linear, counts_steps
from tests.bpe.texts import every_code_point
from tests.shared_data import LONG


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        *((r"\s++$", text) for text in ("  \n", " \n\n", "\n", "a \n")),
        *((r"a{1,2}+a", text) for text in ("aaa", "aa")),
        (r"(?:a|ab)(?:c|bcd)?", "abcd"),
    ],
)
def test_a_table_matches_as_regex_does(pattern: str, text: str) -> None:
    cut = Pretokenizer(pattern=pattern)
    assert cut.is_native
    assert cut.split(text) == reference_split(cut, text.encode())


KNOWN = {**PATTERNS, **PUBLISHED}


@pytest.mark.parametrize("name", KNOWN)
def test_published_patterns_are_tables(name: str) -> None:
    cut = Pretokenizer(pattern=KNOWN[name])
    assert cut.is_native
    for text in every_code_point() if LONG or name in ("o200k", "deepseek") else ():
        assert cut.split(text) == reference_split(cut, text.encode())


@pytest.mark.parametrize(
    "pattern",
    [
        *(r"(?<!ab)c", r"(?<!a)b|c", r"a(?<!b)c", r"(?:(?<!a)b)"),
        *(r"(?<=a)b", r"\ba", r"^a", r"\Aa", r"(a)\1", r"(?>ab?)b", r"a(?=bc)b"),
        *(r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))", r"(?:a*)*b", r"(?:a|b)++", r"\X", r"a\Kb"),
        *(r"a*", r"", r"a|", r"(?!a)", r"$", r"(?x) a b", r"(?V1)[[ab]--[b]]", r"(?:ab){e<=1}"),
        *(r"(?:(?:(?:a{30}){30}b){30})", r"[[:alpha:]]a", r"(?#note)a", r"\L<x>a"),
        r"\((?:[^()]|(?R))*\)",
        "(" * 150 + "a" + ")" * 150,
        "|".join(f"[{chr(0x4E00 + i)}{chr(0x4F00 + i)}]" for i in range(200)),
    ],
)
def test_what_no_table_can_say_runs_in_regex(pattern: str) -> None:
    assert pattern_table(pattern) is None
    if pattern == r"\L<x>a":
        return  # regex itself needs the list
    text = b"ab ba aab b aaab 1234567 a\nab"
    cut = Pretokenizer(pattern=pattern)
    assert not cut.is_native
    assert cut.split(text) == reference_split(cut, text)


def test_a_long_text_takes_one_step_a_character() -> None:
    cut = Pretokenizer(pattern=r"\s+(?!\S)|\s+|\S+")
    for text in (b" " * 1_000_000, b"a" * 1_000_000, b" \n" * 500_000):
        assert cut.split(text) == [text]


SEARCHED = [
    (r"[\w.]+@[\w.]+\.com", b"a" * 1000 + b"@b.org "),
    (r"[^@]+@x", b"ab " * 300 + b"@y"),
    (r"a[^x]*x", b"a" * 1000),
    (r"(?<!a)[ab]+c", b"ab" * 500),
]


@counts_steps
@pytest.mark.parametrize(("pattern", "unit"), SEARCHED)
def test_a_search_in_vain_takes_linear_work(pattern: str, unit: bytes) -> None:
    table = pattern_table(pattern)
    assert table is not None

    def work(size: int) -> None:
        scan([table], unit[:1] * (size // 2) + unit * (size // 2 // len(unit)))

    assert_linear(work, 40_000)
