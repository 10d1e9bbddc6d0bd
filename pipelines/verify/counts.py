"""Are counts what their manifest says, and what their input says?

Every part is read in full: its size and SHA-256, its rows, their order, the shard of each key.
Given the inputs, they are counted again, and each shard is compared with what is stored.
"""

from __future__ import annotations

import functools
import json
import operator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from bpe._native import merge_runs
from bpe.counts import CutRuns
from bpe.counts.files import run_from_ipc, run_table, run_to_ipc
from bpe.counts.manifest import Totals
from bpe.counts.pretokens import shifted
from bpe.counts.pruning import Losses, Pruned, prune
from pipelines import storage
from pipelines.append import base_of
from pipelines.corpus.documents import ReadOptions
from pipelines.corpus.inputs import find_inputs
from pipelines.corpus.reading import Reading
from pipelines.corpus.splits import plan_splits
from pipelines.count.check_parts import (
    SetTotals,
    StoredLetters,
    check_letters,
    check_tokenizers,
    check_totals,
    read_stored,
    stored_letters,
    stored_parts,
    stored_totals,
)
from pipelines.count.steps import CountJob, counted_inputs, merged
from pipelines.errors import InputError, VerificationError
from pipelines.output.check_files import Finding, raise_first
from pipelines.output.names import BASE, fingerprint, read_plan
from pipelines.progress import SlotWriter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pipelines.corpus.inputs import InputFile
    from pipelines.corpus.splits import Split
    from pipelines.count.check_parts import StoredPart
    from pipelines.count.sets import CountsSet
    from pipelines.settings import InputSettings


@dataclass(frozen=True, kw_only=True)
class VerifyCountsJob:
    """Everything a worker must know to check counts; small, and picklable.

    Attributes:
        count: how they were counted, into as many shards as the largest set has.
        reading: how the inputs are read, to count them again; None where they are not.
        counters_path: the file of progress slots.
    """

    count: CountJob
    reading: Reading | None
    counters_path: str | None = None

    @property
    def directory(self) -> str:
        """Of the counts."""
        return self.count.directory

    def with_counters(self, counters_path: str | None) -> VerifyCountsJob:
        """The same, whose workers tell their progress to a file of slots."""
        reading = self.reading and replace(self.reading, counters_path=counters_path)
        return replace(self, reading=reading, counters_path=counters_path)


@dataclass(frozen=True, kw_only=True)
class StatedCounts:
    """What the manifests say of all parts taken together.

    Attributes:
        directory: of the counts.
        parts: how many there are.
        letters: files of dead letters.
        splits: of the inputs, where they are counted again.
        sets: what the parts of each set add up to.
        totals: of all sets.
        pruned: what was dropped.
        cuts: what each set says of the runs that were cut, where it has any.
    """

    directory: str
    parts: int
    letters: int
    splits: int
    sets: tuple[SetTotals, ...]
    totals: Totals
    pruned: Pruned | None
    cuts: tuple[CutRuns, ...]

    @property
    def numbers(self) -> dict[str, int]:
        """What they hold, as `VerifySummary` and formats are named."""
        return {
            "parts": self.parts,
            "documents": self.totals.documents,
            "bytes": self.totals.bytes,
            "tokens": self.totals.pretokens,
            "unknown_tokens": 0,
            "failures": self.totals.failures,
            **self.totals.formats,
        }


@dataclass(frozen=True, kw_only=True)
class VerifyingCounts:
    """A verification of counts, planned.

    Attributes:
        job: for the workers.
        manifest: the fingerprint of the manifests of all sets.
        parts: files to check, dead letters after the parts.
        splits: to count again.
        files: that they are of.
        stated: what the parts are to add up to.
    """

    job: VerifyCountsJob
    manifest: str
    parts: tuple[StoredPart | StoredLetters, ...]
    splits: tuple[Split, ...]
    files: tuple[InputFile, ...]
    stated: StatedCounts


@dataclass(frozen=True, kw_only=True)
class CountedPart(Finding):
    """What was found of a part.

    Attributes:
        manifest: of its set.
        pretokens: the sum of its counts.
    """

    manifest: str
    pretokens: int = 0


class CheckedLetters(Finding):
    """What was found of dead letters."""


@dataclass(frozen=True, kw_only=True)
class ComparedShard(Finding):
    """What was found of a shard that was counted again.

    Attributes:
        lost: to pruning.
        cut: the runs that were cut; of these alone, which come behind the last shard.
    """

    lost: Losses | None = None
    cut: CutRuns | None = None


