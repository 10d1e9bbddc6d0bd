"""Documents to counts of pre-tokens.

Each bundle has one counter, which is emptied when it has grown past a limit and when the bundle
ends. What leaves it are sorted runs by shard, as Arrow IPC bytes; the runs of a shard are merged
and written as one file. No element holds all counts, and text never leaves the step that reads it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import apache_beam as beam
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.windowed_value import WindowedValue

from bpe.counts.files import run_to_ipc
from bpe.counts.manifest import Totals
from pipelines.count.directory import read_counts_manifest
from pipelines.count.planning import CountRequest, begin_counting, finish_counting
from pipelines.count.steps import count_split, drained, merged, write_shard
from pipelines.elements import StorageDoFn, pack, unpack
from pipelines.errors import ConfigError
from pipelines.failures import Failures, job_errors
from pipelines.option import several, split_arguments, takes
from pipelines.settings import (
    SHARDS,
    CountSettings,
    InputSettings,
    OutputSettings,
    PretokenSettings,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pipelines.corpus.reading import Reading
    from pipelines.corpus.splits import Split
    from pipelines.count.steps import CountJob

_FEW_RUNS = 8


class _Plan(StorageDoFn):
    """Yields the splits; ``runs`` are empty, so that every shard has a file.

    Where all is counted already, nothing but the manifest comes out, as ``complete``.
    """

    def __init__(self, request: CountRequest, failures: Failures) -> None:
        super().__init__()
        self._request = request
        self._failures = failures

    def process(self, _: object) -> Iterator[Any]:
        job = self._request.job
        with self._failures.reported():
            splits = begin_counting(self._request)
            if splits is None:
                manifest = read_counts_manifest(job.directory).to_json()
                yield beam.pvalue.TaggedOutput("complete", json.loads(manifest))
                return
            yield from map(pack, splits)
            for shard, run in enumerate(job.counter().drain(job.shards)):
                yield beam.pvalue.TaggedOutput("runs", (shard, run_to_ipc(run)))


class _CountSplits(StorageDoFn):
    def __init__(self, job: CountJob, reading: Reading, failures: Failures) -> None:
        super().__init__()
        self._job = job
        self._reading = reading
        self._failures = failures

    def start_bundle(self) -> None:
        self._counts = self._job.counter()

    def process(self, element: bytes) -> Iterator[Any]:
        if self._failures.stopped():
            return
        split: Split = unpack(element)
        with self._failures.reported():
            for result in count_split(
                split, self._job, self._reading, self._failures, self._counts
            ):
                if isinstance(result, Totals):
                    yield beam.pvalue.TaggedOutput("totals", pack(result))
                else:
                    yield result

    def finish_bundle(self) -> Iterator[WindowedValue]:
        if self._failures.stopped():
            return
        with self._failures.reported():
            for result in drained(self._counts, self._job):
                yield in_global_window(result)


def in_global_window(value: Any) -> WindowedValue:
    """``value`` as ``finish_bundle`` must yield it."""
    window = GlobalWindow()
    return WindowedValue(value, window.max_timestamp(), [window])


class MergeRuns(beam.CombineFn):  # type: ignore[misc]
    """Adds up the runs of a shard; an accumulator is a list of runs, the largest first.

    Runs that wait are merged when together they are as large as the first: each byte is merged a
    number of times that grows with the logarithm of the whole, and little is held twice.
    """

    def __init__(self, failures: Failures) -> None:
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
        """The one run of the shard."""
        return b"".join(self._merge(accumulator))

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


class _WriteShard(StorageDoFn):
    def __init__(self, job: CountJob, failures: Failures) -> None:
        super().__init__()
        self._job = job
        self._failures = failures

    def process(self, element: tuple[int, bytes]) -> Iterator[bytes]:
        if self._failures.stopped():
            return
        with self._failures.reported():
            for result in write_shard(*element, self._job):
                yield pack(result)


class _WriteManifest(StorageDoFn):
    def __init__(self, request: CountRequest, failures: Failures) -> None:
        super().__init__()
        self._request = request
        self._failures = failures

    def process(self, element: tuple[None, Iterable[bytes]]) -> Iterator[dict[str, Any]]:
        if self._failures.stopped():
            return
        with self._failures.reported():
            yield finish_counting(map(unpack, element[1]), self._request)


def merge_shards(
    runs: beam.PCollection[tuple[int, bytes]], job: CountJob, failures: Failures
) -> beam.PCollection[bytes]:
    """Add up the runs of each shard and write its file; what was written comes out, packed."""
    return (
        runs
        | "Merge runs" >> beam.CombinePerKey(MergeRuns(failures))
        | "Write shards" >> beam.ParDo(_WriteShard(job, failures))
    )


class CountRequested(beam.PTransform):  # type: ignore[misc]
    """The steps of `CountCorpus`, for a request; errors are reported to ``failures``."""

    def __init__(self, request: CountRequest, failures: Failures) -> None:
        super().__init__()
        self._request = request
        self._failures = failures

    def display_data(self) -> dict[str, Any]:
        """What a runner's page shows."""
        request = self._request
        return {
            "inputs": ", ".join(request.inputs.patterns),
            "output": request.job.directory,
            "pretokenizer": str(request.job.pretokenizer),
        }

    def expand(self, begin: beam.pvalue.PBegin) -> beam.PCollection[dict[str, Any]]:
        """Plan, count the splits, merge and write the shards, and write the manifest."""
        if not isinstance(begin, beam.pvalue.PBegin):
            raise ConfigError(
                "CountCorpus reads its inputs itself: apply it to the pipeline, "
                "p | CountCorpus(...); CountPretokens counts a PCollection"
            )
        request, failures = self._request.started(), self._failures
        job = request.job
        planned = (
            begin
            | "Start" >> beam.Create([None], reshuffle=False)
            | "Plan"
            >> beam.ParDo(_Plan(request, failures)).with_outputs("runs", "complete", main="splits")
        )
        counted = (
            planned.splits
            | "Deal splits" >> beam.Reshuffle()
            | "Count splits"
            >> beam.ParDo(_CountSplits(job, request.reading, failures)).with_outputs(
                "totals", main="runs"
            )
        )
        runs = (counted.runs, planned.runs) | "All runs" >> beam.Flatten()
        parts = merge_shards(runs, job, failures)
        written = (
            (parts, counted.totals)
            | "Parts and totals" >> beam.Flatten()
            | "Gather results" >> beam.Map(lambda result: (None, result))
            | "Group results" >> beam.GroupByKey()
            | "Write manifest" >> beam.ParDo(_WriteManifest(request, failures))
        )
        return (written, planned.complete) | "Manifest" >> beam.Flatten()


