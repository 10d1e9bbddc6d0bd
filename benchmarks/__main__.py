"""The command line of the bench."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from benchmarks import results as results_files
from benchmarks import superword_bounds, superwords
from benchmarks.corpora import DATA, ROOT
from benchmarks.pages import with_block
from benchmarks.plan import PAGE, with_tables
from benchmarks.processes import ContenderError
from benchmarks.rounds import measure, outputs
from benchmarks.scale import SCALES
from benchmarks.table import headlines, report, summary
from benchmarks.works import MUST, all_works

if TYPE_CHECKING:
    from benchmarks.results import Results

FULL = ROOT / "benchmarks" / "results" / "bench.json"


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def bench() -> None:
    """Measure beam-bpe and its peers, in one run."""


@bench.command()
@click.option(
    "--scale",
    type=click.Choice(list(SCALES)),
    default="full",
    show_default=True,
    help="How much: quick takes two minutes, short compares outputs and times only with --rounds.",
)
@click.option("--only", multiple=True, metavar="WORK", help="A row of the table; repeatable.")
@click.option("--must", is_flag=True, help="The rows of what must hold beside the peers, alone.")
@click.option(
    "--again",
    is_flag=True,
    help="Put the rows of --only in the place of those in the results file, of the same machine.",
)
@click.option("--rounds", type=click.IntRange(1), help="How often each contender runs.")
@click.option("--output", type=click.Path(path_type=Path), help="The results file to write.")
@click.option("--list", "listed", is_flag=True, help="Print the names of the rows and exit.")
def run(
    *,
    scale: str,
    only: tuple[str, ...],
    must: bool,
    again: bool,
    rounds: int | None,
    output: Path | None,
    listed: bool,
) -> None:
    """Compare outputs, time everybody, write the results and print the table.

    Ends with status 1 where outputs differ or a contender fails, never because of a time.
    """
    works = all_works(SCALES[scale])
    if listed:
        click.echo("\n".join(work.name for work in works))
        return
    only = (*only, *MUST) if must else only
    unknown = set(only) - {work.name for work in works}
    if unknown:
        raise click.BadParameter(
            f"no such row: {', '.join(sorted(unknown))} (--list prints them)", param_hint="--only"
        )
    if again and not only:
        raise click.UsageError("--again needs --only: the rows to measure again")
    whole = scale == "full" and (again or not only)
    path = output or (FULL if whole else DATA / f"{scale}.json")
    results = results_files.begin(scale)
    if path == FULL:
        path = results_files.of_machine(FULL, results["machine"])
    # With it, whatever runs compiles Beam anew, which users have compiled.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    began = time.monotonic()
    for work in works:
        if only and work.name not in only:
            continue
        try:
            most = min(SCALES[scale].rounds, work.rounds or SCALES[scale].rounds)
            if count := rounds or most:
                results["works"].append(measure(work, rounds=count, say=_say))
            else:
                outputs(work, say=_say)
        except ContenderError as error:
            click.echo(f"benchmarks: error: {error}", err=True)
            sys.exit(1)
        if count and not again:
            results_files.write(path, results)
    if not results["works"]:
        _say(f"{time.monotonic() - began:.0f} s; the outputs are equal, and nothing was timed")
        return
    if again:
        results = _among(path, results)
        results_files.write(path, results)
    _say(f"{time.monotonic() - began:.0f} s; written: {path}")
    click.echo(report(results))


@bench.command()
@click.argument("path", type=click.Path(exists=True, path_type=Path), required=False)
@click.option(
    "--pages",
    is_flag=True,
    help="Write it, and the tables of the other results, into README.md and docs/.",
)
def table(*, path: Path | None, pages: bool) -> None:
    """Print the table of a results file.

    Without one, of those of all machines: each row from where it is the least favourable.
    """
    paths = [path] if path else sorted(FULL.parent.glob(f"{FULL.stem}*.json"), key=_length)
    results = results_files.least_favourable([results_files.read(one) for one in paths])
    if not pages:
        click.echo(report(results))
        return
    for page, text in (("docs/benchmarks.md", summary(results)), ("README.md", headlines(results))):
        written = with_block((ROOT / page).read_text("utf-8"), text, name="benchmarks")
        (ROOT / page).write_text(written, encoding="utf-8")
    PAGE.write_text(with_tables(PAGE.read_text("utf-8")), encoding="utf-8")
    for module in (superwords, superword_bounds):
        for path, text in module.pages().items():
            path.write_text(text, encoding="utf-8")


def _length(path: Path) -> int:
    """The file without a machine in its name is the first."""
    return len(path.name)


def _among(path: Path, again: Results) -> Results:
    """The results of a file with others in the place of theirs."""
    try:
        return results_files.replaced(results_files.read(path), again)
    except (OSError, ValueError, KeyError) as error:
        click.echo(f"benchmarks: error: {path}: cannot hold these rows: {error}", err=True)
        sys.exit(1)


def _say(line: str) -> None:
    click.echo(f"{time.strftime('%H:%M:%S')} {line}", err=True)


if __name__ == "__main__":
    bench()
