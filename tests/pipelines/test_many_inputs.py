"""Corpora of very many files: the manifest stays small, its inputs are in a file next to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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


@pytest.mark.parametrize("job", ["encode", "count"])
def test_the_manifest_stays_small(corpus: Path, model: Path, tmp_path: Path, job: str) -> None:
    out, path = tmp_path / "out", tmp_path / "out" / INPUTS

    def run(settings: InputSettings, **choice: Any) -> None:
        if job == "encode":
            encode(settings, model, out, **choice)
        else:
            count(settings, out, **choice)

    def manifest() -> Any:
        return read_encoded(str(out)) if job == "encode" else bpe.PretokenCounts.load(out)

    run(inputs(corpus))
    assert (out / "manifest.json").stat().st_size < 1000 * len([*out.glob("data/*")])
    assert [one.name for one in manifest().inputs] == [f"{i:05d}.txt" for i in range(FILES)]
    if job == "encode":
        ranges = [one for part in manifest().parts for one in part.inputs]
        assert [one.name for one in ranges] == [one.name for one in manifest().inputs]
        assert [one.end for one in ranges] == [one.size for one in manifest().inputs]
    assert jobs.verify(directory=str(out), inputs=inputs(corpus)).documents == FILES

    good, files = path.read_bytes(), tree(out)
    for damaged in (good[:-1], good.replace(b"PAR1", b"PAR2")):
        path.write_bytes(damaged)
        with pytest.raises((InputError, CountsError), match=r"the SHA-256 of inputs\.parquet"):
            manifest()
    path.unlink()
    with pytest.raises((InputError, CountsError), match=r"inputs\.parquet"):
        manifest()
    run(inputs(corpus), resume=True)
    assert tree(out) == files

    few = inputs(corpus, "0000?.txt")
    run(few, overwrite=True)
    assert not path.exists()
    assert jobs.verify(directory=str(out), inputs=few).documents == 10
    path.write_bytes(good)
    with pytest.raises(VerificationError, match=r"inputs\.parquet is not named in the manifest"):
        jobs.verify(directory=str(out))


def test_counts_of_very_many_files_are_saved(corpus: Path, tmp_path: Path) -> None:
    count(inputs(corpus), tmp_path / "counts")
    counts = bpe.PretokenCounts.load(tmp_path / "counts")
    counts.save(tmp_path / "saved")
    saved, made = (tmp_path / name / INPUTS for name in ("saved", "counts"))
    assert saved.read_bytes() == made.read_bytes()
    assert bpe.PretokenCounts.load(tmp_path / "saved").inputs == counts.inputs
    bpe.count_pretokens(["one"]).save(tmp_path / "saved")
    assert not saved.exists()
