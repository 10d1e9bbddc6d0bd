"""tokenizer.json of normalized text, several cuts, characters and WordPiece, both ways.

Ids are compared on characters that have long been what they are: Hugging Face's normalizers and
Oniguruma follow older versions of Unicode than 16.
"""

from __future__ import annotations

import functools
import itertools
import json
import random
import unicodedata
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
import tokenizers
import unicodedata2
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import (
    BertWordPieceTokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    trainers,
)
from transformers import PreTrainedTokenizerFast

import bpe
from bpe.errors import TokenizerFileError
from bpe.formats.huggingface_cuts import read_normalizer, write_normalizer
from bpe.formats.strict_json import Entry
from bpe.normalizer import NORMALIZERS, normalize, normalize_column
from bpe.pretokenizer import PATTERNS
from tests.bpe.huggingface import edited, ids_of, loaded, written
from tests.bpe.models import make
from tests.bpe.texts import code_points, library_sources
from tests.bpe.vocabularies import small_tokenizer
from tests.examples import examples
from tests.shared_data import LONG

if TYPE_CHECKING:
    from pathlib import Path

UNKNOWN = "[UNK]"
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


def check(ours: bpe.Tokenizer, theirs: tokenizers.Tokenizer) -> None:
    """Equal ids; and what we write of it is read as the same by them and by us."""
    again = written(ours)
    for text in CHECKED:
        expected = ids_of(theirs, text)
        assert ours.encode(text) == expected, text
        assert ids_of(again, text) == expected


# Normalizers.


# The others are a pre-tokenizer there: tests/bpe/test_formats_sentencepiece.py.
STEPS = [step for step in NORMALIZERS if not step.startswith("ensure-")]


@pytest.mark.parametrize("step", STEPS)
def test_every_old_character_is_normalized_as_they_do(step: str) -> None:
    file = json.loads(tokenizers.Tokenizer(models.BPE()).to_str())
    file["normalizer"] = write_normalizer([step])
    theirs = tokenizers.Tokenizer.from_str(json.dumps(file)).normalizer
    assert read_normalizer(Entry("file", "normalizer", file["normalizer"])) == (step,)
    characters = old_characters()
    ours = normalize_column(pa.array(characters, pa.large_string()), [step])
    expected = [theirs.normalize_str(character).encode() for character in characters]
    assert ours.cast(pa.large_binary()).to_pylist() == expected


@given(steps=st.lists(st.sampled_from(STEPS), max_size=4), number=st.integers(0, 299))
@examples(100)
def test_any_steps(steps: list[str], number: int) -> None:
    file = json.loads(tokenizers.Tokenizer(models.BPE()).to_str())
    file["normalizer"] = write_normalizer(steps)
    theirs = tokenizers.Tokenizer.from_str(json.dumps(file)).normalizer
    text = TEXTS[number]
    assert normalize(text.encode(), steps).decode() == (
        theirs.normalize_str(text) if theirs is not None else text
    )


BERT = [*itertools.product((False, True), (False, True), (None, False, True), (False, True))]


@pytest.mark.parametrize(("clean", "han", "strip", "lower"), BERT if LONG else BERT[::5])
def test_every_bert_normalizer(
    clean: bool, han: bool, strip: bool | None, lower: bool, tmp_path: Path
) -> None:
    theirs = tokenizers.Tokenizer.from_str(small_tokenizer(special_tokens=()).to_json())
    theirs.normalizer = normalizers.BertNormalizer(
        clean_text=clean, handle_chinese_chars=han, strip_accents=strip, lowercase=lower
    )
    check(loaded(theirs), theirs)


def test_the_shape_of_qwen2(tmp_path: Path) -> None:
    theirs = tokenizers.Tokenizer(models.BPE())
    theirs.normalizer = normalizers.NFC()
    theirs.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(tokenizers.Regex(PATTERNS["qwen2"]), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    theirs.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=2000,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    theirs.train_from_iterator(TEXTS, trainer)
    theirs.add_special_tokens(["<|endoftext|>", "<|im_start|>"])
    ours = loaded(theirs)
    assert ours.pretokenizer == bpe.Pretokenizer("qwen2", normalizer=("nfc",))
    check(ours, theirs)
    text = "e\u0301<|im_start|>Å\u0301 <|endoftext|>"
    assert ours.encode(text, allowed_special="all") == theirs.encode(text).ids


def test_added_tokens_are_looked_for_in_the_text_or_in_normalized_text(tmp_path: Path) -> None:
    theirs = tokenizers.Tokenizer.from_str(small_tokenizer(special_tokens=()).to_json())
    theirs.normalizer = normalizers.Lowercase()
    theirs.add_tokens([tokenizers.AddedToken("<Tool>", normalized=False)])
    ours = loaded(theirs)
    for text in ("<Tool>", "<tool>", "a<TOOL> <Tool>b"):
        assert ours.encode(text) == theirs.encode(text).ids
    theirs.add_tokens(["<Other>"])  # normalized by default
    ours = loaded(theirs)
    for text in ("<Other>", "a<OTHER> <oth", "<Tool><other>", "<tool><Other>"):
        assert ours.encode(text) == theirs.encode(text).ids
    assert ours.decode(ours.encode("<OTHER>")) == "<Other>"
    theirs.add_tokens(["<OTHER>"])
    with pytest.raises(TokenizerFileError, match=r"added_tokens: .* '<OTHER>' is '<other>' in nor"):
        loaded(theirs)
    theirs.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents()])
    theirs.add_tokens(["\u0301"])
    with pytest.raises(TokenizerFileError, match="is '' in normalized text, where Hugging Face"):
        loaded(theirs)


