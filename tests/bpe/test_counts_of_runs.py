"""Counts whose keys are runs of token ids: saved, added, pruned, and never taken for text."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import bpe
from bpe.counts import CutRuns, PretokenCounts, Runs, Totals
from bpe.diff import fit
from bpe.errors import CountsError, TrainingError
from bpe.files import with_checksum
from bpe.roles import Roles
from tests.bpe.oracle import known

if TYPE_CHECKING:
    from pathlib import Path

RUNS = Runs(tokenizer="ab" * 32, merge_pattern=r"\p{L}", max_run=None, id_bytes=2)


def counts_of(items: dict[tuple[int, ...], int], runs: Runs = RUNS) -> PretokenCounts:
    keys = {
        b"".join(id_.to_bytes(runs.id_bytes, "little") for id_ in ids): count
        for ids, count in items.items()
    }
    return PretokenCounts(
        sorted_counts=PretokenCounts.from_items(keys).sorted_counts,
        pretokenizer=bpe.Pretokenizer("gpt2"),
        totals=Totals(documents=1, bytes=9, pretokens=sum(items.values())),
        runs=runs,
        cut=None if runs.max_run is None else CutRuns(pairs=6, max_pair=4),
    )


def test_they_are_saved_with_how_runs_were_found(tmp_path: Path) -> None:
    for runs in (RUNS, replace(RUNS, max_run=7, id_bytes=4, merge_pattern="[a-z]")):
        counts = counts_of({(1, 2): 3, (2, 1, 600): 1}, runs)
        counts.save(tmp_path / "runs")
        loaded = PretokenCounts.load(tmp_path / "runs")
        assert loaded == counts
        assert loaded.runs == runs
        assert "4 runs" in repr(loaded)


def test_what_cuts_may_have_changed_adds_up(tmp_path: Path) -> None:
    counts = counts_of({(1, 2): 3}, replace(RUNS, max_run=2))
    (2 * counts + counts).save(tmp_path / "runs")
    assert PretokenCounts.load(tmp_path / "runs").cut == CutRuns(pairs=18, max_pair=12)
    for wrong in ({"cut": None}, {"runs": RUNS}):
        with pytest.raises(CountsError, match="count the runs again"):
            replace(counts, **wrong)
    for pairs, message in (
        (2, "max_pair 3 is not between 0 and pairs, 2"),
        (2**63, r"pairs 9223372036854775808 exceeds 2\^63 - 1: divide"),
    ):
        with pytest.raises(CountsError, match=message):
            CutRuns(pairs=pairs, max_pair=3)


def test_a_manifest_of_impossible_runs(tmp_path: Path) -> None:
    counts_of({(1, 2): 3}).save(tmp_path / "runs")
    path = tmp_path / "runs" / "manifest.json"
    manifest = json.loads(path.read_text())
    runs = manifest["runs"] | {"id_bytes": 3}
    path.write_text(json.dumps(with_checksum(manifest | {"runs": runs})))
    with pytest.raises(CountsError, match="runs is wrong: runs: id_bytes 3 is not 2 or 4"):
        PretokenCounts.load(tmp_path / "runs")


def test_only_counts_of_the_same_runs_are_added() -> None:
    one = counts_of({(1, 2): 3})
    assert one + counts_of({(1, 2): 1, (3, 3): 1}) == replace(
        counts_of({(1, 2): 4, (3, 3): 1}), totals=Totals(documents=2, bytes=18, pretokens=5)
    )
    assert (one + one).runs == (2 * one).runs == RUNS
    for other, message in (
        (counts_of({(1, 2): 3}, replace(RUNS, tokenizer="cd" * 32)), "tokenizer cdcdcdcdcdcd"),
        (counts_of({(1, 2): 3}, replace(RUNS, max_run=5)), "at most 5 tokens"),
        (counts_of({(1, 2): 3}, replace(RUNS, id_bytes=4)), "32-bit ids"),
        (bpe.count_pretokens(["low"]), "has counts of pre-tokens"),
    ):
        with pytest.raises(CountsError, match=message):
            one + other
        with pytest.raises(CountsError, match=message):
            other + one


def test_keys_are_two_ids_or_more() -> None:
    for key, width in (((1,), 2), ((1, 2), 4), ((1, 2, 3), 4)):
        with pytest.raises(CountsError, match=r"row 0 has a key of . bytes"):
            replace(counts_of({key: 1}), runs=replace(RUNS, id_bytes=width))
    for wrong, message in (
        ({"tokenizer": "ab"}, "not a SHA-256"),
        ({"max_run": 1}, "max_run 1"),
        ({"max_run": True}, "max_run True"),
    ):
        with pytest.raises(CountsError, match=message):
            replace(RUNS, **wrong)


@pytest.mark.parametrize("id_bytes", [2, 4])
def test_pairs_share_sums_rarely(id_bytes: int) -> None:
    items: dict[tuple[int, ...], int] = {(first, first + 1): 1 for first in range(300)}
    pruned = counts_of(items, replace(RUNS, id_bytes=id_bytes)).pruned(2)
    assert known(pruned.prune).max_pair <= 3


def test_what_needs_text_refuses_them() -> None:
    counts = counts_of({(1, 2): 3})
    with pytest.raises(TrainingError, match="train_superwords"):
        bpe.train(counts, max_merges=1)
    tokenizer = bpe.train(bpe.count_pretokens(["low"]), max_merges=1)
    with pytest.raises(CountsError, match="not of pre-tokens"):
        fit(tokenizer, counts)


def test_the_digest_for_runs_is_of_what_decides_ids() -> None:
    counts = bpe.count_pretokens(["low lower"], special_tokens=["<|end|>"])
    tokenizer = bpe.train(counts, max_merges=3)
    asked = tokenizer.with_roles(Roles(eos="<|end|>", add_eos=True))
    assert asked.sha256 != tokenizer.sha256
    assert asked.text_sha256 == tokenizer.text_sha256 == tokenizer.with_training(None).text_sha256
    assert bpe.train(counts, max_merges=2).text_sha256 != tokenizer.text_sha256
    assert bpe.train(counts, max_merges=3, special_tokens=["<s>"]).text_sha256 not in (
        tokenizer.text_sha256,
        tokenizer.sha256,
    )
