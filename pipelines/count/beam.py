"""Merge partial counts and write the files of shards, as steps of a pipeline.

An element is the sorted counts of one shard, as Arrow IPC bytes: a message. The messages of a shard
are added up and written as one file. No element holds all counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import apache_beam as beam

from bpe._native import add_counts
from bpe.counts.files import counts_from_ipc, counts_to_ipc
from pipelines.count.results import write_shard
from pipelines.count.steps import InGroup, added_up
from pipelines.elements import Step, pack

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pipelines.count.steps import CountJob
    from pipelines.failures import FailureChannel

_FEW = 8


class AddCounts(beam.CombineFn):  # type: ignore[misc]
    """Adds up the messages of a shard; an accumulator is a list of messages.

    The messages after the first are merged with the first when together they are as large: each
    byte is merged a number of times that grows with the logarithm of the total size.
    """

    def __init__(self, failures: FailureChannel) -> None:
        self._failures = failures

    def create_accumulator(self) -> list[bytes]:
        """Return an empty list of messages."""
        return []

    def add_input(self, accumulator: list[bytes], message: bytes) -> list[bytes]:
        """Add one message."""
        return self.merge_accumulators([accumulator, [message]])

    def merge_accumulators(self, accumulators: Iterable[list[bytes]]) -> list[bytes]:
        """Join lists of messages."""
        joined: list[bytes] = []
        for accumulator in accumulators:
            joined = [*joined, *accumulator]
            if len(joined) > _FEW and sum(map(len, joined[1:])) >= len(joined[0]):
                joined = self._merge(joined)
        return joined

    def compact(self, accumulator: list[bytes]) -> list[bytes]:
        """Merge the messages before the accumulator is sent."""
        return self._merge(accumulator)

    def extract_output(self, accumulator: list[bytes]) -> bytes:
        """Return the counts of the shard as one message, without counts for an empty pane."""
        return b"".join(self._merge(accumulator)) or counts_to_ipc(add_counts([]))

    def _merge(self, accumulator: list[bytes]) -> list[bytes]:
        if len(accumulator) < 2 or self._failures.stopped():
            return accumulator[:1]
        with self._failures.reported():
            return [counts_to_ipc(added_up(accumulator))]
        return accumulator[:1]


def _written(element: tuple[tuple[str, int], bytes], job: CountJob) -> Iterator[bytes]:
    """Write the file of a shard; yield the packed result."""
    (group, shard), message = element
    job = job.planned().of_group(group)
    yield pack(InGroup(group, write_shard(shard, counts_from_ipc(message), job)))


def merge_shards(
    messages: beam.PCollection[tuple[tuple[str, int], bytes]],
    job: CountJob,
    failures: FailureChannel,
) -> beam.PCollection[bytes]:
    """Add up the messages of each shard and write its file; return the packed results.

    Args:
        messages: ((group, shard), Arrow IPC bytes).
        job: the settings of counting.
        failures: gets the error that ends the job.
    """
    return (
        messages
        | "Add up counts" >> beam.CombinePerKey(AddCounts(failures))
        | "Write shards" >> beam.ParDo(Step(failures, _written, job))
    )