def plan_counts(
    directory: str, sets: Sequence[CountsSet], *, inputs: InputSettings | None = None
) -> VerifyingCounts:
    """Check a counts directory but for its parts and their sums, and plan the checks of the parts.

    Args:
        directory: that holds it.
        sets: that are in it.
        inputs: what was counted, to count it again, with the settings it was read with.

    Raises:
        VerificationError: something is not as it must be.
        InputError: the inputs cannot be listed.
    """
    root = storage.located(directory)
    check_tokenizers(root, sets)
    first, parts, letters = sets[0].manifest, stored_parts(sets), stored_letters(root, sets)
    totals = sum((one.manifest.totals for one in sets), Totals())
    files: tuple[InputFile, ...] = ()
    if inputs:
        if pruned_groups(sets):
            raise InputError(
                f"{root}: rare pre-tokens of each group were dropped, so the sum of all groups is "
                "not what its input gives: verify without `input`"
            )
        files = _files(root, sets, inputs)
        _check_inputs(root, sets, files)
    splits = tuple(plan_splits(files, inputs.split_size)) if inputs else ()
    pruned = first.prune  # counts that were appended to have none
    job = VerifyCountsJob(
        count=CountJob(
            directory=root,
            pretokenizer=first.pretokenizer,
            special_tokens=first.special_tokens,
            track_order=first.order_span is not None,
            prune_below=pruned.below if pruned else 1,
            runs=first.runs,
            shards=max(len(one.manifest.parts) for one in sets),
        ),
        reading=Reading(
            directory=root,
            options=ReadOptions.of(inputs, group_by=sets[0].group_field),
            sets_aside=False,
        )
        if inputs
        else None,
    )
    return VerifyingCounts(
        job=job,
        manifest=fingerprint([json.loads(one.manifest.to_json()) for one in sets]),
        parts=(*parts, *letters),
        splits=splits,
        files=files,
        stated=StatedCounts(
            directory=root,
            parts=len(parts),
            letters=len(letters),
            splits=len(splits),
            sets=stored_totals(sets),
            totals=totals,
            pruned=pruned,
            cuts=tuple(one.manifest.cut for one in sets if one.manifest.cut is not None),
        ),
    )


def _files(
    directory: str, sets: Sequence[CountsSet], inputs: InputSettings
) -> tuple[InputFile, ...]:
    """The files that the sets must be of, as the jobs called them."""
    if BASE not in read_plan(directory):
        return find_inputs(inputs).files
    aside = {aside.name for one in sets for aside in one.set_aside}
    found = find_inputs(inputs, below=base_of(directory)).files
    return tuple(file for file in found if file.name not in aside)


def pruned_groups(sets: Sequence[CountsSet]) -> bool:
    """Whether these are counts by group that were pruned, each by itself."""
    return sets[0].group_by is not None and sets[0].manifest.prune is not None


def _check_inputs(root: str, sets: Sequence[CountsSet], files: Sequence[InputFile]) -> None:
    counted = sorted(file for one in sets for file in one.manifest.inputs)
    if sorted(counted_inputs(files)) != counted:
        raise VerificationError(
            f"{root}: the files given are not those that were counted (by name and size): "
            "give the same `input` patterns as for bpe count"
        )
    source = {
        counted.name: one.name
        for one in sets[0].sources
        for first, end in one.inputs
        for counted in sets[0].manifest.inputs[first:end]
    }
    for file in files:
        if source and file.source not in ("", source[file.name]):
            raise VerificationError(
                f"{root}: {file.path} was given as of the source {file.source}, and was counted as "
                f"of {source[file.name]}: give the same `input` NAME=PATTERN as for the job"
            )
    if (scale := sets[0].manifest.scale) != 1:
        raise VerificationError(
            f"{root}: these counts are weighted, in units of 1/{scale}: they can be compared with "
            "no input; verify those they were made of"
        )


def check_stored(
    stored: StoredPart | StoredLetters, job: VerifyCountsJob
) -> Iterator[Finding | tuple[int, bytes]]:
    """Check a file; yield what was found and, for the comparison, (shard, run) as Arrow IPC.

    The run of a part that is wrong is empty bytes: its shards are not compared.
    """
    if job.reading is None:
        with SlotWriter(job.counters_path, stored.number) as slot:
            slot.update(documents=0, bytes=stored.size)
    if isinstance(stored, StoredLetters):
        wrong = None
        try:
            check_letters(stored)
        except VerificationError as caught:
            wrong = caught
        yield CheckedLetters(number=stored.number, error=wrong)
        return
    try:
        run, pretokens = read_stored(stored)
    except VerificationError as error:
        yield CountedPart(number=stored.number, manifest=stored.manifest, error=error)
        if job.reading is not None:
            yield from ((shard, b"") for shard in range(job.count.shards))
        return
    yield CountedPart(number=stored.number, manifest=stored.manifest, pretokens=pretokens)
    if job.reading is None:
        return
    run = shifted(run, stored.first_place)
    if stored.shards == job.count.shards:
        yield stored.shard, run_to_ipc(run)
    else:
        yield from (
            (shard, run_to_ipc(one)) for shard, one in enumerate(run.split(job.count.shards))
        )


