"""Counts of the pre-tokens of a corpus: added up, pruned, written and read."""

from __future__ import annotations

from bpe.counts.manifest import Totals as Totals
from bpe.counts.pretokens import PretokenCounts as PretokenCounts
from bpe.counts.pretokens import check_agreement as check_agreement
from bpe.counts.pretokens import combine as combine
from bpe.counts.pretokens import require_pretokens as require_pretokens
from bpe.counts.runs import CutRuns as CutRuns
from bpe.counts.runs import Runs as Runs
