"""A document on which a pattern backtracks too long is a bad record of every job that cuts text."""

from __future__ import annotations

import json
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
from pipelines.errors import RecordError
from pipelines.settings import CountSettings, EncodeSettings, OutputSettings, PretokenSettings
from pipelines.transforms.counting import CountPretokens
from pipelines.transforms.encoding import EncodeDocuments
from tests import jobs
from tests.faults.running import running, until
from tests.pipelines.beam_runs import assert_that, pipeline
from tests.pipelines.corpora import ONE, TWO, dead_letters, decoded, encode, write_jsonl

if TYPE_CHECKING:
    from pathlib import Path

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


def reasons(folder: Path) -> list[str]:
    lines = dead_letters(folder)
    assert [json.loads(line["raw"]) if line["raw"][0] == "{" else line["raw"] for line in lines]
    return [line["reason"] for line in lines]


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("group_by", [None, pytest.param("id", marks=pytest.mark.long)])
def test_counting_sets_such_documents_aside(
    corpus: Corpus, tmp_path: Path, group_by: str | None
) -> None:
    out = tmp_path / "counts"

    counted = partial(
        jobs.count,
        pretokens=PretokenSettings(pattern=SLOW),
        settings=CountSettings(group_by=group_by),
        output=OutputSettings(directory=str(out), overwrite=True),
        execution=ONE,
    )
    with pytest.raises(RecordError, match=r"docs\.jsonl, record at byte .*too slow"):
        counted(inputs=corpus.inputs(max_failures=1))
    inputs = corpus.inputs(max_failures=2, split_size=None)
    done = counted(inputs=inputs)
    assert (done.documents, done.failures) == (len(GOOD), 2)
    assert all(reason.startswith(REASON) for reason in reasons(out))
    if group_by is None:
        counts = bpe.count_pretokens(GOOD, pattern=SLOW)
        assert (done.pretokens, done.bytes) == (counts.totals.pretokens, counts.totals.bytes)
        assert jobs.verify(directory=str(out), inputs=inputs).documents == len(GOOD)


@pytest.mark.usefixtures("impatient")
def test_encoding_and_comparing_set_them_aside(corpus: Corpus, tmp_path: Path) -> None:
    tokenizer = bpe.train(bpe.count_pretokens(GOOD, pattern=SLOW), max_merges=3)
    tokenizer.save(path := tmp_path / "tokenizer.json", dialect="beam-bpe")
    bpe.train(bpe.count_pretokens(GOOD), max_merges=3).save(other := tmp_path / "other.json")
    inputs = corpus.inputs(max_failures=2)
    encoding = EncodeSettings(dropout=0.1)
    done = encode(inputs, path, tmp_path / "ids", encoding=encoding, execution=TWO)
    assert (done.documents, done.failures) == (len(GOOD), 2)
    assert [text for _, text in decoded(tmp_path / "ids")] == GOOD
    assert all(reason.startswith(REASON) for reason in reasons(tmp_path / "ids"))
    assert jobs.verify(directory=str(tmp_path / "ids"), inputs=inputs).documents == len(GOOD)
    named = (("other", other), ("slow", path))
    tokenizers = tuple(ComparedTokenizer(name=name, path=str(one)) for name, one in named)
    compared = jobs.compare(inputs=inputs, tokenizers=tokenizers, execution=ONE)
    assert compared["total"]["documents"] == len(GOOD)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("name", ["CountPretokens", "EncodeDocuments"])
def test_transforms_have_an_output_for_them(name: str) -> None:
    counts = bpe.count_pretokens(GOOD, pattern=SLOW)
    transform: Any = CountPretokens(pattern=SLOW)
    expected: list[Any] = [(pretoken, 2 * count) for pretoken, count in counts.items()]
    if name == "EncodeDocuments":
        transform = EncodeDocuments(tokenizer=bpe.train(counts, max_merges=3))
        expected = [*GOOD, GOOD]
    elements = [*TEXTS, pa.table({"text": TEXTS})]
    with pipeline() as p:
        texts = p | beam.Create(elements, reshuffle=False)
        good, bad = texts | transform.with_exception_handling()
        assert_that(good | "Good" >> beam.Map(plain), equal_to(expected), label="good")
        slow = [EVIL, EVIL + "?", [EVIL], [EVIL + "?"]]
        assert_that(bad | "Bad" >> beam.Map(lambda one: plain(one[0])), equal_to(slow), label="bad")


def plain(made: Any) -> Any:
    """The text of what is encoded, or of all rows of a table; a count as it is."""
    if isinstance(made, pa.Table):
        return made["text"].to_pylist()
    return getattr(made, "text", made)


@pytest.mark.parametrize(
    ("number", "workers"),
    [
        pytest.param(signal.SIGTERM, "1", marks=pytest.mark.long),
        (signal.SIGINT, "2"),
        pytest.param(signal.SIGTERM, "2", marks=pytest.mark.long),
        pytest.param(signal.SIGINT, "1", marks=pytest.mark.long),
    ],
)
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
