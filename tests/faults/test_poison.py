"""A poisoned corpus: what is good comes through, what is bad is set aside, in bounded memory."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.contenders.memory import forget_peak, peak_memory
from pipelines.run import run
from pipelines.settings import Execution, InputSettings
from pipelines.stage.beam import RunJob
from tests import jobs
from tests.faults.poison import Poisoned, write_poisoned
from tests.pipelines.corpora import (
    count_request,
    dead_letters,
    decoded,
    encode_request,
    patterns,
    sentence,
    small_tokenizer,
    write_jsonl,
)
from tests.shared_data import long_but

if TYPE_CHECKING:
    from pathlib import Path

SIZES = {
    "small": {"documents": 600, "limit": 1 << 20, "long_line": 3_000_000},
    "large": {"documents": 60_000, "limit": 64 << 20, "long_line": 500_000_000},  # and bombs
}
# What a poisoned corpus may take beyond what a clean one does, of which each record is small.
RECORDS = 8  # times the largest record allowed: two workers, each with some copies of one
SLACK = 100 << 20  # bytes: of other pages, other files, and of what malloc keeps


def peak_of(folder: Path, name: str, corpus: Poisoned, limit: int, execution: Execution) -> int:
    """Count or encode a corpus, which is struck once the job is planned; the most memory it had."""
    inputs = InputSettings(
        patterns=patterns(corpus.folder),
        max_failures=len(corpus.bad),
        max_record_size=limit,
        split_size=100_000,
    )
    output = folder / f"{corpus.folder.name}-{name}"
    request: Any = count_request(inputs, output)
    if name == "encode":
        request = encode_request(inputs, folder / "t.json", output)
    forget_peak()
    request.begin()
    corpus.strike()
    run(lambda p, failures: p | RunJob(request, failures), execution=execution, pieces=9)
    return peak_memory()


def check(output: Path, corpus: Poisoned) -> None:
    """Each document is there, and each bad record once, with its file, its place and the reason."""
    verified = jobs.verify(directory=str(output))
    assert (verified.documents, verified.failures) == (len(corpus.texts), len(corpus.bad))
    found = sorted(dead_letters(output), key=lambda record: (record["file"], record["place"]))
    wanted = sorted(corpus.bad)
    assert [(record["file"], record["place"]) for record in found] == [
        (file, place) for file, place, _ in wanted
    ]
    for record, (_, _, reason) in zip(found, wanted, strict=True):
        assert reason in record["reason"], record
    lost = [record for record in found if "when the job was planned" in record["reason"]]
    assert sum(record["size"] for record in lost) == corpus.lost_bytes


def check_jobs(folder: Path, execution: Execution, **sizes: int) -> None:
    """Both jobs that read a corpus take what is good, and some records of memory more."""
    small_tokenizer(folder / "t.json")
    texts = [sentence(number, 5) for number in range(sizes["documents"])]
    clean = Poisoned(write_jsonl(folder / "clean" / "a.jsonl", texts).folder)
    limit = sizes["limit"]
    for name in ("count", "encode"):
        least = peak_of(folder, name, clean, limit, execution)
        corpus = write_poisoned(folder / name, **sizes)
        more = peak_of(folder, name, corpus, limit, execution) - least
        assert more < RECORDS * limit + SLACK, f"{more >> 20} MiB"
        check(folder / f"{name}-{name}", corpus)
        shutil.rmtree(corpus.folder)  # the long form has 500 MB in it
    assert [text for _, text in decoded(folder / "encode-encode")] == corpus.texts


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process is forgotten on Linux")
@pytest.mark.parametrize("sizes", long_but(SIZES, "small"))
def test_the_good_records_come_through(tmp_path: Path, sizes: str) -> None:
    check_jobs(tmp_path, Execution(workers=2), **SIZES[sizes])
