"""A document on which a pattern backtracks too long is a bad record of every job that cuts text."""

from __future__ import annotations

import signal
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import apache_beam as beam
import pyarrow as pa
import pytest
from apache_beam.testing.util import equal_to

import bpe
from bpe.regex import search
from pipelines.compare.tokenizers import ComparedTokenizer
from pipelines.count.directory import load_counts
from pipelines.errors import RecordError
from pipelines.settings import EncodeSettings, PretokenSettings
from pipelines.transforms.counting import CountPretokens
from tests import jobs
from tests.faults.running import running, until
from tests.pipelines.beam_runs import assert_that, pipeline
from tests.pipelines.corpora import ONE, count, dead_letters, decoded, encode, write_jsonl
from tests.shared_data import long_but

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipelines.summaries import CountSummary, EncodeSummary
    from tests.pipelines.corpora import Corpus

SLOW = r"(x|a|aa)+(?<!z)$"
EVIL = "a" * 60 + "!"
TEXTS = ["good", EVIL, "better", "", EVIL + "?", "best"]
GOOD = ["good", "better", "", "best"]
REASON = f"the pattern {SLOW!r} is too slow for this text"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A time limit that tests can wait for; workers are threads."""
    monkeypatch.setattr(search, "SECONDS", 0.05)


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return write_jsonl(tmp_path / "in" / "docs.jsonl", TEXTS)


def counts_of_good() -> bpe.PretokenCounts:
    return bpe.count_pretokens(GOOD, pattern=SLOW)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("job", long_but(["count", "groups", "encode"], "count", "encode"))
def test_jobs_set_such_documents_aside(corpus: Corpus, tmp_path: Path, job: str) -> None:
    out, path, counts = tmp_path / "out", tmp_path / "t.json", counts_of_good()
    bpe.train(counts, max_merges=3).save(path, dialect="beam-bpe")
    counting = partial(count, pretokens=PretokenSettings(pattern=SLOW))
    asked: dict[str, Callable[..., CountSummary | EncodeSummary]] = {
        "count": counting,
        "groups": partial(counting, group_by="id"),
        "encode": partial(encode, tokenizer=path, encoding=EncodeSettings(dropout=0.1)),
    }
    with pytest.raises(RecordError, match=r"docs\.jsonl, record at byte .*too slow"):
        asked[job](corpus.inputs(max_failures=1), output=out)
    inputs = corpus.inputs(max_failures=2, split_size=None)
    done = asked[job](inputs, output=out, overwrite=True)
    assert (done.documents, done.failures) == (len(GOOD), 2)
    first, second = dead_letters(out)
    assert EVIL in first["raw"]
    assert EVIL + "?" in second["raw"]
    assert first["reason"].startswith(REASON)
    if job == "encode":
        assert [text for _, text in decoded(out)] == GOOD
        bpe.train(bpe.count_pretokens(GOOD), max_merges=3).save(other := tmp_path / "other.json")
        tokenizers = [ComparedTokenizer(name=one.stem, path=str(one)) for one in (other, path)]
        compared = jobs.compare(inputs=inputs, tokenizers=tuple(tokenizers), execution=ONE)
        assert compared["total"]["documents"] == len(GOOD)
    elif job == "count":
        assert dict(load_counts(str(out)).items()) == dict(counts.items())
    if job != "groups":
        assert jobs.verify(directory=str(out), inputs=inputs).documents == len(GOOD)


@pytest.mark.usefixtures("impatient")
def test_a_transform_has_an_output_for_them() -> None:
    expected = [(pretoken, 2 * number) for pretoken, number in counts_of_good().items()]
    with pipeline() as p:
        texts = p | beam.Create([*TEXTS, pa.table({"text": TEXTS})], reshuffle=False)
        good, bad = texts | CountPretokens(pattern=SLOW).with_exception_handling()
        assert_that(good, equal_to(expected), label="good")
        slow = [EVIL, EVIL + "?", [EVIL], [EVIL + "?"]]
        assert_that(bad | beam.Map(lambda one: plain(one[0])), equal_to(slow), label="bad")


def plain(element: Any) -> Any:
    """A text as it is; those of the rows of a table."""
    return element["text"].to_pylist() if isinstance(element, pa.Table) else element


@pytest.mark.parametrize("number", long_but([signal.SIGINT, signal.SIGTERM], signal.SIGINT))
@pytest.mark.parametrize("workers", long_but(["1", "2"], "2"))
def test_a_signal_ends_a_job_in_the_middle_of_a_search(
    tmp_path: Path, number: signal.Signals, workers: str
) -> None:
    """One signal; the search alone would go on for five minutes."""
    (tmp_path / "in.txt").write_text(f"{EVIL}{' ' * 30_000_000}\n")
    count = ("count", "--input", "in.txt", "--format", "lines", "--pattern", SLOW, "-q")
    out = tmp_path / "counts"
    with running(*count, "--workers", workers, "--output", "counts", cwd=tmp_path) as process:
        until((out / ".splits.arrow").exists, process)
        time.sleep(1)  # it searches; a second earlier or later, the end is the same
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
    word = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}[number]
    assert (process.returncode, said) == (128 + number, f"bpe: error: {word}\n")
    assert not (out / "manifest.json").exists()
