"""Append counts to a directory: a set of shards for each job, all named by one manifest.

Sets of the same number of jobs are added up when there are `FAN_IN` of them: this limits the number
of sets, and each count is copied a number of times that grows with the logarithm of the number of
jobs. The counts of the first job are never added up: they may be large.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bpe._inputs_file import INPUTS
from bpe.counts.manifest import CountsManifest, Totals
from pipelines import storage
from pipelines.count.directory import StoredCounts, read_counts
from pipelines.count.manifest import AppendedManifest, AppendedSet
from pipelines.count.results import counted_inputs, write_files_of, write_shard
from pipelines.output.directory import remove_temporaries
from pipelines.output.names import DATA, MANIFEST, generation_of, parse_part
from pipelines.storage import join

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipelines.corpus.splits import FileRange
    from pipelines.count.results import Counted
    from pipelines.count.steps import CountJob

FAN_IN = 16
_Set = tuple[AppendedSet, str, CountsManifest]  # with the path of its manifest


def read_appended(directory: str) -> tuple[AppendedManifest, list[_Set]]:
    """Read the sets in a directory of counts, also if nothing was appended yet.

    Raises:
        InputError, bpe.errors.CountsError: a manifest is missing or damaged.
    """
    counts = read_counts(directory)
    first = AppendedManifest(generation=0, sets=(AppendedSet(generation=0, jobs=0),))
    manifest = counts.appended or first
    sets = zip(manifest.sets, counts.sets.items(), strict=False)
    return manifest, [(one, *stored) for one, stored in sets]


def append_counts(
    counted: Counted,
    job: CountJob,
    files: Sequence[FileRange],
    *,
    prune: bool,
) -> None:
    """Write the manifest of the counts of a job, and the manifest of all sets.

    The job supersedes a set of one job that shares a file with it. Superseded sets stay until the
    next job appends: somebody may be reading them.

    Args:
        counted: the results of the job.
        job: the job.
        files: the files of the job.
        prune: whether superseded sets are removed at once.

    Raises:
        RecordError: over all sets, more bad records than the job may set aside.
        JobError: the runner lost a result, or a file cannot be written or read.
    """
    aside = counted.set_aside
    read = [file for file in files if file.name not in {one.name for one in aside}]
    made = counted.manifest(job, counted_inputs(read))
    directory, taken = job.directory, {file.name for file in files}
    sets: list[_Set] = []
    gone: list[int] = []
    for one, path, manifest in read_appended(directory)[1] if job.generation else ():
        names = {file.name for file in manifest.inputs} | {file.name for file in one.set_aside}
        if one.jobs == 1 and not taken.isdisjoint(names):
            gone.append(one.generation)
            continue
        still = tuple(file for file in one.set_aside if file.name not in taken)
        sets.append((replace(one, set_aside=still), path, manifest))
    counted.check(job, sum((manifest.totals for *_, manifest in sets), Totals()))
    remove_temporaries(directory)
    if not (job.generation or aside):  # as a job that does not append
        write_files_of(made, job)
        return
    if job.generation == 1:
        first = join(directory, sets[0][0].manifest)
        if not storage.exists(first):
            storage.write(first, storage.read(join(directory, MANIFEST)))
    added = AppendedSet(generation=job.generation, jobs=1 if job.generation else 0, set_aside=aside)
    sets.append(_written_set(directory, added, made))
    while some := _full(sets):
        job = replace(job, generation=job.generation + 1)
        gone += [one.generation for one, *_ in some]
        sets = [*(one for one in sets if one not in some), _merged(some, job)]
    now = AppendedManifest(
        generation=job.generation,
        sets=tuple(one for one, *_ in sets),
        superseded=tuple(gone),
    )
    storage.write(join(directory, MANIFEST), now.to_bytes())
    tidy(directory, prune=prune)


def tidy(directory: str, *, prune: bool) -> None:
    """Remove the shards and manifests of sets that are no longer used; bad records stay.

    Args:
        directory: the directory of the counts.
        prune: whether to remove the sets superseded last too, which somebody may be reading.

    Raises:
        OutputError, InputError: a file cannot be removed or read.
    """
    now, _ = read_appended(directory)
    if not now.generation:
        return
    keep = {one.generation for one in now.sets} | (set() if prune else {*now.superseded})
    for folder in ((), (DATA,)):
        for entry in storage.entries(join(directory, *folder)):
            name = "/".join((*folder, entry.name))
            part = parse_part(name)
            generation = part.generation if part else generation_of(name, now.generation)
            if generation not in keep and generation <= now.generation:
                storage.remove(join(directory, name))


def _written_set(directory: str, one: AppendedSet, manifest: CountsManifest) -> _Set:
    """Write the manifest of a set whose shards are complete, and return the set."""
    for name, data in manifest.files().items():
        storage.write(join(directory, one.inputs if name == INPUTS else one.manifest), data)
    return one, join(directory, one.manifest), manifest


def _full(sets: Sequence[_Set]) -> list[_Set]:
    """Return `FAN_IN` sets of the same number of jobs; empty if there are not enough sets."""
    for jobs in sorted({one.jobs for one, *_ in sets} - {0}):
        some = [one for one in sets if one[0].jobs == jobs]
        if len(some) >= FAN_IN:
            return some[:FAN_IN]
    return []


def _merged(some: Sequence[_Set], job: CountJob) -> _Set:
    """Add up sets, and write the sum as one set of the generation of the job."""
    sets = StoredCounts(directory=job.directory, sets={path: one for _, path, one in some})
    shards = sets.load().sorted_counts.split(job.counting.shards)
    written = [write_shard(shard, counts, job) for shard, counts in enumerate(shards)]
    added = AppendedSet(
        generation=job.generation,
        jobs=sum(one.jobs for one, *_ in some),
        set_aside=tuple(aside for one, *_ in some for aside in one.set_aside),
    )
    parts = tuple(one.part for one in written if one.part)
    return _written_set(job.directory, added, replace(sets.manifest, parts=parts))
