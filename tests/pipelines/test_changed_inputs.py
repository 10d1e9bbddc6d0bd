"""An input that changes while a job runs, or before it is resumed: never a mixture of both."""

from __future__ import annotations

import gzip
import os
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pipelines.corpus.documents import ReadOptions, read_split
from pipelines.corpus.documents.stored import ChangedFileError
from pipelines.corpus.inputs import find_inputs
from pipelines.corpus.reading import Reading, SplitReader
from pipelines.corpus.splits import plan_splits
from pipelines.errors import InputError
from pipelines.failures import FailureChannel
from pipelines.run import run
from pipelines.settings import (
    InputSettings,
)
from pipelines.stage.beam import RunJob
from tests import jobs
from tests.pipelines.corpora import (
    ONE,
    count,
    count_request,
    encode,
    encode_request,
    make_units,
    sentence,
    train,
    tree,
)
from tests.pipelines.corpus_files import stored
from tests.pipelines.object_store import ObjectStore
from tests.shared_data import long_but

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipelines.stage.stage import Job

OLD, NEW = "quick", "QUICK"
LINES = [f"{sentence(i)} the {OLD} fox {i}" for i in range(100)]


def contents(name: str, lines: list[str]) -> bytes:
    """A file of that name, of the same size for lines of the same size."""
    plain = {"row_group_size": 20, "compression": "none", "use_dictionary": False}
    format_ = {".jsonl": "jsonl", ".parquet": "parquet"}.get(Path(name).suffix, "text")
    data = stored(format_, lines, write_statistics=False, **plain)
    return gzip.compress(data, 0, mtime=0) if name.endswith(".gz") else data


NAMES = ["docs.jsonl", "docs.parquet", "lines.txt.gz", "docs.txt", "lines.txt"]


