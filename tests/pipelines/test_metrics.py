"""Beam's counters: what they come to, and that the documentation names each."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import apache_beam as beam
from apache_beam.metrics import MetricsFilter
from apache_beam.options.pipeline_options import PipelineOptions

from bpe.reference.pretokenize import count
from pipelines import CountCorpus, EncodeCorpus
from pipelines.compare.job import CompareRequest
from pipelines.compare.tokenizers import parse_tokenizers
from pipelines.failures import FailureChannel
from pipelines.settings import CountsInput, OutputSettings, TrainSettings
from pipelines.stage.beam import RunJob
from pipelines.train import TrainRequest
from tests.cli.process import ROOT
from tests.pipelines.corpora import small_tokenizer, write_corpus, write_jsonl

if TYPE_CHECKING:
    from pathlib import Path


def counters(result: Any) -> dict[str, int]:
    """Return the sums over all steps."""
    totals = Counter[str]()
    for one in result.metrics().query(MetricsFilter().with_namespace("bpe"))["counters"]:
        totals[one.key.metric.name] += one.committed
    return dict(totals)


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
    words = trained(output, tmp_path / "model", vocab_size=280)
    assert words == {"merges_trained": 24}


def trained(counts: Path, output: Path, **training: Any) -> dict[str, int]:
    request = TrainRequest(
        output=OutputSettings(directory=str(output)),
        counts=(CountsInput(directory=str(counts)),),
        special_tokens=(),
        training=TrainSettings(**training),
    )
    return finished(RunJob(request, FailureChannel()))


def test_superwords_alone_are_counted(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "a.jsonl", ["the fox the fox the dog"] * 3)
    small_tokenizer(tmp_path / "words.json")
    inputs, words = [str(tmp_path / "a.jsonl")], str(tmp_path / "words.json")
    finished(CountCorpus(inputs=inputs, tokenizer=words, output=str(tmp_path / "runs")))
    found = trained(tmp_path / "runs", tmp_path / "model", superwords=2, extend=words)
    assert found == {"merges_trained": 2}


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
        "units_made": len(parts),
        "parts_written": len(parts),
        "parquet_bytes_written": sum(part.stat().st_size for part in parts),
    }
    again = finished(EncodeCorpus(**encode, output=str(output), split_size=700, resume=True))
    assert again["units_resumed"] == len(parts)
    assert again.get("tokens_written", 0) == 0


def test_comparing(tmp_path: Path) -> None:
    corpus = write_jsonl(tmp_path / "corpus" / "c.jsonl", ["low lower", "", "lowest"])
    tokenizer = small_tokenizer(tmp_path / "t.json")
    request = CompareRequest.of(
        inputs=corpus.inputs(),
        tokenizers=parse_tokenizers([f"a={tmp_path}/t.json", f"b={tmp_path}/t.json"]),
        directory=str(tmp_path / "job"),
    )
    found = finished(RunJob(request, FailureChannel()))
    assert found["documents_compared"] == 3
    assert found["tokens_compared"] == 2 * sum(len(tokenizer.encode(t)) for t in corpus.texts)


def test_the_documentation_names_every_counter() -> None:
    page = (ROOT / "docs" / "metrics.md").read_text("utf-8")
    documented = set(re.findall(r"^\| `(\w+)` \| .* \| .* \|$", page, re.MULTILINE))
    sources = "".join(path.read_text("utf-8") for path in (ROOT / "pipelines").rglob("*.py"))
    calls = re.findall(r"add_to_metrics\((.+?)\)\n", sources, re.DOTALL)
    counted = {name for call in calls for name in re.findall(r"(\w+)=", call)}
    assert {"documents_read", "tokens_written", "units_resumed"} <= counted
    assert counted <= documented
