"""Superwords in Hugging Face's tokenizer.json: the same ids, or a refusal that says why."""

from __future__ import annotations

import functools
import json
import random
from itertools import pairwise
from typing import Any

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

import bpe
from bpe.errors import InexpressibleError, TokenizerError, TokenizerFileError
from bpe.formats.huggingface_superwords import PUBLISHED
from tests.bpe.huggingface import edited, ids_of, loaded, written
from tests.bpe.test_superwords import with_superwords
from tests.bpe.vocabularies import byte_tokenizer

NAMES = ["gpt2", "cl100k", "o200k", "llama3", "qwen2"]
# Words that end in every way, and what may follow them.
_PIECES = [
    *(" a", " b", "a", "b", "ab", " ab", "A", "B", " A", "Ab", " aB", "aA", "é", "É", " é", "ß"),
    *("'s", "'S", "'t", " a's", "it's", "'re", "'r", "'a", "'", "(a", "_b", "-a", "ʰ", "\u0301"),
    *("l", "L", "r", "R", "v", "E", "e", "'l", "'L", "'v", "'ll", "t", "ſ"),
    *("中", "文", " 中", "中A", "д", "Д", " д", "и", "И", "\u01c5", "1", "a1", " ", "  ", "\n"),
]  # fmt: skip
pieces = st.lists(st.sampled_from(_PIECES), max_size=12).map("".join)


def trained(name: str, corpus: list[str], *, merges: int, superwords: int) -> bpe.Tokenizer:
    words = bpe.train(
        bpe.count_pretokens(corpus, pretokenizer=name), max_merges=merges, min_frequency=1
    )
    runs = bpe.count_runs(corpus, tokenizer=words)
    return bpe.train_superwords(runs, tokenizer=words, superwords=superwords, min_frequency=1)


@given(
    name=st.sampled_from(NAMES),
    corpus=st.lists(pieces, min_size=1, max_size=8),
    merges=st.integers(0, 20),
    rows=st.lists(pieces, min_size=1, max_size=8),
)
@settings(deadline=None)
def test_what_is_written_gives_the_same_ids(
    name: str, corpus: list[str], merges: int, rows: list[str]
) -> None:
    tokenizer = trained(name, corpus, merges=merges, superwords=8)
    if tokenizer.superwords:
        form = tokenizer.approximate()
        assert [ids_of(written(form), text) for text in rows] == form.encode_batch(rows)
    try:
        other = written(tokenizer)
    except InexpressibleError as error:
        assert "exact there only if" in str(error)  # noqa: PT017 - or it is written
        return
    expected = tokenizer.encode_batch(rows)
    assert [ids_of(other, text) for text in rows] == expected
    assert loaded(other).encode_batch(rows) == expected


PHRASES = [" of the", " I've been", "getName", " in the", " it's a", " (the"]
PHRASES += ["\n'tis the", " Да нет"]


def english(name: str) -> bpe.Tokenizer:
    """Trained on text, with superwords of all kinds of ends."""
    generator = random.Random(1)
    corpus = ["".join(generator.choices(PHRASES, k=30)) for _ in range(50)]
    return trained(name, corpus, merges=100, superwords=40)


PARTS = [" of", " the", "the", " I've", " I", "'ve", "rust", "x", " in", "'s", "get", "ing"]
PARTS += ["Name", " it's", " (", "\n", "'", "tis", " Да", " нет", "Да", "12", ".", " "]
PARTS += ["\u0301", "中"]


@pytest.mark.parametrize("name", NAMES)
def test_all_named_pretokenizers_are_written_and_read_back(name: str) -> None:
    tokenizer = english(name)
    other = written(tokenizer)
    generator = random.Random(2)
    for _ in range(300):
        text = "".join(generator.choices(PARTS, k=20))
        assert ids_of(other, text) == tokenizer.encode(text)
    assert tokenizer.token_id(" of the") in ids_of(other, "one of the")
    back = loaded(other)
    assert back.superwords == tokenizer.superwords
    assert back.text_sha256 == tokenizer.text_sha256
    file = json.loads(tokenizer.to_json())
    del file["model"]["merges"][len(tokenizer.merges) + 1 :]  # the pattern lists more words
    less = tokenizers.Tokenizer.from_str(json.dumps(file))
    assert loaded(less).superwords == []
    assert loaded(less).encode("one of the") == ids_of(less, "one of the")


def test_a_run_ends_where_words_would_be_joined() -> None:
    tokenizer = english("o200k")
    assert tokenizer.token_id("er") is None
    merges = [*tokenizer.merges, (ord("e"), ord("r"), len(tokenizer))]
    more = {"tokens": [*tokenizer.tokens, b"er"], "merges": merges, "training": None}
    joins = bpe.Tokenizer(**tokenizer.parts.__getstate__() | more)
    for text in (" I'verust", " I've been rust", " of the I'verust of the"):
        assert ids_of(written(joins), text) == joins.encode(text)


