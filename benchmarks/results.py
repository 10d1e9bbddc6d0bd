"""The results file: the machine, the versions, every round."""

from __future__ import annotations

import json
import math
import os
import platform
import re
import subprocess
from datetime import datetime, timezone
from importlib.metadata import distributions
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, cast

from typing_extensions import NotRequired

from benchmarks.corpora import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.cells import Outcome


class Figures(TypedDict):
    """One contender: the digest of its output, and in each round seconds by name.

    ``memory``, in bytes, is that of the run whose output was compared. ``part_bytes`` has the bytes
    of text of those measures that are not of all of ``text_bytes``.
    """

    text_bytes: int
    part_bytes: NotRequired[dict[str, int]]
    digest: str
    medians: dict[str, float]
    rounds: list[dict[str, float]]


class Measured(TypedDict):
    """One work; ``cores`` are those that each process was pinned to.

    ``when`` and ``commit`` are there where it was measured after the run that the file is of;
    ``machine`` where it was on another one (`least_favourable`).
    """

    name: str
    title: str
    cores: int
    cores_wanted: int
    contenders: dict[str, Figures]
    cells: list[Outcome]
    when: NotRequired[str]
    commit: NotRequired[str]
    machine: NotRequired[str]


class Machine(TypedDict):
    """The machine; ``pinned`` is false where the system cannot pin a process to cores."""

    processor: str
    cores: int
    memory_bytes: int
    system: str
    python: str
    pinned: bool


class Results(TypedDict):
    """One run of the bench; ``commit`` ends in ``+`` where the sources differ from it."""

    when: str
    scale: str
    machine: Machine
    commit: str
    versions: dict[str, str]
    works: list[Measured]


def begin(scale: str) -> Results:
    """Results without works, of this machine and this moment."""
    return Results(
        when=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        scale=scale,
        machine=Machine(
            processor=processor(),
            cores=os.cpu_count() or 1,
            memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
            system=f"{platform.system()} {platform.release()} {platform.machine()}",
            python=platform.python_version(),
            pinned=platform.system() == "Linux",
        ),
        commit=commit(),
        versions={name: version for name, version in sorted(_installed()) if name != "beam-bpe"},
        works=[],
    )


def _installed() -> set[tuple[str, str]]:
    """Names and versions; our own, which the commit tells, where something was built here."""
    return {(one.name.lower(), one.version) for one in distributions()}


def read(path: Path) -> Results:
    """Read a results file."""
    return cast("Results", json.loads(path.read_text("utf-8")))


def write(path: Path, results: Results) -> None:
    """Write a results file; it appears when it is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    partial.replace(path)


def of_machine(path: Path, machine: Machine) -> Path:
    """The results file of a machine: ``path`` if that is of it or absent, else one next to it."""
    if not path.is_file() or read(path)["machine"]["processor"] == machine["processor"]:
        return path
    words = re.sub(r"[^a-z0-9]+", "-", machine["processor"].lower()).strip("-")
    return path.with_name(f"{path.stem}-{words}-{machine['cores']}.json")


def least_favourable(found: Sequence[Results]) -> Results:
    """The first results, each work as that machine measured it where we are worst against others.

    That is where the least of its ratios is least; a work without ratios stays the first's, or that
    of the first that has it.
    """
    worst: dict[str, Measured] = {}
    for number, results in enumerate(found, 1):
        for one in results["works"]:
            work = one if number == 1 else _of(results, one, number)
            name = work["name"]
            if name not in worst or _least_ratio(work) < _least_ratio(worst[name]):
                worst[name] = work
    return {**found[0], "works": [*worst.values()]}


def _of(results: Results, work: Measured, number: int) -> Measured:
    """Return a row for the first machine's table, with number, day and commit."""
    when, commit = work.get("when", results["when"]), work.get("commit", results["commit"])
    return {**work, "machine": f"machine {number}", "when": when, "commit": commit}


def _least_ratio(work: Measured) -> float:
    """The least of the values that should be great; infinite where there is none."""
    ratios = [cell["value"] for cell in work["cells"] if cell["unit"] == "times"]
    return min(ratios, default=math.inf)


def replaced(before: Results, again: Results) -> Results:
    """``before``, with the works of ``again`` in the place of those of the same names.

    Raises:
        ValueError: they are of other machines, packages or scales, or a work is not there.
    """
    for what in ("machine", "versions", "scale"):
        if before[what] != again[what]:
            raise ValueError(f"{what}: {before[what]} before, {again[what]} now")
    names = {work["name"] for work in before["works"]}
    rows = {work["name"]: work for work in again["works"]}
    if unknown := sorted(rows.keys() - names):
        raise ValueError(f"there is no {unknown[0]} before")
    for work in rows.values():
        work["when"], work["commit"] = again["when"], again["commit"]
    works = [rows.get(work["name"], work) for work in before["works"]]
    return {**before, "works": works}


def provenance() -> dict[str, Any]:
    """The machine and the commit of results that are not of the bench."""
    return {"machine": {"processor": processor(), "cores": os.cpu_count()}, "commit": commit()}


def commit() -> str:
    """The commit that is measured; with ``+`` if the sources differ from it."""
    done = subprocess.run(
        ["git", "describe", "--always", "--abbrev=12", "--dirty=+", "--exclude=*"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or "unknown"


def processor() -> str:
    """The processor's name, where Linux tells it."""
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
