from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from bpe.counting import count_pretokens
from bpe.counts import PretokenCounts, Totals
from bpe.errors import CountsError, EncodingError

LARGEST = 2**63 - 1
TEXTS = ["b a", "a é", "", "d b"]


@pytest.mark.parametrize(
    "texts",
    [
        iter(TEXTS),
        [text.encode() for text in TEXTS],
        pa.array(["before", *TEXTS, "after"])[1:-1],
        pa.array(TEXTS, pa.large_string()),
        pa.array(["before", *TEXTS])[1:].dictionary_encode(),
        pa.chunked_array([pa.array(["before", *TEXTS[:1]])[1:], pa.array(TEXTS[1:])]),
    ],
    ids=lambda texts: type(texts).__name__,
)
def test_every_kind_of_input_counts_the_same(texts: Any) -> None:
    counts = count_pretokens(texts, pretokenizer="words", track_order=True)
    assert counts.to_table().to_pydict() == {
        "pretoken": [b"a", b"b", b"d", "é".encode()],
        "count": [2, 2, 1, 1],
        "first_document": [0, 0, 3, 1],
        "first_position": [1, 0, 0, 1],
    }
    assert counts.totals.documents == 4


@pytest.mark.parametrize(
    ("texts", "error", "message"),
    [
        ("one text", CountsError, r"single text: give a list, \[text\]"),
        (["a", None], CountsError, "text 1 is None"),
        (["a", 7], CountsError, "text 1 is 7"),
        (["a", "b\ud800"], EncodingError, "text 1 has a lone surrogate at character 1"),
        (pa.array(["a", "b", None])[1:], CountsError, "text 1 is null"),
        (pa.chunked_array([["a", "b"], ["c", None]]), CountsError, "text 3 is null"),
        (pa.array(["a", None]).dictionary_encode(), CountsError, "text 1 is null"),
        (pa.array([1, 2]), TypeError, "not int64; cast"),
        (pa.array([["a"]]), TypeError, "not list<.*>; cast"),
    ],
)
def test_what_is_no_text_is_named(texts: list[str], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        count_pretokens(texts)


def test_counts_from_items() -> None:
    counts = PretokenCounts.from_items({"hug": 10, "pug": 5, "hugs": 2**40})
    assert dict(counts.items()) == {b"hug": 10, b"pug": 5, b"hugs": 2**40}
    assert counts.totals == Totals(3, 45 + 4 * 2**40, 15 + 2**40)
    again = PretokenCounts.from_items([(b"b", 1), ("a", 2), (b"b", 3)], track_order=True)
    assert again.to_table().to_pydict() == {
        "pretoken": [b"a", b"b"],
        "count": [2, 4],
        "first_document": [1, 0],
        "first_position": [0, 0],
    }
    assert again.order_span == 3
    assert PretokenCounts.from_items({}) == count_pretokens([], pretokenizer="none")


@pytest.mark.parametrize(
    ("items", "error", "message"),
    [
        ({"": 1}, CountsError, "item 0 is empty"),
        ({"a": 0}, CountsError, "'a': 0 is not a count"),
        ({"a": True}, CountsError, "True is not a count"),
        ({"a": 2**63}, CountsError, r"'a' passes 2\^63 - 1"),
        ([("a", LARGEST), (b"a", 1)], CountsError, r"passes 2\^63 - 1"),
        ([("a", LARGEST), (b"b", 1)], CountsError, r"sum of all counts passes 2\^63 - 1"),
        ({"\udfff": 1}, EncodingError, "item 0 has a lone surrogate"),
        ({3: 1}, CountsError, "item 0 is 3, not a str"),
    ],
)
def test_items_that_are_no_counts(
    items: dict[str, int], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        PretokenCounts.from_items(items)


def test_counts_have_64_bits() -> None:
    big = PretokenCounts.from_items({"the": 2**62, "of": 2**31})
    other = PretokenCounts.from_items({"the": 2**62 - 2**32 - 1, "a": 2**31})
    assert dict((big + other).items()) == {b"the": LARGEST - 2**32, b"of": 2**31, b"a": 2**31}
    with pytest.raises(CountsError, match=r"pre-token b'the' passes 2\^63 - 1"):
        big + big
    for times in (2, 2**70):
        with pytest.raises(CountsError, match=r"passes 2\^63 - 1"):
            big * times


def test_counts_of_different_kinds_are_not_added() -> None:
    plain = count_pretokens(["a"])
    other = count_pretokens(["a"], special_tokens=["<s>"])
    assert plain != other
    with pytest.raises(CountsError, match="1 or more, not 0"):
        plain * 0
    with pytest.raises(TypeError):
        plain + 1  # type: ignore[operator]
    with pytest.raises(TypeError):
        plain * 1.5  # type: ignore[operator]


def test_parts_that_contradict_each_other() -> None:
    counts = count_pretokens(["a b", "c"], track_order=True)
    for wrong, message in (
        ({"totals": Totals(2, 4, 4)}, "add up to 3, the totals say 4"),
        ({"order_span": None}, "order_span is None, but the counts know the order"),
        ({"order_span": 1}, "a document has place 1, order_span is 1"),
    ):
        with pytest.raises(CountsError, match=message):
            replace(counts, **wrong)
    with pytest.raises(CountsError, match=r"places of documents pass 2\^63 - 1"):
        replace(counts, order_span=2**64) + counts


def test_pickle_and_repr() -> None:
    counts = count_pretokens(["a b a"], pretokenizer="words", track_order=True)
    assert pickle.loads(pickle.dumps(counts)) == counts  # noqa: S301  # our own bytes
    assert repr(counts) == "<PretokenCounts: 2 distinct of 3 pre-tokens (words) in 1 documents>"