def test_many_words_that_begin_alike_in_a_long_run() -> None:
    words = [f" {chr(0xAC00 + i)}" for i in range(1000)]
    parts = bpe.train(bpe.count_pretokens(words, pretokenizer="o200k"), max_merges=3000).parts
    pairs = [*pairwise(words)]
    tokens = [*parts.tokens, *(f"{left}{right}".encode() for left, right in pairs)]
    superwords = [
        tuple(tokens.index(part.encode()) for part in (left, right, left + right))
        for left, right in pairs
    ]
    tokenizer = bpe.Tokenizer(**parts.__getstate__() | {"tokens": tokens, "superwords": superwords})
    text = "".join(words[-2:] * 20_000 + words)
    assert ids_of(written(tokenizer), text) == tokenizer.encode(text)


MARKED = bpe.Pretokenizer("gpt2", normalizer=("prepend-mark",))
NOT_EXACT: list[tuple[tuple[str, str], dict[str, Any], str]] = [
    ((" a", " b"), {"pretokenizer": bpe.Pretokenizer(pattern=r" ?\w")}, "one of gpt2"),
    ((" a", " b"), {"pretokenizer": bpe.Pretokenizer("gpt2", never_split=("url",))}, "never_split"),
    ((" a", " b"), {"ignore_merges": True}, "ignore_merges"),
    ((" a", " b"), {"pretokenizer": MARKED}, "adds nothing before"),
    ((" a", "1"), {}, "words with letters alone, and one merges b'1'"),
    (("a", "b"), {}, "no pre-token holds both parts of one, and one may hold 'a' and 'b'"),
]


@pytest.mark.parametrize(("pair", "settings_", "condition"), NOT_EXACT)
def test_what_is_not_exact_is_refused(
    pair: tuple[str, str], settings_: dict[str, Any], condition: str
) -> None:
    tokenizer = with_superwords(pair, **settings_)
    with pytest.raises(
        InexpressibleError, match=rf"only if .*{condition}.*`dialect` beam-bpe"
    ) as refused:
        tokenizer.to_json()
    if "or `approximate`" in str(refused.value):
        assert written(tokenizer.approximate())
    else:
        with pytest.raises(InexpressibleError):
            tokenizer.approximate().to_json()


@pytest.mark.parametrize("pair", [("l", "L"), ("r", "E"), ("v", "E"), ("a", "'r"), ("l", "M")])
def test_a_contraction_of_o200k_may_hold_both_parts(pair: tuple[str, str]) -> None:
    tokenizer = byte_tokenizer(
        *("'r", "".join(pair)),
        joins=["'|r"],
        superwords=["|".join(pair)],
        pretokenizer=bpe.Pretokenizer("o200k"),
    )
    assert tokenizer.encode("".join(pair)) == [257]
    if pair != ("l", "M"):
        with pytest.raises(InexpressibleError, match="no pre-token holds both parts of one"):
            tokenizer.to_json()
        return
    for text in ("lM", "a'lM", "a'llM", "a'LlM"):
        assert ids_of(written(tokenizer), text) == tokenizer.encode(text)


# The form that SuperBPE publishes.


def test_the_approximate_form_has_all_merges_under_the_published_pattern() -> None:
    tokenizer = english("o200k")
    form = tokenizer.approximate()
    assert form.tokens == tokenizer.tokens
    assert form.merges == [*tokenizer.merges, *tokenizer.superwords]
    assert (form.superwords, form.training) == ([], None)
    assert form.pretokenizer == bpe.Pretokenizer(pattern=PUBLISHED)
    assert form.encode(" of then") != tokenizer.encode(" of then")
    assert loaded(written(form)) == form
    with pytest.raises(TokenizerError, match="no superwords: save it without approximate"):
        form.approximate()


@functools.cache
def published() -> tuple[tokenizers.Tokenizer, bpe.Tokenizer]:
    """A file as SuperBPE publishes them: pre-tokenizer, decoder, and merges over spaces."""
    other = tokenizers.Tokenizer(tokenizers.models.BPE())
    pre = tokenizers.pre_tokenizers
    split = pre.Split(tokenizers.Regex(PUBLISHED), "isolated", invert=False)
    level = pre.ByteLevel(add_prefix_space=False, trim_offsets=True, use_regex=False)
    other.pre_tokenizer = pre.Sequence([split, level])
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=400, initial_alphabet=pre.ByteLevel.alphabet(), show_progress=False
    )
    generator = random.Random(3)
    corpus = ["".join(generator.choices(_PIECES, k=60)) for _ in range(100)]
    other.train_from_iterator([*corpus, *(" by the way" for _ in range(99))], trainer)
    other.decoder = tokenizers.decoders.ByteLevel()
    return other, loaded(other)


@given(rows=st.lists(pieces | st.text(), min_size=1, max_size=8))
@settings(deadline=None)
def test_published_files_are_read(rows: list[str]) -> None:
    other, tokenizer = published()
    assert tokenizer.token_id(" by the way") is not None
    assert tokenizer.superwords == []
    assert [ids_of(other, text) for text in rows] == tokenizer.encode_batch(rows)
    assert [tokenizer.decode(row) for row in tokenizer.encode_batch(rows)] == rows


def test_a_file_with_a_long_pattern_of_its_own_is_still_refused() -> None:
    place = "pre_tokenizer.pretokenizers.0.pattern.Regex"
    file = edited(english("gpt2").to_json(), place, "(?>a" + "|b" * 10_000 + ")")
    with pytest.raises(TokenizerFileError, match="pre_tokenizer: is too long"):
        loaded(file)
