"""Best-fit decreasing: the core against the textbook."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpe import _native


def best_fit(sizes: list[int], capacity: int) -> list[int]:
    """The row of each piece, where rows hold ``capacity`` ids; numbered in the order of opening.

    The longest piece comes first, of equal ones the earlier. It goes into the row with the least
    room that holds it, of equal ones the row opened earlier, else into a new row. (Ding et al.,
    "Fewer Truncations Improve Language Modeling", 2024, section 3.)

    Args:
        sizes: ids of each piece, from 1 to ``capacity``.
        capacity: ids of a row.
    """
    rooms: list[int] = []
    rows = [0] * len(sizes)
    for piece in sorted(range(len(sizes)), key=lambda piece: -sizes[piece]):
        fitting = [row for row, room in enumerate(rooms) if room >= sizes[piece]]
        row = min(fitting, key=lambda row: rooms[row], default=len(rooms))
        if row == len(rooms):
            rooms.append(capacity)
        rooms[row] -= sizes[piece]
        rows[piece] = row
    return rows


def fitted(sizes: list[int], capacity: int) -> list[int]:
    found = _native.best_fit(pa.py_buffer(np.array(sizes, np.int64)), capacity)
    rows: list[int] = np.frombuffer(pa.py_buffer(found), np.int64).tolist()
    return rows


@given(st.integers(1, 40).flatmap(lambda n: st.tuples(st.just(n), st.lists(st.integers(1, n)))))
def test_the_core_fits_as_the_textbook_does(case: tuple[int, list[int]]) -> None:
    capacity, sizes = case
    rows = fitted(sizes, capacity)
    assert rows == best_fit(sizes, capacity)
    assert sorted(set(rows)) == list(range(len(set(rows))))
    filled = np.bincount(rows, sizes) if sizes else np.zeros(0)
    assert (filled <= capacity).all()


@pytest.mark.parametrize(("size", "capacity"), [(0, 4), (5, 4), (-1, 4), (1, 0), (-(2**63), -1)])
def test_sizes_that_fit_no_row_are_refused(size: int, capacity: int) -> None:
    with pytest.raises(ValueError, match="a size is not between 1 and the capacity"):
        fitted([size], capacity)
    with pytest.raises(ValueError, match="not a whole number of elements"):
        _native.best_fit(b"1234567", 4)


def test_many_pieces_do_not_take_quadratic_time() -> None:
    sizes = np.random.default_rng(1).integers(1, 2048, 300_000)
    rows = np.array(fitted(sizes.tolist(), 2048))
    filled = np.bincount(rows, sizes)
    assert filled.max() <= 2048
    assert len(filled) <= -(-int(sizes.sum()) // 2048) * 1.01
