"""A corpus that takes a while, a tokenizer for it, and what undisturbed jobs make of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from pipelines.settings import InputSettings
from tests.faults.running import outcome
from tests.faults.whole import WholeJob, undisturbed_whole
from tests.pipelines.corpora import encode, sentence, small_tokenizer, train, write_jsonl
from tests.shared_data import LONG

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Undisturbed:
    """A folder with ``corpus``, ``t.json``, and what jobs made of them: ``model`` and ``ids``."""

    folder: Path
    split: int

    @property
    def corpus(self) -> Path:
        return self.folder / "corpus"

    @property
    def inputs(self) -> InputSettings:
        return InputSettings(patterns=(str(self.corpus),), split_size=self.split)

    def command(self, name: str, output: Path | str, *more: str) -> list[str | Path]:
        """``bpe NAME`` on the corpus."""
        how: tuple[str | Path, ...] = ("--tokenizer", self.folder / "t.json")
        if name == "train":
            how = ("--vocab-size", "300")
        where = ("--input", self.corpus, "--output", output, "--split-size", str(self.split))
        return [name, *where, *how, "--workers", "2", "--quiet", *more]

    def made(self, name: str) -> dict[str, bytes]:
        """The files that ``bpe NAME`` makes."""
        return outcome(self.output(name))

    def output(self, name: str) -> Path:
        """The directory of ``bpe NAME``, where nothing disturbed it."""
        return self.folder / {"encode": "ids", "train": "model"}[name]


def run_undisturbed(folder: Path, documents: int) -> Undisturbed:
    write_jsonl(folder / "corpus" / "docs.jsonl", [sentence(i, 60) for i in range(documents)])
    small_tokenizer(folder / "t.json")
    found = Undisturbed(folder, split=3000)
    encode(found.inputs, folder / "t.json", folder / "ids")
    train(folder / "model", inputs=found.inputs)
    return found


@pytest.fixture(scope="package")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    """Jobs of many parts, which take long enough to be disturbed."""
    documents = 1500 if LONG else 400
    return run_undisturbed(tmp_path_factory.mktemp("undisturbed"), documents=documents)


@pytest.fixture(scope="package")
def small(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    """Jobs of a few parts."""
    return run_undisturbed(tmp_path_factory.mktemp("small"), documents=40)


@pytest.fixture(scope="package")
def whole(tmp_path_factory: pytest.TempPathFactory) -> WholeJob:
    """Count, train and encode in one, with many parts."""
    folder = tmp_path_factory.mktemp("whole")
    documents = 1000 if LONG else 400
    write_jsonl(folder / "corpus" / "docs.jsonl", [sentence(i, 60) for i in range(documents)])
    return undisturbed_whole(folder, split=3000)
