"""Are counts what their manifest says, and what their input says?"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from bpe._native import merge_runs
from bpe.counts.files import run_table
from bpe.counts.pruning import prune
from bpe.errors import CountsError
from pipelines import storage
from pipelines.corpus.documents import ReadOptions, read_split
from pipelines.corpus.inputs import find_inputs
from pipelines.corpus.splits import plan_splits
from pipelines.count.directory import counts_of_sets, load_counts, of_sets, read_counts_manifest
from pipelines.count.steps import CountJob, count_block, counted_inputs
from pipelines.errors import InputError, VerificationError
from pipelines.output.names import DEAD_LETTERS, is_ours
from pipelines.progress import SlotWriter
from pipelines.storage import join
from pipelines.verify.encoded import check_names
from pipelines.watch import log

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bpe.counts import PretokenCounts
    from pipelines.settings import InputSettings
    from pipelines.watch.log import Entry


def verify_counts(
    directory: str, *, inputs: InputSettings | None = None, counters_path: str | None = None
) -> PretokenCounts:
    """Check a counts directory; return its counts.

    Args:
        directory: that holds it.
        inputs: what was counted, to count it again, with the settings it was read with.
        counters_path: the file of progress slots; one is used.

    Raises:
        VerificationError: something is not as it must be, or there is no manifest.
        InputError: an input cannot be read.
    """
    root = storage.located(directory)
    try:
        if log.is_watched_counts(root):
            counts, dead, records = of_sets(root, _of_sets)
        else:
            counts, dead, records = _of_parts(root)
    except (CountsError, InputError) as error:
        raise VerificationError(str(error)) from error
    if dead and records != counts.totals.failures:
        raise VerificationError(
            f"{join(root, DEAD_LETTERS)} holds {records} bad records, the manifest says "
            f"{counts.totals.failures}"
        )
    if inputs is not None:
        _compare(root, counts, inputs, counters_path)
    return counts


_Found = tuple["PretokenCounts", list[str], int]  # and files of bad records, and how many they hold


def _of_parts(root: str) -> _Found:
    manifest = read_counts_manifest(root)
    dead: list[str] = []
    if manifest.totals.failures:
        found = storage.entries(join(root, DEAD_LETTERS))
        dead = [f"{DEAD_LETTERS}/{entry.name}" for entry in found]
        # Counts that were added up in memory and saved have failures, but no dead letters.
        if not dead and is_ours(root):
            raise VerificationError(
                f"{join(root, DEAD_LETTERS)} is missing: the manifest says that "
                f"{manifest.totals.failures} bad records were set aside: count again"
            )
    check_names(root, expected={part.file for part in manifest.parts}, dead=set(dead))
    return load_counts(root), dead, _records(root, dead)


def _of_sets(root: str, entries: Sequence[Entry]) -> _Found:
    dead = [letters["file"] for entry in entries for letters in entry["dead_letters"]]
    check_names(root, expected=set(), dead=set(dead), watched=True)
    return counts_of_sets(root, entries), dead, _records(root, dead)


def _records(root: str, dead: Sequence[str]) -> int:
    return sum(storage.read(join(root, name)).count(b"\n") for name in dead)


def _compare(
    directory: str, counts: PretokenCounts, inputs: InputSettings, counters_path: str | None
) -> None:
    """Count the inputs again, in this process."""
    files = find_inputs(inputs).files
    if counted_inputs(files) != counts.inputs:
        raise VerificationError(
            f"{directory}: the files given are not those that were counted (by name and size): "
            "give the same `input` patterns as for bpe count"
        )
    if counts.scale != 1:
        raise VerificationError(
            f"{directory}: these counts are weighted, in units of 1/{counts.scale}: they can be "
            "compared with no input; verify those they were made of"
        )
    job = CountJob(
        directory=directory,
        pretokenizer=counts.pretokenizer,
        special_tokens=counts.special_tokens,
        track_order=counts.order_span is not None,
    )
    options = ReadOptions.of(inputs)
    counter = job.counter()
    documents = size = failures = 0
    with SlotWriter(counters_path, 0) as slot:
        for split in plan_splits(files, inputs.split_size):
            for block in read_split(split, options):
                count_block(block, job, counter)
                documents += len(block)
                failures += len(block.bad)
                size += block.input_bytes
                slot.update(documents=documents, bytes=size)
    totals = counts.totals
    for name, stated, found in (
        ("documents", totals.documents, documents),
        ("bad records", totals.failures, failures),
    ):
        if stated != found:
            raise VerificationError(
                f"{directory}: the counts are of {stated} {name}, the input has {found}"
            )
    run = merge_runs(counter.drain(1))
    if counts.prune is not None:
        run, losses = prune(run, counts.prune.below)
        pruned = losses.pruned(counts.prune.below)
        if pruned != counts.prune:
            raise VerificationError(
                f"{directory}: the manifest says that {counts.prune} was dropped; counting again "
                f"gives {pruned}"
            )
    again, before = run_table(run), run_table(counts.run)
    if not again.equals(before):
        raise VerificationError(f"{directory}: {_difference(again, before)}")


def _difference(again: pa.Table, before: pa.Table) -> str:
    rows = min(len(again), len(before))
    same = functools.reduce(
        pc.and_,
        (pc.equal(again[name][:rows], before[name][:rows]) for name in before.column_names),
    )
    row = pc.index(same, pa.scalar(value=False)).as_py()
    row = rows if row < 0 else row
    stated, found = (
        repr(table.slice(row, 1).to_pylist()[0]) if row < len(table) else "no more"
        for table in (before, again)
    )
    return f"in byte order, the pre-token of row {row} is {stated}; counting again gives {found}"
