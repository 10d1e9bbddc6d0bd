"""docs/scale.md says what the results say."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks import superword_bounds, superwords, synthetic
from benchmarks.pages import COMMAND
from benchmarks.plan import GROWTH, MERGE_STEP, PAGE, SHARD_BYTES, SYMBOLS, Plan, with_tables
from pipelines.corpus.files import input_file
from pipelines.corpus.splits import plan_splits
from pipelines.output.names import MAX_PARTS


def test_a_figure_that_was_changed_by_hand_is_put_right() -> None:
    page = PAGE.read_text("utf-8")
    assert "| 3,726 |" in page
    changed = page.replace("| 3,726 |", "| 4,000 |")
    assert with_tables(changed) == page, COMMAND


@pytest.mark.parametrize("bundles", [1, 5, 16])
def test_rows_of_partial_counts_are_as_many_as_are_made(bundles: int) -> None:
    distinct = 1000
    counts = synthetic.counts(distinct)
    made = sum(
        np.count_nonzero(synthetic.bundle_counts(counts, bundle, bundles))
        for bundle in range(bundles)
    )
    assert synthetic.partial_rows(distinct, bundles) == made


@pytest.mark.parametrize("corpus", ["en", pytest.param("multi", marks=pytest.mark.long)])
def test_a_plan_grows_as_its_corpus_does(corpus: str) -> None:
    growth = json.loads(GROWTH.read_text("utf-8"))["corpora"][corpus]
    merge_step = json.loads(MERGE_STEP.read_text("utf-8"))
    small, large = (Plan(size, growth, merge_step) for size in (1e12, 1e14))
    measured_bytes, measured_distinct = growth["points"][-1]
    assert small.distinct_in(measured_bytes) == pytest.approx(measured_distinct, rel=0.1)
    assert large.distinct / small.distinct == pytest.approx(100 ** growth["heaps"]["beta"])
    # Larger splits have fewer distinct pre-tokens for their size.
    fewer = (large.split_size / small.split_size) ** (growth["heaps"]["beta"] - 1)
    assert large.merge_seconds / small.merge_seconds == pytest.approx(100 * fewer, rel=1e-3)
    for plan in (small, large):
        file = input_file("/a.jsonl", "a.jsonl", int(plan.size), "auto")
        assert plan.splits == len(plan_splits([file])) <= MAX_PARTS
        assert plan.distinct / plan.shards * plan.merging_bytes_each <= SHARD_BYTES
        assert plan.trained <= plan.distinct
        assert plan.trained * growth["word_bytes"] < SYMBOLS


def test_the_tables_of_superwords_are_those_of_the_results() -> None:
    for module in (superwords, superword_bounds):
        for page, made in module.pages().items():
            assert page.read_text("utf-8") == made, COMMAND
