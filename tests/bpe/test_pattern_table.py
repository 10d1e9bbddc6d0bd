"""Patterns as tables, compared with the package `regex` on the same pattern and text."""

from __future__ import annotations

import pytest
import regex
from hypothesis import assume, example, given
from hypothesis import strategies as st

from bpe._native import PatternTable, scan
from bpe.pretokenizer import PATTERNS, Pretokenizer
from bpe.reference.pretokenize import split as reference_split
from bpe.regex.table import pattern_table
from tests.bpe.steps import assert_linear, counts_steps
from tests.bpe.texts import byte_strings, every_code_point
from tests.examples import examples
from tests.shared_data import LONG

# What tokenizers of today cut by, as their files have it.
PUBLISHED = {
    "deepseek": r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"
    r"|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "digits": r"\p{N}{1,3}",
    "kana": "[一-龥぀-ゟ゠-ヿ]+",
    "falcon": r"[0-9][0-9][0-9]",
    "tekken": r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "cl100k, possessive": r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
    r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
}

# Classes and letters of few kinds, so that texts of a few characters tell patterns apart.
ATOMS = [
    *("a", "b", "ab", r"\s", r"\S", r"\w", r"\W", r"\d", ".", r"\n", r"\.", r"\x61", r"\u0062"),
    *(r"\p{L}", r"\P{L}", r"\p{Lu}", r"[ab]", r"[^ab]", r"[^\s\p{L}]", r"[\]a-]", "[]a]", " "),
    *("(?i:a)", "(?i:s)", "(?i:[a-k])", "(?s:.)", "(?i-i:a)", "é", "漢"),
]
AHEAD = [r"(?!\S)", r"(?=a)", r"(?!a)", r"(?=\s)", "$", r"\Z", "(?!(?:b))"]
REPEATS = ["", "", "*", "+", "?", "{2}", "{1,3}", "{,2}", "{2,}"]


@st.composite
def patterns(draw: st.DrawFn, depth: int = 2) -> str:
    """Patterns of the kinds that a table can say, most of them."""
    if depth and draw(st.booleans()):
        inside = "|".join(draw(st.lists(patterns(depth - 1), min_size=1, max_size=3)))
        opened = draw(st.sampled_from(["(?:", "(", "(?P<n>", "(?i:", "(?s:"]))
        opened = opened.replace("<n>", f"<n{draw(st.integers(0, 10**9))}>")
        node = f"{opened}{inside}){draw(st.sampled_from(REPEATS))}"
        lazy = draw(st.sampled_from(["", "", "?"]))
        return node + (lazy if node[-1] != ")" else "")
    parts = []
    for _ in range(draw(st.integers(1, 3))):
        repeat = draw(st.sampled_from(REPEATS))
        how = draw(st.sampled_from(["", "", "?", "+"])) if repeat else ""
        parts.append(draw(st.sampled_from(ATOMS)) + repeat + how)
    if draw(st.booleans()):
        parts.append(draw(st.sampled_from(AHEAD)))
    return "".join(parts)


def searched() -> st.SearchStrategy[str]:
    """Such patterns, of which some look at the character before a match."""
    behind = st.sampled_from(["", "", "(?<!a)", r"(?<!\S)", "(?<!(?i:[s漢]))"])
    return st.builds("{}{}".format, behind, patterns())


TEXTS = st.lists(
    st.sampled_from(["a", "b", "aa", "A", "s", "ſ", " ", "\n", "\r\n", ".", "1", "é", "漢", "😀"]),
    max_size=12,
).map("".join)


@given(pattern=searched(), texts=st.lists(TEXTS, min_size=1, max_size=5))
@examples(400)
@example(pattern=r"\s++$", texts=["  \n", " \n\n", "\n", "a \n"])
@example(pattern=r"a{1,2}+a", texts=["aaa", "aa"])
@example(pattern=r"a+?b|a", texts=["aab", "aac"])
@example(pattern=r"(?:a|ab)(?:c|bcd)?", texts=["abcd"])
@example(pattern=r"(?<!a)[ab]+é", texts=["aaé", "abéabé", "aéé"])
@example(pattern=r"[ab]+\.a|é漢", texts=["aaa.b.a", "ab é漢.a", "a.aé漢"])
def test_a_table_matches_as_regex_does(pattern: str, texts: list[str]) -> None:
    try:
        regex.compile(pattern)
    except regex.error:
        assume(False)
    table = pattern_table(pattern)
    assume(table is not None)
    for text in texts:
        assert pieces(table, text.encode()) == reference_split(
            Pretokenizer(pattern=pattern), text.encode()
        )


def pieces(table: PatternTable | None, text: bytes) -> list[bytes]:
    assert table is not None
    spans = memoryview(scan([table], text)).cast("q").tolist()
    found = [text[begin:end] for begin, end in zip(spans[::2], spans[1::2], strict=True)]
    assert b"".join(found) == text
    return found


KNOWN = {**PATTERNS, **PUBLISHED}


@pytest.mark.parametrize("name", KNOWN)
@given(text=byte_strings())
@examples(30)
def test_published_patterns_are_tables(name: str, text: bytes) -> None:
    pattern = KNOWN[name]
    assert pieces(pattern_table(pattern), text) == reference_split(
        Pretokenizer(pattern=pattern), text
    )


@pytest.mark.parametrize("name", KNOWN if LONG else ("o200k", "deepseek"))
def test_every_code_point(name: str) -> None:
    pattern = KNOWN[name]
    for text in every_code_point():
        data = text.encode()
        assert pieces(pattern_table(pattern), data) == reference_split(
            Pretokenizer(pattern=pattern), data
        )


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
    assert not Pretokenizer(pattern=pattern).is_native
    assert Pretokenizer(pattern=pattern).split(text) == reference_split(
        Pretokenizer(pattern=pattern), text
    )


def test_a_long_text_takes_one_step_a_character() -> None:
    table = pattern_table(r"\s+(?!\S)|\s+|\S+")
    for text in (b" " * 1_000_000, b"a" * 1_000_000, b" \n" * 500_000):
        assert len(pieces(table, text)) == 1


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