SPACES = [" " * 23, " " * 21, " \t \t", "|||EMAIL|||"]  # no merge makes them
NEAR_SPACES = [
    *" \t\n|EMAILe\u0301\u0338\u3099a가ᄀ",
    *(" " * 21, " \t \t", "|||EMAIL|||", "\u2000", "\u212a", "\r\n"),
]


@given(st.lists(st.sampled_from(NEAR_SPACES), max_size=30).map("".join))
@examples(200)
def test_tokens_that_no_composition_touches_are_found_in_composed_text(text: str) -> None:
    ours, theirs = neox()
    assert ours.encode(text) == theirs.encode(text).ids


@functools.cache
def neox() -> tuple[bpe.Tokenizer, tokenizers.Tokenizer]:
    """As GPT-NeoX and OLMo: runs of spaces are added tokens, and text is composed."""
    theirs = tokenizers.Tokenizer.from_str(small_tokenizer(special_tokens=()).to_json())
    theirs.normalizer = normalizers.NFC()
    theirs.add_tokens(SPACES)
    return loaded(theirs), theirs


@pytest.mark.parametrize("content", ["<tool>", "TASK", "e\u0301", "a", "\u0301|", ";", "ᄀ"])
def test_tokens_that_a_composition_may_touch_are_found_behind_it(
    content: str, tmp_path: Path
) -> None:
    theirs = tokenizers.Tokenizer.from_str(small_tokenizer(special_tokens=()).to_json())
    theirs.normalizer = normalizers.NFC()
    theirs.add_tokens([content])
    ours = loaded(theirs)
    for mark in ("", "\u0338", "\u0301", "\u1161", " "):
        text = f"{content}{mark}{content} é{content}"
        assert ours.encode(text) == theirs.encode(text).ids


# Ways to cut.

SPLIT = pre_tokenizers.Split


@pytest.mark.parametrize(
    "cuts",
    [
        [SPLIT(tokenizers.Regex(r"\p{N}{1,3}"), "isolated"), SPLIT(" ", "isolated")],
        [SPLIT(tokenizers.Regex(r"\s+$"), "isolated")],  # the end of any line
        [
            SPLIT(tokenizers.Regex("[\r\n]"), "isolated"),
            SPLIT(tokenizers.Regex(r"\s$|$a|\p{L}+$"), "isolated"),
        ],
        [SPLIT("e", "isolated"), SPLIT("a.b", "isolated"), SPLIT("\\", "isolated", invert=True)],
        [pre_tokenizers.Digits(individual_digits=True)],
        [pre_tokenizers.Digits(individual_digits=False)],
        [pre_tokenizers.Punctuation("isolated")],
        [pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.Digits()],
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Digits(individual_digits=True)],
        [SPLIT(" ", "removed"), pre_tokenizers.Punctuation("isolated")],
        [SPLIT(tokenizers.Regex(" +"), "removed")],
        [SPLIT(tokenizers.Regex(r"\s+"), "removed")],
        [SPLIT(tokenizers.Regex(r"\S+"), "removed", invert=True)],
        [SPLIT(tokenizers.Regex(PATTERNS["llama3"]), "isolated"), pre_tokenizers.Digits()],
        [pre_tokenizers.BertPreTokenizer()],
    ],
    ids=str,
)
@pytest.mark.parametrize("use_regex", [False, pytest.param(True, marks=pytest.mark.long)])
def test_several_cuts(cuts: list[Any], use_regex: bool, tmp_path: Path) -> None:
    theirs = tokenizers.Tokenizer.from_str(small_tokenizer(special_tokens=()).to_json())
    last = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=use_regex)
    theirs.pre_tokenizer = pre_tokenizers.Sequence([*cuts, last])
    check(loaded(theirs), theirs)


# Characters.


def test_characters_that_they_can_express(tmp_path: Path) -> None:
    theirs = tokenizers.Tokenizer(models.BPE(unk_token=UNKNOWN))
    theirs.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    theirs.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents()])
    trainer = trainers.BpeTrainer(
        vocab_size=800, special_tokens=["[UNK]"], limit_alphabet=90, show_progress=False
    )
    theirs.train_from_iterator(TEXTS, trainer)
    ours = loaded(theirs)
    assert ours.model == bpe.CharacterLevel(end_of_word="", unknown="[UNK]")
    check(ours, theirs)
    assert json.loads(ours.to_json())["version"] == "1.0"
    ours.save(tmp_path / "ours.json")
    assert bpe.Tokenizer.load(tmp_path / "ours.json") == ours


