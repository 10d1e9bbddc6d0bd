"""The same bytes on every local runner, with any number of workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pipelines.settings import Execution, TrainSettings
from tests.pipelines.corpora import (
    FOUR,
    ONE,
    TWO,
    Corpus,
    encode,
    train,
    tree,
    write_corpus,
)

if TYPE_CHECKING:
    from pathlib import Path

EXECUTIONS = {
    "two threads": TWO,
    "four threads": FOUR,
    "one thread": Execution(workers=1, beam_args=("--direct_running_mode=multi_threading",)),
}


def whole_job(corpus: Corpus, folder: Path, execution: Execution) -> dict[str, bytes]:
    training = TrainSettings(vocab_size=310, ties="first-seen")
    train(folder / "model", inputs=corpus.inputs(), training=training, execution=execution)
    encode(
        corpus.inputs(), folder / "model" / "tokenizer.json", folder / "ids", execution=execution
    )
    return tree(folder)


@pytest.fixture(scope="module")
def expected(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return whole_job(corpus, tmp_path_factory.mktemp("in_memory"), ONE)


@pytest.mark.parametrize("name", EXECUTIONS)
def test_counts_tokenizer_and_parts_are_the_same_bytes(
    corpus: Corpus, expected: dict[str, bytes], tmp_path: Path, name: str
) -> None:
    found = whole_job(corpus, tmp_path, EXECUTIONS[name])
    assert found.keys() == expected.keys()
    assert [path for path in found if found[path] != expected[path]] == []


def test_where_the_corpus_lies_does_not_matter(expected: dict[str, bytes], tmp_path: Path) -> None:
    moved = write_corpus(tmp_path / "elsewhere" / "corpus")
    assert whole_job(moved, tmp_path / "out", ONE) == expected
