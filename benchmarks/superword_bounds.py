"""The cost of rare and long runs, and what superwords lose without them.

    python -m benchmarks.superword_bounds

SuperBPE on the shared corpora, from all runs, without rare ones, and with long ones cut. Nothing is
timed, so the figures are the same everywhere.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import bpe
from benchmarks.corpora import ROOT, SHARED
from benchmarks.pages import with_block
from benchmarks.results import commit
from benchmarks.superwords import PAGE, TITLES

if TYPE_CHECKING:
    from pathlib import Path

    from bpe.training_report import SuperwordTraining

RESULTS = ROOT / "benchmarks" / "results" / "superword_bounds.json"
_WORDS, _SUPERWORDS = 16_141, 8_192  # merges of words, of superwords
_PAIR_COUNTS = "disjoint"
_WAYS: dict[str, dict[str, int]] = {
    "all runs": {},
    **{f"`--prune-runs-below {below}`": {"prune_below": below} for below in (2, 3, 10)},
    **{f"`--max-run {longest}`": {"max_run": longest} for longest in (64, 32, 16, 8, 4)},
    **{
        f"`--max-run {longest} --prune-runs-below 2`": {"max_run": longest, "prune_below": 2}
        for longest in (8, 4)
    },
}
# In the table; the file of results has all.
_SHOWN = ("all runs", "`--prune-runs-below 2`", "`--max-run 4`")


def superwords_of(tokenizer: bpe.Tokenizer) -> SuperwordTraining:
    """The training of its superwords.

    Raises:
        ValueError: it has none.
    """
    if tokenizer.training is None or tokenizer.training.superwords is None:
        raise ValueError("the tokenizer has no record of superwords")
    return tokenizer.training.superwords


def first_affected(training: SuperwordTraining) -> int | None:
    """The first superword that what was dropped or cut could have changed."""
    lost = training.pruned or training.cut
    return None if lost is None else lost["first_affected_merge"]


def compared(corpus: str) -> dict[str, Any]:
    """All ways on one corpus."""
    path = SHARED / "corpora" / f"{corpus}.parquet"
    texts = pq.read_table(path, columns=["text"])["text"].cast(pa.large_string())
    counts = bpe.count_pretokens(texts, pretokenizer="o200k")
    words = bpe.train(counts, max_merges=_WORDS, pair_counts=_PAIR_COUNTS)
    exact: list[tuple[bytes, bytes]] = []
    ways = {}
    for way, settings in _WAYS.items():
        runs = bpe.count_runs(texts, tokenizer=words, max_run=settings.get("max_run"))
        below = settings.get("prune_below", 1)
        tokenizer = bpe.train_superwords(
            runs,
            tokenizer=words,
            superwords=_SUPERWORDS,
            prune_below=below,
            pair_counts=_PAIR_COUNTS,
        )
        kept, training = runs.pruned(below), superwords_of(tokenizer)
        pairs = [(merge.left, merge.right) for merge in training.merges]
        exact = exact or pairs
        others = (
            i for i, (one, other) in enumerate(zip(pairs, exact, strict=True)) if one != other
        )
        ways[way] = {
            "distinct": len(kept),
            "longest": max(len(key) for key, _ in kept.items()) // 2,
            "tokens": memoryview(kept.sorted_counts.data).nbytes // 2,
            "first_affected": first_affected(training),
            "first_other": next(others, None),
            "others": len(set(pairs) - set(exact)),
            "encoded": sum(len(tokenizer.encode_arrow(chunk).values) for chunk in texts.chunks),
        }
        click.echo(f"{corpus}: {way}: {ways[way]}")
    return {"bytes": pc.sum(pc.binary_length(texts)).as_py(), "ways": ways}


def main() -> None:
    """Compare on both corpora and write the results."""
    results = {"commit": commit(), "corpora": {one: compared(one) for one in TITLES}}
    RESULTS.write_text(json.dumps(results, indent=2) + "\n", "utf-8")


def pages() -> dict[Path, str]:
    """The page that shows the results, as it should be."""
    results = json.loads(RESULTS.read_text("utf-8"))
    page = PAGE.read_text("utf-8")
    return {PAGE: with_block(page, table(results), name="bounds")}


def table(results: dict[str, Any]) -> str:
    """The results as text and a table in Markdown."""
    columns = (
        *("corpus", "", "distinct runs", "tokens in distinct runs", "first affected"),
        *("other superwords", "bytes per token"),
    )
    lines = [
        f"From `benchmarks/results/superword_bounds.json`, at commit `{results['commit']}`.",
        "",
        f"| {' | '.join(columns)} |",
        "|---" * len(columns) + "|",
    ]
    for corpus, found in results["corpora"].items():
        for way in _SHOWN:
            one = found["ways"][way]
            lines.append(
                f"| {TITLES[corpus]} | {way} | {one['distinct']:,} | {one['tokens']:,} | "
                f"{_number(one['first_affected'])} | {one['others']:,} | "
                f"{found['bytes'] / one['encoded']:.4f} |"
            )
    return "\n".join(lines)


def _number(value: int | None) -> str:
    return "none" if value is None else f"{value:,}"


if __name__ == "__main__":
    main()
