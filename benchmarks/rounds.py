"""Contenders side by side: all outputs compared first, then rounds in which each runs once.

Every run is a fresh process. Each round begins with another contender, so that a machine that
slows down, or that others use, does not favour one of them.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from benchmarks.processes import ContenderError, cores_there, prepare, run_contender
from benchmarks.results import Measured

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.contenders.report import Report
    from benchmarks.work import Contender, Work

SLOW_ROUNDS = 2


def outputs(work: Work, *, say: Callable[[str], None]) -> dict[str, Report]:
    """Run each contender once and compare what they made.

    Args:
        work: the row.
        say: gets lines of progress.

    Returns:
        What each reported, by name.

    Raises:
        ContenderError: a contender failed, or outputs differ.
    """
    cores = min(work.cores, cores_there())
    checked: dict[str, Report] = {}
    for contender in {one.arguments: one for one in work.contenders}.values():
        prepare(contender)
    for contender in work.contenders:
        say(f"{work.name}: output of {contender.name}")
        checked[contender.name] = run_contender(contender, cores=cores, check=True)
    compare(work, {name: report.digest for name, report in checked.items()})
    return checked


def measure(work: Work, *, rounds: int, say: Callable[[str], None]) -> Measured:
    """Compare the outputs of all contenders, then time them.

    Args:
        work: the row.
        rounds: how often each contender runs; slow ones twice at most.
        say: gets lines of progress.

    Raises:
        ContenderError: a contender failed, or outputs differ; nothing is reported then.
    """
    cores = min(work.cores, cores_there())
    checked = outputs(work, say=say)
    runs: dict[str, list[dict[str, float]]] = {contender.name: [] for contender in work.contenders}
    for number in range(rounds):
        first = number % len(work.contenders)
        for contender in work.contenders[first:] + work.contenders[:first]:
            if contender.slow and number >= SLOW_ROUNDS:
                continue
            report = run_contender(contender, cores=cores, check=False)
            if report.digest != checked[contender.name].digest:
                raise ContenderError(
                    f"{work.name}: {contender.name} made something else in round {number + 1} than "
                    "when its output was compared"
                )
            runs[contender.name].append(report.measures)
            figures = ", ".join(f"{name} {value:.4g}" for name, value in report.measures.items())
            say(f"{work.name}: round {number + 1} of {rounds}: {contender.name}: {figures}")
    found = {
        name: {measured: median(one[measured] for one in done) for measured in done[0]}
        | {"memory": checked[name].measures["memory"]}
        for name, done in runs.items()
    }
    return Measured(
        name=work.name,
        title=work.title,
        cores=cores,
        cores_wanted=work.cores,
        contenders={
            name: {
                "text_bytes": checked[name].text_bytes,
                "part_bytes": checked[name].part_bytes,
                "digest": checked[name].digest,
                "medians": found[name],
                "rounds": done,
            }
            for name, done in runs.items()
        },
        cells=[found_cell for cell in work.cells if (found_cell := cell.outcome(found))],
    )


def compare(work: Work, digests: dict[str, str]) -> None:
    """Raise ContenderError, naming who differs, unless equal outputs are equal."""
    groups: dict[str, list[Contender]] = {}
    for contender in work.contenders:
        groups.setdefault(contender.output, []).append(contender)
    for members in groups.values():
        makers: dict[str, list[str]] = {}
        for contender in members:
            makers.setdefault(digests[contender.name], []).append(contender.name)
        if len(makers) > 1:
            sides = " / ".join(" and ".join(names) for names in makers.values())
            raise ContenderError(
                f"{work.name}: the outputs differ, so nothing is timed: {sides} "
                f"(digests {', '.join(digest[:12] for digest in makers)})"
            )
