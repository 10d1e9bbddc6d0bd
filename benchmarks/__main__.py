"""The command line of the bench."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from benchmarks import results as results_files
from benchmarks.corpora import DATA, ROOT
from benchmarks.processes import ContenderError
from benchmarks.rounds import measure
from benchmarks.table import report
from benchmarks.works import all_works

if TYPE_CHECKING:
    from benchmarks.work import Scale

FULL = ROOT / "benchmarks" / "results" / "bench.json"
QUICK = DATA / "quick.json"


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def bench() -> None:
    """Measure beam-bpe beside its peers, in one run."""


@bench.command()
@click.option("--quick", is_flag=True, help="The same on less text: two minutes.")
@click.option("--only", multiple=True, metavar="WORK", help="A row of the table; repeatable.")
@click.option("--rounds", type=click.IntRange(1), help="How often each contender runs.")
@click.option("--output", type=click.Path(path_type=Path), help="The results file to write.")
@click.option("--list", "listed", is_flag=True, help="Print the names of the rows and exit.")
def run(
    *, quick: bool, only: tuple[str, ...], rounds: int | None, output: Path | None, listed: bool
) -> None:
    """Compare outputs, time everybody, write the results and print the table.

    Ends with status 1 where outputs differ or a contender fails, never because of a time.
    """
    scale: Scale = "quick" if quick else "full"
    works = all_works(scale)
    if listed:
        click.echo("\n".join(work.name for work in works))
        return
    unknown = set(only) - {work.name for work in works}
    if unknown:
        raise click.BadParameter(
            f"no such row: {', '.join(sorted(unknown))} (--list prints them)", param_hint="--only"
        )
    path = output or (QUICK if quick or only else FULL)
    results = results_files.begin(scale)
    began = time.monotonic()
    for work in works:
        if only and work.name not in only:
            continue
        try:
            results["works"].append(measure(work, rounds=rounds, say=_say))
        except ContenderError as error:
            click.echo(f"benchmarks: error: {error}", err=True)
            sys.exit(1)
        results_files.write(path, results)
    _say(f"{time.monotonic() - began:.0f} s; written: {path}")
    click.echo(report(results))


@bench.command()
@click.argument("path", type=click.Path(exists=True, path_type=Path), default=FULL)
def table(*, path: Path) -> None:
    """Print the table of a results file."""
    click.echo(report(results_files.read(path)))


def _say(line: str) -> None:
    click.echo(f"{time.strftime('%H:%M:%S')} {line}", err=True)


if __name__ == "__main__":
    bench()
