"""Beam's counters: what they come to, and that the documentation names each."""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.metrics import MetricsFilter
from apache_beam.options.pipeline_options import PipelineOptions

from bpe.reference.pretokenize import count
from pipelines import CountCorpus, EncodeCorpus
from pipelines.compare.job import CompareRequest
from pipelines.compare.tokenizers import parse_tokenizers
from pipelines.encode.manifest import read_encoded
from pipelines.failures import Failures
from pipelines.planned import PlannedTransform
from pipelines.settings import OutputSettings, TrainSettings, WatchSettings
from pipelines.train import TrainRequest
from pipelines.watch import counting, encoding
from pipelines.watch.transform import add_watching
from tests import jobs
from tests.cli.process import ROOT
from tests.pipelines.corpora import small_tokenizer, write_corpus, write_jsonl
from tests.watch.works import Counts, Encoding, take_all

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.watch.work import Task
    from tests.watch.works import Works


def counters(result: Any) -> dict[str, int]:
    found = result.metrics().query(MetricsFilter().with_namespace("bpe"))["counters"]
    return {one.key.metric.name: one.committed for one in found}


def finished(transform: beam.PTransform) -> dict[str, int]:
    pipeline = beam.Pipeline(options=PipelineOptions(["--runner=FnApiRunner"]))
    _ = pipeline | transform
    result = pipeline.run()
    result.wait_until_finish()
    return counters(result)


