"""A poisoned corpus: what is good comes through, what is bad is set aside, in bounded memory."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests import jobs
from tests.cli.process import ROOT, environment
from tests.pipelines.corpora import dead_letters

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

long = pytest.mark.long
SHORT = {"documents": 600, "limit": 1 << 20, "long_line": 3_000_000}
LONG = {"documents": 60_000, "limit": 64 << 20, "long_line": 500_000_000}
# What a poisoned corpus may take beyond what a clean one does, of which each record is small.
RECORDS = 8  # times the largest record allowed: two workers, each with some copies of one
SLACK = 100 << 20  # bytes: of other pages, other files, and of what malloc keeps


def run(folder: Path, *beam_args: str, **settings: Any) -> dict[str, Any]:
    """Run the job in a process of its own, so that its memory is its own."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "tests.faults.poisoned_job"),
            *(str(folder), json.dumps(settings), *beam_args),
        ],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def check_dead(found: list[dict[str, Any]], expected: Iterable[list[Any]], lost_bytes: int) -> None:
    """Each bad record is there once, with its file, its place and the reason."""
    found = sorted(found, key=lambda record: (record["file"], record["place"]))
    wanted = sorted(map(tuple, expected))
    assert [(record["file"], record["place"]) for record in found] == [
        (file, place) for file, place, _ in wanted
    ]
    for record, (_, _, reason) in zip(found, wanted, strict=True):
        assert reason in record["reason"], record
    lost = [record for record in found if "when the job was planned" in record["reason"]]
    assert sum(record["size"] for record in lost) == lost_bytes


def check(folder: Path, result: dict[str, Any], *, limit: int) -> None:
    """Everything is there, and took no more memory than the job takes and some records of it."""
    for name in ("count", "encode"):
        counted = result[name]
        assert counted["documents"] == len(counted["texts"]), name
        assert counted["failures"] == len(counted["expected"]), name
        out = folder / f"{name}-out" / ("counts" if name == "count" else "")
        check_dead(dead_letters(out), counted["expected"], counted["lost_bytes"])
        assert jobs.verify(directory=str(out)).documents == counted["documents"]
    decoded = io.BytesIO()
    jobs.decode(directory=str(folder / "encode-out"), stream=decoded)
    texts = [json.loads(line)["text"] for line in decoded.getvalue().splitlines()]
    assert texts == result["encode"]["texts"]
    more = result["peak_kib"] - result["clean_kib"] << 10
    assert more < RECORDS * limit + SLACK, f"{more >> 20} MiB"


@pytest.mark.parametrize(
    ("lines", "sizes"),
    [
        pytest.param(False, SHORT, id="auto"),
        pytest.param(True, SHORT, id="lines", marks=long),
        pytest.param(False, LONG, id="auto, a line of 500 MB and bombs", marks=long),
        pytest.param(True, LONG, id="lines, one of 500 MB and bombs", marks=long),
    ],
)
def test_the_good_records_come_through(tmp_path: Path, lines: bool, sizes: dict[str, int]) -> None:
    check(tmp_path, run(tmp_path, lines=lines, **sizes), limit=sizes["limit"])
