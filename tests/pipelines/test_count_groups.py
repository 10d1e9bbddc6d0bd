"""Counts by group: a counts directory for each value of a field, whatever the format and splits."""

from __future__ import annotations

import shutil
from collections import defaultdict
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bpe
from bpe.counts import PretokenCounts
from pipelines.count.directory import group_directories, load_counts, read_counts
from pipelines.errors import ConfigError, InputError, OutputError, RecordError, VerificationError
from pipelines.settings import CountSettings, InputSettings
from tests.jobs import verify
from tests.pipelines.corpora import ONE, count, dead_letters, sentence, tree, write_rows

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.summaries import CountSummary

VALUES = ("en", "日本", "a/../b =%", "", "de", 7)
FOLDERS = {"=", "=7", "=a%2F..%2Fb%20%3D%25", "=de", "=en", "=%E6%97%A5%E6%9C%AC"}
LANGUAGES = [VALUES[(number + number // 7) % len(VALUES)] for number in range(120)]
RECORDS: list[dict[str, Any]] = [
    {"text": sentence(number, 20), "lang": lang, "meta": {"lang": lang}}
    for number, lang in enumerate(LANGUAGES)
]


def write(folder: Path, format_: str, records: list[dict[str, Any]]) -> Path:
    """Two files of records."""
    folder.mkdir(parents=True, exist_ok=True)
    for half in range(2):
        some = records[half::2]
        if format_ == "jsonl":
            write_rows(folder / f"{half}.jsonl", some)
        else:
            rows = [(one["text"], str(one["lang"])) for one in some]
            columns = [{"text": text, "lang": lang, "meta": {"lang": lang}} for text, lang in rows]
            table = pa.Table.from_pylist(columns)
            pq.write_table(table, folder / f"{half}.parquet", row_group_size=7)
    return folder


def grouped(source: Path, output: Path, *, max_failures: int = 0, **asked: Any) -> CountSummary:
    inputs = InputSettings(patterns=(str(source),), split_size=700, max_failures=max_failures)
    return count(inputs, output, **{"group_by": "lang", "shards": 2, **asked})


@pytest.mark.parametrize("by", ["lang", "meta.lang"])
@pytest.mark.parametrize("format_", ["jsonl", "parquet"])
def test_each_group_has_the_counts_of_its_documents(tmp_path: Path, format_: str, by: str) -> None:
    source = write(tmp_path / "corpus", format_, RECORDS)
    summary = grouped(source, tmp_path / "out", group_by=by, shards=3)
    texts = defaultdict(list)
    for record in RECORDS:
        texts[str(record["lang"])].append(str(record["text"]))
    directories = group_directories(str(tmp_path / "out"))
    assert directories.keys() == texts.keys()
    assert set(directories.values()) == {f"{tmp_path}/out/{by}{name}" for name in FOLDERS}
    for value, directory in directories.items():
        counts = bpe.count_pretokens(texts[value])
        assert load_counts(directory) == PretokenCounts.load(directory) == counts
    assert summary.documents == len(RECORDS)
    assert summary.parts == 3 * len(texts)


@pytest.mark.parametrize("prune_below", [1, 3])
def test_all_groups_together_are_the_corpus(tmp_path: Path, prune_below: int) -> None:
    source = write(tmp_path / "corpus", "jsonl", RECORDS)
    grouped(source, tmp_path / "out", track_order=True, prune_below=prune_below)
    everything = load_counts(str(tmp_path / "out"))
    manifest = read_counts(str(tmp_path / "out")).manifest
    assert [file.name for file in manifest.inputs] == ["0.jsonl", "1.jsonl"]
    assert everything.totals.documents == len(RECORDS)
    ordered = [record["text"] for record in [*RECORDS[::2], *RECORDS[1::2]]]
    expected = bpe.count_pretokens(ordered, track_order=True)
    if prune_below == 1:
        assert dict(everything.items()) == dict(expected.items())
        found, seen = (
            one.pretokens.take(one.first_seen_rows()).to_pylist() for one in (everything, expected)
        )
        assert found == seen
    else:
        assert everything.prune is not None
        lost = expected.totals.pretokens - sum(everything.counts.to_pylist())
        assert everything.prune.occurrences == lost > 0


BAD: dict[str, dict[str, Any]] = {
    "group field 'lang' is missing": {},
    "group field 'lang' is null": {"lang": None},
    "group field 'lang' is an array": {"lang": ["en"]},
    "group field 'lang' is true": {"lang": True},
    "group field 'lang' holds a value too long": {"lang": "é" * 50},
}


def test_records_without_a_group_are_bad(tmp_path: Path) -> None:
    records = [{"text": "x", **one} for one in BAD.values()]
    source = write(tmp_path / "corpus", "jsonl", [*RECORDS[:2], *records])
    with pytest.raises(RecordError, match="group field 'lang' is"):
        grouped(source, tmp_path / "out")
    summary = grouped(source, tmp_path / "out", max_failures=5)
    assert (summary.documents, summary.failures) == (2, 5)
    letters = sorted((tmp_path / "out" / "dead-letters").iterdir())
    reasons = [letter["reason"] for letter in dead_letters(tmp_path / "out")]
    assert all(any(reason in one for one in reasons) for reason in BAD), reasons
    verify(directory=str(tmp_path / "out"), execution=ONE)
    letters[0].write_text("{}")
    with pytest.raises(VerificationError, match="dead-letters"):
        verify(directory=str(tmp_path / "out"), execution=ONE)


def test_verify_reads_all_groups_and_the_input(tmp_path: Path) -> None:
    source = write(tmp_path / "corpus", "jsonl", [*RECORDS, {"text": "no group"}])
    output = tmp_path / "out"
    grouped(source, output, max_failures=1, track_order=True)
    inputs = InputSettings(patterns=(str(source),))
    summary = verify(directory=str(output), inputs=inputs)
    assert (summary.documents, summary.failures) == (len(RECORDS), 1)
    verify(directory=str(output / "lang=en"), execution=ONE)
    shutil.copy(output / "lang=en" / "manifest.json", output / "lang=de" / "manifest.json")
    with pytest.raises(VerificationError, match=r"lang=de.*not the counts"):
        verify(directory=str(output), execution=ONE)


def test_pruned_groups_are_compared_with_the_input(tmp_path: Path) -> None:
    source = write(tmp_path / "corpus", "jsonl", RECORDS)
    grouped(source, tmp_path / "out", prune_below=2)
    inputs = InputSettings(patterns=(str(source),))
    verify(directory=str(tmp_path / "out"), inputs=inputs)
    moved = [{**one, "lang": "en"} if one["lang"] == "de" else one for one in RECORDS]
    write(tmp_path / "corpus", "jsonl", moved)
    with pytest.raises(VerificationError, match="counting again gives"):
        verify(directory=str(tmp_path / "out"), inputs=inputs)


def test_overwriting_removes_what_groups_left_and_nothing_else(tmp_path: Path) -> None:
    source = write(tmp_path / "corpus", "jsonl", RECORDS)
    output = tmp_path / "out"
    grouped(source, output)
    (output / "lang=en" / "notes.txt").write_text("mine")
    for resume in (False, True):
        before = tree(output)
        with pytest.raises(
            OutputError, match=r"holds 'lang=en/notes\.txt', which bpe count does not"
        ):
            grouped(source, output, resume=resume, overwrite=not resume)
        assert tree(output) == before
    (output / "lang=en" / "notes.txt").unlink()
    fewer = write(tmp_path / "fewer", "jsonl", [one for one in RECORDS if one["lang"] == "de"])
    grouped(fewer, output, overwrite=True)
    assert sorted(one.name for one in output.iterdir() if one.is_dir()) == ["lang=de"]


def test_what_does_not_go_with_groups_is_refused(tmp_path: Path) -> None:
    source = write(tmp_path / "corpus", "jsonl", RECORDS)
    with (
        patch("pipelines.count.steps.MAX_GROUPS", 2),
        pytest.raises(InputError, match="'lang' has more than 2 values"),
    ):
        grouped(source, tmp_path / "many")
    with pytest.raises(ConfigError, match="`group_by` is empty"):
        CountSettings(group_by="")
    (tmp_path / "a.txt").write_text("some text")
    with pytest.raises(ConfigError, match=r"a\.txt is read as text, which has no columns"):
        grouped(tmp_path / "a.txt", tmp_path / "text")
