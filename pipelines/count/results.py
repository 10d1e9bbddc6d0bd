"""Write the results of counting: shards, and the manifest."""

from __future__ import annotations

import operator
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeVar

from bpe.counts import CutRuns
from bpe.counts.files import counts_from_ipc, counts_part, counts_to_ipc
from bpe.counts.manifest import (
    CountedInput,
    CountsManifest,
    CountsPart,
    DeadLetters,
    Totals,
    shard_file,
)
from bpe.counts.pruning import Losses
from pipelines import storage
from pipelines.corpus.mix import sources_of
from pipelines.corpus.reading import Reading, check_failures
from pipelines.count.manifest import CountedGroup, GroupedManifest
from pipelines.errors import JobError
from pipelines.metrics import add_to_metrics
from pipelines.output.directory import remove_temporaries
from pipelines.output.names import TOKENIZER
from pipelines.storage import join
from pipelines.totals import SetAside as FileSetAside

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pipelines.corpus.splits import FileRange
    from pipelines.count.steps import CountJob
from pipelines.count.steps import PLACE_BITS, InGroup, Outcome, check_groups

_Kind = TypeVar("_Kind")


def write_shard(shard: int, message: bytes, job: CountJob) -> Iterator[Outcome]:
    """Write the file of a shard; yield its entry of the manifest, its sum, the losses by pruning.

    The pairs of tokens in cut runs, which come after the last shard, have no file: only their
    `CutRuns` are yielded.
    """
    counts = counts_from_ipc(message)
    if shard == job.settings.shards:
        yield CutRuns.of(counts)
        return
    if job.settings.prune_below > 1:
        counts, losses = job.pruned(counts)
        yield losses
    part, data = counts_part(
        counts, shard=shard, shards=job.settings.shards, generation=job.generation
    )
    storage.write(join(job.directory, part.file), data)
    add_to_metrics(
        distinct_pretokens_written=len(counts), parquet_bytes_written=len(data), parts_written=1
    )
    yield counts.total()
    yield part


def of_kind(kind: type[_Kind], results: Iterable[object]) -> list[_Kind]:
    """Return the results of one type."""
    return [one for one in results if isinstance(one, kind)]


def manifest_of(
    results: Iterable[Outcome],
    job: CountJob,
    *,
    totals: Totals,
    files: Sequence[CountedInput] = (),
    dead_letters: tuple[DeadLetters, ...] = (),
) -> CountsManifest:
    """Return the manifest of counts, and write the files of shards without counts.

    Args:
        results: the results of `write_shard`, in any order.
        job: the job of the results.
        totals: the totals of all splits or bundles.
        files: the files that were read.
        dead_letters: files of bad records.

    Raises:
        JobError: the runner lost a result, or a file cannot be written.
    """
    found = list(results)
    there = {one.file for one in of_kind(CountsPart, found)}
    (empty,) = job.counter(None).drain(1)
    # The pairs in cut runs come with any document.
    for shard in range(job.settings.shards if totals.documents else job.drained):
        if shard_file(shard, job.settings.shards, job.generation) not in there:
            found += write_shard(shard, counts_to_ipc(empty), job)
    cuts, lost = of_kind(CutRuns, found), of_kind(Losses, found)
    if job.drained > job.settings.shards and not cuts:
        raise JobError("the runner lost the pairs in runs that were cut: use another runner")
    counted = sum(of_kind(int, found)) + sum(one.occurrences for one in lost)
    if counted != totals.pretokens:
        raise JobError(
            f"the runner returned counts of {counted:,} {job.unit}s of {totals.pretokens:,}: use "
            "another runner"
        )
    return CountsManifest(
        pretokenizer=job.pretokenizer,
        special_tokens=job.special_tokens,
        order_span=len(files) << PLACE_BITS if job.settings.track_order else None,
        totals=totals,
        inputs=tuple(files),
        dead_letters=dead_letters,
        parts=tuple(sorted(of_kind(CountsPart, found), key=lambda part: part.file)),
        prune=reduce(operator.add, lost).pruned(job.settings.prune_below) if lost else None,
        runs=job.runs,
        cut=reduce(operator.add, cuts) if cuts else None,
    )


