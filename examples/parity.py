"""Compares ordinary and parity-aware BPE on counts by group, as a table in Markdown.

The counts are those of ``bpe count --group-by``; the tables of docs/parity.md were made so::

    python -m examples.parity TRAIN DEV --max-merges 2000
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import bpe
from pipelines.count.directory import group_directories, load_counts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bpe import PretokenCounts
    from bpe.training_report import Parity


def by_group(directory: str) -> dict[str, PretokenCounts]:
    """The counts of each group."""
    return {name: load_counts(path) for name, path in group_directories(directory).items()}


def variants(
    counts: dict[str, PretokenCounts], dev: dict[str, PretokenCounts], *, max_merges: int
) -> Iterator[tuple[str, Parity]]:
    """The result of each way of training; it is ordinary if all merges are global."""
    for name, global_merges, window in (
        ("ordinary BPE", max_merges, None),
        ("base", 0, None),
        ("hybrid, a quarter of the merges", max_merges // 4, None),
        ("window of 100", 0, 100),
    ):
        tokenizer = bpe.train_parity(
            counts, dev=dev, max_merges=max_merges, global_merges=global_merges, window=window
        )
        if tokenizer.training is not None and tokenizer.training.parity is not None:
            yield name, tokenizer.training.parity


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("train", help="counts by group")
    parser.add_argument("dev", help="held-out counts of the same groups")
    parser.add_argument("--max-merges", type=int, default=2000)
    given = parser.parse_args()
    counts, dev = by_group(given.train), by_group(given.dev)
    print("| held-out tokens |", " | ".join(counts), "| all | Gini coefficient |")
    print("|---|" + "---|" * (len(counts) + 2))
    for name, parity in variants(counts, dev, max_merges=given.max_merges):
        tokens = [group.held_out_tokens or 0 for group in parity.groups]
        row = " | ".join(f"{number:,}" for number in (*tokens, sum(tokens)))
        print(f"| {name} | {row} | {parity.held_out_gini:.4f} |")


if __name__ == "__main__":
    main()
