"""The core's encoder on what Python never gives it: everything is checked before it is read."""

from __future__ import annotations

from array import array
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe._arrow import values_of
from bpe._native import Encoder, SpecialMatcher, TextColumn
from bpe.dropout import row_seeds
from tests.bpe.vocabularies import BYTES

MODELS = ["bytes", "characters", "word_piece"]


def encoder(model: str = "bytes", **changes: Any) -> Encoder:
    tokens = [*(BYTES if model == "bytes" else [b"a", b"b", "é".encode()]), b"</w>", b"<unk>"]
    arguments: dict[str, Any] = {
        "token_data": b"".join(tokens),
        "token_offsets": array("q", [sum(map(len, tokens[:i])) for i in range(len(tokens) + 1)]),
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


def numbers(*values: int) -> array[int]:
    return array("q", values)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"model": "sounds"}, "unknown model 'sounds'"),
        ({"unknown": 2**32 - 2}, "no token has the id 4294967294"),
        ({"special_ids": [2**62]}, f"no token has the id {2**62}"),
        ({"merges": array("I", [0, 1])}, "merges are not triples"),
        ({"merges": array("I", [0, 1, 2**32 - 1])}, "no token has the id 4294967295"),
        ({"token_offsets": numbers(0, 9, 3)}, "offsets of the tokens do not ascend"),
    ],
)
def test_what_it_is_made_of_is_checked(changes: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        encoder(**{"model": "characters", **changes})


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("pieces", "row_ends", "named"),
    [
        ([0, 1], [0], "pieces are not of 3 numbers each"),
        ([-1, 1, -1], [1], "piece 0 lies outside the data"),
        ([2, 1, -2], [1], "piece 0 lies outside the data"),
        ([0, 2**62, -1], [1], "piece 0 lies outside the data"),
        ([0, 1, -3], [1], "no token has the id -3"),
        ([0, 1, 2**40], [1], "no token has the id"),
        ([0, 1, -1], [1, 0], "row_ends do not ascend"),
        ([0, 1, -1], [-1], "row_ends do not ascend"),
        ([0, 1, -1], [], "pieces are left over"),
    ],
)
def test_pieces_are_checked(model: str, pieces: list[int], row_ends: list[int], named: str) -> None:
    for cut in (False, True):
        with pytest.raises(ValueError, match=named):
            encoder(model).encode_pieces(b"abc", numbers(*pieces), numbers(*row_ends), cut=cut)


def test_pieces_of_a_pattern_cannot_be_cut() -> None:
    without = encoder(pretokenizer=[])
    with pytest.raises(ValueError, match="no pre-tokenizer"):
        without.encode_pieces(b"a", numbers(0, 1, -1), numbers(1), cut=True)
    with pytest.raises(ValueError, match="no pre-tokenizer"):
        without.encode(TextColumn(b"a", numbers(0, 1), 8, 0, 1), SpecialMatcher([]), [])


@pytest.mark.parametrize("seeds", [None, b"", bytes(8), bytes(24), bytes(7)])
def test_there_is_a_seed_for_each_row(seeds: bytes | None) -> None:
    column = TextColumn(b"ab", numbers(0, 1, 2), 8, 0, 2)
    with pytest.raises(ValueError, match=r"one seed for each row|whole number of elements"):
        encoder().encode(column, SpecialMatcher([]), [], dropout=0.5, seeds=seeds)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("ids", "offsets", "skipped", "named"),
    [
        ([0, 1], [0, 3], [], "offsets of the ids do not ascend"),
        ([0, 1], [0, 2, 1], [], "offsets of the ids do not ascend"),
        ([0, 1], [0, -1], [], "offsets of the ids do not ascend"),
        ([0, 2**32 - 1], [0, 1, 2], [0], "row 1: no token has the id 4294967295"),
        ([0, 1], [0, 2], [-1], "no token has the id -1"),
        ([0, 1], [0, 2], [2**50], "no token has the id"),
    ],
)
def test_ids_are_checked(
    model: str, ids: list[int], offsets: list[int], skipped: list[int], named: str
) -> None:
    with pytest.raises(ValueError, match=named):
        encoder(model).decode(array("I", ids), numbers(*offsets), skipped)


@pytest.mark.parametrize("model", MODELS)
@given(
    data=st.binary(max_size=12),
    pieces=st.lists(st.integers(-3, 13), max_size=12),
    row_ends=st.lists(st.integers(-1, 5), max_size=4),
    cut=st.booleans(),
    dropout=st.sampled_from([0.0, 0.5]),
)
@settings(deadline=None)
def test_any_pieces_are_encoded_or_refused(
    model: str, data: bytes, pieces: list[int], row_ends: list[int], cut: bool, dropout: float
) -> None:
    encode = encoder(model).encode_pieces
    seeds = values_of(row_seeds(0, len(row_ends)))
    try:
        ids, offsets, unencodable, (asked, misses) = encode(
            data, numbers(*pieces), numbers(*row_ends), cut=cut, dropout=dropout, seeds=seeds
        )
    except ValueError:
        return
    ends = memoryview(offsets).cast("q").tolist()
    assert len(ends) == len(row_ends) + 1
    assert ends == sorted(ends)
    assert ends[-1] * 4 == len(ids)
    assert unencodable == []
    assert 0 <= misses <= asked
