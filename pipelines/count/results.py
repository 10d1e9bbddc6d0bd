"""Write the results of counting: shards, and the manifest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from bpe.counts import CutRuns
from bpe.counts.files import counts_part
from bpe.counts.manifest import CountedInput, CountsManifest, DeadLetters, Totals, added
from bpe.counts.pruning import prune
from pipelines import storage
from pipelines.corpus.mix import sources_of
from pipelines.corpus.reading import check_failures
from pipelines.count.manifest import CountedGroup, GroupedManifest
from pipelines.count.steps import PLACE_BITS, InGroup, Shard, check_groups
from pipelines.errors import JobError
from pipelines.metrics import add_to_metrics
from pipelines.output.directory import remove_temporaries
from pipelines.output.names import TOKENIZER
from pipelines.storage import join
from pipelines.totals import SetAside as FileSetAside

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from bpe._native import SortedCounts
    from pipelines.corpus.splits import FileRange
    from pipelines.count.steps import CountJob

_Kind = TypeVar("_Kind")


def write_shard(shard: int, counts: SortedCounts, job: CountJob) -> Shard:
    """Write the file of a shard, pruned; the pairs in cut runs come after the last shard."""
    if shard == job.counting.shards:
        return Shard(shard, cut=CutRuns.of(counts))
    occurrences, losses = counts.total(), None
    if job.counting.prune_below > 1:
        id_bytes = job.runs.id_bytes if job.runs else 0
        counts, losses = prune(counts, job.counting.prune_below, id_bytes=id_bytes)
    part, data = counts_part(
        counts, shard=shard, shards=job.counting.shards, generation=job.generation
    )
    storage.write(join(job.directory, part.file), data)
    add_to_metrics(
        distinct_pretokens_written=len(counts), parquet_bytes_written=len(data), parts_written=1
    )
    return Shard(shard, occurrences=occurrences, part=part, losses=losses)


def of_kind(kind: type[_Kind], results: Iterable[object]) -> list[_Kind]:
    """Return the results of one type."""
    return [one for one in results if isinstance(one, kind)]


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
    groups: Mapping[str, list[Shard | Totals]]
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
        groups: dict[str, list[Shard | Totals]] = {name: [] for name in job.sources}
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

    def check(self, job: CountJob, before: Totals = Totals()) -> None:  # noqa: B008  # immutable
        """Check the number of bad records, with those of the totals ``before``.

        Raises:
            RecordError: there are too many bad records, or there are no documents but bad records.
        """
        totals, letters = before + self.totals, [one.file for one in self.dead_letters]
        check_failures(totals.failures, job, letters, documents=totals.documents)

    def manifest(
        self, job: CountJob, files: Sequence[CountedInput], group: str | None = None
    ) -> CountsManifest:
        """Return the manifest of all counts or of a group; write the files of shards without any.

        Args:
            job: the job, or that of the group.
            files: the files that were read.
            group: the group; None without groups.

        Raises:
            JobError: the runner lost a result, or a file cannot be written.
        """
        outcomes = self.groups.get(group or "", [])
        totals = sum(of_kind(Totals, outcomes), Totals()) if group is not None else self.totals
        shards = {one.number: one for one in of_kind(Shard, outcomes)}
        (empty,) = job.counter(None).drain(1)
        # The pairs in cut runs come with any document.
        for shard in range(job.counting.shards if totals.documents else job.drained):
            if shard not in shards:
                shards[shard] = write_shard(shard, empty, job)
        if len(shards) < job.drained:
            raise JobError("the runner lost the pairs in runs that were cut: use another runner")
        counted = sum(one.occurrences for one in shards.values())
        if counted != totals.pretokens:
            raise JobError(
                f"the runner returned counts of {counted:,} {job.unit}s of {totals.pretokens:,}: "
                "use another runner"
            )
        losses = added(one.losses for one in shards.values())
        return CountsManifest(
            pretokenizer=job.pretokenizer,
            special_tokens=job.special_tokens,
            order_span=len(files) << PLACE_BITS if job.counting.track_order else None,
            totals=totals,
            inputs=tuple(files),
            dead_letters=() if group is not None else self.dead_letters,
            parts=tuple(one.part for _, one in sorted(shards.items()) if one.part),
            prune=losses and losses.pruned(job.counting.prune_below),
            runs=job.runs,
            cut=added(one.cut for one in shards.values()),
        )


def write_counted(counted: Counted, job: CountJob, files: Sequence[FileRange] = ()) -> None:
    """Write the manifest of a count; of counts by group, also the manifest of each group.

    A source without documents has counts too.

    Raises:
        JobError: the runner lost a result, or a file cannot be written.
    """
    inputs = counted_inputs(files)
    if job.group_by is None:
        write_files_of(counted.manifest(job, inputs), job)
        return
    groups = []
    for group in sorted(counted.groups):
        group_job = job.of_group(group)
        manifest = counted.manifest(group_job, inputs, group)
        write_files_of(replace(manifest, inputs=()), group_job)
        if job.runs is not None:  # whose ids these are: a group's directory is complete by itself
            tokenizer = storage.read(join(job.directory, TOKENIZER))
            storage.write(join(group_job.directory, TOKENIZER), tokenizer)
        groups.append(CountedGroup.of(group, manifest))
    grouped = GroupedManifest(
        group_by=job.group_by,
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
