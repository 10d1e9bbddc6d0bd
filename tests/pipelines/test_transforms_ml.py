"""Encoding inside Beam's MLTransform."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import apache_beam as beam
import pytest
from apache_beam.ml.transforms.base import MLTransform
from apache_beam.testing.util import equal_to

from pipelines import BPETokenize
from tests.pipelines.beam_runs import assert_that, both_modes, pipeline
from tests.pipelines.corpora import small_tokenizer

if TYPE_CHECKING:
    from pathlib import Path

    import bpe

ROWS = [
    {"title": "lazy dog", "text": "the fox", "n": 1},
    {"title": "", "text": "naïve café<|end|>", "n": 2},
]


def expected(tokenizer: bpe.Tokenizer, **settings: Any) -> list[dict[str, Any]]:
    return [
        {**row, **{name: tokenizer.encode(str(row[name]), **settings) for name in COLUMNS}}
        for row in ROWS
    ]


def plain(row: Any) -> dict[str, Any]:
    values = row if isinstance(row, dict) else row.as_dict()
    return {name: value.tolist() if name in COLUMNS else value for name, value in values.items()}


COLUMNS = ["title", "text"]


@both_modes
@pytest.mark.parametrize("given", ["path", "value"])
def test_artifacts_hold_the_tokenizer_and_the_settings(
    mode: str, given: str, tmp_path: Path
) -> None:
    path, artifacts = tmp_path / "t.json", str(tmp_path / "artifacts")
    tokenizer = path if given == "path" else small_tokenizer(path)
    tokenize = BPETokenize(columns=COLUMNS, tokenizer=tokenizer, allowed_special="all")
    rows = expected(small_tokenizer(path), allowed_special="all")  # a path is not read before
    with pipeline(mode) as p:
        writing = MLTransform(write_artifact_location=artifacts).with_transform(tokenize)
        encoded = p | beam.Create(ROWS) | writing
        assert_that(encoded | beam.Map(plain), equal_to(rows))
    path.unlink()
    moved = tmp_path / "moved"
    (tmp_path / "artifacts").rename(moved)
    with pipeline(mode) as p:
        given_rows = p | beam.Create([beam.Row(**row) for row in ROWS])
        encoded = given_rows | MLTransform(read_artifact_location=str(moved))
        assert_that(encoded | beam.Map(plain), equal_to(rows))


def test_bad_rows_have_an_output(tmp_path: Path) -> None:
    tokenizer = small_tokenizer(tmp_path / "t.json")
    tokenize = BPETokenize(columns=["text", "title"], tokenizer=tokenizer)
    with pipeline() as p:
        rows = p | beam.Create([*ROWS, {"text": 7, "title": ""}, {"text": ""}])
        transform = MLTransform(write_artifact_location=str(tmp_path / "artifacts"))
        encoded, bad = rows | transform.with_transform(tokenize).with_exception_handling()
        assert_that(encoded | beam.Map(plain), equal_to(expected(tokenizer)))
        found = bad | "Messages" >> beam.Map(lambda row: row.msg.split(":")[0])
        messages = [
            "RecordError(\"field 'text' is int 7, not text\")",
            "RecordError(\"the element has no field 'title' (its fields",
        ]
        assert_that(found, equal_to(messages), label="bad")
