"""Counts added with weights, and counts without what is rare."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bpe
from bpe.counts import PretokenCounts, combine
from bpe.errors import CountsError
from tests.bpe.oracle import known

if TYPE_CHECKING:
    from pathlib import Path

WORDS = st.text("abé", min_size=1, max_size=4)
ITEMS = st.dictionaries(WORDS, st.integers(1, 9), max_size=12)
WEIGHTS = st.fractions(min_value="1/12", max_value=5, max_denominator=12)


@given(parts=st.lists(st.tuples(ITEMS, WEIGHTS), min_size=1, max_size=4), order=st.booleans())
def test_weighted_counts_are_exact(
    parts: list[tuple[dict[str, int], Fraction]], order: bool
) -> None:
    counts = [PretokenCounts.from_items(items, track_order=order) for items, _ in parts]
    weights = [weight for _, weight in parts]
    found = combine(zip(counts, weights, strict=True))
    expected: Counter[bytes] = Counter()
    for items, weight in parts:
        for word, count in items.items():
            expected[word.encode()] += count * weight  # type: ignore[assignment]
    assert {word: Fraction(count, found.scale) for word, count in found.items()} == expected
    # One by one they are the same, down to the places.
    together = combine([(counts[0], weights[0])])
    for more, weight in zip(counts[1:], weights[1:], strict=True):
        together = combine([(together, 1), (more, weight)])
    assert together == found


def test_the_scale_is_the_least_that_will_do(tmp_path: Path) -> None:
    day = PretokenCounts.from_items({"low": 5, "new": 1})
    assert combine([(day, 1)]) is day
    assert combine([(day, Fraction(4, 2)), (day, 3)]).scale == 1
    mixed = combine([(day, Fraction(1, 2)), (day, Fraction("0.25")), (day, Fraction(1, 3))])
    assert (mixed.scale, dict(mixed.items())) == (12, {b"low": 65, b"new": 13})
    assert mixed.totals.pretokens == 13 * 6
    assert "in units of 1/12" in repr(mixed)
    mixed.save(tmp_path / "counts")
    assert PretokenCounts.load(tmp_path / "counts") == mixed
    assert dict((mixed + day).items()) == {b"low": 125, b"new": 25}
    assert (mixed * 12).scale == 12


def test_counts_that_do_not_go_together_say_which_and_why() -> None:
    one = bpe.count_pretokens(["a"], track_order=True)
    cases: list[tuple[dict[str, Any], str]] = [
        ({"normalizer": ["nfc"]}, r"different normalizer .*: day1 has None, day2 has \['nfc'\]"),
        ({"never_split": ["url"]}, r"different never_split .*: day1 has None, day2 has \['url'\]"),
        (
            {"pattern": [r"\w", "words"]},
            "different pretokenizer .*: day1 has 'gpt2', day2 has None",
        ),
        (
            {"special_tokens": ["<s>"]},
            r"different special_tokens .*: day1 has \[\], day2 has \['<s",
        ),
        ({}, "different `track_order` .*: day1 has True, day2 has False; count one of"),
    ]
    for settings, message in cases:
        with pytest.raises(CountsError, match=message):
            combine([(one, 1), (bpe.count_pretokens(["a"], **settings), 1)], names=["day1", "day2"])
    with pytest.raises(CountsError, match="day1: the weight is 0, it must be above 0"):
        combine([(one, 0)], names=["day1"])
    with pytest.raises(CountsError, match="no counts to add up"):
        combine([])
    large = PretokenCounts.from_items({"a": 2**62})
    with pytest.raises(CountsError, match=r"large: 4 times a count passes 2\^63 - 1"):
        combine([(large, 4)], names=["large"])


# Pruning.


def test_pruning_is_in_whole_occurrences_whatever_the_scale(tmp_path: Path) -> None:
    day = PretokenCounts.from_items({"low": 5, "new": 2, "wide": 1})
    half = combine([(day, 1), (day, Fraction(1, 2))])
    pruned = half.pruned(2)
    assert dict(pruned.items()) == {b"low": 15, b"new": 6}
    lost = known(pruned.prune)
    assert (lost.below, lost.occurrences) == (4, 3)
    pruned.save(tmp_path / "counts")
    manifest = json.loads((tmp_path / "counts" / "manifest.json").read_text())
    assert (manifest["scale"], manifest["pruned"]["max_pair"]) == (2, 3)
    assert PretokenCounts.load(tmp_path / "counts") == pruned
    assert pruned.pruned(2) == pruned
    again = pruned.pruned(5)
    assert (dict(again.items()), known(again.prune).below) == ({b"low": 15}, 10)
    assert len(pruned.pruned(2**70)) == 0


@pytest.mark.parametrize("below", [0, -1, 1.5, "2", True])
def test_limits_that_are_wrong(below: int) -> None:
    with pytest.raises(CountsError, match="below a count of 1 or more"):
        PretokenCounts.from_items({"a": 1}).pruned(below)
