"""Training's report of pruned pre-tokens: the merges before the one it names are those of all."""

from __future__ import annotations

import string
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpe import CharacterLevel, PretokenCounts, WordPiece, train
from bpe.counts import combine
from tests.bpe.oracle import learnt, merged, training_of

ITEMS = st.dictionaries(st.text("ab", min_size=1, max_size=8), st.integers(1, 20), min_size=1)


@given(
    first=ITEMS,
    second=ITEMS,
    weight=st.sampled_from([Fraction(1, 3), Fraction(5, 2), Fraction(2)]),
    merges=st.integers(0, 12),
)
def test_counts_pruned_before_they_are_added(
    first: dict[str, int], second: dict[str, int], weight: Fraction, merges: int
) -> None:
    one, other = PretokenCounts.from_items(first), PretokenCounts.from_items(second)
    full = combine([(one, Fraction(1)), (other, weight)])
    pruned = combine([(one.pruned(4), Fraction(1)), (other.pruned(3), weight)])
    trained = train(pruned, max_merges=merges)
    before = learnt(trained).first_affected
    assert merged(trained)[:before] == merged(train(full, max_merges=merges))[:before]


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
    before = learnt(pruned).first_affected
    assert before is not None
    assert before <= merges
    assert merged(pruned)[:before] == merged(full)[:before]


def test_word_piece_is_certain_of_nothing() -> None:
    """One rare pair of rare symbols would have had the greatest score."""
    counts = PretokenCounts.from_items({"ab": 100, "cd": 50, "xy": 1})
    model = WordPiece()
    full = train(counts, max_merges=1, model=model)
    pruned = train(counts, max_merges=1, model=model, prune_below=2)
    assert merged(full) == [(b"x", b"##y")]
    assert learnt(pruned).first_affected == 0


def test_frequencies_are_those_of_the_corpus_whatever_the_unit() -> None:
    """Half of two counts: in units of 1/2, ab counts 4 and cd 2, which is 2 and 1."""
    counts = combine([(PretokenCounts.from_items({"ab": 4, "cd": 2}), Fraction(1, 2))])
    assert counts.scale == 2
    tokenizer = train(counts, vocab_size=300, min_frequency=2)
    assert merged(tokenizer) == [(b"a", b"b")]
    assert merged(train(counts, vocab_size=300, prune_below=2)) == [(b"a", b"b")]
    assert training_of(tokenizer).counts["scale"] == 2
