"""Whoever reads a directory while files are taken into it: whole documents, and no error."""

from __future__ import annotations

import io
import json
import signal
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from apache_beam.testing.util import assert_that, equal_to

from pipelines import ReadCounts, decode, storage
from pipelines.count.directory import load_counts
from pipelines.encode.manifest import read_encoded
from pipelines.errors import VerificationError
from pipelines.output.entries import read_log
from pipelines.settings import CountsInput, InputSettings
from pipelines.verify import counts as counts_verified
from pipelines.verify import encoded as encoded_verified
from pipelines.verify.job import VerifyRequest
from pipelines.watch import counting
from pipelines.watch.counting import FAN_IN
from tests import jobs
from tests.pipelines.beam_runs import pipeline
from tests.pipelines.corpora import sentence, small_tokenizer, train
from tests.watch.drops import WAIT, running, taken, wait_for
from tests.watch.works import Counts, Encoding, hook, take_all

if TYPE_CHECKING:
    from pathlib import Path

    from tests.watch.works import Works

AGAIN = "replaced"  # the file that changes
DOCUMENTS = 3  # of it
SPLIT = 1000  # bytes: it has more than one part


def decoded(directory: str) -> list[dict[str, str]]:
    stream = io.BytesIO()
    jobs.decode(directory=directory, stream=stream)
    return [json.loads(line) for line in stream.getvalue().splitlines()]


class Replaced:
    """An encoded corpus of two inputs, one of which is changed."""

    def __init__(self, works: Works) -> None:
        self.works = works
        works.task = replace(works.task, split_size=20)
        self.alone = works.work(None)
        works.write("a.txt", "the quick brown fox\njumps over the lazy dog\n")
        works.write("b.txt", "the quick\nbrown fox\n")
        take_all(self.alone)
        works.fold()

    def change(self, name: str) -> None:
        """Take it again with other contents, and take away what it was."""
        self.works.write(name, "over\nthe\nlazy dog\n")
        take_all(self.alone)
        self.works.fold()


@pytest.fixture
def replaced(tmp_path: Path) -> Replaced:
    return Replaced(Encoding(tmp_path))


@pytest.mark.parametrize("step", ["check_names", "checked_file"])
def test_verify_of_what_is_replaced_meanwhile(
    replaced: Replaced, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    out = replaced.works.out
    assert jobs.verify(directory=out).documents == 4
    hook(monkeypatch, encoded_verified, step, lambda: replaced.change("a.txt"))
    assert jobs.verify(directory=out).documents == 5
    (part, *_) = read_encoded(out).parts
    (replaced.works.folder / part.file).unlink()
    with pytest.raises(VerificationError, match="is missing, the manifest names it"):
        jobs.verify(directory=out)


@pytest.mark.parametrize(
    ("changed", "texts"),
    [
        ("a.txt", ["the quick brown fox", "jumps over the lazy dog", "the quick", "brown fox"]),
        ("b.txt", ["the quick brown fox", "jumps over the lazy dog", "over", "the", "lazy dog"]),
    ],
)
def test_decode_of_what_is_replaced_meanwhile(
    replaced: Replaced, monkeypatch: pytest.MonkeyPatch, changed: str, texts: list[str]
) -> None:
    assert len(read_encoded(replaced.works.out).parts) > 2, "an input has several parts"
    hook(monkeypatch, decode, "_documents", lambda: replaced.change(changed))  # of a.txt
    assert [one["text"] for one in decoded(replaced.works.out)] == texts


@pytest.mark.parametrize("step", ["stored_letters", "read_stored"])
def test_verify_of_counts_that_are_added_up_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    counts = Counts(tmp_path)
    for number in range(FAN_IN):
        counts.write(f"{number:02}.txt", f"file {number}\n")
    take_all(counts.work(None))
    hook(monkeypatch, counts_verified, step, counts.fold)
    assert jobs.verify(directory=counts.out).documents == FAN_IN
    assert len(counts.log()) == 1


def test_counts_of_small_and_large_files_are_read_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small file has one shard, a large one as many as were asked for."""
    monkeypatch.setattr(counting, "_LARGE", 20)
    works = Counts(tmp_path)
    works.into_shards(4)
    works.write("a.txt", "low lower low\n")
    works.write("b.txt", "low newer wide\nnewest lower lowest\n")
    take_all(works.work(None))
    assert {len(one.manifest["parts"]) for one in works.log().values()} == {1, 4}
    with pipeline() as p:
        assert_that(p | ReadCounts(works.out), equal_to(list(load_counts(works.out).items())))
    inputs = InputSettings(patterns=(str(works.inputs / "*.txt"),), format="lines")
    assert jobs.verify(directory=works.out, inputs=inputs).compared
    (works.inputs / "a.txt").write_text("low lower wol\n")
    with pytest.raises(VerificationError, match=r"shard \d of 4: in byte order"):
        jobs.verify(directory=works.out, inputs=inputs)


def test_counts_that_are_added_up_before_they_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command saw sets of one shard, its pipeline finds one of four."""
    works = Counts(tmp_path)
    works.into_shards(4)
    for number in range(FAN_IN):
        works.write(f"{number:02}.txt", f"file {number}\n")
    take_all(works.work(None))
    hook(monkeypatch, VerifyRequest, "plan", works.fold)
    inputs = InputSettings(patterns=(str(works.inputs / "*.txt"),), format="lines")
    summary = jobs.verify(directory=works.out, inputs=inputs)
    assert (summary.documents, summary.parts, summary.compared) == (FAN_IN, 4, True)


def test_a_file_that_goes_while_its_folder_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).touch()
    hook(monkeypatch, storage, "_local_entry", (tmp_path / "b").unlink)
    assert [entry.name for entry in storage.entries(str(tmp_path))] == ["a", "c"]


