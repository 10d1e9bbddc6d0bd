"""tokenizer.json of SentencePiece's BPE: marks for spaces, bytes of characters without a token.

Files are as those of Llama 2, Mistral and Gemma.
"""

from __future__ import annotations

import functools
import json
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
import tokenizers
from hypothesis import given
from tokenizers import decoders, normalizers, pre_tokenizers

import bpe
from bpe.errors import TokenizerFileError, UnknownCharacterError
from bpe.models import BYTE_TOKENS
from bpe.reference import pretokenize as reference
from tests.bpe.huggingface import ABSENT, edited, ids_of, loaded, marked_texts, written
from tests.bpe.models import make, of_sources
from tests.examples import examples
from tests.shared_data import shared_rows

MARK = "▁"
SPECIAL = ["<unk>", "<s>", "</s>"]
PREPEND, REPLACE = normalizers.Prepend(MARK), normalizers.Replace(" ", MARK)


def metaspace(scheme: str, *, split: bool) -> pre_tokenizers.Metaspace:
    return pre_tokenizers.Metaspace(prepend_scheme=scheme, split=split)


MARKED = normalizers.Sequence([PREPEND, REPLACE])
BEFORE_SPACES = pre_tokenizers.Split(" ", "merged_with_previous")
AT_DIGITS = pre_tokenizers.Sequence([metaspace("first", split=True), pre_tokenizers.Digits(True)])
NFKC = normalizers.NFKC()
# Of each kind what it has, and settings of its model.
KINDS: dict[str, dict[str, Any]] = {
    "llama2": {"normalizer": MARKED},
    "yi": {"normalizer": REPLACE},
    "gemma": {"normalizer": REPLACE, "pre_tokenizer": BEFORE_SPACES},
    "first": {"pre_tokenizer": metaspace("first", split=False)},
    "first, split": {"pre_tokenizer": metaspace("first", split=True)},
    "always": {"pre_tokenizer": metaspace("always", split=False)},
    "always, split": {
        "normalizer": NFKC,
        "pre_tokenizer": metaspace("always", split=True),
        "model": {"ignore_merges": True},
    },
    "never": {"pre_tokenizer": metaspace("never", split=False)},
    "never, split": {"pre_tokenizer": metaspace("never", split=True)},
    "digits": {"pre_tokenizer": AT_DIGITS},
    "one unknown": {"normalizer": MARKED, "model": {"byte_fallback": False}},
    "each unknown": {
        "pre_tokenizer": metaspace("always", split=True),
        "model": {"byte_fallback": False, "fuse_unk": False},
    },
}


def made(kind: str) -> tokenizers.Tokenizer:
    parts = {"normalizer": None, "pre_tokenizer": None, "model": {}} | KINDS[kind]
    file = json.loads(of_sources().to_json())
    model = {**file["model"], "byte_fallback": True, "fuse_unk": True, **parts["model"]}
    theirs = tokenizers.Tokenizer.from_str(json.dumps({**file, "model": model}))
    theirs.normalizer, theirs.pre_tokenizer = parts["normalizer"], parts["pre_tokenizer"]
    steps = [decoders.Replace(MARK, " "), decoders.Fuse()]
    if model["byte_fallback"]:
        steps.insert(1, decoders.ByteFallback())
    if kind not in ("yi", "gemma", "never", "never, split"):  # which put no mark before texts
        steps.append(decoders.Strip(" ", 1, 0))
    theirs.decoder = decoders.Sequence(steps)
    return theirs


@functools.cache
def of_kind(kind: str) -> tuple[bpe.Tokenizer, tokenizers.Tokenizer, tokenizers.Tokenizer]:
    """Ours, theirs, and theirs of the file that ours writes, which gives ours back."""
    theirs = made(kind)
    ours = loaded(theirs)
    again = written(ours)
    assert loaded(again) == ours
    return ours, theirs, again


@pytest.mark.parametrize("kind", KINDS)
@given(text=marked_texts())
@examples(150)
def test_any_text(kind: str, text: str) -> None:
    ours, theirs, again = of_kind(kind)
    ids = ids_of(theirs, text)
    assert ours.encode(text, allowed_special="all") == ids
    assert ours.encode_arrow([text], allowed_special="all").to_pylist() == [ids]
    assert ids_of(again, text) == ids
    for skip in (False, True):
        expected = theirs.decode(ids, skip_special_tokens=skip)
        assert ours.decode(ids, skip_special_tokens=skip) == expected
        assert again.decode(ids, skip_special_tokens=skip) == expected


