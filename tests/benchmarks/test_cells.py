"""Cells computed from medians, and their table."""

from __future__ import annotations

import pytest

from benchmarks.cells import Growth, Limit, Ratio, Speedup, holds
from benchmarks.pages import COMMAND, with_block
from benchmarks.results import Measured
from benchmarks.table import main_table


def test_a_ratio_is_to_the_best_of_those_who_share_a_name() -> None:
    medians = {
        "beam-bpe": {"cold": 2.0},
        "peer, slow way": {"cold": 6.0},
        "peer, fast way": {"cold": 5.0},
        "peerless": {"cold": 1.0},
    }
    outcome = Ratio(measure="cold", against="peer", must=2.5, aim=2.6).outcome(medians)
    assert outcome is not None
    assert (outcome["value"], outcome["against"]) == (2.5, "peer, fast way")
    bounds = (outcome["must"], outcome["aim"], None)
    assert [holds(outcome, bound) for bound in bounds] == [True, False, None]


def test_without_the_peer_there_is_no_ratio() -> None:
    assert Ratio(measure="cold", against="peer").outcome({"beam-bpe": {"cold": 2.0}}) is None


def test_a_limit_is_kept_from_below() -> None:
    outcome = Limit(measure="train", unit="s", must=1, aim=0.5).outcome({"beam-bpe": {"train": 1}})
    assert [holds(outcome, bound) for bound in (outcome["must"], outcome["aim"])] == [True, False]


def test_a_speedup_is_of_two_ways_of_ours() -> None:
    medians = {"beam-bpe": {"count, 1 thread": 3.0, "count, 2 threads": 2.0}}
    cell = Speedup(work="count", ours="2 threads", against="1 thread", must=1.5, aim=1.6)
    outcome = cell.outcome(medians)
    assert (outcome["what"], outcome["value"]) == ("count, 2 threads", 1.5)
    assert outcome["against"] == "1 thread"
    assert [holds(outcome, bound) for bound in (outcome["must"], outcome["aim"])] == [True, False]


@pytest.mark.parametrize("exponent", [0.5, 1.0, 2.0])
def test_growth_is_the_exponent(exponent: float) -> None:
    sizes = {"small": 10.0, "middle": 50.0, "large": 100.0}
    medians = {name: {"train": 3 * size**exponent} for name, size in sizes.items()}
    outcome = Growth(measure="train", sizes=sizes, must=1.05).outcome(medians)
    assert outcome["value"] == pytest.approx(exponent)
    assert holds(outcome, outcome["must"]) is (exponent <= 1)


def test_the_table_shows_spread_rates_of_parts_and_bounds_of_memory() -> None:
    cell = Limit(measure="memory", unit="B", must=400e6)
    rounds = [{"cold": value, "last third": 1.0} for value in (1.0, 2.0, 2.0, 2.0, 4.0, 4.0, 9.0)]
    medians = {"cold": 2.0, "last third": 1.0, "memory": 322e6}
    work = Measured(
        name="some",
        title="work",
        cores=1,
        cores_wanted=1,
        contenders={
            "beam-bpe": {
                "text_bytes": 90_000_000,
                "part_bytes": {"last third": 30_000_000},
                "digest": "",
                "medians": medians,
                "rounds": rounds,
            }
        },
        cells=[cell.outcome({"beam-bpe": medians})],
    )
    table = main_table([work])
    assert "cold | 2 s ±50% (45 MB/s) |" in table
    assert "last third | 1 s ±0% (30 MB/s) |" in table
    assert "memory | 322 MB |  | ≤ 400 MB ✓ |" in table


BEGIN, END = f"<!-- benchmarks: begin ({COMMAND}) -->\n", "<!-- benchmarks: end -->\n"


def test_a_table_takes_the_place_of_another_between_the_marks() -> None:
    page = f"# Title\n\n{BEGIN}\n| old |\n\n{END}\nmore\n"
    once = with_block(page, "| new |", name="benchmarks")
    assert once == f"# Title\n\n{BEGIN}\n| new |\n\n{END}\nmore\n"
    assert with_block(once, "| new |", name="benchmarks") == once


@pytest.mark.parametrize("page", ["# Title\n", f"{END}{BEGIN}", BEGIN])
def test_a_page_without_marks_is_refused(page: str) -> None:
    with pytest.raises(ValueError, match="there is no line '<!-- benchmarks: begin"):
        with_block(page, "| new |", name="benchmarks")
