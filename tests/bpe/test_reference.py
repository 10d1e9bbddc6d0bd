"""The core compared with its readable twin: each target of ``make fuzz``, on hard texts."""

from __future__ import annotations

import argparse
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bpe
from bpe import formats
from bpe.names import PAIR_COUNTS
from tests.bpe.fuzz_files import FORMATS
from tests.bpe.fuzz_mutations import mutated
from tests.bpe.fuzz_targets import SETTINGS, TARGETS, check_load, check_training
from tests.bpe.texts import CHARACTERS, MALFORMED, byte_strings
from tests.examples import examples
from tests.shared_data import LONG

if TYPE_CHECKING:
    from bpe.models import Model

# Letters that merge in many ways, that a mark at the end of words looks like, of several bytes.
LETTERS = ["a", "ab", "abc ", "the ", "ab<é漢", "</w>", "#a ", "aäßあ𝄞", "éèɩ東𐐩a ", "ab1\n"]
PIECES = [
    *("https://example.org/a?b=1", "www.a.b", "me@example.org", "a.b+c@d.e.f", "3.14", "10,5"),
    *("<|endoftext|>", "<|end|>", "<|end", "<s>", "＜s＞", "[UNK]", "<unk>", "</w>", "##"),
    *(" ", "  ", "\n", ".", "é", "e\u0301", "Ünï", "İ", "ﬁ", "ab", " ab", "ABC", "don't", "x" * 70),
]
UNITS = st.sampled_from([*(one.encode() for one in CHARACTERS), *MALFORMED])
TEXTS = st.one_of(
    byte_strings(),
    st.sampled_from(LETTERS).flatmap(lambda letters: st.text(letters, max_size=80)).map(str.encode),
    st.lists(st.sampled_from(PIECES), max_size=12).map("".join).map(str.encode),
    # Runs of anything, across the blocks of 16 and windows of 64 bytes that are scanned at once.
    st.lists(st.tuples(UNITS, st.integers(1, 70)), min_size=1, max_size=3).map(
        lambda runs: b"".join(unit * times for unit, times in runs)
    ),
    st.text("aZ9 \n\r\t!'/é", min_size=14, max_size=140).map(str.encode),
    # Around the length at which the core merges in another way, in the bytes of a few letters.
    st.sampled_from(LETTERS)
    .flatmap(lambda letters: st.lists(st.sampled_from(letters.encode()), min_size=60, max_size=140))
    .map(bytes),
)
FILES = st.sampled_from([content for files in FORMATS.values() for content in files.values()])
SEEDS = st.integers(0, 2**32 - 1)
INPUTS = {"scan": 2400, "pattern": 4000, "count": 1000, "train": 2000, "extend": 800}
INPUTS |= {"encode": 2000, "superwords": 600, "decode": 1000, "save": 800}


@pytest.mark.parametrize("target", INPUTS)
def test_the_core_is_its_readable_twin(target: str) -> None:
    @given(data=TEXTS, seed=SEEDS)
    @examples(INPUTS[target])
    def check(data: bytes, seed: int) -> None:
        TARGETS[target](data, random.Random(seed))

    check()


def test_every_target_is_here() -> None:
    assert {*INPUTS, "load"} == set(TARGETS)


@given(data=FILES, other=FILES, seed=SEEDS)
@examples(1600)
def test_a_changed_file_is_refused_or_read(data: bytes, other: bytes, seed: int) -> None:
    dice = random.Random(seed)
    TARGETS["load"](mutated(data, other, dice), dice)


@pytest.mark.parametrize("name", FORMATS)
def test_a_good_file_is_read(name: str) -> None:
    for content in FORMATS[name].values():
        assert "Error" not in str(check_load(content, random.Random(2)))


def test_every_format_has_a_file() -> None:
    names = [Path(name) for files in FORMATS.values() for name in files]
    for format_ in formats.FORMATS:
        assert any(format_.is_named(name) for name in names), format_.files


@pytest.mark.parametrize(("ties", "model"), SETTINGS)
def test_training_on_real_text_is_the_textbook(ties: str, model: Model) -> None:
    texts = [Path(argparse.__file__).read_text(encoding="utf-8")[: 30_000 if LONG else 6_000]]
    counts = bpe.count_pretokens(texts, track_order=True)
    limit = {"max_merges": 60}
    settings: dict[str, Any] = {"ties": ties, "model": model}
    both = ties != "huggingface" and (LONG or isinstance(model, bpe.ByteLevel))
    for pair_counts in PAIR_COUNTS if both else ("overlapping",):
        dice = random.Random(2)
        seen = check_training(counts, dice, limit, limit, pair_counts=pair_counts, **settings)
        assert len(seen) == 5  # it was trained
