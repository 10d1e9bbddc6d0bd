"""The core checks what Python never gives it before it reads it."""

from __future__ import annotations

from array import array
from itertools import accumulate
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpe._arrow import text_column, values_of
from bpe._native import Encoder
from bpe.dropout import row_seeds
from tests.bpe.vocabularies import BYTES

IDS = st.sampled_from([-2, -1, 0, 3, -3, 2**40])
SEGMENTS = st.lists(st.tuples(st.binary(max_size=6), IDS), max_size=3)


def encoder(model: str, **changes: Any) -> Encoder:
    tokens = [*(BYTES if model == "bytes" else [b"a", b"b", "é".encode()]), b"</w>", b"<unk>"]
    arguments: dict[str, Any] = {
        "token_data": b"".join(tokens),
        "token_offsets": array("q", accumulate(map(len, tokens), initial=0)),
        "merges": b"",
        "special_ids": [len(tokens) - 1],
        "pretokenizer": ["gpt2"],
        "ignore_merges": False,
        "model": model,
        "affix": {"characters": "</w>", "word_piece": "##"}.get(model, ""),
        "unknown": None if model == "bytes" else len(tokens) - 1,
        "max_characters": 100,
    }
    return Encoder(**{**arguments, **changes})


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"unknown": 2**32 - 2}, "no token has the id 4294967294"),
        ({"special_ids": [2**62]}, f"no token has the id {2**62}"),
        ({"merges": array("I", [0, 1])}, "merges are not triples"),
        ({"merges": array("I", [0, 1, 2**32 - 1])}, "no token has the id 4294967295"),
        ({"token_offsets": array("q", [0, 9, 3])}, "offsets of the tokens do not ascend"),
    ],
)
def test_what_it_is_made_of_is_checked(changes: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        encoder("characters", **changes)


@pytest.mark.parametrize(
    ("ids", "offsets", "skipped", "named"),
    [
        ([0, 1], [0, 3], [], "offsets of the ids do not ascend"),
        ([0, 1], [0, 2, 1], [], "offsets of the ids do not ascend"),
        ([0, 2**32 - 1], [0, 1, 2], [0], "row 1: no token has the id 4294967295"),
        ([0, 1], [0, 2], [-1], "no token has the id -1"),
    ],
)
def test_ids_are_checked(
    ids: list[int], offsets: list[int], skipped: list[int], named: str
) -> None:
    with pytest.raises(ValueError, match=named):
        encoder("bytes").decode(array("I", ids), array("q", offsets), skipped)


@pytest.mark.parametrize("seeds", [b"", bytes(24), bytes(7)])
def test_there_is_a_seed_for_each_row(seeds: bytes) -> None:
    column, ends = text_column(pa.array([b"a"])), array("q", [1, 1])
    with pytest.raises(ValueError, match=r"one seed for each row|whole number of elements"):
        encoder("bytes").encode_segments(column, array("q", [-2]), ends, dropout=0.5, seeds=seeds)


@pytest.mark.parametrize("model", ["bytes", "characters", "word_piece"])
@given(
    segments=SEGMENTS,
    left_over=st.sampled_from([[], [], [0]]),
    row_ends=st.none() | st.lists(st.integers(-1, 5), max_size=4),
    cut=st.booleans(),
    dropout=st.sampled_from([0.0, 0.5]),
)
def test_segments_are_encoded_or_refused(
    model: str,
    segments: list[tuple[bytes, int]],
    left_over: list[int],
    row_ends: list[int] | None,
    cut: bool,
    dropout: float,
) -> None:
    core, last = encoder(model), len(BYTES) + 1 if model == "bytes" else 4
    ends = [len(segments)] if row_ends is None else row_ends
    is_valid = (
        not left_over
        and all(-2 <= id_ <= last for _, id_ in segments)
        and [0, *ends] == sorted([0, *ends])
        and max(ends, default=0) == len(segments)
        and not (dropout and model == "word_piece")
    )
    try:
        ids, offsets, unencodable, (asked, misses) = core.encode_segments(
            text_column(pa.array([data for data, _ in segments], pa.large_binary())),
            array("q", [*(id_ for _, id_ in segments), *left_over]),
            array("q", ends),
            cut=cut,
            dropout=dropout,
            seeds=values_of(row_seeds(0, len(ends))),
        )
    except ValueError:
        assert not is_valid
        return
    assert is_valid
    found = memoryview(offsets).cast("q").tolist()
    assert len(found) == len(ends) + 1
    assert found == sorted(found)
    assert found[-1] * 4 == len(ids)
    assert unencodable == []
    assert 0 <= misses <= asked
