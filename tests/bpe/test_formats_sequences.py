"""The sequences of pre-tokenizers of published models, compared with ``tokenizers``."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers
from tokenizers.pre_tokenizers import BertPreTokenizer, Digits, Punctuation, Split, WhitespaceSplit

from bpe.errors import TokenizerFileError
from bpe.pretokenizer import PATTERNS
from tests.bpe.huggingface import edited, ids_of, loaded, written
from tests.bpe.texts import library_sources, strings
from tests.examples import examples
from tests.shared_data import LONG, shared_rows

if TYPE_CHECKING:
    import bpe


def level(*, use_regex: bool) -> pre_tokenizers.ByteLevel:
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=use_regex)


def isolated(*patterns: str) -> list[pre_tokenizers.PreTokenizer]:
    return [Split(Regex(pattern), "isolated") for pattern in patterns]


BYTES = level(use_regex=False)
ONE_DIGIT = Digits(individual_digits=True)
HAN = "[一-龥ࠀ-一가-퟿]+"
NO_PUNCTUATION = " ?[^(\\s|.,!?…。，、।۔،)]+"
NO_PUNCTUATION_NESTED = " ?[^(\\s|[.,!?…。，、।۔،])]+"
GPT4 = (
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}"
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
)
DEEPSEEK_V3 = (
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+"
    "|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*"
    "|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"
)
SEQUENCES: dict[str, list[pre_tokenizers.PreTokenizer]] = {
    "falcon": [
        *(Punctuation(behavior="contiguous"), level(use_regex=True), Digits()),
        *isolated("[0-9][0-9][0-9]"),
    ],
    "starcoder": [ONE_DIGIT, level(use_regex=True)],
    "deepseek llm": [  # with fewer letters
        *isolated("[\r\n]", "\\s?[A-Za-zµÀ-ÖØ-öø-ƺͰ-ͳА-я]+", "\\s?[!-/:-~！-／：-～‘-‟]+"),
        *(*isolated("\\s+$", HAN), ONE_DIGIT, BYTES),
    ],
    "deepseek coder": [
        *isolated("[\r\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", HAN),
        *(ONE_DIGIT, BYTES),
    ],
    "deepseek v3": [
        *isolated("\\p{N}{1,3}", "[一-龥\u3040-ゟ゠-ヿ]+", DEEPSEEK_V3),
        BYTES,
    ],
    "neox": [level(use_regex=True)],
    "olmo 2": [Split(Regex(GPT4), "removed", invert=True), BYTES],
    "bloom": [*isolated(NO_PUNCTUATION_NESTED), BYTES],
    "joined": [
        Split(" ", "merged_with_next"),
        Split(Regex("[0-9]"), "merged_with_previous"),
        Split(Regex("[^a-z\\s]"), "contiguous"),
        *(Punctuation(behavior="merged_with_next"), BYTES),
    ],
    "viking": [*isolated(NO_PUNCTUATION), ONE_DIGIT, BYTES],
}
CUTS: dict[str, list[pre_tokenizers.PreTokenizer]] = {
    "digits, spaces": [*isolated(r"\p{N}{1,3}"), Split(" ", "isolated")],
    "ends of lines": isolated(r"\s+$"),
    "several ends": isolated("[\r\n]", r"\s$|$a|\p{L}+$"),
    "anchors": isolated(r"\A\s|[a-z]\Z|\s\z"),
    "strings": [
        *(Split("e", "isolated"), Split("a.b", "isolated")),
        Split("\\", "isolated", invert=True),
    ],
    "digits": [Digits(individual_digits=False)],
    "punctuation": [Punctuation("isolated")],
    "words": [WhitespaceSplit(), ONE_DIGIT],
    "spaces": [Split(" ", "removed"), Punctuation("isolated")],
    "runs of spaces": [Split(Regex(" +"), "removed")],
    "whitespace": [Split(Regex(r"\s+"), "removed")],
    "all but whitespace": [Split(Regex(r"\S+"), "removed", invert=True)],
    "llama 3": [*isolated(PATTERNS["llama3"]), Digits()],
    "bert": [BertPreTokenizer()],
}
KINDS = SEQUENCES | {name: [*cuts, BYTES] for name, cuts in CUTS.items()}
if LONG:
    KINDS |= {f"{name}, gpt2": [*cuts, level(use_regex=True)] for name, cuts in CUTS.items()}


@functools.cache
def vocabulary() -> Tokenizer:
    """Of merges that no cut stops but the one at digits, where tokens must not go on."""
    theirs = Tokenizer(models.BPE())
    theirs.pre_tokenizer = pre_tokenizers.Sequence([BYTES, Digits()])
    trainer = trainers.BpeTrainer(
        vocab_size=900,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<|endoftext|>"],
        show_progress=False,
    )
    lines = b"".join(library_sources(60_000)).decode("utf-8", "replace").split("\n\n")
    theirs.train_from_iterator([*lines, "日本語 é ò² ½12345 1234567 и кир, 12 345 " * 50], trainer)
    return theirs


def cut_by(steps: list[pre_tokenizers.PreTokenizer]) -> Tokenizer:
    theirs = Tokenizer.from_str(vocabulary().to_str())
    theirs.pre_tokenizer = pre_tokenizers.Sequence(steps)
    return theirs


@functools.cache
def of_name(name: str) -> tuple[bpe.Tokenizer, Tokenizer, Tokenizer]:
    """Ours, theirs, and theirs of the file that ours writes."""
    theirs = cut_by(KINDS[name])
    ours = loaded(theirs)
    return ours, theirs, written(ours)


ATOMS = [
    *("1", "12", "345", "6789", " 1", "²", "½", "٣", "ò", "é", "€", "ñ", "日本", "テ", "!", "--"),
    *("...", "'s", "'LL", " the", "def", "\n", "\r\n", "  ", "\t", "$", "x_{1}", "«", "a.b", "\\"),
    "<|endoftext|>",
]


@pytest.mark.parametrize("name", KINDS)
@given(text=st.lists(st.sampled_from(ATOMS), max_size=16).map("".join) | strings())
@examples(100)
def test_any_text(name: str, text: str) -> None:
    ours, theirs, again = of_name(name)
    ids = ids_of(theirs, text)
    assert ours.encode(text, allowed_special="all") == ids
    assert ids_of(again, text) == ids


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([level(use_regex=True)], "gpt2"),
        ([BYTES], "none"),
        ([Split(Regex(PATTERNS["llama3"]), "removed", invert=True), BYTES], "llama3"),
        *(([*isolated(PATTERNS[name]), BYTES], name) for name in ("llama3", "qwen2", "o200k")),
        ([*isolated(r"\p{N}|[^\r\n]"), BYTES], r"\p{N}|[^\r\n]"),
    ],
)
def test_patterns_with_a_name_are_known(
    steps: list[pre_tokenizers.PreTokenizer], expected: str
) -> None:
    cut = loaded(cut_by(steps)).pretokenizer
    assert expected in (cut.name, cut.pattern)


@pytest.mark.shared
@pytest.mark.parametrize("corpus", ["en", "multi"])
@pytest.mark.parametrize("name", SEQUENCES)
def test_the_corpora(name: str, corpus: str) -> None:
    ours, theirs, _ = of_name(name)
    texts = shared_rows(corpus, sample=60)["text"].to_pylist()
    expected = [one.ids for one in theirs.encode_batch(texts, add_special_tokens=False)]
    assert ours.encode_arrow(pa.array(texts), allowed_special="all").to_pylist() == expected


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"model.vocab.Ã²": 900, "model.merges.0": ["Ã", "²"]}, r"digits and .* b'\\xc3\\xb2'"),
        ({"model.ignore_merges": True}, "Digits after ByteLevel is not supported with ignore_m"),
        (
            {"pre_tokenizer.pretokenizers.2.individual_digits": True},
            "unk_token: missing|the pre-tokenizer 'ByteLevel' is not",
        ),
    ],
)
def test_digits_behind_bytes_that_a_token_crosses_are_refused(
    changes: dict[str, Any], named: str
) -> None:
    file = of_name("falcon")[1].to_str()
    for place, value in changes.items():
        file = edited(file, place, value)
    with pytest.raises(TokenizerFileError, match=named):
        loaded(file)