@pytest.mark.parametrize("kind", KINDS)
def test_words_are_explained(kind: str) -> None:
    ours, *_ = of_kind(kind)
    data = "the tree  self.é 日本 \ufffd😀 漢".encode() + b"\xff\xc3"
    words = reference.split(ours.pretokenizer, data)
    steps = [symbol for word in words for symbol in ours.explain(word)[-1].symbols]
    assert [ours.token_id(symbol) for symbol in steps] == ours.encode(data)


@pytest.mark.shared
@pytest.mark.parametrize("corpus", ["en", "multi"])
@pytest.mark.parametrize("kind", ["llama2", "gemma", "first", "one unknown"])
def test_the_corpora(kind: str, corpus: str) -> None:
    ours, theirs, _ = of_kind(kind)
    texts = shared_rows(corpus, sample=150)["text"].to_pylist()
    rows = ours.encode_arrow(pa.array(texts)).to_pylist()
    for text, ids in zip(texts, rows, strict=True):
        if not any(token in text for token in SPECIAL):
            assert ids == ids_of(theirs, text)
            assert ours.decode(ids) == theirs.decode(ids, skip_special_tokens=False)


def test_added_tokens_behind_marks_that_a_pre_tokenizer_makes() -> None:
    theirs = made("never")
    theirs.add_tokens(["ab", "<m>"])
    theirs.add_special_tokens(["b>"])  # which "ab>" may hold instead
    ours = loaded(theirs)
    for text in ("a ab", "a▁ab", "ab>  <m>ab b>", "x  <m> <m>", "▁<m>"):
        assert ours.encode(text, allowed_special="all") == theirs.encode(text).ids
    for token in ("a b", tokenizers.AddedToken("<n>", lstrip=True, normalized=True)):
        theirs = made("never")
        theirs.add_tokens([token])
        with pytest.raises(TokenizerFileError, match="a Metaspace that puts no mark before texts,"):
            loaded(theirs)


def test_words_are_cut_only_where_no_merge_crosses() -> None:
    assert of_kind("llama2")[0].pretokenizer.patterns == (f"{MARK}+[^{MARK}]*",)
    file = edited(made("llama2").to_str(), f"model.vocab.e{MARK}", len(of_kind("llama2")[0]))
    theirs = tokenizers.Tokenizer.from_str(edited(file, "model.merges.0", ["e", MARK]))
    ours = loaded(theirs)
    assert ours.pretokenizer.name == "none"
    for text in ("the tree", " e  e e", "e"):
        assert ours.encode(text) == ids_of(theirs, text)


def test_tokens_that_no_text_needs() -> None:
    ours, *_ = of_kind("llama2")
    texts = {ours.token_text(id_) for id_ in ours.unreachable()}
    assert "<0x41>" in texts  # there is an A
    assert texts.isdisjoint({"<0x00>", "<0xE2>", "<0xFF>", "A", "the"})
    known = {text for text in texts if text.encode() not in BYTE_TOKENS}
    assert not known, known


UNDERSCORES = {"type": "Replace", "pattern": {"String": " "}, "content": "_"}
METASPACE = {"type": "Metaspace", "replacement": MARK, "prepend_scheme": "first", "split": True}


@pytest.mark.parametrize(
    ("place", "value", "named"),
    [
        ("normalizer", UNDERSCORES, "the normalizer 'Replace' is not supported"),
        (
            "pre_tokenizer",
            METASPACE | {"replacement": "_"},
            "replacement: '_' is not supported",
        ),
        ("pre_tokenizer", METASPACE, "prepend_scheme: first is not supported with a normalizer"),
        ("decoder", {"type": "Fuse"}, "decoder: decodes in another way .*ByteFallback"),
        ("model.vocab.<0x0A>", ABSENT, "no token is <0x0A>; byte fallback needs one"),
        ("decoder", None, None),
        ("decoder", METASPACE, None),
    ],
)
def test_what_is_refused(place: str, value: Any, named: str | None) -> None:
    file = edited(made("llama2").to_str(), place, value)
    if named is None:
        assert loaded(file) == of_kind("llama2")[0]
        return
    with pytest.raises(TokenizerFileError, match=named):
        loaded(file)


def test_an_unknown_character_is_not_fused_without_an_unknown_token() -> None:
    model = bpe.CharacterLevel(end_of_word="", fuse_unknown=True)
    with pytest.raises(UnknownCharacterError, match="'b'"):
        make(["a"], model=model).encode("ab")


def test_what_is_never_split_and_has_no_token_becomes_bytes() -> None:
    cut = bpe.Pretokenizer("none", never_split=("😀",))
    ours = bpe.Tokenizer(replace(of_kind("llama2")[0].parts, pretokenizer=cut))
    assert ours.decode(ours.encode("a😀")) == "a😀"