def test_counting_and_training(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus")
    (corpus.folder / "bad.jsonl").write_text("no json\n")
    output = tmp_path / "counts"
    found = finished(
        CountCorpus(inputs=[*corpus.patterns], output=str(output), max_failures=1, split_size=700)
    )
    manifest = json.loads((output / "manifest.json").read_text())
    parts = list(output.glob("data/part-*.parquet"))
    assert found == {
        "documents_read": len(corpus.texts),
        "bytes_read": sum(p.stat().st_size for p in corpus.folder.rglob("*") if p.is_file()),
        "dead_letters": 1,
        "pretokens_counted": manifest["totals"]["pretokens"],
        "text_bytes_counted": sum(len(text.encode()) for text in corpus.texts),
        "distinct_pretokens_written": sum(part["rows"] for part in manifest["parts"]),
        "parts_written": len(parts),
        "parquet_bytes_written": sum(part.stat().st_size for part in parts),
    }
    request = TrainRequest(
        output=OutputSettings(directory=str(tmp_path / "model")),
        counts=(jobs.CountsInput(directory=str(output)),),
        paths=(str(output),),
        special_tokens=(),
        training=TrainSettings(vocab_size=280),
    )
    assert finished(PlannedTransform(request, Failures())) == {"merges_trained": 24}


def test_encoding_and_resuming(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus")
    small_tokenizer(tmp_path / "t.json")
    output = tmp_path / "ids"
    encode: dict[str, Any] = {"inputs": [*corpus.patterns], "tokenizer": str(tmp_path / "t.json")}
    found = finished(EncodeCorpus(**encode, output=str(output), split_size=700))
    totals = json.loads((output / "manifest.json").read_text())["totals"]
    parts = list(output.glob("data/train-*.parquet"))
    pretokens = count((text.encode() for text in corpus.texts), pretokenizer="gpt2").total()
    assert found.pop("cache_hits") + found.pop("cache_misses") == pretokens
    assert found == {
        "documents_read": len(corpus.texts),
        "bytes_read": sum(p.stat().st_size for p in corpus.folder.rglob("*") if p.is_file()),
        "documents_encoded": len(corpus.texts),
        "text_bytes_encoded": sum(len(text.encode()) for text in corpus.texts),
        "tokens_written": totals["tokens"],
        "unknown_tokens_written": 0,
        "parts_written": len(parts),
        "parquet_bytes_written": sum(part.stat().st_size for part in parts),
    }
    again = finished(EncodeCorpus(**encode, output=str(output), split_size=700, resume=True))
    assert again["parts_resumed"] == len(parts)
    assert again.get("tokens_written", 0) == 0


def test_comparing(tmp_path: Path) -> None:
    corpus = write_jsonl(tmp_path / "corpus" / "c.jsonl", ["low lower", "", "lowest"])
    tokenizer = small_tokenizer(tmp_path / "t.json")
    request = CompareRequest.of(
        inputs=corpus.inputs(),
        tokenizers=parse_tokenizers([f"a={tmp_path}/t.json", f"b={tmp_path}/t.json"]),
        directory=str(tmp_path / "job"),
    )
    found = finished(PlannedTransform(request, Failures()))
    assert found["documents_compared"] == 3
    assert found["tokens_compared"] == 2 * sum(len(tokenizer.encode(t)) for t in corpus.texts)


TEXTS = ["brown fox über", "", "lazy dog, lazy dog"]
LATER: dict[str, Any] = {"format": "lines", "max_failures": 9, "split_size": 20}


def write_later(folder: Path) -> int:
    """Files that come after others: cut into splits, compressed, broken; their size as stored."""
    folder.mkdir(exist_ok=True)
    lines = [*(text.encode() for text in TEXTS), b"bad \xff", b"over the moon"]
    (folder / "b.txt").write_bytes(b"".join(line + b"\n" for line in lines))
    (folder / "c.txt.gz").write_bytes(gzip.compress(b"jumps over\n" * 40))
    (folder / "d.txt.gz").write_bytes(b"no gzip")
    return sum(path.stat().st_size for path in folder.glob("[bcd]*"))


def watched(works: Works, task: Task) -> dict[str, int]:
    """What is counted while files are taken into a directory where one was taken before."""
    works.write("a.txt", "the quick\n")
    take_all(works.work(None))
    write_later(works.inputs)
    pipeline = beam.Pipeline(options=PipelineOptions(["--runner=FnApiRunner"]))
    settings = WatchSettings(settle=0.0, interval=0.2, stop_after=0.4)
    add_watching(pipeline, replace(task, settings=settings), Failures(), threads=1)
    result = pipeline.run()
    result.wait_until_finish()
    return counters(result)


def test_watching_to_encode(tmp_path: Path) -> None:
    works = Encoding(tmp_path)
    handler = works.task.handler
    assert isinstance(handler, encoding.Encoding)
    job = replace(handler.job, reading=replace(handler.job.reading, max_failures=9))
    handler = replace(handler, job=job)
    found = watched(works, replace(works.task, handler=handler, max_failures=9, split_size=20))
    input_bytes = write_later(tmp_path / "batch")
    batch = finished(
        EncodeCorpus(
            inputs=[str(tmp_path / "batch")],
            tokenizer=f"{works.out}/tokenizer.json",
            output=str(tmp_path / "ids"),
            **LATER,
        )
    )
    first, *others = read_encoded(works.out).parts
    assert first.inputs[0].name == "a.txt"
    assert len(others) > 3, "b.txt is cut"
    parquet_bytes = sum((works.folder / part.file).stat().st_size for part in others)
    caches = [one.pop("cache_hits") + one.pop("cache_misses") for one in (found, batch)]
    assert caches[0] == caches[1] > 0
    batch.pop("parquet_bytes_written")
    assert found == {
        **batch,
        "files_taken": 3,
        "parquet_bytes_written": parquet_bytes,
    }
    assert found["bytes_read"] == input_bytes
    assert found["dead_letters"] == 2
    assert found["documents_read"] == found["documents_encoded"] == len(TEXTS) + 1 + 40
    assert found["tokens_written"] == sum(part.tokens for part in others)
    assert found["parts_written"] == len(others)


def test_watching_to_count(tmp_path: Path) -> None:
    works = Counts(tmp_path)
    handler = works.task.handler
    assert isinstance(handler, counting.Counting)
    handler = replace(handler, reading=replace(handler.reading, max_failures=9))
    found = watched(works, replace(works.task, handler=handler, max_failures=9, split_size=20))
    input_bytes = write_later(tmp_path / "batch")
    batch = finished(
        CountCorpus(inputs=[str(tmp_path / "batch")], output=str(tmp_path / "counts"), **LATER)
    )
    later = [one for one in works.log().values() if one.taken[0].name != "a.txt"]
    parts = [works.folder / part["file"] for one in later for part in one.manifest["parts"]]
    assert found == {
        **batch,
        "files_taken": 3,
        "distinct_pretokens_written": sum(pq.read_metadata(path).num_rows for path in parts),
        "parts_written": 3,
        "parquet_bytes_written": sum(path.stat().st_size for path in parts),
    }
    assert found["bytes_read"] == input_bytes
    assert found["dead_letters"] == 2
    assert found["documents_read"] == len(TEXTS) + 1 + 40
    assert found["pretokens_counted"] == handler.totals(later).pretokens


@pytest.mark.parametrize("kind", [Encoding, Counts])
def test_a_watched_file_that_cannot_be_read_is_a_dead_letter_alone(
    tmp_path: Path, kind: type[Works]
) -> None:
    works = kind(tmp_path)
    places = replace(works.task.places, format="parquet")
    works.task = replace(works.task, places=places, max_failures=1)
    pq.write_table(pa.table({"no_text": ["a"]}), works.inputs / "a.parquet")
    (file,) = works.work().places.find()
    assert works.work().take(file) == {"files_taken": 1, "dead_letters": 1}


def test_the_documentation_names_every_counter() -> None:
    page = (ROOT / "docs" / "metrics.md").read_text("utf-8")
    documented = set(re.findall(r"^\| `(\w+)` \| .* \| .* \|$", page, re.MULTILINE))
    sources = "".join(path.read_text("utf-8") for path in (ROOT / "pipelines").rglob("*.py"))
    counted = set(re.findall(r'counter\(\s*"(\w+)"', sources))
    counted |= set(re.findall(r'^ +\("(\w+)", (?:part|sums)\.', sources, re.MULTILINE))
    counted |= set(re.findall(r'counted\["(\w+)"\]', sources))
    assert {"documents_read", "tokens_written", "files_taken"} <= counted
    assert counted <= documented
