"""tokenizer.json of normalized text, characters and WordPiece, both ways.

Ids are compared on characters that have long been what they are: Hugging Face's normalizers and
Oniguruma follow older versions of Unicode than 16.
"""

from __future__ import annotations

import functools
import itertools
import random
import unicodedata
from typing import Any

import pyarrow as pa
import pytest
import tokenizers
import unicodedata2
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import (
    BertWordPieceTokenizer,
    models,
    normalizers,
    pre_tokenizers,
    trainers,
)

import bpe
from bpe.errors import TokenizerFileError
from bpe.formats.huggingface_cuts import read_normalizer, write_normalizer
from bpe.formats.strict_json import Entry
from bpe.normalizer import NORMALIZERS, normalize, normalize_column
from tests.bpe.huggingface import edited, ids_of, loaded, with_parts, written
from tests.bpe.texts import code_points, library_sources
from tests.examples import examples
from tests.shared_data import LONG

OLD = unicodedata.ucd_3_2_0


@functools.cache
def old_characters() -> tuple[str, ...]:
    """The characters of Unicode 3.2 that still are what they were then."""
    return tuple(
        c for c in code_points() if OLD.category(c) == unicodedata2.category(c) not in ("Cn", "Co")
    )


def random_texts(number: int, *, seed: int = 0) -> list[str]:
    """Texts of random old characters, near to each other so that they interact."""
    chosen = random.Random(seed)
    characters = old_characters()
    marks = [c for c in characters if OLD.category(c)[0] == "M"]
    texts = []
    for _ in range(number):
        begin = chosen.randrange(len(characters) - 200)
        near = characters[begin : begin + 200]
        text = [chosen.choice(chosen.choice([near, marks, " aB1'", near])) for _ in range(40)]
        texts.append("".join(text))
    return texts


TEXTS = [
    *random_texts(300),
    *(source.decode("utf-8", "replace") for source in library_sources(30_000)),
    "Ünïcode e\u0301 ﬁ Å ① ℌ ½ ÀÉ İI ΣΑΣ 漢字か\u3099 don't DON'T 12345  x\n\n y\t",
]
CHECKED = TEXTS if LONG else TEXTS[::-6]


def check(theirs: tokenizers.Tokenizer) -> bpe.Tokenizer:
    """Ours of the same ids, of which they read what we write as the same, and write it so."""
    ours = loaded(theirs)
    again = written(ours)
    assert again.to_str(pretty=True) == ours.to_json()
    for text in CHECKED:
        expected = ids_of(theirs, text)
        assert ours.encode(text) == expected, text
        assert ids_of(again, text) == expected
        assert again.decode(expected, skip_special_tokens=False) == ours.decode(expected)
    return ours


# Normalizers.


# The others are a pre-tokenizer there: tests/bpe/test_formats_sentencepiece.py.
STEPS = [step for step in NORMALIZERS if not step.startswith("ensure-")]


def their_normalizer(steps: list[str]) -> Any:
    empty = tokenizers.Tokenizer(models.BPE()).to_str()
    file = edited(empty, "normalizer", write_normalizer(steps))
    return tokenizers.Tokenizer.from_str(file).normalizer


@pytest.mark.parametrize("step", STEPS)
def test_every_old_character_is_normalized_as_they_do(step: str) -> None:
    theirs = their_normalizer([step])
    assert read_normalizer(Entry("file", "normalizer", write_normalizer([step]))) == (step,)
    characters = old_characters()
    ours = normalize_column(pa.array(characters, pa.large_string()), [step])
    expected = [theirs.normalize_str(character).encode() for character in characters]
    assert ours.cast(pa.large_binary()).to_pylist() == expected


@given(steps=st.lists(st.sampled_from(STEPS), max_size=4), number=st.integers(0, 299))
@examples(100)
def test_any_steps(steps: list[str], number: int) -> None:
    theirs = their_normalizer(steps)
    text = TEXTS[number]
    assert normalize(text.encode(), steps).decode() == (
        theirs.normalize_str(text) if theirs is not None else text
    )


BERT = [*itertools.product((False, True), (False, True), (None, False, True), (False, True))]


@pytest.mark.parametrize(("clean", "han", "strip", "lower"), BERT if LONG else BERT[::5])
def test_every_bert_normalizer(clean: bool, han: bool, strip: bool | None, lower: bool) -> None:
    check(with_parts(normalizer=normalizers.BertNormalizer(clean, han, strip, lower)))


def test_added_tokens_that_are_the_same_in_normalized_text_are_refused() -> None:
    theirs = with_parts(normalizer=normalizers.Lowercase())
    theirs.add_tokens(["<Other>"])  # normalized by default
    ours = loaded(theirs)
    assert ours.decode(ours.encode("<OTHER>")) == "<Other>"
    theirs.add_tokens(["<OTHER>"])
    with pytest.raises(TokenizerFileError, match=r"added_tokens: .* '<OTHER>' is '<other>' in nor"):
        loaded(theirs)
    theirs.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents()])
    theirs.add_tokens(["\u0301"])
    with pytest.raises(TokenizerFileError, match="is '' in normalized text, where Hugging Face"):
        loaded(theirs)


# In text that is composed as GPT-NeoX and OLMo do, whose runs of spaces are added tokens.
TOUCHED = ["<tool>", "TASK", "e\u0301", "a", "\u0301|", ";", "ᄀ"]
UNTOUCHED = [" " * 23, " " * 21, " \t \t", "|||EMAIL|||"]


@pytest.mark.parametrize("content", [*TOUCHED, *UNTOUCHED])
def test_tokens_are_found_in_composed_text_as_by_theirs(content: str) -> None:
    theirs = with_parts(normalizer=normalizers.NFC())
    theirs.add_tokens([content] if content in TOUCHED else UNTOUCHED)
    ours = loaded(theirs)
    for mark in ("", "\u0338", "\u0301", "\u1161", " ", "\t", "\r\n", "\u3099", "\u212a", "E"):
        text = f"{content}{mark}{content} é{content}{mark} {content[1:]}"
        assert ours.encode(text) == theirs.encode(text).ids


# Characters.


def test_characters_that_they_can_express() -> None:
    theirs = tokenizers.Tokenizer(models.BPE(unk_token="[UNK]"))
    theirs.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    theirs.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents()])
    trainer = trainers.BpeTrainer(
        vocab_size=800, special_tokens=["[UNK]"], limit_alphabet=90, show_progress=False
    )
    theirs.train_from_iterator(TEXTS, trainer)
    assert check(theirs).model == bpe.CharacterLevel(end_of_word="", unknown="[UNK]")


# WordPiece.


@pytest.mark.parametrize("settings_", [{}, {"wordpieces_prefix": "@@", "lowercase": False}])
def test_files_of_their_word_piece_tokenizer(settings_: dict[str, Any]) -> None:
    prefix = settings_.get("wordpieces_prefix", "##")
    trained = BertWordPieceTokenizer(**settings_)
    trained.train_from_iterator(
        TEXTS, vocab_size=1500, limit_alphabet=400, show_progress=False, wordpieces_prefix=prefix
    )
    theirs = tokenizers.Tokenizer.from_str(trained.to_str())
    ours = check(theirs)
    assert ours.model == bpe.WordPiece(prefix=prefix)
    assert set(ours.special_tokens) == {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}
    text = "one [SEP] two [MASK]s"
    assert ours.encode(text, allowed_special="all") == ids_of(theirs, text)