def documents_of(number: int) -> int:
    return number % 4 + 1


class Arriving(threading.Thread):
    """Files that arrive until it is told to stop; one of them again and again."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self._told = threading.Event()
        folder.mkdir()
        self._write(AGAIN, DOCUMENTS, "0")
        self._write("0", documents_of(0), "0")

    def run(self) -> None:
        number = 0
        while not self._told.wait(0.1):
            number += 1
            self._write(str(number), documents_of(number), "0")
            if number % 10 == 0:
                self._write(AGAIN, DOCUMENTS, str(number))

    def end(self) -> None:
        self._told.set()
        self.join()

    def _write(self, name: str, documents: int, version: str) -> None:
        texts = [(f"{name}/{version}/{i}", sentence(len(name) + i, 90)) for i in range(documents)]
        lines = [json.dumps({"id": id_, "text": f"{text} {version}"}) for id_, text in texts]
        hidden = self._folder / f".{name}.jsonl"
        hidden.write_text("".join(line + "\n" for line in lines))
        hidden.rename(self._folder / f"{name}.jsonl")


def check_decoded(folder: Path) -> set[str]:
    """Each file is there with all its documents, once; returns the versions of the one."""
    found: dict[str, list[tuple[str, int]]] = {}
    for one in decoded(str(folder)):
        name, version, number = one["id"].split("/")
        found.setdefault(name, []).append((version, int(number)))
    for name, documents in found.items():
        many = DOCUMENTS if name == AGAIN else documents_of(int(name))
        version = documents[0][0]
        assert documents == [(version, number) for number in range(many)], name
    return {version for version, _ in found.get(AGAIN, [])}


def test_reading_beside_a_living_watch(tmp_path: Path) -> None:
    small_tokenizer(tmp_path / "t.json")
    often = ("--interval", "0.2", "--settle", "0")
    watch = ("--watch", "in/*.jsonl", *often, "--split-size", str(SPLIT), "-q", "--output")
    arriving = Arriving(tmp_path / "in")
    ids, counts = tmp_path / "ids", tmp_path / "counts"
    with (
        running("encode", *watch, "ids", "--tokenizer", "t.json", cwd=tmp_path) as encoding,
        running("count", *watch, "counts", cwd=tmp_path) as counting,
    ):
        wait_for(lambda: taken(ids) > 1, encoding)
        wait_for(lambda: taken(counts) > 1, counting)
        arriving.start()
        try:
            versions: set[str] = set()
            sets = rounds = 0
            end = time.monotonic() + WAIT
            # Until the one file was read as three different ones, and sets were added up.
            while len(versions) < 3 or sets < 2 or rounds < 4:
                assert time.monotonic() < end
                before = jobs.verify(directory=str(ids)).documents
                versions |= check_decoded(ids)
                assert before <= jobs.verify(directory=str(ids)).documents
                before = jobs.verify(directory=str(counts)).documents
                trained = train(
                    tmp_path / "model",
                    counts=(CountsInput(directory=str(counts)),),
                    overwrite=rounds > 0,
                ).documents
                assert before <= trained <= jobs.verify(directory=str(counts)).documents
                log = read_log(str(counts)).values()
                sets = sum(len(entry.taken) == FAN_IN for entry in log)
                rounds += 1
                assert encoding.poll() is None
                assert counting.poll() is None
            for process in (encoding, counting):
                process.send_signal(signal.SIGTERM)
                _, err = process.communicate(timeout=WAIT)
                assert process.returncode == 0, err
        finally:
            arriving.end()
