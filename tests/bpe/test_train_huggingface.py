"""``--ties huggingface``: the merges and the ids of ``tokenizers``' own trainer."""

from __future__ import annotations

import json
import sysconfig
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

import bpe
from tests.shared_data import shared_rows

SPECIALS = ("<|endoftext|>", "<|pad|>")


def train_theirs(texts: list[str], *, vocab_size: int, specials: tuple[str, ...] = ()) -> Any:
    """The model that ``BpeTrainer`` makes over the byte-level pre-tokenizer, as in its file."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=vocab_size,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=list(specials),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return json.loads(tokenizer.to_str())["model"]


def train_ours(texts: list[str], *, vocab_size: int, specials: tuple[str, ...] = ()) -> Any:
    """The same of ``bpe.train``."""
    counts = bpe.count_pretokens(texts, special_tokens=specials)
    tokenizer = bpe.train(counts, vocab_size=vocab_size, ties="huggingface")
    return json.loads(tokenizer.to_json())["model"]


@pytest.mark.shared
@pytest.mark.parametrize(("corpus", "vocab_size"), [("en", 32_000), ("multi", 8_000)])
def test_shared_corpora(corpus: str, vocab_size: int) -> None:
    texts = shared_rows(corpus, sample=400)["text"].to_pylist()
    theirs = train_theirs(texts, vocab_size=vocab_size, specials=SPECIALS)
    assert train_ours(texts, vocab_size=vocab_size, specials=SPECIALS) == theirs


def test_standard_library_text() -> None:
    sources = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))[:60]
    texts = [source.read_text(encoding="utf-8", errors="replace") for source in sources]
    theirs = train_theirs(texts, vocab_size=4_000)
    assert train_ours(texts, vocab_size=4_000) == theirs


@given(
    texts=st.lists(st.text("ab", max_size=30), min_size=1, max_size=8),
    merges=st.integers(0, 30),
)
def test_few_letters(texts: list[str], merges: int) -> None:
    """Ties, overlaps and strings made twice, which bring out its habits."""
    theirs = train_theirs(texts, vocab_size=256 + merges)
    assert train_ours(texts, vocab_size=256 + merges) == theirs
