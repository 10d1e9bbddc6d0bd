"""Contenders of the package and of tiktoken that run for real, to test the bench around them."""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from benchmarks import results
from benchmarks.__main__ import bench
from benchmarks.cells import Ratio
from benchmarks.corpora import ENGLISH, column, text_bytes
from benchmarks.processes import ContenderError
from benchmarks.rounds import measure
from benchmarks.work import Contender, Work

if TYPE_CHECKING:
    from pathlib import Path


def silent(_: str) -> None:
    """No progress."""


def encoder(name: str, *, who: str, size: int, output: str = "all") -> Contender:
    return Contender(
        name=name,
        module="encode",
        who=who,
        arguments=("en", str(size), "r50k_base", "twice"),
        output=output,
    )


def work(*contenders: Contender) -> Work:
    return Work(
        name="some",
        title="encode, some texts",
        contenders=contenders,
        cells=(Ratio(measure="cold", against="tiktoken", must=1e9, aim=1e-9),),
    )


@pytest.mark.long
def test_equal_outputs_are_timed_in_rounds_and_make_a_table(tmp_path: Path) -> None:
    ours = encoder("beam-bpe", who="beam-bpe", size=200_000)
    theirs = encoder("tiktoken", who="tiktoken", size=200_000)
    measured = measure(work(ours, theirs), rounds=2, say=silent)
    found = measured["contenders"]
    assert found["beam-bpe"]["digest"] == found["tiktoken"]["digest"]
    assert found["beam-bpe"]["text_bytes"] >= 200_000
    for figures in found.values():
        assert [set(one) for one in figures["rounds"]] == [
            {"cold", "warm", "load", "load and cold"}
        ] * 2
        assert figures["medians"]["memory"] > 1e6
    (cell,) = measured["cells"]
    assert cell["against"] == "tiktoken"

    path = tmp_path / "results.json"
    everything = results.begin("quick")
    everything["works"].append(measured)
    results.write(path, everything)
    assert results.read(path) == everything
    table = run_bench("table", str(path)).stdout
    value = f"{cell['value']:.2f}"
    assert f"| ≥ 1e+09 × tiktoken: {value} ✗ | ≥ 1e-09 × tiktoken: {value} ✓ |\n" in table
    assert "| encode, some texts 0." in table
    assert "\n|  | tiktoken | cold " in table


@pytest.mark.long
def test_different_outputs_end_the_bench_before_anything_is_timed() -> None:
    texts = column(ENGLISH, 20_000)
    more = text_bytes(texts) + 1  # of a corpus whose documents may be longer than that
    assert len(column(ENGLISH, more)) == len(texts) + 1
    ours = encoder("beam-bpe", who="beam-bpe", size=20_000)
    theirs = encoder("tiktoken", who="tiktoken", size=more)
    lines: list[str] = []
    with pytest.raises(ContenderError, match=r"outputs differ.*: beam-bpe / tiktoken "):
        measure(work(ours, theirs), rounds=1, say=lines.append)
    assert not [line for line in lines if "round" in line]
    other = encoder("tiktoken", who="tiktoken", size=more, output="of its own")
    assert measure(work(ours, other), rounds=1, say=silent)["cells"]


def test_the_command_line_knows_its_rows() -> None:
    rows = run_bench("run", "--scale", "quick", "--list").stdout.split()
    assert "encode-r50k-en" in rows
    assert rows == run_bench("run", "--list").stdout.split()
    wrong = run_bench("run", "--only", "nothing", status=2)
    assert "no such row: nothing" in wrong.stderr


@pytest.mark.long
@pytest.mark.skipif(find_spec("gigatoken") is not None, reason="the peers are installed")
def test_a_failure_is_one_message_and_status_1() -> None:
    done = run_bench("run", "--scale", "short", "--only", "encode-r50k-en", status=1)
    assert "benchmarks: error: encode gigatoken" in done.stderr
    assert "No module named 'awkward'" in done.stderr
    assert done.stdout == ""


@pytest.mark.long
def test_a_row_that_is_measured_again_takes_the_place_of_the_first(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    rows = ["--scale", "short", "--rounds", "1", "--only", "second-core", "--output", str(path)]
    assert "exceptions" not in run_bench("run", *rows).stdout
    first = results.read(path)
    (row,) = first["works"]
    row["cells"][0]["value"] = 77.0
    first["works"] = [row, {**row, "name": "another", "title": "another row"}]
    results.write(path, first)

    table = run_bench("run", *rows, "--again").stdout
    second = results.read(path)
    assert [work["name"] for work in second["works"]] == ["second-core", "another"]
    assert second["works"][1] == first["works"][1]
    assert second["works"][0]["cells"][0]["value"] != 77.0
    again = f"These rows are exceptions:\n\n- on {second['works'][0]['when'][:10]} at commit "
    assert again in table
    title = re.escape(f"{second['works'][0]['commit']}`: {row['title']}")
    assert re.search(rf"{title} [\d.]+ MB, \d cores?[ a-z\d]*\.\n", table)

    second["machine"]["cores"] += 1
    results.write(path, second)
    refused = run_bench("run", *rows, "--again", status=1)
    assert f"{path}: cannot hold these rows: machine: " in refused.stderr
    assert results.read(path) == second
    assert "--only" in run_bench("run", "--again", status=2).stderr


def run_bench(*arguments: str, status: int = 0) -> Result:
    done = CliRunner().invoke(bench, arguments)
    assert done.exit_code == status, done.output
    return done


def test_the_table_has_each_row_from_the_machine_where_we_are_worst() -> None:
    def measured(name: str, ratio: float) -> results.Measured:
        cell = Ratio(measure="cold", against="them", must=1)
        medians = {"beam-bpe": {"cold": 1.0}, "them": {"cold": ratio}}
        return results.Measured(
            name=name,
            title=name,
            cores=1,
            cores_wanted=1,
            contenders={},
            cells=[cell.outcome(medians) or pytest.fail("no cell")],
        )

    here, there, third = (results.begin("full") for _ in range(3))
    here["works"] += [measured("a", 2), measured("b", 2)]
    there["works"] += [measured("a", 0.5), measured("b", 3), measured("c", 1)]
    third["works"] += [measured("c", 0.5), measured("b", 4)]
    a, b, c = results.least_favourable([here, there, third])["works"]
    assert (a["cells"][0]["value"], a.get("machine")) == (0.5, "machine 2")
    assert (b["cells"][0]["value"], b.get("machine")) == (2, None)
    assert (c["machine"], c["commit"]) == ("machine 3", third["commit"])


def test_another_machine_has_a_results_file_of_its_own(tmp_path: Path) -> None:
    path, here = tmp_path / "bench.json", results.begin("full")
    assert results.of_machine(path, here["machine"]) == path
    results.write(path, here)
    assert results.of_machine(path, here["machine"]) == path
    other: results.Machine = {**here["machine"], "processor": "Another 9000", "cores": 64}
    assert results.of_machine(path, other).name == "bench-another-9000-64.json"
