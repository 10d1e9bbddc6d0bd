"""Added tokens with lstrip, rstrip, single_word and normalized, compared with ``tokenizers``."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pyarrow as pa
import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import normalizers

import bpe
from bpe.errors import TokenizerError, TokenizerFileError, TrainingError
from bpe.segments import TextCutter
from bpe.special_tokens import TokenFlags
from tests.bpe.huggingface import edited, ids_of, loaded, written
from tests.bpe.oracle import cut_at_tokens
from tests.bpe.steps import assert_linear, counts_steps
from tests.bpe.texts import MALFORMED, code_points, strings
from tests.bpe.vocabularies import byte_tokenizer
from tests.examples import examples

CONTENTS = ["<m>", "<mask>", "a", "the", "é", "\n", "  ", "<s>", ">a", "x y", "漢", "_", "the the"]
ATOMS = [
    *CONTENTS,
    *(" ", "  ", "\t", "\r\n", "\u00a0", "\u2028", "\u3000", "\x1c", "\x85", "b", "1", "½", "Ⅷ"),
    *("\u0301", "\u200d", "Ⓐ", "_", "-", "<", ">", "m", "²", "🙂"),
]
TEXTS = st.lists(st.sampled_from(ATOMS), max_size=20).map("".join) | strings()


@st.composite
def flagged(draw: st.DrawFn, contents: list[str]) -> dict[str, TokenFlags]:
    """Tokens; theirs panics where lstrip reaches into whitespace that a token begins with."""
    tokens = {}
    for content in draw(st.lists(st.sampled_from(contents), min_size=1, max_size=5, unique=True)):
        flags = {name: draw(st.booleans()) for name in asdict(TokenFlags())}
        if content[0].isspace():
            flags["lstrip"] = False
        tokens[content] = TokenFlags(**flags)
    return tokens


@given(flagged(CONTENTS), TEXTS, st.sampled_from([b"", *MALFORMED]))
@examples(300)
def test_the_cutter_is_its_readable_twin(
    tokens: dict[str, TokenFlags], text: str, malformed: bytes
) -> None:
    data = text.encode() + malformed + text[::-1].encode()
    numbers = {content.encode(): i for i, content in enumerate(tokens)}
    cutter = TextCutter(bpe.Pretokenizer("none"), flags=tokens)
    segments = cutter.segments(pa.array([data]), numbers)
    parts = [
        (part, None if number < 0 else list(tokens)[number])
        for part, number in zip(segments.data.to_pylist(), segments.what.tolist(), strict=True)
    ]
    assert parts == cut_at_tokens(data, list(tokens), flags=tokens)


PLAIN = byte_tokenizer(
    *("th", "the", " the", "  ", "<m"), joins=["t|h", "th|e", " |the", " | ", "<|m"]
)


def theirs(
    tokens: dict[str, TokenFlags], *, special: bool, normalizer: Any = None
) -> tokenizers.Tokenizer:
    """A byte-level tokenizer with a few merges."""
    made = written(PLAIN)
    made.normalizer = normalizer
    for content, flags in tokens.items():
        added = tokenizers.AddedToken(content, **asdict(flags))
        (made.add_special_tokens if special else made.add_tokens)([added])
    return made


PREPARED = {
    "not": None,
    "nfc": normalizers.NFC(),
    "marks": normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]),
    "lower": normalizers.Lowercase(),
    "accents": normalizers.Sequence(
        [normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase()]
    ),
    "bert": normalizers.BertNormalizer(lowercase=True),
}
# Bytes and results of merges are no added tokens here; some are the same in normalized text.
ADDED = ["<m>", "<M>", "The", "x y", "É1", "e\u0301", "漢", "Å<", "ﬁ", "<mask>", " É", "<s>", ">a"]
ADDED += ["the the"]
NEAR = [*ADDED, *ATOMS, "THE", "the", "fi", "å", "X  Y", "é1", "É", "\u0327", "▁"]


@pytest.mark.parametrize("name", PREPARED)
@given(
    tokens=flagged(ADDED),
    text=st.lists(st.sampled_from(NEAR), max_size=16).map("".join),
    special=st.booleans(),
)
@examples(200)
def test_ids_are_theirs(name: str, tokens: dict[str, TokenFlags], text: str, special: bool) -> None:
    made = theirs(tokens, special=special, normalizer=PREPARED[name])
    try:
        ours = loaded(made)
    except TokenizerFileError as error:
        assert "in normalized text, as another one is" in str(error)  # noqa: PT017
        return
    expected = ids_of(made, text)
    assert ours.encode(text, allowed_special="all") == expected
    column = ours.encode_arrow(pa.array([text, text]), allowed_special="all")
    assert column.to_pylist() == [expected, expected]
    again = written(ours)
    assert ids_of(again, text) == expected
    assert json.loads(again.to_str())["added_tokens"] == json.loads(made.to_str())["added_tokens"]
    assert loaded(again) == ours


def test_single_word_that_the_model_makes_too_is_refused() -> None:
    made = theirs({"<m": TokenFlags(single_word=True)}, special=False)
    with pytest.raises(TokenizerFileError, match="single_word is not supported of '<m'"):
        loaded(edited(made.to_str(), "model.ignore_merges", True))


def test_words_are_those_of_unicode_16() -> None:
    points = [c for c in code_points() if c not in "<m>"]
    made = theirs({"<m>": TokenFlags(single_word=True)}, special=True)
    text = "".join(f"<m>{c} {c}<m> " for c in points)
    assert loaded(made).encode(text, allowed_special="all") == made.encode(text).ids


@counts_steps
def test_whitespace_takes_linear_work() -> None:
    flags = {"\n": TokenFlags(rstrip=True), "<m>": TokenFlags(lstrip=True)}
    cutter = TextCutter(bpe.Pretokenizer("none"), flags=flags)

    def work(size: int) -> None:
        cutter.segments(pa.array([b"\n" * size + b"<m>"]), {b"\n": 0, b"<m>": 1})

    assert_linear(work, 20_000)


def test_extending_is_refused() -> None:
    ours = loaded(theirs({"<m>": TokenFlags(lstrip=True)}, special=True))
    counts = bpe.count_pretokens(["the"], pretokenizer="gpt2")
    with pytest.raises(TrainingError, match=r"finds '<m>' .* with lstrip, rstrip or single_word"):
        bpe.train(counts, vocab_size=300, extend=ours)
    flags = {"<M>": TokenFlags(normalized=True)}
    ours = loaded(theirs(flags, special=True, normalizer=normalizers.Lowercase()))
    counts = bpe.count_pretokens(["the"], pretokenizer="gpt2", normalizer=["lowercase"])
    with pytest.raises(TrainingError, match=r"finds '<M>' .* before they are norm"):
        bpe.train(counts, vocab_size=300, extend=ours)


@pytest.mark.parametrize(
    ("flags", "named"),
    [({"<z>": TokenFlags(lstrip=True)}, "no special or added"), ({"<m>": 1}, "not TokenFlags")],
)
def test_flags_of_no_token(flags: Any, named: str) -> None:
    with pytest.raises(TokenizerError, match=named):
        byte_tokenizer("<m>", special_tokens={"<m>": 256}, token_flags=flags)
