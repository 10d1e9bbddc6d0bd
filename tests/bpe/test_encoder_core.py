"""The core checks pieces that Python never gives it before it reads them."""

from __future__ import annotations

from array import array
from itertools import accumulate, chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpe._arrow import values_of
from bpe._native import Encoder
from bpe.dropout import row_seeds
from tests.bpe.vocabularies import BYTES

PLACES = st.integers(0, 12) | st.sampled_from([-1, 2**62])
IDS = st.sampled_from([-2, -1, 0, 3, -3, 2**40])
PIECES = st.lists(st.tuples(PLACES, PLACES, IDS), max_size=3)


@pytest.mark.parametrize("model", ["bytes", "characters", "word_piece"])
@given(
    data=st.binary(max_size=12),
    pieces=PIECES,
    left_over=st.sampled_from([[], [], [0]]),
    row_ends=st.none() | st.lists(st.integers(-1, 5), max_size=4),
    cut=st.booleans(),
    dropout=st.sampled_from([0.0, 0.5]),
)
def test_pieces_are_encoded_or_refused(
    model: str,
    data: bytes,
    pieces: list[tuple[int, int, int]],
    left_over: list[int],
    row_ends: list[int] | None,
    cut: bool,
    dropout: float,
) -> None:
    tokens = [*(BYTES if model == "bytes" else [b"a", b"b", "é".encode()]), b"</w>", b"<unk>"]
    last = len(tokens) - 1
    encoder = Encoder(
        token_data=b"".join(tokens),
        token_offsets=array("q", accumulate(map(len, tokens), initial=0)),
        merges=b"",
        special_ids=[last],
        pretokenizer=["gpt2"],
        ignore_merges=False,
        model=model,
        affix={"characters": "</w>", "word_piece": "##"}.get(model, ""),
        unknown=None if model == "bytes" else last,
        max_characters=100,
    )
    ends = [len(pieces)] if row_ends is None else row_ends
    is_valid = (
        not left_over
        and all(0 <= begin <= end <= len(data) for begin, end, _ in pieces)
        and all(-2 <= id_ <= last for *_, id_ in pieces)
        and [0, *ends] == sorted([0, *ends])
        and max(ends, default=0) == len(pieces)
        and not (dropout and model == "word_piece")
    )
    try:
        ids, offsets, unencodable, (asked, misses) = encoder.encode_pieces(
            data,
            array("q", [*chain(*pieces), *left_over]),
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
