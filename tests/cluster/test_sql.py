"""Rows with token ids go through Beam SQL, whose `SqlTransform` is Java."""

from __future__ import annotations

from typing import TYPE_CHECKING

import apache_beam as beam
import pytest
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.transforms.external import JavaExternalTransform

from pipelines import EncodeDocuments
from tests.cluster import cache
from tests.cluster.processes import HOST, free_ports, java_program
from tests.pipelines.beam_runs import pipeline
from tests.pipelines.corpora import small_tokenizer

if TYPE_CHECKING:
    from pathlib import Path

EXPANSION = "org.apache.beam.sdk.expansion.service.ExpansionService"
SQL_TRANSFORM = "org.apache.beam.sdk.extensions.sql.SqlTransform"
QUERY = """
SELECT id, lang, input_ids, CARDINALITY(input_ids) AS num_tokens, input_ids[1] AS head
FROM PCOLLECTION
WHERE CARDINALITY(input_ids) > 0
"""
TEXTS = ["the fox", "", "naïve café"]


@pytest.mark.long
def test_token_ids_are_an_array_of_sql(pieces: None, tmp_path: Path) -> None:
    tokenizer = small_tokenizer(tmp_path / "tokenizer.json")
    documents = [
        beam.Row(id=number, text=text, lang="en" if number else None)
        for number, text in enumerate(TEXTS)
    ]
    (port,) = free_ports(1)
    options = ("--javaClassLookupAllowlistFile=*", "--alsoStartLoopbackWorker")
    jars = f"{cache.jars()}/*:{cache.sql()}/*"
    service = java_program("expansion", tmp_path, jars, EXPANSION, str(port), *options)
    with service.wait_for(port), pipeline() as p:
        sql = JavaExternalTransform(SQL_TRANSFORM, f"{HOST}:{port}").query(QUERY)
        rows = p | beam.Create(documents) | EncodeDocuments(tokenizer=tokenizer)
        # Auto-loading asks for connectors to stores, which are not here.
        chosen = rows | sql.withAutoLoading(False)
        expected = [
            (number, "en" if number else None, ids, len(ids), ids[0])
            for number, ids in enumerate(map(tokenizer.encode, TEXTS))
            if ids
        ]
        assert_that(chosen | beam.Map(tuple), equal_to(expected))
