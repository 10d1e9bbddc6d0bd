"""Pipelines of Beam YAML read, count, encode and write with our transforms."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

import bpe
from pipelines.errors import ConfigError
from pipelines.transforms import beam_yaml
from tests import jobs
from tests.pipelines.corpora import small_tokenizer

main = pytest.importorskip("apache_beam.yaml.main", reason="Beam's extra yaml is not installed")

TEXTS = ["the lazy dog", "naïve café", "the fox"]
NAMES = (
    *("read_documents", "encode_documents", "count_pretokens"),
    *("read_counts", "write_counts", "write_token_ids"),
)


def run(folder: Path, *steps: dict[str, Any]) -> None:
    """Run a pipeline of these transforms; each has its name as type."""
    spec = {
        "pipeline": {"transforms": list(steps)},
        "providers": [
            {
                "type": "python",
                "config": {},
                "transforms": {name_of(one): f"{beam_yaml.__name__}.{one}" for one in NAMES},
            }
        ],
    }
    path = folder / "pipeline.yaml"
    path.write_text(yaml.safe_dump(spec), "utf-8")
    main.run([f"--yaml_pipeline_file={path}", "--runner=FnApiRunner"])


def name_of(function: str) -> str:
    """``ReadDocuments`` for ``read_documents``."""
    return "".join(map(str.capitalize, function.split("_")))


def step(kind: str, source: str | None = None, **config: Any) -> dict[str, Any]:
    """A transform of a pipeline."""
    given = {} if source is None else {"input": source}
    return {"type": kind, **given, "config": config}


def flat(errors: str, *fields: str) -> dict[str, Any]:
    """Errors with the fields of their elements, as Beam writes them to Parquet."""
    chosen = {"msg": "msg", "stack": "stack", **{name: f"element.{name}" for name in fields}}
    return step("MapToFields", errors, language="python", fields=chosen)


def rows(path: Path) -> list[dict[str, Any]]:
    """The rows that Beam wrote."""
    found = sorted(path.parent.glob(f"{path.name}-*"))
    return [row for file in found for row in pq.read_table(file).to_pylist()]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Three documents and a record that is none, in a file whose name is no text."""
    records = [json.dumps({"id": f"d{n}", "text": text}) for n, text in enumerate(TEXTS)]
    path = tmp_path / os.fsdecode(b"c\xff.jsonl")
    path.write_text("\n".join([*records[:2], '{"id": "none"}', records[2]]), "utf-8")
    return path


def test_read_count_encode_and_write(corpus: Path, tmp_path: Path) -> None:
    model = tmp_path / "t.json"
    tokenizer = small_tokenizer(model)
    run(
        tmp_path,
        step("ReadDocuments", patterns=[f"{tmp_path}/*.jsonl"], error_handling={"output": "bad"}),
        step("EncodeDocuments", "ReadDocuments", tokenizer=str(model)),
        step("CountPretokens", "ReadDocuments", pretokenizer="words"),
        step(
            *("WriteCounts", "CountPretokens"),
            path=str(tmp_path / "counts"),
            pretokenizer="words",
            shards=1,
        ),
        step(
            *("WriteTokenIds", "EncodeDocuments"),
            path=str(tmp_path / "ids"),
            tokenizer=str(model),
            parts=1,
        ),
        step("WriteToParquet", "EncodeDocuments", path=str(tmp_path / "encoded")),
        flat("ReadDocuments.bad", *("file", "unit", "place", "reason", "raw")),
        step("WriteToParquet", "MapToFields", path=str(tmp_path / "bad")),
    )
    encoded = {row["id"]: row["input_ids"] for row in rows(tmp_path / "encoded")}
    assert encoded == {f"d{n}": tokenizer.encode(text) for n, text in enumerate(TEXTS)}
    assert jobs.verify(directory=str(tmp_path / "ids")).documents == len(TEXTS)
    expected = bpe.count_pretokens(TEXTS, pretokenizer="words")
    counts = bpe.PretokenCounts.load(tmp_path / "counts")
    assert dict(counts.items()) == dict(expected.items())
    (error,) = rows(tmp_path / "bad")
    place = len("".join(corpus.read_text("utf-8").splitlines(keepends=True)[:2]).encode())
    assert (error["file"], error["unit"], error["place"]) == (
        f"{tmp_path}/c\\xff.jsonl",
        "byte",
        place,
    )
    assert error["raw"] == '{"id": "none"}'
    assert "text" in error["reason"]
    assert "text" in error["msg"]
    assert "RecordError" in error["stack"]

    run(
        tmp_path,
        step("ReadCounts", path=str(tmp_path / "counts")),
        step("WriteToParquet", "ReadCounts", path=str(tmp_path / "again")),
    )
    again = {row["pretoken"]: row["count"] for row in rows(tmp_path / "again")}
    assert again == dict(counts.items())


@pytest.mark.parametrize("kind", ["EncodeDocuments", "CountPretokens"])
def test_bad_rows_have_an_output(kind: str, tmp_path: Path) -> None:
    small_tokenizer(tmp_path / "t.json")
    given = {"tokenizer": str(tmp_path / "t.json")} if kind == "EncodeDocuments" else {}
    elements = [{"n": 1, "raw": "", "text": "lazy"}, {"n": 2, "raw": "", "text": None}]
    run(
        tmp_path,
        step("Create", elements=elements),
        step(kind, "Create", **given, error_handling={"output": "bad"}),
        flat(f"{kind}.bad", "n"),
        step("WriteToParquet", "MapToFields", path=str(tmp_path / "bad")),
    )
    (error,) = rows(tmp_path / "bad")
    assert error["n"] == 2
    assert "text" in error["msg"]


def test_rows_that_are_no_counts_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="has not `pretoken`, bytes, and `count`"):
        run(
            tmp_path,
            step("Create", elements=[{"pretoken": "lazy", "count": 1}]),
            step("WriteCounts", "Create", path=str(tmp_path / "counts")),
        )


def test_arrays_are_refused() -> None:
    with pytest.raises(ConfigError, match="schemas do not know arrays"):
        beam_yaml.encode_documents(tokenizer="t.json", as_numpy=True)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"as_tables": True}, "Beam YAML takes rows"),
        ({"jsonl": 1}, "jsonl"),
        ({"error_handling": {"output": "bad", "partial": True}}, "in batches"),
    ],
)
def test_arguments_are_refused(
    corpus: Path, tmp_path: Path, config: dict[str, Any], message: str
) -> None:
    errors = [step("LogForTesting", "ReadDocuments.bad")] if "error_handling" in config else []
    with pytest.raises(ValueError, match=message):
        run(tmp_path, step("ReadDocuments", patterns=[f"{tmp_path}/*.jsonl"], **config), *errors)
