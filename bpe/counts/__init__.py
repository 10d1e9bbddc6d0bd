"""Counts of the pre-tokens of a corpus: added up, pruned, written and read."""

from __future__ import annotations

from bpe.counts.manifest import Totals
from bpe.counts.pretokens import PretokenCounts, check_agreement, combine, require_pretokens
from bpe.counts.runs import CutRuns, Runs

__all__ = [
    "CutRuns",
    "PretokenCounts",
    "Runs",
    "Totals",
    "check_agreement",
    "combine",
    "require_pretokens",
]
