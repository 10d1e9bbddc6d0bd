"""Training's report of pruned pre-tokens: the merges before the one it names are those of all."""

from __future__ import annotations

import string
from fractions import Fraction
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bpe
from bpe import ByteLevel, CharacterLevel, PretokenCounts, Pretokenizer, Tokenizer, WordPiece, train
from bpe.counts import combine
from tests.bpe.fuzz_targets import SETTINGS
from tests.bpe.oracle import known, merged, training_of
from tests.examples import examples
from tests.shared_data import shared_file

if TYPE_CHECKING:
    from bpe.models import Model


def first_affected(tokenizer: Tokenizer) -> int | None:
    """The merge that training names."""
    return known(training_of(tokenizer).pruned)["first_affected_merge"]


def check(full: Tokenizer, pruned: Tokenizer) -> int:
    """The merges before the affected one are equal; returns how many they are."""
    affected = first_affected(pruned)
    if affected is None:
        assert merged(pruned) == merged(full)
        return len(merged(full))
    assert merged(pruned)[:affected] == merged(full)[:affected]
    return affected


def word(letters: str) -> st.SearchStrategy[str]:
    """A short word."""
    return st.lists(st.sampled_from(letters), min_size=1, max_size=8).map("".join)


@pytest.mark.parametrize(
    ("ties", "model"), [one for one in SETTINGS if not isinstance(one[1], WordPiece)]
)
@given(
    frequent=st.dictionaries(word("abc"), st.integers(5, 60), min_size=1, max_size=5),
    rare=st.dictionaries(word("abc@"), st.integers(1, 4), max_size=5),
    below=st.integers(2, 5),
    merges=st.integers(0, 20),
    min_frequency=st.integers(1, 12),
)
@examples(100)
def test_merges_before_it_are_those_of_all_words(
    ties: str,
    model: Model,
    frequent: dict[str, int],
    rare: dict[str, int],
    below: int,
    merges: int,
    min_frequency: int,
) -> None:
    counts = PretokenCounts.from_items(
        rare | frequent,
        pretokenizer=Pretokenizer("words", never_split=("@.*", "^aa$")),
        track_order=True,
        special_tokens=("abab", "<|e|>"),
    )

    def trained(prune_below: int) -> Tokenizer:
        return train(
            counts,
            max_merges=merges,
            ties=ties,
            model=model,
            min_frequency=min_frequency,
            prune_below=prune_below,
        )

    check(trained(1), trained(below))


@given(
    first=st.dictionaries(word("ab"), st.integers(1, 20), min_size=1, max_size=6),
    second=st.dictionaries(word("ab"), st.integers(1, 20), min_size=1, max_size=6),
    weight=st.sampled_from([Fraction(1, 3), Fraction(5, 2), Fraction(2)]),
    merges=st.integers(0, 12),
)
def test_counts_pruned_before_they_are_added(
    first: dict[str, int], second: dict[str, int], weight: Fraction, merges: int
) -> None:
    one, other = PretokenCounts.from_items(first), PretokenCounts.from_items(second)
    full = combine([(one, Fraction(1)), (other, weight)])
    pruned = combine([(one.pruned(4), Fraction(1)), (other.pruned(3), weight)])
    check(train(full, max_merges=merges), train(pruned, max_merges=merges))


@pytest.mark.shared
@pytest.mark.parametrize("model", [ByteLevel(), CharacterLevel()])
def test_a_corpus(model: Model) -> None:
    """In English text, a lead over the next pair is soon less than what rare words hold."""
    texts = pq.read_table(shared_file("corpora/en.parquet"), columns=["text"])["text"][:2000]
    cut = "gpt2" if isinstance(model, ByteLevel) else "words"
    counts = bpe.count_pretokens(texts, pretokenizer=cut)
    full = train(counts, max_merges=1000, model=model)
    assert training_of(full).pruned is None
    for below in (2, 5):
        pruned = train(counts, max_merges=1000, model=model, prune_below=below)
        assert check(full, pruned) < 1000


def test_a_clear_lead_is_certain() -> None:
    counts = PretokenCounts.from_items({"ab": 100, "cd": 50, "ad": 2})
    tokenizer = train(counts, max_merges=2, prune_below=3)
    assert training_of(tokenizer).pruned == {
        "below": 3,
        "distinct_pretokens": 1,
        "occurrences": 2,
        "bytes": 4,
        "max_pair": 2,
        "max_end": 2,
        "first_affected_merge": None,
    }


@pytest.mark.parametrize(("end", "merges"), [(">", 0), ("</w>", 4)])
def test_characters_that_are_the_end_of_a_word_count_for_both(end: str, merges: int) -> None:
    """Rare words hold a and the end 200 times, and a and its characters as often."""
    words = {"a": 300, "cde": 300, "cdf": 300}
    for letter in string.digits:
        words |= {f"{letter}a": 20, f"{letter}a{end}k": 20}
    if merges:  # make one token of its characters: w>, </, </w>; and </w></w> with the end
        words |= {end: 1000, "</w>x": 220, "</w>u": 230, "</y": 300, "</s": 310}
        words |= {"w>z": 300, "w>v": 310, "w>t": 320}
    counts = PretokenCounts.from_items(words)
    model = CharacterLevel(end_of_word=end)
    full = train(counts, max_merges=merges + 1, model=model)
    pruned = train(counts, max_merges=merges + 1, model=model, prune_below=21)
    assert merged(full)[merges] == (b"a", end.encode())
    assert merged(pruned)[merges] == (b"c", b"d")
    assert check(full, pruned) <= merges


def test_word_piece_is_certain_of_nothing() -> None:
    """One rare pair of rare symbols would have had the greatest score."""
    counts = PretokenCounts.from_items({"ab": 100, "cd": 50, "xy": 1})
    model = WordPiece()
    full = train(counts, max_merges=1, model=model)
    pruned = train(counts, max_merges=1, model=model, prune_below=2)
    assert merged(full) == [(b"x", b"##y")]
    assert first_affected(pruned) == 0


def test_frequencies_are_those_of_the_corpus_whatever_the_unit() -> None:
    """Half of two counts: in units of 1/2, ab counts 4 and cd 2, which is 2 and 1."""
    counts = combine(
        [
            (PretokenCounts.from_items({"ab": 4, "cd": 2}), Fraction(1, 2)),
        ]
    )
    assert counts.scale == 2
    tokenizer = train(counts, vocab_size=300, min_frequency=2)
    assert merged(tokenizer) == [(b"a", b"b")]
    assert merged(train(counts, vocab_size=300, prune_below=2)) == [(b"a", b"b")]
    assert training_of(tokenizer).counts["scale"] == 2
