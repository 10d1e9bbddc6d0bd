"""Counting as steps of a pipeline: splits to runs of counts, runs to the shards of all.

Each bundle has one counter, which is emptied when it has grown past a limit and when the bundle
ends. What leaves it are sorted runs by shard, as Arrow IPC bytes; the runs of a shard are merged
and written as one file. No element holds all counts, and text never leaves the step that reads it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import apache_beam as beam

from bpe._native import merge_runs
from bpe.counts.files import run_to_ipc
from pipelines.count.results import write_shard
from pipelines.count.steps import (
    Counters,
    InGroup,
    count_arrived,
    count_split,
    merged,
)
from pipelines.elements import OncePerProcess, Step, StorageDoFn, in_window, pack, unpack
from pipelines.output.names import GENERATION
from pipelines.progress import SlotWriter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from apache_beam.utils.windowed_value import WindowedValue

    from pipelines.corpus.splits import Split
    from pipelines.count.job import CountRequest
    from pipelines.count.steps import CountJob
    from pipelines.failures import FailureChannel

_FEW_RUNS = 8


class CountSplits(StorageDoFn):
    """Splits to ((group, shard), Arrow IPC), and packed ``totals``."""

    def __init__(self, request: CountRequest, failures: FailureChannel) -> None:
        super().__init__()
        self._request, self._failures = request, failures
        self._tokenizers = OncePerProcess()

    def start_bundle(self) -> None:
        """Begin to count."""
        self._counts: Counters | None = None

    def process(self, element: bytes) -> Iterator[Any]:
        """Count a split."""
        if self._failures.stopped():
            return
        split: Split = unpack(element)
        request, failures = self._request, self._failures
        job, reading = request.job, request.reading
        with failures.reported(), SlotWriter(request.slots_path, split.part) as slot:
            tokenizer = self._tokenizers.get(repr(job.runs), job.tokenizer)
            results: Iterable[Any]
            if request.appending.appends:
                results = count_arrived(split, job, reading, failures, tokenizer, slot=slot)
            else:
                self._counts = self._counts or Counters(job, tokenizer)
                results = count_split(split, job, reading, failures, self._counts, slot=slot)
            for result in results:
                if isinstance(result, tuple):
                    yield result
                else:
                    yield beam.pvalue.TaggedOutput("totals", pack(result))

    def finish_bundle(self) -> Iterator[WindowedValue]:
        """Empty the counters."""
        if self._failures.stopped() or self._counts is None:
            return
        with self._failures.reported():
            yield from map(in_window, self._counts.drained())


class MergeRuns(beam.CombineFn):  # type: ignore[misc]
    """Adds up the runs of a shard; an accumulator is a list of runs, the largest first.

    Runs that wait are merged when together they are as large as the first: each byte is merged a
    number of times that grows with the logarithm of the whole, and little is held twice.
    """

    def __init__(self, failures: FailureChannel) -> None:
        self._failures = failures

    def create_accumulator(self) -> list[bytes]:
        """No runs."""
        return []

    def add_input(self, accumulator: list[bytes], run: bytes) -> list[bytes]:
        """Take one more run."""
        return self._add(accumulator, [run])

    def merge_accumulators(self, accumulators: Iterable[list[bytes]]) -> list[bytes]:
        """Put lists of runs together."""
        merged_so_far: list[bytes] = []
        for accumulator in accumulators:
            merged_so_far = self._add(merged_so_far, accumulator)
        return merged_so_far

    def compact(self, accumulator: list[bytes]) -> list[bytes]:
        """Merge before it travels."""
        return self._merge(accumulator)

    def extract_output(self, accumulator: list[bytes]) -> bytes:
        """The one run of the shard; a run without pre-tokens for an empty pane."""
        return b"".join(self._merge(accumulator)) or run_to_ipc(merge_runs([]))

    def _add(self, accumulator: list[bytes], runs: list[bytes]) -> list[bytes]:
        accumulator = [*accumulator, *runs]
        waiting = sum(map(len, accumulator[1:]))
        if len(accumulator) > _FEW_RUNS and waiting >= len(accumulator[0]):
            return self._merge(accumulator)
        return accumulator

    def _merge(self, accumulator: list[bytes]) -> list[bytes]:
        if len(accumulator) < 2 or self._failures.stopped():
            return accumulator[:1]
        with self._failures.reported():
            return [merged(accumulator)]
        return accumulator[:1]


def _written(element: tuple[tuple[str, int], bytes], job: CountJob) -> Iterator[bytes]:
    """The file of a shard, written, packed."""
    (group, shard), run = element
    job = replace(job.of_group(group), generation=job.plan().get(GENERATION, 0))
    for result in write_shard(shard, run, job):
        yield pack(InGroup(group, result))


def merge_shards(
    runs: beam.PCollection[tuple[tuple[str, int], bytes]], job: CountJob, failures: FailureChannel
) -> beam.PCollection[bytes]:
    """Add up the runs of each shard and write its file; what was written comes out, packed.

    Args:
        runs: ((group, shard), Arrow IPC bytes).
        job: how the corpus is counted.
        failures: where the job ends.
    """
    return (
        runs
        | "Merge runs" >> beam.CombinePerKey(MergeRuns(failures))
        | "Write shards" >> beam.ParDo(Step(failures, _written, job))
    )


def empty_runs(job: CountJob) -> list[tuple[tuple[str, int], bytes]]:
    """A run without counts for each shard, so that every shard has a file.

    None for groups, which are not known before the end: see `write_counted`.
    """
    if job.settings.group_by is not None:
        return []
    return [(("", shard), run_to_ipc(run)) for shard, run in enumerate(job.empty())]
