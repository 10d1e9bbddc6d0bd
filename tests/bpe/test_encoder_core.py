"""The core's encoder on what Python never gives it: everything is checked before it is read."""

from __future__ import annotations

import contextlib
from array import array
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe._native import Encoder, TextColumn, random_words
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
        ({"unknown": 5}, "no token has the id 5"),
        ({"unknown": 2**32 - 2}, "no token has the id 4294967294"),
        ({"affix": "</v>"}, "no token is the end of a word, '</v>'"),
        ({"special_ids": [-1]}, "no token has the id -1"),
        ({"special_ids": [2**62]}, f"no token has the id {2**62}"),
        ({"merges": array("I", [0, 1])}, "merges are not triples"),
        ({"merges": array("I", [0, 1, 2])}, "the result is not the bytes of left and right"),
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
        ([0, 4, -1], [1], "piece 0 lies outside the data"),
        ([-1, 1, -1], [1], "piece 0 lies outside the data"),
        ([2, 1, -2], [1], "piece 0 lies outside the data"),
        ([0, 2**62, -1], [1], "piece 0 lies outside the data"),
        ([0, 1, -3], [1], "no token has the id -3"),
        ([0, 1, 2**40], [1], "no token has the id"),
        ([0, 1, -1], [2], "row_ends do not ascend"),
        ([0, 1, -1], [1, 0], "row_ends do not ascend"),
        ([0, 1, -1], [-1], "row_ends do not ascend"),
        ([0, 1, -1], [0], "pieces are left over"),
        ([0, 1, -1], [], "pieces are left over"),
    ],
)
def test_pieces_are_checked(model: str, pieces: list[int], row_ends: list[int], named: str) -> None:
    for cut in (False, True):
        with pytest.raises(ValueError, match=named):
            encoder(model).encode_pieces(b"abc", numbers(*pieces), numbers(*row_ends), cut=cut)


def test_pieces_of_a_pattern_cannot_be_cut() -> None:
    with pytest.raises(ValueError, match="no pre-tokenizer"):
        encoder(pretokenizer=[]).encode_pieces(b"a", numbers(0, 1, -1), numbers(1), cut=True)
    with pytest.raises(ValueError, match="no pre-tokenizer"):
        encoder(pretokenizer=[]).encode(TextColumn(b"a", numbers(0, 1), 8, 0, 1), [])


@pytest.mark.parametrize("seeds", [None, b"", bytes(8), bytes(24), bytes(7)])
def test_there_is_a_seed_for_each_row(seeds: bytes | None) -> None:
    column = TextColumn(b"ab", numbers(0, 1, 2), 8, 0, 2)
    with pytest.raises(ValueError, match=r"one seed for each row|whole number of elements"):
        encoder().encode(column, [], dropout=0.5, seeds=seeds)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("ids", "offsets", "skipped", "named"),
    [
        ([0, 1], [0, 3], [], "offsets of the ids do not ascend"),
        ([0, 1], [1, 2], [], "offsets of the ids do not ascend"),
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
    with contextlib.suppress(ValueError):
        check_encoded(model, data, pieces, row_ends, cut=cut, dropout=dropout)


@st.composite
def rows_of_pieces(draw: st.DrawFn) -> tuple[bytes, list[int], list[int]]:
    """Data, pieces inside it, and where rows of these end."""
    data = draw(st.binary(max_size=12))
    place = st.integers(0, len(data))
    pieces: list[int] = []
    for _ in range(number := draw(st.integers(0, 6))):
        pieces += [*sorted([draw(place), draw(place)]), draw(st.integers(-2, 4))]
    ends = draw(st.lists(st.integers(0, number), max_size=4))
    return data, pieces, [*sorted(ends), number]


@pytest.mark.parametrize("model", MODELS)
@given(rows=rows_of_pieces(), cut=st.booleans(), dropout=st.sampled_from([0.0, 0.5]))
@settings(deadline=None)
def test_pieces_inside_the_data_are_encoded(
    model: str, rows: tuple[bytes, list[int], list[int]], cut: bool, dropout: float
) -> None:
    if model == "word_piece":
        dropout = 0.0  # it has no merges to drop
    check_encoded(model, *rows, cut=cut, dropout=dropout)


def check_encoded(
    model: str,
    data: bytes,
    pieces: list[int],
    row_ends: list[int],
    *,
    cut: bool,
    dropout: float,
) -> None:
    seeds = random_words(0, 0, len(row_ends))
    ids, offsets, unencodable, (asked, misses) = encoder(model).encode_pieces(
        data, numbers(*pieces), numbers(*row_ends), cut=cut, dropout=dropout, seeds=seeds
    )
    ends = memoryview(offsets).cast("q").tolist()
    assert len(ends) == len(row_ends) + 1
    assert ends == sorted(ends)
    assert ends[-1] * 4 == len(ids)
    assert unencodable == []
    assert 0 <= misses <= asked