class Corpus:
    """One file, which can become another of the same size."""

    def __init__(self, folder: Path, name: str, *, times: int = 1) -> None:
        self.path = folder / "in" / name
        self.path.parent.mkdir()
        self.old = contents(name, LINES * times)
        self.new = contents(name, [line.replace(OLD, NEW) for line in LINES] * times)
        assert len(self.old) == len(self.new)
        assert self.old != self.new
        self.path.write_bytes(self.old)

    def inputs(self, **settings: Any) -> InputSettings:
        return InputSettings(
            patterns=(str(self.path),),
            split_size=3000,
            format="lines" if "lines" in self.path.name else "auto",
            **settings,
        )

    def edit(self) -> None:
        """Write to the file that is there."""
        with self.path.open("r+b") as file:
            file.write(self.new)

    def replace(self) -> None:
        """Put another file in its place, with the time of the one before."""
        time = self.path.stat().st_mtime_ns
        other = self.path.with_name("other.tmp")
        other.write_bytes(self.new)
        os.utime(other, ns=(time, time))
        other.replace(self.path)

    def forge(self) -> None:
        """Write to the file that is there, and put its time back."""
        status = self.path.stat()
        self.edit()
        os.utime(self.path, ns=(status.st_atime_ns, status.st_mtime_ns))

    def append(self) -> None:
        """Write at the end of the file that is there."""
        with self.path.open("ab") as file:
            file.write(b"more")

    def truncate(self) -> None:
        """Leave a quarter of the file."""
        os.truncate(self.path, len(self.old) // 4)


WAYS: list[Callable[[Corpus], None]] = [Corpus.edit, Corpus.replace, Corpus.forge]


def every_way(short: int) -> pytest.MarkDecorator:
    """Each file in each way; without ``long``, the first files of `NAMES`, in a way each."""
    cases = [
        (name, way)
        if i < short and j == i % len(WAYS)
        else pytest.param(name, way, marks=pytest.mark.long)
        for (i, name), (j, way) in product(enumerate(NAMES), enumerate(WAYS))
    ]
    return pytest.mark.parametrize(("name", "way"), cases)


def run_while(request: Job, act: Callable[[], None]) -> None:
    """Run a job, and do something between planning and reading."""
    request.begin()
    act()
    run(lambda p, failures: p | RunJob(request, failures), execution=ONE, pieces=1)


@pytest.mark.parametrize("job", long_but(["count", "encode"], "encode"))
@every_way(short=len(NAMES))
def test_a_file_that_is_replaced_after_it_was_planned_ends_the_job(
    tmp_path: Path, model: Path, name: str, way: Callable[[Corpus], None], job: str
) -> None:
    corpus, out = Corpus(tmp_path, name), tmp_path / "out"
    inputs = corpus.inputs(max_failures=1000)  # no bad record: there is nothing to set aside
    request = count_request(inputs, out) if job == "count" else encode_request(inputs, model, out)
    with pytest.raises(InputError, match=rf"{name} was changed or replaced while the job"):
        run_while(request, lambda: way(corpus))
    assert not (out / "manifest.json").exists()


def blocks(inputs: InputSettings, between: Callable[[], None]) -> list[str]:
    """The texts of the first split, read in small blocks; something happens after the first."""
    first, *_ = plan_splits(find_inputs(inputs).files, 60_000)
    options = ReadOptions(block_bytes=500)
    found: list[str] = []
    for number, block in enumerate(read_split(first, options)):
        found += block.texts.to_pylist()
        if number == 0:
            between()
    assert number > 1
    return found


@pytest.mark.parametrize("name", ["docs.jsonl", "docs.parquet", "lines.txt"])
def test_a_split_that_is_read_is_of_the_file_it_opened(tmp_path: Path, name: str) -> None:
    """One that is put in its place changes nothing; an edit is found at the end."""
    corpus = Corpus(tmp_path, name, times=10)
    sizes = () if name.endswith(".parquet") else (corpus.append, corpus.truncate)
    for change in (corpus.edit, *sizes):
        with pytest.raises(ChangedFileError, match="run the job again"):
            blocks(corpus.inputs(), change)
        corpus.path.write_bytes(corpus.old)
    expected = blocks(corpus.inputs(), lambda: None)
    assert blocks(corpus.inputs(), corpus.replace) == expected


def test_a_record_cut_in_two_by_an_edit_is_told_as_the_edit(tmp_path: Path) -> None:
    corpus = Corpus(tmp_path, "docs.jsonl")
    corpus.new = corpus.new.replace(b"}", b" ")
    split, *_ = plan_splits(find_inputs(corpus.inputs()).files, 6000)
    reading = Reading(directory=str(tmp_path), settings=ReadOptions(block_bytes=500))
    with SplitReader(split, reading, FailureChannel().stopped) as reader:
        blocks = iter(reader)
        next(blocks)
        corpus.edit()
        with pytest.raises(ChangedFileError, match="was changed or replaced"):
            list(blocks)


@every_way(short=1)
def test_resume_makes_again_what_is_of_a_file_that_changed(
    tmp_path: Path, model: Path, name: str, way: Callable[[Corpus], None]
) -> None:
    corpus = Corpus(tmp_path, name)
    more = corpus.path.with_name(f"more-{name}")  # of the same format
    more.write_bytes(contents(more.name, LINES))
    inputs = replace(corpus.inputs(), patterns=(str(corpus.path.parent),))
    out, counts = tmp_path / "out", tmp_path / "counts"
    parts = encode(inputs, model, out).parts
    count(inputs, counts)
    (out / "manifest.json").unlink()
    way(corpus)
    resumed = encode(inputs, model, out, resume=True)
    assert 0 < resumed.resumed_parts < parts
    assert not count(inputs, counts, resume=True).resumed
    encode(inputs, model, tmp_path / "fresh")
    assert tree(out) == tree(tmp_path / "fresh")
    count(inputs, tmp_path / "fresh-counts")
    assert tree(counts) == tree(tmp_path / "fresh-counts")


def test_a_job_that_is_killed_again_before_it_made_them_again(tmp_path: Path, model: Path) -> None:
    """The plan names the new version by then, and no part of the old one may be left."""
    corpus = Corpus(tmp_path, "docs.jsonl")
    out = tmp_path / "out"
    request = encode_request(corpus.inputs(), model, out)
    request.begin()
    (stage,) = request.stages
    assert make_units(stage, 3)
    corpus.forge()
    encode_request(corpus.inputs(), model, out, resume=True).begin()
    assert encode(corpus.inputs(), model, out, resume=True).resumed_parts == 0
    encode(corpus.inputs(), model, tmp_path / "fresh")
    assert tree(out) == tree(tmp_path / "fresh")


def test_only_a_time_that_changed_gives_the_same_bytes(tmp_path: Path, model: Path) -> None:
    corpus = Corpus(tmp_path, "docs.jsonl")
    out, trained = tmp_path / "out", tmp_path / "model"
    encode(corpus.inputs(), model, out)
    train(trained, inputs=corpus.inputs())
    before, model_before = tree(out), tree(trained)
    os.utime(corpus.path)
    encode(corpus.inputs(), model, out, resume=True)
    train(trained, inputs=corpus.inputs(), resume=True)
    assert tree(out) == before
    assert tree(trained) == model_before
    jobs.verify(directory=str(out), inputs=corpus.inputs())


def test_in_a_store_tags_tell_versions_of_the_same_second(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = (
        {
            "store://bucket/in/docs.jsonl": contents("docs.jsonl", lines),
            "store://bucket/tokenizer.json": model.read_bytes(),
        }
        for lines in (LINES, [line.replace(OLD, NEW) for line in LINES])
    )
    monkeypatch.setattr(ObjectStore, "objects", old)
    inputs = InputSettings(patterns=("store://bucket/in/docs.jsonl",), split_size=3000)
    tokenizer, output = "store://bucket/tokenizer.json", "store://bucket/out"
    request = encode_request(inputs, tokenizer, output)
    with pytest.raises(InputError, match=r"store://bucket/in/docs\.jsonl was changed or replaced"):
        run_while(request, lambda: old.update(new))
    assert f"{output}/manifest.json" not in old
    encode(inputs, tokenizer, output, resume=True)
    assert jobs.verify(directory=output, inputs=inputs).documents == len(LINES)
