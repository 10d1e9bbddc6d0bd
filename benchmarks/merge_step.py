"""Merging partial counts, and training, at many distinct pre-tokens: time and memory.

    python -m benchmarks.merge_step --distinct 20000000

Synthetic partial counts (`benchmarks.synthetic`) are written to files, as workers would send them.
One process merges them with the steps of ``bpe count``, from the runs to the finished directory;
another is ``bpe train --counts``. Each says the peak of its resident memory. What was merged is
compared with what was made, word by word.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import apache_beam as beam
import click
import numpy as np
from apache_beam.options.pipeline_options import PipelineOptions

from benchmarks import synthetic
from benchmarks.corpora import DATA, ROOT
from benchmarks.processes import run_measured
from benchmarks.results import provenance
from bpe.counts import PretokenCounts, Totals
from bpe.counts.files import counts_table, counts_to_ipc
from bpe.pretokenizer import Pretokenizer
from pipelines.count.beam import merge_shards
from pipelines.count.results import Counted, write_counted
from pipelines.count.steps import CountJob
from pipelines.elements import unpack
from pipelines.failures import FailureChannel
from pipelines.settings import SHARDS

if TYPE_CHECKING:
    from collections.abc import Iterable

RESULTS = ROOT / "benchmarks" / "results" / "merge_step.json"


@click.group(invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.pass_context
@click.option("--distinct", type=click.IntRange(1), default=20_000_000, show_default=True)
@click.option("--bundles", type=click.IntRange(1), default=16, show_default=True)
@click.option("--vocab-size", type=int, default=32_000, show_default=True)
@click.option("--most-bytes", type=int, help="Fail where a process takes more memory than this.")
@click.option("--output", type=click.Path(path_type=Path), default=RESULTS, show_default=True)
def main(
    context: click.Context,
    *,
    distinct: int,
    bundles: int,
    vocab_size: int,
    most_bytes: int | None,
    output: Path,
) -> None:
    """Make, merge, compare, train; write the results."""
    if context.invoked_subcommand:
        return
    folder = DATA / f"merge-{distinct}"
    shutil.rmtree(folder, ignore_errors=True)
    own = (sys.executable, "-m", "benchmarks.merge_step")
    run_measured(*own, "make", str(folder), str(distinct), str(bundles))
    partial = sum(file.stat().st_size for file in (folder / "runs").iterdir())
    steps = {
        "merge": run_measured(*own, "merge", str(folder)),
        "train": run_measured(
            *(sys.executable, "-m", "pipelines.cli", "train", "--counts", str(folder / "counts")),
            *("--vocab-size", str(vocab_size), "--output", str(folder / "model")),
            *("--overwrite", "--quiet"),
        ),
    }
    run_measured(*own, "compare", str(folder), str(distinct))
    results = {
        **provenance(),
        "distinct": distinct,
        "bundles": bundles,
        "vocab_size": vocab_size,
        "partial_counts_bytes": partial,
        "steps": steps,
    }
    shutil.rmtree(folder)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(results, indent=2) + "\n", "utf-8")
    for name, step in steps.items():
        click.echo(f"{name}: {step['seconds']:.0f} s, {step['peak_bytes'] / 1e9:.2f} GB")
        if most_bytes is not None and step["peak_bytes"] > most_bytes:
            raise click.ClickException(f"{name} took more than {most_bytes:,} bytes of memory")


@main.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("distinct", type=int)
@click.argument("bundles", type=int)
def make(folder: Path, distinct: int, bundles: int) -> None:
    """Write the partial counts of bundles, a file for each shard that a bundle has."""
    (folder / "runs").mkdir(parents=True, exist_ok=True)
    words, counts = synthetic.words(distinct), synthetic.counts(distinct)
    np.save(folder / "words.npy", words)
    for bundle in range(bundles):
        run = synthetic.run_of(words, synthetic.bundle_counts(counts, bundle, bundles))
        for shard, part in enumerate(run.split(SHARDS)):
            (folder / "runs" / f"{bundle:05d}-{shard:05d}").write_bytes(counts_to_ipc(part))
    (folder / "pretokens").write_text(str(counts.sum()), "ascii")


@main.command()
@click.argument("folder", type=click.Path(path_type=Path))
def merge(folder: Path) -> None:
    """The steps of ``bpe count`` after the counters, on one worker."""
    (folder / "counts").mkdir(exist_ok=True)
    job = CountJob(directory=str(folder / "counts"), pretokenizer=Pretokenizer("gpt2"))
    totals = Totals(pretokens=int((folder / "pretokens").read_text("ascii")))
    files = sorted(str(file) for file in (folder / "runs").iterdir())
    with beam.Pipeline(runner="FnApiRunner", options=PipelineOptions([])) as pipeline:
        runs = pipeline | "Files" >> beam.Create(files) | "Read runs" >> beam.Map(_read_run)
        parts = merge_shards(runs, job, FailureChannel())
        end = pipeline | "End" >> beam.Create([None])
        _ = end | beam.Map(_write_manifest, beam.pvalue.AsIter(parts), totals, job)


def _write_manifest(_: None, parts: Iterable[bytes], totals: Totals, job: CountJob) -> None:
    groups = {"": [unpack(part).result for part in parts]}
    write_counted(Counted(totals=totals, groups=groups), job)


def _read_run(path: str) -> tuple[tuple[str, int], bytes]:
    return ("", int(path.rpartition("-")[2])), Path(path).read_bytes()


@main.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("distinct", type=int)
def compare(folder: Path, distinct: int) -> None:
    """Fail where the merged counts are not those that were cut into bundles."""
    merged = PretokenCounts.load(folder / "counts")
    made = synthetic.run_of(np.load(folder / "words.npy"), synthetic.counts(distinct))
    if not merged.to_table().equals(counts_table(made)):
        raise click.ClickException("the merged counts are not those that were made")


if __name__ == "__main__":
    main()