@takes(InputSettings)
class CountCorpus(CountRequested):
    """Counts the pre-tokens of files into a directory of Parquet shards; yields its manifest.

    Nothing is read, listed or written before the pipeline runs. A runner that starts the job anew
    goes on with the files and splits of its first try.

    Example::

        p | CountCorpus(inputs=["docs/*.jsonl"], output="counts")

    Args:
        inputs: files, directories or patterns.
        output: a directory that is empty, or not there yet.
        pretokenizer: a name of ``bpe.PRETOKENIZERS``.
        pattern: a regular expression in its place, or several, applied one after the other.
        normalizer: steps of ``bpe.NORMALIZERS``, applied before text is cut.
        never_split: names of ``bpe.NEVER_SPLIT`` or regular expressions: their matches stay whole.
        special_tokens: cut out of the text before, and not counted.
        track_order: keep where each pre-token was first seen, for ties ``first-seen``.
        prune_below: pre-tokens that occur fewer times are dropped; the manifest says what that was.
        shards: files to write.
        overwrite: replace what an earlier job left in the directory.
        resume: keep complete counts of the same job; others are counted again.
        **reading: options, as below.

    Raises:
        ConfigError: an argument is wrong.
    """

    def __init__(
        self,
        *,
        inputs: Sequence[str],
        output: str,
        pretokenizer: str = "gpt2",
        pattern: str | Sequence[str] | None = None,
        normalizer: Sequence[str] = (),
        never_split: Sequence[str] = (),
        special_tokens: Sequence[str] = (),
        track_order: bool = False,
        prune_below: int = 1,
        shards: int = SHARDS,
        overwrite: bool = False,
        resume: bool = False,
        **reading: Any,
    ) -> None:
        with job_errors():
            request = CountRequest.of(
                inputs=InputSettings.of(inputs, **split_arguments(reading, InputSettings)[0]),
                pretokens=PretokenSettings(
                    pretokenizer=pretokenizer,
                    pattern=pattern
                    if pattern is None or isinstance(pattern, str)
                    else tuple(pattern),
                    normalizer=several("normalizer", normalizer),
                    never_split=several("never_split", never_split),
                    special_tokens=several("special_tokens", special_tokens),
                ),
                output=OutputSettings(directory=output, overwrite=overwrite, resume=resume),
                settings=CountSettings(
                    track_order=track_order, prune_below=prune_below, shards=shards
                ),
            )
        super().__init__(request, Failures())
