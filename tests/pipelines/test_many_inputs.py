"""Corpora of very many files: the manifest stays small, its inputs are in a file next to it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import bpe
from bpe import _inputs_file
from bpe._inputs_file import INPUTS, MOST_INPUTS
from bpe.errors import CountsError
from pipelines.encode.manifest import read_encoded
from pipelines.errors import InputError, VerificationError
from pipelines.settings import InputSettings
from tests import jobs
from tests.pipelines.corpora import count, encode, tree
from tests.shared_data import LONG

if TYPE_CHECKING:
    from pathlib import Path

# In the short form a manifest holds fewer inputs, so that these files are very many.
MOST, FILES = (MOST_INPUTS, 10_000) if LONG else (40, 300)
SPLIT = 4_000 if LONG else 120  # bytes


@pytest.fixture(autouse=True)
def few_in_the_manifest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_inputs_file, "MOST_INPUTS", MOST)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    for number in range(FILES):
        (folder / f"{number:05d}.txt").write_text(f"fox {number}")
    return folder


def inputs(folder: Path, pattern: str = "*") -> InputSettings:
    return InputSettings(patterns=(f"{folder}/{pattern}",), split_size=SPLIT)


def test_encoding_very_many_files(corpus: Path, model: Path, tmp_path: Path) -> None:
    ids, path = tmp_path / "ids", tmp_path / "ids" / INPUTS
    summary = encode(inputs(corpus), model, ids)
    assert (summary.documents, summary.parts) == (FILES, len([*ids.glob("data/*")]))
    assert summary.parts > 10
    assert (ids / "manifest.json").stat().st_size < 1000 * summary.parts
    manifest = read_encoded(str(ids))
    assert [one.name for one in manifest.inputs] == [f"{i:05d}.txt" for i in range(FILES)]
    ranges = [one for part in manifest.parts for one in part.inputs]
    assert [one.name for one in ranges] == [one.name for one in manifest.inputs]
    assert [one.end for one in ranges] == [one.size for one in manifest.inputs]
    assert jobs.verify(directory=str(ids), inputs=inputs(corpus)).documents == FILES

    good, files = path.read_bytes(), tree(ids)
    for damaged in (good[:-1], good.replace(b"PAR1", b"PAR2")):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=r"damaged: the SHA-256 of inputs\.parquet"):
            jobs.verify(directory=str(ids))
    path.unlink()
    with pytest.raises(InputError, match=r"inputs\.parquet"):
        jobs.verify(directory=str(ids))
    encode(inputs(corpus), model, ids, resume=True)
    assert tree(ids) == files

    few = inputs(corpus, "0000?.txt")
    encode(few, model, ids, overwrite=True)
    assert not path.exists()
    assert jobs.verify(directory=str(ids), inputs=few).documents == 10
    path.write_bytes(good)
    with pytest.raises(VerificationError, match=r"inputs\.parquet is not named in the manifest"):
        jobs.verify(directory=str(ids))


def test_counting_very_many_files(corpus: Path, tmp_path: Path) -> None:
    directory = tmp_path / "counts"
    count(inputs(corpus), directory)
    manifest = json.loads((directory / "manifest.json").read_text())
    assert manifest["inputs"]["rows"] == FILES
    assert (directory / "manifest.json").stat().st_size < 10_000
    assert jobs.verify(directory=str(directory), inputs=inputs(corpus)).documents == FILES
    counts = bpe.PretokenCounts.load(directory)
    assert [one.name for one in counts.inputs] == [f"{i:05d}.txt" for i in range(FILES)]

    counts.save(tmp_path / "saved")
    assert (tmp_path / "saved" / INPUTS).read_bytes() == (directory / INPUTS).read_bytes()
    assert bpe.PretokenCounts.load(tmp_path / "saved").inputs == counts.inputs
    bpe.count_pretokens(["one"]).save(tmp_path / "saved")
    assert not (tmp_path / "saved" / INPUTS).exists()

    (directory / INPUTS).write_bytes(b"PAR1")
    with pytest.raises(CountsError, match=r"manifest\.json: the SHA-256 of inputs\.parquet"):
        bpe.PretokenCounts.load(directory)
    (directory / INPUTS).unlink()
    with pytest.raises(CountsError, match=r"inputs\.parquet is missing"):
        bpe.PretokenCounts.load(directory)
    few = inputs(corpus, "0000?.txt")
    count(few, directory, overwrite=True)
    assert jobs.verify(directory=str(directory), inputs=few).documents == 10
