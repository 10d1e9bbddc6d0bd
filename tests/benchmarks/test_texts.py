"""The orders in which texts are encoded."""

from __future__ import annotations

import pytest

from benchmarks.contenders.encode import COPIES, SLICES, texts_of
from benchmarks.corpora import MULTILINGUAL, column, text_bytes


def test_new_words_are_all_distinct_and_cut_evenly() -> None:
    slices = texts_of(MULTILINGUAL, 200_000, "new words")
    words = [word for texts in slices for text in texts.to_pylist() for word in text.split()]
    assert len(words) == len(set(words))
    assert len(slices) == SLICES
    assert sum(map(text_bytes, slices)) == pytest.approx(200_000, rel=0.01)
    for texts in slices:
        assert text_bytes(texts) == pytest.approx(20_000, rel=0.3)


def test_each_copy_has_the_same_documents_in_another_order() -> None:
    texts = column(MULTILINGUAL, 50_000).to_pylist()
    copies = [one.to_pylist() for one in texts_of(MULTILINGUAL, 50_000, "shuffled")]
    assert [sorted(copy) for copy in copies] == [sorted(texts)] * COPIES
    assert len({tuple(copy) for copy in [texts, *copies]}) == 1 + COPIES
    again = [one.to_pylist() for one in texts_of(MULTILINGUAL, 50_000, "shuffled")]
    assert again == copies