@pytest.mark.parametrize(
    ("settings_", "named"),
    [
        ({}, "unk_token: missing"),
        ({"unk_token": "[UNK]", "byte_fallback": True}, "no token is <0x00>; .* all|each of"),
        ({"unk_token": "[UNK]", "end_of_word_suffix": "</w>"}, "end_of_word_suffix: '</w>'"),
        ({"unk_token": "[UNK]", "continuing_subword_prefix": "##"}, "subword_prefix: '##'"),
        ({"unk_token": "[UNK]", "dropout": 0.5}, "dropout: 0.5"),
    ],
)
def test_characters_that_we_cannot(settings_: dict[str, Any], named: str, tmp_path: Path) -> None:
    vocab = {"[UNK]": 0, "a": 1}
    theirs = tokenizers.Tokenizer(models.BPE(vocab=vocab, merges=[], **settings_))
    theirs.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    with pytest.raises(TokenizerFileError, match=named):
        loaded(theirs)


# WordPiece.


def word_piece(**settings_: Any) -> tokenizers.Tokenizer:
    """The training of their library on the texts."""
    theirs = BertWordPieceTokenizer(**settings_)
    theirs.train_from_iterator(
        TEXTS,
        vocab_size=1500,
        limit_alphabet=400,
        show_progress=False,
        wordpieces_prefix=settings_.get("wordpieces_prefix", "##"),
    )
    return tokenizers.Tokenizer.from_str(theirs.to_str())


@pytest.mark.parametrize(
    "settings_",
    [
        {},
        {"lowercase": False},
        {"lowercase": True, "strip_accents": False},
        {"clean_text": False, "handle_chinese_chars": False, "lowercase": False},
        {"wordpieces_prefix": "@@", "lowercase": False},
    ],
    ids=str,
)
def test_files_of_their_word_piece_tokenizer(settings_: dict[str, Any], tmp_path: Path) -> None:
    theirs = word_piece(**settings_)
    ours = loaded(theirs)
    assert isinstance(ours.model, bpe.WordPiece)
    assert ours.model.prefix == settings_.get("wordpieces_prefix", "##")
    check(ours, theirs)
    assert set(ours.special_tokens) == {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}
    text = "one [SEP] two [MASK]s"
    expected = ids_of(theirs, text)
    assert ours.encode(text, allowed_special="all") == expected


def test_word_pieces_of_ours_open_there(tmp_path: Path) -> None:
    tokenizer = make(
        ["[UNK]", "play", "##ing", "##ed", "p", "##l", "é", "##é", "[SEP]"],
        special=["[UNK]", "[SEP]"],
        model=bpe.WordPiece(max_characters=10),
    )
    path = tmp_path / "tokenizer.json"
    tokenizer.save(path)
    assert bpe.Tokenizer.load(path) == tokenizer
    theirs = tokenizers.Tokenizer.from_file(str(path))
    theirs.save(str(tmp_path / "theirs.json"))
    assert path.read_text("utf-8") == (tmp_path / "theirs.json").read_text("utf-8")
    wrapped = PreTrainedTokenizerFast(tokenizer_file=str(path))
    for text in ("playing played éé x playingplaying pl", " [SEP] play", "playinglyx"):
        ids = tokenizer.encode(text, allowed_special="all")
        assert ids == theirs.encode(text).ids
        assert ids == wrapped(text)["input_ids"]
        assert tokenizer.decode(ids) == theirs.decode(ids, skip_special_tokens=False)


@pytest.mark.parametrize(
    ("place", "value", "named"),
    [
        ("model.max_input_chars_per_word", 0, "max_input_chars_per_word: 0 is not a number"),
        ("model.max_input_chars_per_word", True, "max_input_chars_per_word: True is not a number"),
        ("model.max_input_chars_per_word", None, "max_input_chars_per_word: None is not a number"),
        ("model.continuing_subword_prefix", None, "continuing_subword_prefix: expected a string"),
        ("model.unk_token", None, "unk_token: expected a string"),
        ("model.unk_token", "", "unk_token: is empty"),
        (
            "model.unk_token",
            "[OTHER]",
            "the unknown token .* of the model is not in the vocabulary",
        ),
        ("model.merges", [], "model: 'merges' is not supported"),
        ("model.vocab", {"[UNK]": 10**9}, "1000000000 is not an id"),
        ("model.vocab", {"[UNK]": 0, "": 1}, "the token with the id 1 is empty"),
        ("model.vocab", {"[UNK]": 0, "\ud800": 1}, "lone surrogate"),
        ("model.vocab", {"[UNK]": 0, "a": 0}, "have the same id 0"),
        (
            "pre_tokenizer",
            {"type": "ByteLevel", "add_prefix_space": False},
            "WordPiece over bytes is not supported",
        ),
    ],
)
def test_broken_word_pieces(place: str, value: Any, named: str, tmp_path: Path) -> None:
    good = make(["[UNK]", "a", "##b"], model=bpe.WordPiece()).to_json()
    path = tmp_path / "tokenizer.json"
    path.write_text(edited(good, place, value))
    with pytest.raises(TokenizerFileError, match=named):
        bpe.Tokenizer.load(path)