def write_files_of(manifest: CountsManifest | GroupedManifest, job: CountJob) -> None:
    """Write all files of a manifest."""
    remove_temporaries(job.directory)
    for name, data in manifest.files().items():
        storage.write(join(job.directory, name), data)


@dataclass(frozen=True, kw_only=True)
class Counted:
    """All results of a count.

    Attributes:
        totals: the totals of all splits.
        dead_letters: files of bad records.
        groups: the results of each group.
        set_aside: files that could not be read.
    """

    totals: Totals
    dead_letters: tuple[DeadLetters, ...] = ()
    groups: Mapping[str, list[Outcome]]
    set_aside: tuple[FileSetAside, ...] = ()

    @classmethod
    def of(cls, results: Iterable[Any], job: CountJob, *, splits: int) -> Counted:
        """Collect the results of the steps, in any order.

        Args:
            results: the results of all splits, groups and shards.
            job: the job of the results.
            splits: the number of splits, each with one result of type `Totals` besides those of
                its groups.

        Raises:
            JobError: the runner lost a result.
            InputError: there are too many groups.
        """
        found = list(results)
        of_splits = of_kind(Totals, found)
        if len(of_splits) != splits:
            raise JobError(
                f"the runner returned the totals of {len(of_splits)} splits of {splits}: use "
                "another runner"
            )
        groups: dict[str, list[Outcome]] = {name: [] for name in job.sources}
        for one in of_kind(InGroup, found):
            groups.setdefault(one.group, []).append(one.result)
        of_groups = (one for outcomes in groups.values() for one in of_kind(Totals, outcomes))
        check_groups(groups, job)
        dead = sorted(of_kind(DeadLetters, found), key=lambda letters: letters.file)
        return cls(
            totals=sum((*of_splits, *of_groups), Totals()),
            dead_letters=tuple(dead),
            groups=groups,
            set_aside=tuple(of_kind(FileSetAside, found)),
        )

    def check(self, reading: Reading, before: Totals = Totals()) -> None:  # noqa: B008  # immutable
        """Check the number of bad records, with those of the totals ``before``.

        Raises:
            RecordError: there are too many bad records, or there are no documents but bad records.
        """
        totals, letters = before + self.totals, [one.file for one in self.dead_letters]
        check_failures(totals.failures, reading, letters, documents=totals.documents)

    def manifest(self, job: CountJob, files: Sequence[CountedInput]) -> CountsManifest:
        """Return the manifest of counts without groups.

        Raises:
            JobError: the runner lost a result.
        """
        outcomes, dead = self.groups.get("", ()), self.dead_letters
        return manifest_of(outcomes, job, totals=self.totals, files=files, dead_letters=dead)


def write_counted(counted: Counted, job: CountJob, files: Sequence[FileRange] = ()) -> None:
    """Write the manifest of a count; of counts by group, also the manifest of each group.

    A source without documents has counts too.

    Raises:
        JobError: the runner lost a result, or another job has taken the directory over.
    """
    job.plan()
    inputs = counted_inputs(files)
    if job.settings.group_by is None:
        write_files_of(counted.manifest(job, inputs), job)
        return
    groups = []
    for group, outcomes in sorted(counted.groups.items()):
        group_job = job.of_group(group)
        totals = sum(of_kind(Totals, outcomes), Totals())
        manifest = manifest_of(outcomes, group_job, totals=totals, files=inputs)
        write_files_of(replace(manifest, inputs=()), group_job)
        if job.runs is not None:  # whose ids these are: a group's directory is complete by itself
            tokenizer = storage.read(join(job.directory, TOKENIZER))
            storage.write(join(group_job.directory, TOKENIZER), tokenizer)
        groups.append(CountedGroup.of(group, manifest))
    grouped = GroupedManifest(
        group_by=job.settings.group_by,
        groups=tuple(groups),
        totals=counted.totals,
        inputs=inputs,
        dead_letters=counted.dead_letters,
        sources=sources_of(files, job.sources) if job.sources else (),
    )
    write_files_of(grouped, job)


def counted_inputs(files: Iterable[FileRange]) -> tuple[CountedInput, ...]:
    """Return the entries of the manifest for some inputs."""
    return tuple(CountedInput(name=one.name, size=one.file_size) for one in files)
