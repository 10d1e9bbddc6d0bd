"""Documents of one id are counted, and named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pipelines.encode import duplicates
from pipelines.encode.manifest import read_encoded
from pipelines.settings import InputSettings
from pipelines.totals import DuplicateIds
from tests import jobs
from tests.cli.process import bpe
from tests.pipelines.corpora import encode, sentence, write_rows

if TYPE_CHECKING:
    from pathlib import Path

RECORDS: list[dict[str, Any]] = [
    *({"id": f"d{i % 40}", "text": sentence(i)} for i in range(100)),
    *({"text": "the same"} for _ in range(9)),  # which have ids of their own, by their places
    {"id": 7, "text": "a"},
    {"id": "7", "text": "b"},
]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> InputSettings:
    """The records, in files by turns."""
    folder = tmp_path_factory.mktemp("in")
    for number in range(4):
        write_rows(folder / f"{number}.jsonl", RECORDS[number::4])
    return InputSettings(patterns=(str(folder),), split_size=900)


@pytest.mark.parametrize("keys", [1 << 20, 7])
def test_they_are_counted_in_bounded_memory(
    inputs: InputSettings,
    model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    keys: int,
) -> None:
    monkeypatch.setattr(duplicates, "KEYS_AT_ONCE", keys)
    summary = encode(inputs, model, tmp_path / "ids")
    found = read_encoded(str(tmp_path / "ids")).duplicate_ids
    assert found == summary.duplicate_ids
    assert found is not None
    assert found.documents == 61
    names = [str(record.get("id")) for record in RECORDS]
    assert names.count(found.example) > 1
    assert jobs.verify(directory=str(tmp_path / "ids")).documents == len(RECORDS)


def test_the_command_says_so(inputs: InputSettings, model: Path, tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("same")
    for pattern, said in ((inputs.patterns[0], True), (str(tmp_path / "*.txt"), False)):
        arguments = ("--tokenizer", model, "--output", tmp_path / "ids", "--overwrite")
        printed = bpe("encode", "--input", pattern, *arguments).stdout
        assert ("61 documents with the id of another one, such as '" in printed) == said
        assert ("with the id of another" in printed) == said
    assert read_encoded(str(tmp_path / "ids")).duplicate_ids == DuplicateIds()
