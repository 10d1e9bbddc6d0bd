"""The input of training: words in chunks, and their size."""

from __future__ import annotations

import pyarrow as pa
import pytest

from bpe import symbols
from bpe.symbols import TrainingWords


@pytest.mark.parametrize("rows", [0, 1, 140])
def test_words_of_a_slice(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symbols, "_CHUNK_BYTES", 100)
    words = pa.array([b"a", b"bcd", b"\xff\xfe"] * 50, pa.large_binary()).slice(3, rows)
    counts = pa.array([2**61 + row for row in range(150)], pa.int64()).slice(3, rows)
    training = TrainingWords(words, counts, [])
    pairs = zip(words.to_pylist(), counts.to_pylist(), strict=True)
    assert training.size == sum(len(word) * count for word, count in pairs)
    chunks = [*training.chunks()]
    assert [row for begin, end in chunks for row in range(begin, end)] == [*range(rows)]
    assert (len(chunks) > 1) == (rows > 100)
