from __future__ import annotations

import pickle
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpe.counting import count_pretokens
from bpe.counts import PretokenCounts, Totals
from bpe.errors import CountsError, EncodingError
from tests.bpe.texts import byte_texts

LARGEST = 2**63 - 1
corpora = st.lists(byte_texts, max_size=6)


@given(corpora)
def test_every_kind_of_input_counts_the_same(texts: list[bytes]) -> None:
    strings = [text.decode("utf-8", "replace") for text in texts]
    expected = count_pretokens(strings)
    assert count_pretokens(iter(strings)) == expected
    assert count_pretokens(text.encode() for text in strings) == expected
    for kind in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary()):
        assert count_pretokens(pa.array(strings, kind)) == expected
    framed = pa.array(["before", *strings, "after"])
    assert count_pretokens(framed[1:-1]) == expected
    assert count_pretokens(framed[1:-1].dictionary_encode()) == expected
    half = len(strings) // 2
    chunks = [pa.array(strings[:half], pa.string()), pa.array(strings[half:], pa.string())]
    assert count_pretokens(pa.chunked_array(chunks, pa.string())) == expected


def test_track_order_over_chunks_and_slices() -> None:
    texts = ["b a", "a c", "d b", "e"]
    expected = count_pretokens(texts, pretokenizer="words", track_order=True)
    chunks = pa.chunked_array([pa.array(["x", *texts[:1]])[1:], pa.array(texts[1:])])
    assert count_pretokens(chunks, pretokenizer="words", track_order=True) == expected
    assert expected.pretokens.to_pylist() == [b"a", b"b", b"c", b"d", b"e"]
    table = expected.to_table().to_pydict()
    assert table["first_document"] == [0, 0, 1, 2, 3]
    assert table["first_position"] == [1, 0, 1, 0, 0]


@pytest.mark.parametrize(
    ("texts", "error", "message"),
    [
        ("one text", CountsError, r"single text: give a list, \[text\]"),
        (["a", None], CountsError, "text 1 is None"),
        (["a", 7], CountsError, "text 1 is 7"),
        (["a", "b\ud800"], EncodingError, "text 1 has a lone surrogate at character 1"),
        (pa.array(["a", "b", None]), CountsError, "text 2 is null"),
        (pa.array(["a", "b", None])[1:], CountsError, "text 1 is null"),
        (pa.chunked_array([["a", "b"], ["c", None]]), CountsError, "text 3 is null"),
        (pa.array(["a", None]).dictionary_encode(), CountsError, "text 1 is null"),
        (pa.array([1, 2]), CountsError, "int64: cast"),
        (pa.array([["a"]]), CountsError, "list<.*>: cast"),
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
        ({"a": -1}, CountsError, "-1 is not a count"),
        ({"a": True}, CountsError, "True is not a count"),
        ({"a": 1.5}, CountsError, "1.5 is not a count"),
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
    for other, message in (
        (count_pretokens(["a"], pretokenizer="cl100k"), "different pretokenizer"),
        (count_pretokens(["a"], special_tokens=["<s>"]), "different special_tokens"),
        (count_pretokens(["a"], track_order=True), "track order"),
    ):
        with pytest.raises(CountsError, match=message):
            plain + other
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
    with pytest.raises(CountsError, match="documents is negative"):
        Totals(documents=-1)
    with pytest.raises(CountsError, match=r"places of documents pass 2\^63 - 1"):
        replace(counts, order_span=2**64) + counts


def test_pickle_and_repr() -> None:
    counts = count_pretokens(["a b a"], pretokenizer="words", track_order=True)
    assert pickle.loads(pickle.dumps(counts)) == counts  # noqa: S301  # our own bytes
    assert repr(counts) == "<PretokenCounts: 2 distinct of 3 pre-tokens (words) in 1 documents>"
