"""Jobs that watch, as the command line and other programs call them."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bpe.counts.manifest import add_formats
from pipelines import storage
from pipelines.corpus.inputs import input_file
from pipelines.corpus.reading import Reading
from pipelines.count.directory import read_counts_manifest
from pipelines.count.steps import count_job
from pipelines.encode.manifest import read_encoded
from pipelines.encode.steps import check_tokens, encode_job
from pipelines.encode.tokenizer_files import load_tokenizer, tokenizer_json
from pipelines.errors import ConfigError, OutputError
from pipelines.failures import job_errors
from pipelines.output.directory import (
    occupied,
    refuse_earlier_layout,
    refuse_inputs_inside,
    refuse_links,
    remove_ours,
    remove_temporaries,
)
from pipelines.output.lock import locked
from pipelines.output.names import MANIFEST, PLAN, TOKENIZER, Plan, json_bytes, read_json_object
from pipelines.output.state import complete
from pipelines.progress import NoProgress
from pipelines.run import options
from pipelines.settings import CountSettings
from pipelines.storage import join
from pipelines.submission.submit import check_submission
from pipelines.summaries import WatchSummary
from pipelines.watch import counting, log
from pipelines.watch.arrivals import Arrivals, Place
from pipelines.watch.counting import CountTask
from pipelines.watch.drift import Series, trained_bytes_per_token
from pipelines.watch.encoding import EncodeTask, begin_encoded, settled_columns
from pipelines.watch.encoding import clean as clean_encoded
from pipelines.watch.keeper import CountKeeper, EncodeKeeper
from pipelines.watch.remove import FOLDERS, WATCH_KEY, is_watched
from pipelines.watch.run import run_until_stopped
from pipelines.watch.settings import DriftSettings, WatchSettings
from pipelines.watch.transform import WorkFactory, add_watching
from pipelines.watch.work import RUN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipelines.corpus.inputs import InputFile
    from pipelines.output.names import Kind
    from pipelines.progress import Progress
    from pipelines.settings import (
        EncodeSettings,
        Execution,
        InputSettings,
        OutputSettings,
        PretokenSettings,
    )
    from pipelines.watch.keeper import Keeper
    from pipelines.watch.work import Task


def watch_encode(
    *,
    inputs: InputSettings,
    tokenizer: str,
    output: OutputSettings,
    execution: Execution,
    encoding: EncodeSettings,
    watch: WatchSettings = WatchSettings(),  # noqa: B008  # immutable
    drift: DriftSettings = DriftSettings(),  # noqa: B008
    progress: Progress | None = None,
) -> WatchSummary:
    """Encode files as they arrive, until the job is told to stop.

    Args:
        inputs: patterns of files, and how they are read.
        tokenizer: a tokenizer file, as `bpe.Tokenizer.load` takes it.
        output: the directory; one that an earlier run of the same watch left is gone on with.
        execution: where the work is done.
        encoding: what the rows hold.
        watch: when a file is complete, and when to stop.
        drift: how the fit of the tokenizer is measured, and when to warn.
        progress: told what came.

    Raises:
        JobError: something is wrong; the class says what.
    """
    began = time.monotonic()
    with job_errors():
        options(execution)
        loaded = load_tokenizer(tokenizer)
        check_tokens(loaded, encoding)
        text = tokenizer_json(loaded, tokenizer)
        place = _Watched.at(storage.located(output.directory), inputs, execution, watch, progress)
        for what in loaded.not_applied:
            place.progress.log(f"encode: {tokenizer}: not applied: {what}")
        if drift.baseline is not None:
            _check_baseline(drift.baseline, loaded)
        place.check([] if drift.baseline is None else [drift.baseline])
        with locked(place.directory):
            then = None if output.overwrite else _reading_then(place.directory)
            job = encode_job(
                loaded,
                text,
                inputs=inputs,
                output=output,
                encoding=encoding,
                keep=settled_columns(
                    place.complete() if encoding.keep and then is None else [], encoding, then
                ),
                parts=0,
            )
            if place.prepare("encoded", job.settings, output, reads=[tokenizer]):
                clean_encoded(place.directory)
                # It is the same as before, and may have been lost.
                storage.write(join(place.directory, TOKENIZER), text.encode("utf-8"))
            else:
                begin_encoded(job, text)
            keeper = EncodeKeeper("encode", **place.for_keeper)
            keeper.series = Series(place.directory, drift, trained_bytes_per_token(tokenizer))
            baseline = None if drift.baseline is None else storage.located(drift.baseline)
            task = EncodeTask(job=job, baseline=baseline, **place.for_task)
            stopped = place.watch(task, keeper)
        manifest = read_encoded(place.directory)
    return WatchSummary(
        output=place.directory,
        kind="encoded",
        documents=manifest.totals.documents,
        bytes=manifest.totals.text_bytes,
        failures=manifest.totals.failures,
        formats=manifest.formats,
        passed_over=place.arrivals.look().summary(),
        tokens=manifest.totals.tokens,
        inputs=len(manifest.inputs),
        new_inputs=keeper.taken,
        failed_inputs=len(manifest.failed or ()),
        stopped=stopped,
        seconds=time.monotonic() - began,
    )


def watch_count(
    *,
    inputs: InputSettings,
    pretokens: PretokenSettings,
    output: OutputSettings,
    execution: Execution,
    settings: CountSettings = CountSettings(),  # noqa: B008  # immutable
    watch: WatchSettings = WatchSettings(),  # noqa: B008
    progress: Progress | None = None,
) -> WatchSummary:
    """Count the pre-tokens of files as they arrive, until the job is told to stop.

    Args:
        inputs: patterns of files, and how they are read.
        pretokens: how text is cut.
        output: the directory; one that an earlier run of the same watch left is gone on with.
        execution: where the work is done.
        settings: what the counts hold; the order is that of the files' names, and nothing can be
            pruned, because what is rare so far may become frequent.
        watch: when a file is complete, and when to stop.
        progress: told what came.

    Raises:
        JobError: something is wrong; the class says what.
    """
    began = time.monotonic()
    if settings.prune_below != 1:
        raise ConfigError(
            "`prune_below` does not go with a watch: a pre-token that is rare so far may become "
            "frequent: give it to bpe train"
        )
    with job_errors():
        options(execution)
        job = count_job(pretokens, output, settings)
        place = _Watched.at(job.directory, inputs, execution, watch, progress)
        reading = Reading.of(inputs, job.directory)
        place.check()
        with locked(place.directory):
            if place.prepare("counts", {**job.settings, **reading.options.to_json()}, output):
                counting.clean(place.directory)
            else:
                counting.write_head(place.directory, job)
            keeper = CountKeeper("count", **place.for_keeper)
            keeper.job = job
            stopped = place.watch(CountTask(job=job, reading=reading, **place.for_task), keeper)
        entries = log.read_log(place.directory).values()
    sums = [entry["totals"] for entry in entries]
    outdated = sum(map(log.is_outdated, entries))
    return WatchSummary(
        output=place.directory,
        kind="counts",
        documents=sum(one["documents"] for one in sums),
        bytes=sum(one["bytes"] for one in sums),
        failures=sum(entry["bad"] for entry in entries),
        formats=add_formats(*(one["formats"] for one in sums)),
        passed_over=place.arrivals.look().summary(),
        tokens=sum(one["pretokens"] for one in sums),
        inputs=sum(len(entry["inputs"]) for entry in entries if entry["failed"] is None),
        new_inputs=keeper.taken,
        failed_inputs=sum(entry["failed"] is not None for entry in entries) - outdated,
        outdated_inputs=outdated,
        stopped=stopped,
        seconds=time.monotonic() - began,
    )


@dataclass(frozen=True, kw_only=True)
class _Watched:
    """What a watch is, whatever is made of the files.

    Attributes:
        directory: of the output.
        inputs: patterns of files, and how they are read.
        execution: where the work is done.
        settings: when a file is complete, and when to stop.
        progress: told what came.
        arrivals: the files.
        run: tells this run from all others.
    """

    directory: str
    inputs: InputSettings
    execution: Execution
    settings: WatchSettings
    progress: Progress
    arrivals: Arrivals
    run: str

    @classmethod
    def at(
        cls,
        directory: str,
        inputs: InputSettings,
        execution: Execution,
        settings: WatchSettings,
        progress: Progress | None,
    ) -> _Watched:
        """A run of a watch that is about to begin."""
        places = [Place.of(pattern) for pattern in inputs.patterns]
        return cls(
            directory=directory,
            inputs=inputs,
            execution=execution,
            settings=settings,
            progress=progress or NoProgress(),
            arrivals=Arrivals(places, output=directory, settings=settings, format_=inputs.format),
            run=uuid.uuid4().hex,
        )

    def check(self, reads: Sequence[str] = ()) -> None:
        """Refuse what cannot work where it is sent, before anything is written."""
        check_submission(
            options(self.execution),
            self.execution,
            reads=[self.arrivals.root, *reads],
            writes=self.directory,
            say=self.progress.log,
        )

    def complete(self) -> list[InputFile]:
        """The files that are there and complete."""
        arrivals = self.arrivals
        return [
            input_file(one.path, arrivals.name(one.path), one.size_in_bytes, self.inputs.format)
            for one in arrivals.find()
            if arrivals.is_complete(one)
        ]

    @property
    def for_task(self) -> dict[str, Any]:
        """What every `Task` has."""
        inputs = self.inputs
        return {
            "directory": self.directory,
            "format": inputs.format,
            "max_failures": inputs.max_failures,
            "split_size": inputs.split_size,
        }

    @property
    def for_keeper(self) -> dict[str, Any]:
        """What every `Keeper` has."""
        return {
            "directory": self.directory,
            "arrivals": self.arrivals,
            "settings": self.settings,
            "max_failures": self.inputs.max_failures,
            "progress": self.progress,
        }

    def prepare(
        self, kind: Kind, decides: dict[str, Any], output: OutputSettings, reads: Sequence[str] = ()
    ) -> bool:
        """Make the directory ready; whether an earlier run of the same watch is gone on with.

        Args:
            kind: of the output.
            decides: settings that decide the bytes that are written.
            output: says whether to begin afresh.
            reads: files that are read, beside the inputs.

        Raises:
            OutputError: the directory holds something else.
        """
        directory, root = self.directory, self.arrivals.root
        plan = _plan(kind, decides, self.inputs, self.arrivals)
        refuse_inputs_inside(directory, [f"{root.rstrip('/')}/", *reads])
        refuse_links(directory, FOLDERS)
        storage.make_directory(directory)
        refuse_earlier_layout(directory)
        remove_temporaries(directory)
        found = storage.entries(directory)
        if found and output.overwrite:
            remove_ours(directory)
            found = storage.entries(directory)
        goes_on = bool(found) and is_watched(directory)
        goes_on = goes_on and storage.exists(join(directory, MANIFEST))
        if goes_on:
            then = read_json_object(join(directory, PLAN)) or {}
            if different := plan.differences(then):
                raise OutputError(
                    f"{directory} holds another watch ({'; '.join(different[:3])}): repeat its "
                    "command, or use `overwrite` or another directory"
                )
        elif found and not {entry.name for entry in found} <= {PLAN, TOKENIZER}:
            raise occupied(directory, found)
        storage.write(join(directory, PLAN), json_bytes({**plan.to_json(), RUN: self.run}))
        return goes_on

    def watch(self, task: Task, keeper: Keeper) -> str:
        """Run the job until it is told to stop; returns why it ended."""
        keeper.begin()
        for place in self.arrivals.places:
            if not self.arrivals.look_at(place).files:
                self.progress.log(f"no file matches {place.pattern!r} yet: waiting, Ctrl-C ends it")
        factory = WorkFactory(
            task=task, places=self.arrivals.places, settings=self.settings, run=self.run
        )
        why = run_until_stopped(
            lambda pipeline, failures: add_watching(
                pipeline,
                factory,
                failures,
                stop_after=self.settings.stop_after,
                threads=self.execution.worker_count,
            ),
            execution=self.execution,
            keeper=keeper,
        )
        keeper.look(last=True)
        return why


def _plan(kind: Kind, settings: dict[str, Any], inputs: InputSettings, arrivals: Arrivals) -> Plan:
    root = arrivals.root
    patterns = [f"{place.folder[len(root) + 1 :]}/{place.glob}" for place in arrivals.places]
    return Plan(
        kind=kind,
        parts=(),
        settings={
            **settings,
            "format": inputs.format,
            "split_size": inputs.split_size,
            WATCH_KEY: [pattern.removeprefix("/") for pattern in patterns],
        },
        inputs={},
    )


def _reading_then(directory: str) -> Any:
    """The columns that an earlier run of a watch settled; None where there was none."""
    plan = (read_json_object(join(directory, PLAN)) or {}) if is_watched(directory) else {}
    return plan.get("settings", {}).get("keep")


def _check_baseline(directory: str, tokenizer: Any) -> None:
    complete(directory, "counts")
    manifest = read_counts_manifest(directory)
    if manifest.pretokenizer != tokenizer.pretokenizer:
        raise ConfigError(
            f"`baseline` {directory}: was cut with {manifest.pretokenizer}, the tokenizer cuts "
            f"text with {tokenizer.pretokenizer}: give the counts that it was trained on"
        )
