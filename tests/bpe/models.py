"""Tokenizers of characters and WordPieces."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import bpe
from bpe.formats.cut_at_marks import WORDS
from bpe.models import SENTENCEPIECE_BPE
from bpe.roles import Roles
from tests.bpe.texts import library_sources

if TYPE_CHECKING:
    from collections.abc import Iterable


def make(
    strings: Iterable[str], pairs: Iterable[tuple[str, str]] = (), **settings: Any
) -> bpe.Tokenizer:
    """A tokenizer whose ids are the places of the strings; by default cut by ``words``."""
    tokens = [string.encode() for string in strings]
    ids = {token: id_ for id_, token in enumerate(tokens)}
    merges = [(ids[a.encode()], ids[b.encode()], ids[(a + b).encode()]) for a, b in pairs]
    special = settings.pop("special", ())
    settings.setdefault("pretokenizer", bpe.Pretokenizer("words"))
    settings["special_tokens"] = {content: ids[content.encode()] for content in special}
    return bpe.Tokenizer(tokens=tokens, merges=merges, **settings)


CUT_AT_MARKS = bpe.Pretokenizer(pattern=WORDS, normalizer=("prepend-mark", "mark-spaces"))


def trained_as_sentencepiece(texts: list[str], **arguments: Any) -> bpe.Tokenizer:
    """Words with marks for spaces, and the special tokens of Llama 2."""
    more: dict[str, Any] = {"special_tokens": ["<unk>", "<s>", "</s>"], "model": SENTENCEPIECE_BPE}
    return bpe.train(bpe.count_pretokens(texts, pretokenizer=CUT_AT_MARKS), **more | arguments)


@functools.cache
def of_sources() -> bpe.Tokenizer:
    """Trained so on real text."""
    sources = [source.decode("utf-8", "replace") for source in library_sources(60_000)]
    tokenizer = trained_as_sentencepiece(
        [*sources, "Ünïcode, 日本語 и кириллица " * 30],
        vocab_size=1500,
        character_coverage="0.9995",
    )
    return tokenizer.with_roles(Roles(bos="<s>", eos="</s>", unk="<unk>"))