def compare_shard(
    shard: int, *, stored: Iterable[bytes], counted: Iterable[bytes], job: CountJob
) -> ComparedShard:
    """Compare what is stored of a shard with what counting again gives.

    Args:
        shard: its number.
        stored: its runs in the files.
        counted: its runs that were counted again.
        job: how that was done.
    """
    messages = list(stored)
    if shard == job.shards:
        return ComparedShard(number=shard, cut=CutRuns.of(run_from_ipc(merged(list(counted)))))
    if not all(messages):
        return ComparedShard(number=shard)
    again, lost = run_from_ipc(merged(list(counted))), None
    if job.prune_below > 1:
        again, lost = job.pruned(again)
    before = run_from_ipc(merged(messages))
    error = None
    if (difference := _difference(run_table(again), run_table(before), job.unit)) is not None:
        place = f"shard {shard} of {job.shards}"
        error = VerificationError(f"{job.directory}, {place}: {difference}")
    return ComparedShard(number=shard, error=error, lost=lost)


def _difference(again: pa.Table, before: pa.Table, unit: str) -> str | None:
    if again.equals(before):
        return None
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
    return (
        f"in byte order, the {unit} of row {row} is {stated}; counting again gives {found}: "
        "the input was changed, or read otherwise: count again"
    )


def conclude_counts(
    results: Iterable[Finding | Totals | StatedCounts], job: VerifyCountsJob
) -> Mapping[str, int]:
    """What counts hold, where all of their parts are right, and so are their sums.

    Raises:
        VerificationError: of the first part that is wrong, of the sums, or of the first shard that
            counting again gives otherwise.
        JobError: the runner lost some.
    """
    found = list(results)
    (stated,) = (one for one in found if isinstance(one, StatedCounts))
    parts = [one for one in found if isinstance(one, CountedPart)]
    raise_first(parts, stated.parts, "parts")
    letters = [one for one in found if isinstance(one, CheckedLetters)]
    raise_first(letters, stated.letters, "files of dead letters")
    check_totals(stated.sets, ((one.manifest, one.pretokens) for one in parts))
    if job.reading is None:
        return stated.numbers
    splits = [one for one in found if isinstance(one, Totals)]
    raise_first([Finding(number=0)] * len(splits), stated.splits, "splits")
    again = sum(splits, Totals())
    for name, before, now in (
        ("documents", stated.totals.documents, again.documents),
        ("bad records", stated.totals.failures, again.failures),
    ):
        if before != now:
            raise VerificationError(
                f"{stated.directory}: the counts are of {before} {name}, the input has {now}"
            )
    shards = [one for one in found if isinstance(one, ComparedShard)]
    raise_first(shards, job.count.drained, "shards")
    if stated.pruned is not None:
        nothing = prune(merge_runs([]), 1)[1]
        lost = [one.lost for one in shards if one.lost is not None]
        dropped = functools.reduce(operator.add, lost, nothing).pruned(stated.pruned.below)
        if dropped != stated.pruned:
            raise VerificationError(
                f"{stated.directory}: the manifest says that {stated.pruned} was dropped; counting "
                f"again gives {dropped}"
            )
    for cut in (one.cut for one in shards if one.cut is not None):
        _check_cut(stated, cut)
    return stated.numbers


def _check_cut(stated: StatedCounts, again: CutRuns) -> None:
    """Compare what is said of runs that were cut with what counting again gives.

    The most frequent pair of several sets is that of none alone, nor more frequent than their sum.

    Raises:
        VerificationError: they contradict each other.
    """
    total = functools.reduce(operator.add, stated.cuts, CutRuns(pairs=0, max_pair=0))
    most = max((one.max_pair for one in stated.cuts), default=0)
    if total.pairs != again.pairs or not most <= again.max_pair <= total.max_pair:
        raise VerificationError(
            f"{stated.directory}: the manifest says that the runs that were cut have {total}; "
            f"counting again gives {again}"
        )
