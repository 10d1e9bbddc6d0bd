"""``bpe report`` on directories into which files are taken as they arrive."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.report import report
from tests.cli.process import bpe
from tests.cli.reports import facts, section, table, text
from tests.pipelines.corpora import sentence, small_tokenizer
from tests.watch.drops import running, taken, wait_for

if TYPE_CHECKING:
    from pathlib import Path

WATCH = ("--watch", "in", "--interval", "0.2", "--settle", "0", "--max-failures", "5")
WAITS = "It takes files as they arrive and waits for them most of the time, so it has no speed"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files to take: two that share words, one with a bad record, one that cannot be read."""
    (tmp_path / "in").mkdir()
    for name in ("a", "b", "bad"):
        lines = [json.dumps({"text": sentence(number)}) for number in range(20)]
        lines += ['{"text": 5}'] * (name == "bad")
        (tmp_path / "in" / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    pq.write_table(pa.table({"words": ["no text"]}), tmp_path / "in" / "other.parquet")
    small_tokenizer(tmp_path / "tokenizer.json")
    return tmp_path


def kill_when_taken(folder: Path, *command: str) -> Path:
    """Run a watch until it has taken all four files, and not one moment longer."""
    out = folder / "out"
    with running(*command, *WATCH, "--output", "out", cwd=folder) as process:
        wait_for(lambda: taken(out) == 4, process)
        process.kill()
    return out


def finish(folder: Path, *command: str) -> None:
    bpe(*command, *WATCH, "--output", "out", "--stop-idle", "0.5", cwd=folder, seconds=600)


@pytest.mark.long
def test_an_encoded_corpus_of_which_only_the_log_tells(folder: Path) -> None:
    encode = ("encode", "--tokenizer", "tokenizer.json")
    out = kill_when_taken(folder, *encode)
    raw = json.loads((out / "manifest.json").read_bytes())
    assert not raw["parts"], "the log has been moved into the manifest"
    report(str(out))
    page = out / "report.html"
    before = section(page, "manifest-corpus")
    assert "a watch takes files as they arrive" in text(before).lower()
    assert facts(before)["totals.documents"] == "60"
    assert facts(before)["totals.failures"] == "2"
    assert "60 documents, " in text(section(page, "tokens-per-document"))
    listed = table(before, "name", "size", "format", "compression")
    assert [row[0] for row in listed] == ["a.jsonl", "b.jsonl", "bad.jsonl"]
    assert "watch: 4" in text(before), "each input, the one that cannot be read too"
    assert "name a.jsonl, start 0, end " in text(before)
    assert "encode: 2 records were set aside." in text(section(page, "dead-letters"))
    throughput = text(section(page, "throughput"))
    assert f"encode: a watch. {WAITS}" in throughput
    assert "Not known" not in throughput
    finish(folder, *encode)
    moved = json.loads((out / "manifest.json").read_bytes())
    assert len(moved["parts"]) == 3
    report(str(out))
    assert section(page, "manifest-corpus") == before


def test_counts_are_those_of_all_sets_together(folder: Path) -> None:
    out = kill_when_taken(folder, "count")
    report(str(out))
    page = out / "report.html"
    manifest = section(page, "manifest-counts")
    said = facts(manifest)
    listed = table(manifest, "name", "size")
    assert [row[0] for row in listed] == ["a.jsonl", "b.jsonl", "bad.jsonl"]
    assert "count: 2 records were set aside." in text(section(page, "dead-letters"))
    assert f"count: a watch. {WAITS}" in text(section(page, "throughput"))
    inputs = ("--input", "in/*.jsonl", "--max-failures", "1")
    bpe("count", *inputs, "--output", "batch", cwd=folder)
    report(str(folder / "batch"))
    batch = folder / "batch" / "report.html"
    for key in ("pre-tokens", "text-scripts"):
        assert section(page, key) == section(batch, key)
    expected = facts(section(batch, "manifest-counts"))
    for name in ("documents", "bytes", "pretokens", "distinct pretokens"):
        assert said[f"totals.{name}"] == expected[f"totals.{name}"]
    tile = f"<dt>distinct pre-tokens</dt><dd>{expected['totals.distinct pretokens']}</dd>"
    assert tile in page.read_text("utf-8")
