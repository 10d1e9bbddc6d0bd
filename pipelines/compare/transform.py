"""Documents to a comparison of tokenizers.

Splits are read and encoded with every tokenizer inside one step; totals of groups and counted
pieces leave it. Pieces are merged by shard as in `pipelines.count.transform`; each shard yields its
examples.
"""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING, Any

import apache_beam as beam
from apache_beam.utils.shared import Shared

from pipelines import storage
from pipelines.compare.measures import GroupTotals
from pipelines.compare.plan import tokenizers_of
from pipelines.compare.result import comparison
from pipelines.compare.steps import SplitComparer, SplitFailures, Totals, differences_of
from pipelines.count.steps import drained
from pipelines.count.transform import MergeRuns, in_global_window
from pipelines.elements import StorageDoFn, pack, unpack
from pipelines.output.names import json_bytes
from pipelines.storage import join

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from apache_beam.utils.windowed_value import WindowedValue

    from bpe import Tokenizer
    from pipelines.compare.plan import CompareJob, Comparing, Subject
    from pipelines.failures import Failures

RESULT = "comparison.json"


class _Tokenizers:
    """The tokenizers of a job, loaded once in a process."""

    def __init__(self) -> None:
        self._shared = Shared()

    def of(self, job: CompareJob) -> tuple[Tokenizer, ...]:
        loaded: tuple[Tokenizer, ...] = self._shared.acquire(
            lambda: _Held(tokenizers_of(job)), tag=" ".join(job.tokenizers_sha256)
        ).tokenizers
        return loaded


class _Held:
    """What Beam can hold a weak reference to, which it cannot to a tuple."""

    def __init__(self, tokenizers: tuple[Tokenizer, ...]) -> None:
        self.tokenizers = tokenizers


class _CompareSplits(StorageDoFn):
    def __init__(self, job: CompareJob, failures: Failures) -> None:
        super().__init__()
        self._job = job
        self._failures = failures
        self._tokenizers = _Tokenizers()
        self._comparer: SplitComparer | None = None

    def setup(self) -> None:
        super().setup()
        with self._failures.reported():
            self._comparer = SplitComparer(self._job, self._tokenizers.of(self._job))

    def start_bundle(self) -> None:
        self._pieces = self._job.counting.counter()

    def process(self, element: bytes) -> Iterator[Any]:
        if self._comparer is None or self._failures.stopped():
            return
        with self._failures.reported():
            for result in self._comparer.run(unpack(element), self._failures, self._pieces):
                if isinstance(result, SplitFailures):
                    yield beam.pvalue.TaggedOutput("failures", pack(result))
                elif isinstance(result, dict):
                    for key, totals in result.items():
                        yield beam.pvalue.TaggedOutput("totals", (key, pack(totals)))
                else:
                    yield result

    def finish_bundle(self) -> Iterator[WindowedValue]:
        if self._failures.stopped():
            return
        with self._failures.reported():
            for result in drained(self._pieces, self._job.counting):
                yield in_global_window(result)


class _AddTotals(beam.CombineFn):  # type: ignore[misc]
    """Adds up the totals of a group."""

    def create_accumulator(self) -> GroupTotals:
        return GroupTotals()

    def add_input(self, accumulator: GroupTotals, totals: bytes) -> GroupTotals:
        more: GroupTotals = unpack(totals)
        return accumulator + more

    def merge_accumulators(self, accumulators: Iterable[GroupTotals]) -> GroupTotals:
        return functools.reduce(operator.add, accumulators, GroupTotals())

    def extract_output(self, accumulator: GroupTotals) -> bytes:
        return pack(accumulator)


class _FindDifferences(StorageDoFn):
    def __init__(self, job: CompareJob, failures: Failures) -> None:
        super().__init__()
        self._job = job
        self._failures = failures
        self._tokenizers = _Tokenizers()

    def process(self, element: tuple[int, bytes]) -> Iterator[bytes]:
        if self._failures.stopped():
            return
        with self._failures.reported():
            yield pack(differences_of(element[1], self._job, self._tokenizers.of(self._job)))


class _WriteResult(StorageDoFn):
    def __init__(self, job: CompareJob, subject: Subject, failures: Failures) -> None:
        super().__init__()
        self._job = job
        self._subject = subject
        self._failures = failures
        self._tokenizers = _Tokenizers()

    def process(self, element: tuple[None, Iterable[bytes]]) -> Iterator[str]:
        if self._failures.stopped():
            return
        with self._failures.reported():
            result = comparison(
                map(unpack, element[1]),
                self._job,
                subject=self._subject,
                tokenizers=self._tokenizers.of(self._job),
            )
            path = join(self._job.directory, RESULT)
            storage.write(path, json_bytes(result))
            yield path


def add_comparing(
    pipeline: beam.Pipeline, comparing: Comparing, failures: Failures
) -> beam.PCollection[str]:
    """Add a prepared job to a pipeline; the one element of the result is the path of its file."""
    job = comparing.job
    compared = (
        pipeline
        | "Splits" >> beam.Create(map(pack, comparing.splits), reshuffle=False)
        | "Deal splits" >> beam.Reshuffle()
        | "Compare splits"
        >> beam.ParDo(_CompareSplits(job, failures)).with_outputs(
            "totals", "failures", main="pieces"
        )
    )
    totals = (
        compared.totals
        | "Add totals" >> beam.CombinePerKey(_AddTotals())
        | "Name totals" >> beam.MapTuple(_named)
    )
    differences = (
        compared.pieces
        | "Merge pieces" >> beam.CombinePerKey(MergeRuns(failures))
        | "Find differences" >> beam.ParDo(_FindDifferences(job, failures))
    )
    return (
        (totals, differences, compared.failures)
        | "All results" >> beam.Flatten()
        | "Gather results" >> beam.Map(lambda result: (None, result))
        | "Group results" >> beam.GroupByKey()
        | "Write comparison" >> beam.ParDo(_WriteResult(job, comparing.subject, failures))
    )


def _named(key: str, totals: bytes) -> bytes:
    return pack(Totals(key=key, totals=unpack(totals)))
