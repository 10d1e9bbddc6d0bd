"""Count a corpus: the plan of the job, its pipeline, and the function of `bpe count`."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import apache_beam as beam

from bpe.errors import CountsError
from bpe.run_counting import runs_of
from pipelines import storage
from pipelines.corpus.documents import ReadOptions
from pipelines.corpus.files import check_columns
from pipelines.corpus.splits import changed_inputs, inputs_of
from pipelines.count.appended import append_counts, read_appended, tidy
from pipelines.count.beam import merge_shards
from pipelines.count.check_parts import check_counts
from pipelines.count.directory import read_counts
from pipelines.count.results import Counted, write_counted
from pipelines.count.steps import FILE_BITS, Counters, CountJob, count_arrived, count_split
from pipelines.elements import OncePerProcess, Step, StorageDoFn, in_window, pack, unpack
from pipelines.errors import ConfigError, JobError
from pipelines.extension import pretokens_of
from pipelines.failures import FailureChannel, job_errors
from pipelines.option import changed, split_arguments, takes
from pipelines.output.directory import decide, refuse_inputs_inside
from pipelines.output.names import MANIFEST, TOKENIZER
from pipelines.planned import CorpusRequest, Planned, deflated, planned_splits
from pipelines.progress import SlotWriter
from pipelines.settings import (
    AppendSettings,
    CountSettings,
    InputSettings,
    OutputSettings,
    PretokenSettings,
    RunSettings,
)
from pipelines.stage.beam import RunJob, fold_all, keyed, reshuffled
from pipelines.storage import join
from pipelines.summaries import CountSummary
from pipelines.timings import save_timing
from pipelines.tokenizer_files import load_tokenizer, tokenizer_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from apache_beam.utils.windowed_value import WindowedValue

    from bpe import Tokenizer
    from bpe.counts import Runs
    from pipelines.corpus.splits import Split
    from pipelines.planned import Done
    from pipelines.progress import Progress

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class CountRequest(CorpusRequest):
    """The request of a count, which is part of the Beam graph.

    Attributes:
        job: the settings of counting; the tokenizer of runs is sent with the request.
    """

    job: CountJob
    name = "count"
    takes_again_by_job = True

    @classmethod
    def of(
        cls,
        *,
        inputs: InputSettings,
        output: OutputSettings,
        pretokens: PretokenSettings = PretokenSettings(),  # noqa: B008  # immutable
        settings: CountSettings = CountSettings(),  # noqa: B008
        tokenizer: str | Tokenizer | None = None,
        runs: RunSettings = RunSettings(),  # noqa: B008
        sources: tuple[str, ...] = (),
        appending: AppendSettings = AppendSettings(),  # noqa: B008
    ) -> CountRequest:
        """Return a request that means the same in every process and working directory.

        Args:
            inputs: the settings of the inputs.
            output: the settings of the output directory.
            pretokens: the settings of the pre-tokenizer; the defaults if runs are counted.
            settings: the settings of counts.
            tokenizer: count the runs of its tokens, not pre-tokens: a file, or a tokenizer. It
                says how text is cut.
            runs: the settings by which runs are found.
            sources: the sources of ``inputs`` that are counted apart; empty to count all together.
            appending: the settings of appending and watching.

        Raises:
            ConfigError: the filesystem of the output cannot be used here, or a setting does not
                work with runs, or with counts that are appended to.
            InputError: the tokenizer cannot be read, or no tokenizer.json holds it.
            bpe.BpeError: the pre-tokenizer, the special tokens or the number of shards is wrong, or
                the tokenizer has no runs.
        """
        sent: dict[str, bytes] = {}
        if appending.appends:
            _check_appending(settings)
        if tokenizer is None and runs != RunSettings():
            raise ConfigError(
                "`merge_pattern` and `max_run` say how runs are found: give `tokenizer` too"
            )
        found: Runs | None = None
        if tokenizer is not None:
            path = tokenizer if isinstance(tokenizer, str) else "the tokenizer"
            loaded = load_tokenizer(path) if isinstance(tokenizer, str) else tokenizer
            if pretokens != PretokenSettings():
                raise ConfigError(
                    f"`runs` are of the tokens of {path}, which says how text is cut: leave out "
                    "the options of the pre-tokenizer and special tokens"
                )
            pretokens = replace(pretokens_of(loaded), special_tokens=tuple(loaded.special_tokens))
            found = runs_of(loaded, **vars(runs))
            sent = deflated({TOKENIZER: tokenizer_json(loaded, path).encode()})
        output = replace(output, directory=storage.located(output.directory))
        job = CountJob(
            directory=output.directory,
            pretokenizer=pretokens.cut,
            special_tokens=pretokens.special_tokens,
            settings=ReadOptions.of(inputs, group_by=settings.group_by),
            max_failures=inputs.max_failures,
            counting=settings,
            runs=found,
            sources=sources,
        )
        if isinstance(tokenizer, str):
            refuse_inputs_inside(job.directory, [tokenizer])
        return cls(inputs=inputs, job=job, output=output, sent=sent, appending=appending)

    def started(self) -> CountRequest:
        """Return the request of one run, which means the same in every process."""
        started = super().started()
        return replace(started, job=replace(started.job, run=started.run))

    @property
    def shown(self) -> dict[str, str]:
        """Return the values that the web UI of a runner shows for the job."""
        return {**super().shown, "pretokenizer": str(self.job.pretokenizer)}

    def plan(self) -> Planned:
        """Find the inputs and plan the job; nothing is written.

        Raises:
            InputError: there are no inputs.
            ConfigError: a setting is wrong.
        """
        found = self.find()
        if (field := self.job.counting.group_by) is not None:
            check_columns(found.files, f"`group_by` {field}")
        splits = self.split(found)
        if self.job.counting.track_order and len(found.files) >> FILE_BITS:
            raise ConfigError(
                f"{len(found.files)} files are too many to keep the order of documents (ties "
                "first-seen): put them together, or use other ties"
            )
        plan = self.job.plan_of(splits=len(splits), files=found.files)
        return self.planned(found, splits, plan)

    def appended_to(self) -> tuple[int | None, set[str]]:
        """Return the generation, and the names of files whose counts were merged with others."""
        if not storage.exists(join(self.directory, MANIFEST)):
            return None, set()
        before, sets = read_appended(self.directory)
        fixed = (manifest for one, _, manifest in sets if one.jobs != 1)
        return before.generation, {file.name for one in fixed for file in one.inputs}

    def keep(self, planned: Planned) -> bool:
        """Return whether to keep the complete counts of an earlier run of this job.

        Raises:
            OutputError: the directory is refused (`decide`).
        """
        if self.appending.appends:
            return super().keep(planned)
        action = decide(self.output, planned.plan, reads=planned.reads)
        if action != "resume" or changed_inputs(self.directory, planned.files):
            return False
        try:
            check_counts(self.directory)
        except (JobError, CountsError):
            return False
        return True

    def steps(self, begun: Any, failures: FailureChannel) -> Any:
        """Count the splits, merge and write the shards, and write the manifest."""
        listing = Step(failures, _splits, self.directory, self.run)
        splits = begun | "Splits" >> beam.ParDo(listing).with_output_types(bytes)
        counted = reshuffled("Reshuffle splits", splits) | "Count splits" >> beam.ParDo(
            CountSplits(self, failures)
        ).with_outputs("totals", main="messages")
        parts = merge_shards(counted.messages, self.job, failures)
        work = begun | "Work" >> beam.Map(lambda work: pack(work or None))
        made = (parts, counted.totals, work) | "Parts and totals" >> beam.Flatten()
        return fold_all(made | "Gather" >> beam.Map(keyed), failures, self.fold)

    def fold(self, results: Iterable[Any]) -> None:
        """Check that no result is missing, and write the manifest.

        Raises:
            OutputError: another job has taken the directory over.
            RecordError: over all splits, more bad records than the job may set aside.
            JobError: the runner lost a result.
        """
        splits = planned_splits(self.directory, self.run)
        files = inputs_of(splits)
        counted = Counted.of(results, self.job, splits=len(splits))
        job = self.job.planned()  # of another job by now: this one ends
        if self.appending.appends:
            append_counts(counted, job, files, prune=self.appending.prune)
            return
        counted.check(job)
        write_counted(counted, job, files)

    def finish(self) -> dict[str, Any]:
        """Return the manifest; one manifest for all sets."""
        return read_counts(self.directory).manifest.to_json()

    def tell(self, planned: Planned, progress: Progress) -> None:  # noqa: ARG002 - warnings go to the log
        """Warn of files that changed after their counts were merged."""
        for name in planned.outdated:
            _LOGGER.warning(
                "count: %s changed after its counts were merged, which cannot be undone: the old "
                "counts stay; to include the change, count into a new directory",
                name,
            )

    def tidy(self) -> None:
        """Remove the files of superseded sets."""
        tidy(self.directory, prune=self.appending.prune)

    def summarize(self, planned: Planned, done: Done | None) -> CountSummary:
        """Return the summary of the count, and write the timing."""
        counts = read_counts(self.directory)
        manifest = counts.manifest
        summary = CountSummary(
            output=self.directory,
            **vars(manifest.totals),
            unit=self.job.unit,
            distinct_pretokens=sum(part.rows for part in manifest.parts),
            passed_over=planned.passed_over,
            parts=len(manifest.parts),
            output_bytes=sum(part.bytes for part in manifest.parts),
            seconds=0.0 if done is None else done.seconds,
            resumed=done is not None and done.complete,
            inputs=len(manifest.inputs),
            new_inputs=len(planned.files),
            outdated=planned.outdated,
            set_aside=tuple(map(str, counts.set_aside)),
        )
        if done is not None and not done.complete:
            units = {"items": summary.pretokens, "unit": f"{summary.unit}s"}
            save_timing(summary, done.execution, stage="count", **units)
        return summary


def _splits(work: bool, directory: str, run: str) -> Iterator[bytes]:
    return map(pack, planned_splits(directory, run) if work else ())


class CountSplits(StorageDoFn):
    """A DoFn from splits to ((group, shard), Arrow IPC bytes), and packed ``totals``.

    The counters of a bundle are emptied when they have grown past a limit and when the bundle ends.
    A job that appends has counters of its own for each split. Text never leaves this step.
    """

    def __init__(self, request: CountRequest, failures: FailureChannel) -> None:
        super().__init__()
        self._request, self._failures = request, failures
        self._tokenizers = OncePerProcess()

    def start_bundle(self) -> None:
        """Begin a bundle without counters."""
        self._counts: Counters | None = None

    def process(self, element: bytes) -> Iterator[Any]:
        """Count a split."""
        if self._failures.stopped():
            return
        split: Split = unpack(element)
        request, failures = self._request, self._failures
        job = request.job
        slot = SlotWriter(request.slots, split.part)
        with failures.reported():
            tokenizer = self._tokenizers.get(repr(job.runs), job.tokenizer)
            results: Iterable[Any]
            if request.appending.appends:
                results = count_arrived(split, job, failures, tokenizer, slot=slot)
            else:
                self._counts = self._counts or Counters(job, tokenizer)
                results = count_split(split, job, failures, self._counts, slot=slot)
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


def _check_appending(settings: CountSettings) -> None:
    """Check that all settings go with counts that are appended to.

    Raises:
        ConfigError: a setting does not go with appending.
    """
    reasons = {
        "prune_below": "a rare pre-token may become frequent: give it to bpe train",
        "group_by": "append the files of each group to a directory of its own",
        "track_order": "a file may come between two that were counted: count them together",
    }
    for name in changed(settings).keys() & reasons.keys():
        raise ConfigError(f"`{name}` does not go with `append`: {reasons[name]}")


@takes(InputSettings, PretokenSettings, CountSettings, RunSettings)
class CountCorpus(RunJob):
    """Counts the pre-tokens of files into a directory of Parquet shards; yields its manifest.

    Nothing is read, listed or written before the pipeline runs. A runner that starts the job anew
    goes on with the files and splits of its first try.

    Example::

        p | CountCorpus(inputs=["docs/*.jsonl"], output="counts")

    Args:
        inputs: files, directories or patterns.
        output: a directory that is empty, or not there yet.
        tokenizer: count the runs of its tokens, not pre-tokens, as superwords need them: a file,
            which is read at once, or a `bpe.Tokenizer`. It says how text is cut.
        overwrite: replace what an earlier job left in the directory.
        resume: keep complete counts of the same job; others are counted again.
        **arguments: options, as below.

    Raises:
        ConfigError: an argument is wrong.
        InputError: the tokenizer cannot be read.
    """

    instead = "CountPretokens counts a PCollection"

    def __init__(
        self,
        *,
        inputs: Sequence[str],
        output: str,
        tokenizer: str | Tokenizer | None = None,
        overwrite: bool = False,
        resume: bool = False,
        **arguments: Any,
    ) -> None:
        reading, pretokens, settings, runs = split_arguments(self, arguments)
        with job_errors():
            request = CountRequest.of(
                inputs=InputSettings.of(inputs, **reading),
                pretokens=PretokenSettings(**pretokens),
                output=OutputSettings(directory=output, overwrite=overwrite, resume=resume),
                settings=CountSettings(**settings),
                tokenizer=tokenizer,
                runs=RunSettings(**runs),
            )
        super().__init__(request, FailureChannel())
