"""Documents to counts of pre-tokens.

Each bundle has one counter, which is emptied when it has grown past a limit and when the bundle
ends. What leaves it are sorted runs by shard, as Arrow IPC bytes; the runs of a shard are merged
and written as one file. No element holds all counts, and text never leaves the step that reads it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import apache_beam as beam
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.windowed_value import WindowedValue

from bpe.counts.files import run_to_ipc
from bpe.counts.manifest import Totals
from pipelines.count.steps import (
    count_job,
    count_split,
    counted_inputs,
    drained,
    merged,
    plan_counting,
    write_manifest,
    write_shard,
)
from pipelines.elements import StorageDoFn, pack, unpack
from pipelines.errors import ConfigError
from pipelines.failures import Failures, job_errors
from pipelines.option import several, split_arguments, takes
from pipelines.output.directory import prepare
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
    from pipelines.count.steps import Counting, CountJob

_FEW_RUNS = 8


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
    def __init__(self, job: CountJob, failures: Failures, **details: Any) -> None:
        super().__init__()
        self._job = job
        self._failures = failures
        self._details = details

    def process(self, element: tuple[None, Iterable[bytes]]) -> Iterator[dict[str, Any]]:
        if self._failures.stopped():
            return
        with self._failures.reported():
            yield write_manifest(map(unpack, element[1]), self._job, **self._details)


def add_counting(
    pipeline: beam.Pipeline, counting: Counting, failures: Failures
) -> beam.PCollection[dict[str, Any]]:
    """Add a prepared job to a pipeline; the one element of the result is the manifest."""
    counted = (
        pipeline
        | "Splits" >> beam.Create(map(pack, counting.splits), reshuffle=False)
        | "Deal splits" >> beam.Reshuffle()
        | "Count splits"
        >> beam.ParDo(_CountSplits(counting.job, counting.reading, failures)).with_outputs(
            "totals", main="runs"
        )
    )
    return add_merging(
        counted,
        counting.job,
        failures,
        reading=counting.reading,
        files=counted_inputs(counting.files),
        splits=len(counting.splits),
    )


def add_merging(
    counted: Any, job: CountJob, failures: Failures, **details: Any
) -> beam.PCollection[dict[str, Any]]:
    """Merge the runs by shard, write the shards and the manifest."""
    # Every shard has a run, an empty one at least: every shard has a file.
    empty = [(shard, run_to_ipc(run)) for shard, run in enumerate(job.counter().drain(job.shards))]
    parts = (
        (
            counted.runs,
            counted.runs.pipeline | "Empty shards" >> beam.Create(empty, reshuffle=False),
        )
        | "All runs" >> beam.Flatten()
        | "Merge runs" >> beam.CombinePerKey(MergeRuns(failures))
        | "Write shards" >> beam.ParDo(_WriteShard(job, failures))
    )
    return (
        (parts, counted.totals)
        | "Parts and totals" >> beam.Flatten()
        | "Gather results" >> beam.Map(lambda result: (None, result))
        | "Group results" >> beam.GroupByKey()
        | "Write manifest" >> beam.ParDo(_WriteManifest(job, failures, **details))
    )


@takes(InputSettings)
class CountCorpus(beam.PTransform):  # type: ignore[misc]
    """Counts the pre-tokens of files into a directory of Parquet shards; yields its manifest.

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
        **reading: options, as below.

    Raises:
        JobError: what is given is wrong, at construction; what is found is, when it is applied.
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
        **reading: Any,
    ) -> None:
        super().__init__()
        self._inputs = InputSettings.of(inputs, **split_arguments(reading, InputSettings)[0])
        self._pretokens = PretokenSettings(
            pretokenizer=pretokenizer,
            pattern=pattern if pattern is None or isinstance(pattern, str) else tuple(pattern),
            normalizer=several("normalizer", normalizer),
            never_split=several("never_split", never_split),
            special_tokens=several("special_tokens", special_tokens),
        )
        self._output = OutputSettings(directory=output, overwrite=overwrite)
        self._settings = CountSettings(
            track_order=track_order, prune_below=prune_below, shards=shards
        )
        with job_errors():
            count_job(self._pretokens, self._output, self._settings)

    def expand(self, begin: beam.pvalue.PBegin) -> beam.PCollection[dict[str, Any]]:
        """Plan the job, prepare the directory, and add the steps."""
        if not isinstance(begin, beam.pvalue.PBegin):
            raise ConfigError(
                "CountCorpus reads its inputs itself: apply it to the pipeline, "
                "p | CountCorpus(...); CountPretokens counts a PCollection"
            )
        counting = plan_counting(
            inputs=self._inputs,
            pretokens=self._pretokens,
            output=self._output,
            settings=self._settings,
        )
        prepare(self._output, counting.plan, reads=[file.path for file in counting.files])
        return add_counting(begin.pipeline, counting, Failures())
