"""Corpora and tokenizers, and what undisturbed jobs make of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from pipelines.settings import InputSettings
from tests.faults.running import outcome
from tests.faults.whole import WholeJob
from tests.pipelines.corpora import encode, sentence, small_tokenizer, train, write_jsonl
from tests.shared_data import LONG

if TYPE_CHECKING:
    from pathlib import Path


SPLIT = 3000


@dataclass(frozen=True)
class Undisturbed:
    """A folder with ``corpus``, ``t.json``, and what jobs made of them: ``model`` and ``ids``."""

    folder: Path

    @property
    def corpus(self) -> Path:
        return self.folder / "corpus"

    @property
    def inputs(self) -> InputSettings:
        return InputSettings(patterns=(str(self.corpus),), split_size=SPLIT)

    def command(self, name: str, output: Path | str, *more: str) -> list[str | Path]:
        """``bpe NAME`` on the corpus."""
        how: tuple[str | Path, ...] = ("--tokenizer", self.folder / "t.json")
        if name == "train":
            how = ("--vocab-size", "300")
        where = ("--input", self.corpus, "--output", output, "--split-size", str(SPLIT))
        return [name, *where, *how, "--workers", "2", "--quiet", *more]

    def made(self, name: str) -> dict[str, bytes]:
        """The files that ``bpe NAME`` makes."""
        return outcome(self.output(name))

    def output(self, name: str) -> Path:
        """The directory of ``bpe NAME``, where nothing disturbed it."""
        return self.folder / {"encode": "ids", "train": "model"}[name]


def write_documents(folder: Path, number: int) -> None:
    write_jsonl(folder / "corpus" / "docs.jsonl", [sentence(i, 60) for i in range(number)])


@pytest.fixture(scope="package")
def small(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    """Jobs of a few parts."""
    folder = tmp_path_factory.mktemp("small")
    write_documents(folder, 40)
    small_tokenizer(folder / "t.json")
    job = Undisturbed(folder)
    encode(job.inputs, folder / "t.json", folder / "ids")
    train(folder / "model", inputs=job.inputs)
    return job


@pytest.fixture(scope="package")
def whole(tmp_path_factory: pytest.TempPathFactory) -> WholeJob:
    """Count, train and encode in one: many parts, which take long enough to be disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    write_documents(folder, 1000 if LONG else 400)
    return WholeJob.of(folder, split_size=SPLIT)
