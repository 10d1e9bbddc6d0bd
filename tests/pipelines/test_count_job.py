"""Counting through a pipeline: the same counts as in memory, whatever the splits."""

from __future__ import annotations

from typing import TYPE_CHECKING
from unittest.mock import patch

import pyarrow.parquet as pq
import pytest

import bpe
from bpe.counts import PretokenCounts
from bpe.counts.files import counts_to_ipc
from pipelines.count import job as count_job
from pipelines.count import steps as counting
from pipelines.count.beam import AddCounts
from pipelines.count.steps import Counters, added_up
from pipelines.errors import ConfigError, InputError, JobError
from pipelines.failures import FailureChannel
from pipelines.settings import PretokenSettings
from tests import jobs
from tests.pipelines.corpora import Corpus, count, tree, write_jsonl

if TYPE_CHECKING:
    from pathlib import Path


def test_counts_are_those_in_memory(corpus: Corpus, tmp_path: Path) -> None:
    pretokens = PretokenSettings(
        pattern=("gpt2", r"\d", "[aeiou]+"),
        normalizer=("nfd", "strip-accents"),
        never_split=("email", r"lazy|qu"),
        special_tokens=("fox", "— "),
    )
    summary = count(corpus.inputs(), tmp_path / "counts", pretokens=pretokens)
    expected = bpe.count_pretokens(
        corpus.texts, pretokenizer=pretokens.cut, special_tokens=pretokens.special_tokens
    )
    found = PretokenCounts.load(tmp_path / "counts")
    assert found == expected
    found.save(tmp_path / "saved")
    files = tree(tmp_path / "counts")
    del files[".plan.json"]
    assert files == tree(tmp_path / "saved")
    assert summary.documents == len(corpus.texts)
    assert summary.bytes == sum(len(text.encode()) for text in corpus.texts)
    assert summary.pretokens == expected.totals.pretokens
    assert summary.distinct_pretokens == len(expected)
    assert summary.failures == 0
    assert jobs.verify(directory=str(tmp_path / "counts"), inputs=corpus.inputs()).compared
    assert summary.formats == found.totals.formats == {"jsonl": 80, "parquet": 50, "text": 1}
    assert [file.name for file in found.inputs] == [
        "a ünï.txt", "b/docs.jsonl", "b/empty.jsonl", "b/more.jsonl.gz", "c.parquet",
    ]  # fmt: skip


def test_a_counter_that_is_emptied_often_counts_the_same(
    corpus: Corpus, counted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "FLUSH_BYTES", 1)
    drained = Counters.drained
    with patch.object(Counters, "drained", autospec=True, side_effect=drained) as emptied:
        count(corpus.inputs(), tmp_path / "out")
    assert emptied.call_count > 10
    assert tree(tmp_path / "out") == tree(counted)


def test_counts_that_a_runner_loses_are_missed(corpus: Corpus, tmp_path: Path) -> None:
    with (
        patch.object(Counters, "drained", lambda _: iter(())),
        pytest.raises(JobError, match=r"returned counts of 0 pre-tokens of \d.*another runner"),
    ):
        count(corpus.inputs(), tmp_path / "out")


def test_counts_of_a_shard_are_merged_as_they_come() -> None:
    texts = [f"word{i % 37} {i % 5}" for i in range(300)]
    combine = AddCounts(FailureChannel())
    accumulator = combine.create_accumulator()
    for text in texts:
        run = counts_to_ipc(bpe.count_pretokens([text]).sorted_counts)
        accumulator = combine.add_input(accumulator, run)
        assert len(accumulator) < 40
    together = counts_to_ipc(bpe.count_pretokens(texts).sorted_counts)
    assert combine.extract_output(accumulator) == together


def test_counts_past_64_bits_are_refused() -> None:
    run = counts_to_ipc(PretokenCounts.from_items({"a": 2**62}).sorted_counts)
    assert counts_to_ipc(added_up([run])) == run
    with pytest.raises(InputError, match="64 bits"):
        added_up([run, run])


def test_order_of_a_document_beyond_the_limit_is_refused(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "PLACE_BITS", 8)
    with pytest.raises(InputError, match="divide the file, or use other ties"):
        count(corpus.inputs(), tmp_path / "counts", track_order=True)
    monkeypatch.setattr(count_job, "FILE_BITS", 2)
    with pytest.raises(ConfigError, match="5 files are too many"):
        count(corpus.inputs(), tmp_path / "counts", track_order=True)


@pytest.mark.parametrize("texts", [[], [""]], ids=["no documents", "an empty one"])
def test_nothing_to_count_still_writes_every_shard(tmp_path: Path, texts: list[str]) -> None:
    corpus = write_jsonl(tmp_path / "in" / "docs.jsonl", texts)
    summary = count(corpus.inputs(), tmp_path / "counts")
    assert (summary.documents, summary.pretokens, summary.parts) == (len(texts), 0, 16)
    assert len(PretokenCounts.load(tmp_path / "counts")) == 0
    for part in (tmp_path / "counts").glob("data/part-*.parquet"):
        assert pq.read_schema(part).names == ["pretoken", "count"]
