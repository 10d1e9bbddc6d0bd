"""BPE-dropout: merges dropped at random, and the same ones every time."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bpe
from bpe.dropout import row_seeds
from bpe.errors import EncodingError
from bpe.reference.encode import SplitMix64
from tests.bpe.models import make
from tests.bpe.texts import library_sources
from tests.bpe.vocabularies import small_tokenizer

SEEDS = st.integers(0, 2**64 - 1)


# The ends, and what is between.


def test_every_way_to_drop_has_its_probability() -> None:
    # "aab" with (a, a) before (a, b): a step has two candidates, then the word is done, because
    # neither "aa b" nor "a ab" merges further.
    tokenizer = make(
        ["a", "b", "aa", "ab"],
        [("a", "a"), ("a", "b")],
        model=bpe.CharacterLevel(end_of_word=""),
    )
    rows, rate = 40_000, 0.3
    column = pa.array(["aab"] * rows)
    found = Counter(map(tuple, tokenizer.encode_arrow(column, dropout=rate, seed=5).to_pylist()))
    expected = {(2, 1): 1 - rate, (0, 3): rate * (1 - rate), (0, 0, 1): rate * rate}
    assert found.keys() == expected.keys()
    for ids, probability in expected.items():
        deviation = math.sqrt(rows * probability * (1 - probability))
        assert abs(found[ids] - rows * probability) < 5 * deviation


def test_a_long_piece() -> None:
    tokenizer = small_tokenizer("none")
    for text in (b"a" * 2**18, b" the" * 2**16):
        ids = tokenizer.encode(text, dropout=0.5)
        assert tokenizer.decode_bytes(ids) == text


# Reproducible, however rows are dealt out.


def test_rows_do_not_depend_on_chunks_slices_or_threads() -> None:
    tokenizer = small_tokenizer("gpt2")
    sources = [source.decode("utf-8", "replace") for source in library_sources(300_000)]
    column = pa.array([*sources, None, "", "a b"], pa.string())
    rows = tokenizer.encode_arrow(column, dropout=0.1, seed=7).to_pylist()
    cuts = [0, 1, 1, 5, len(column)]
    parts = [column.slice(a, b - a) for a, b in itertools.pairwise(cuts)]
    chunked = tokenizer.encode_arrow(pa.chunked_array(parts), dropout=0.1, seed=7)
    assert chunked.to_pylist() == rows

    def encode(part: pa.Array, first: int) -> Any:
        own = row_seeds(7, len(part), first=first)
        return tokenizer.encode_arrow(part, dropout=0.1, seeds=own).to_pylist()

    with ThreadPoolExecutor(4) as pool:
        assert list(itertools.chain(*pool.map(encode, parts, cuts))) == rows


@given(seed=SEEDS, first=st.integers(0, 50), rows=st.integers(0, 20))
def test_seeds_of_rows_are_splitmix64(seed: int, first: int, rows: int) -> None:
    random_numbers = SplitMix64(seed)
    numbers = [random_numbers.next() for _ in range(first + rows)]
    assert row_seeds(seed, rows, first=first).to_pylist() == numbers[first:]


def test_seeds_of_all_forms() -> None:
    tokenizer = small_tokenizer("gpt2")
    column = pa.array(["the other thing"] * 3)
    numbers = [1, 2**63, 2**64 - 1]
    rows = tokenizer.encode_arrow(column, dropout=0.3, seeds=numbers)
    for seeds in (
        tuple(numbers),
        pa.array(numbers, pa.uint64()),
        pa.array([0, *numbers], pa.uint64())[1:],
        pa.chunked_array([numbers[:1], numbers[1:]], pa.uint64()),
    ):
        assert tokenizer.encode_arrow(column, dropout=0.3, seeds=seeds) == rows
    # Without dropout they are not looked at.
    assert tokenizer.encode_arrow(column, seeds=[]) == tokenizer.encode_arrow(column)


# What is refused.


@pytest.mark.parametrize(
    ("name", "value", "most"),
    [
        *(("dropout", rate, "1") for rate in (-0.1, 1.1, math.nan, math.inf, "0.1", None)),
        *(("seed", seed, r"2\^64 - 1") for seed in (-1, 2**64, 1.0, "1", None)),
    ],
)
def test_a_rate_or_seed_that_is_none(name: str, value: Any, most: str) -> None:
    for call in (small_tokenizer().encode, small_tokenizer().tokenize):
        with pytest.raises(EncodingError, match=rf"{name} .* is not a number from 0 to {most}"):
            call("a", **{"dropout": 0.5, name: value})


@pytest.mark.parametrize(
    ("seeds", "named"),
    [
        ([1], r"1 seeds, 0 of them null, for 2 texts"),
        ([1, None], r"2 seeds, 1 of them null, for 2 texts"),
        ([1, -1], r"not numbers from 0 to 2\^64 - 1"),
        ([1, 2**64], r"not numbers from 0 to 2\^64 - 1"),
        (pa.array([1, -1]), r"not numbers from 0 to 2\^64 - 1"),
        (pa.array(["a", "b"]), r"not numbers from 0 to 2\^64 - 1"),
        (5, r"not numbers from 0 to 2\^64 - 1"),
    ],
)
def test_seeds_that_are_no_numbers(seeds: Any, named: str) -> None:
    with pytest.raises(EncodingError, match=named):
        small_tokenizer().encode_arrow(pa.array(["a", "b"]), dropout=0.5, seeds=seeds)


def test_word_pieces_have_no_merges_to_drop() -> None:
    tokenizer = make(["[UNK]", "a"], special=["[UNK]"], model=bpe.WordPiece())
    assert tokenizer.encode("a", dropout=0) == [1]
    with pytest.raises(EncodingError, match="WordPiece has no merges that could be dropped"):
        tokenizer.encode("a", dropout=0.1)
