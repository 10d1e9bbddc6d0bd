"""Jobs that watch, as the command line and other programs call them."""

from __future__ import annotations

import time
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bpe.counts import require_pretokens
from pipelines import storage
from pipelines.corpus.places import Places
from pipelines.corpus.reading import Reading
from pipelines.count.directory import read_counts_manifest
from pipelines.count.steps import count_job
from pipelines.drift import Series, trained_bytes_per_token
from pipelines.encode.steps import check_tokens, encode_job, in_tokens
from pipelines.encode.tokenizer_files import files_of, load_tokenizer
from pipelines.errors import ConfigError, OutputError
from pipelines.failures import job_errors
from pipelines.output.directory import (
    prepare,
    refuse_inputs_inside,
    refuse_links,
    remove_temporaries,
)
from pipelines.output.entries import FOLDERS, WATCH, is_watched, read_folded, read_log, standing
from pipelines.output.lock import locked
from pipelines.output.names import MANIFEST, PLAN, TOKENIZER, Plan, json_bytes, read_plan
from pipelines.output.state import complete
from pipelines.progress import NoProgress
from pipelines.run import options
from pipelines.settings import CountSettings, DriftSettings, WatchSettings
from pipelines.storage import join
from pipelines.submission.workers import workers_of
from pipelines.summaries import WatchSummary
from pipelines.watch.arrivals import Arrivals
from pipelines.watch.counting import Counting
from pipelines.watch.encoding import Encoding, settled_columns
from pipelines.watch.folding import clean
from pipelines.watch.keeper import Keeper
from pipelines.watch.loop import take_until_stopped
from pipelines.watch.work import Task

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bpe import Tokenizer
    from pipelines.corpus.inputs import InputFile
    from pipelines.count.runs import RunsOf
    from pipelines.progress import Progress
    from pipelines.settings import (
        EncodeSettings,
        Execution,
        InputSettings,
        OutputSettings,
        PretokenSettings,
    )
    from pipelines.watch.work import Handler

_BASELINE = "give the counts that it was trained on"


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
    progress = progress or NoProgress()
    with job_errors():
        _use_here(execution)
        loaded = load_tokenizer(tokenizer)
        encoding = in_tokens(encoding, loaded.special_tokens, loaded.roles)
        check_tokens(loaded, encoding)
        files = files_of(loaded, tokenizer)
        output = replace(output, directory=storage.located(output.directory))
        directory = output.directory
        places = Places.of(inputs.patterns, output=directory, format_=inputs.format)
        for what in loaded.not_applied:
            progress.log(f"encode: {tokenizer}: not applied: {what}")
        if drift.baseline is not None:
            _check_baseline(drift.baseline, loaded)
        with locked(directory):
            then = None if output.overwrite else _columns_then(directory)
            first = [] if then is not None or not encoding.keep else _complete(places, watch)
            handler = Encoding(
                job=encode_job(
                    loaded,
                    files[TOKENIZER].decode(),
                    reading=Reading.of(
                        inputs, directory, keep=settled_columns(first, encoding, then)
                    ),
                    encoding=encoding,
                    parts=0,
                ),
                tokenizer=files,
                baseline=None if drift.baseline is None else storage.located(drift.baseline),
            )
            task = _task(handler, inputs, places, watch)
            _prepare(task, handler.job.settings, output, reads=[tokenizer])
            series = Series(directory, drift, trained_bytes_per_token(tokenizer))
            return _watch(task, execution, Keeper(task, progress, series), began)


def watch_count(
    *,
    inputs: InputSettings,
    pretokens: PretokenSettings,
    output: OutputSettings,
    execution: Execution,
    settings: CountSettings = CountSettings(),  # noqa: B008  # immutable
    runs: RunsOf | None = None,
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
        runs: count these, not pre-tokens.
        watch: when a file is complete, and when to stop.
        progress: told what came.

    Raises:
        JobError: something is wrong; the class says what.
    """
    if settings.prune_below != 1:
        raise ConfigError(
            "`prune_below` does not work with a watch, because a rare pre-token may become "
            "frequent: give it to bpe train"
        )
    if settings.group_by is not None:
        raise ConfigError(
            "`group_by` does not work with a watch, which adds up the counts of files as they are: "
            "watch the files of each group into a directory of its own"
        )
    began = time.monotonic()
    progress = progress or NoProgress()
    with job_errors():
        _use_here(execution)
        if runs is not None:
            pretokens = runs.pretokens(pretokens)
        job = count_job(pretokens, output, settings, runs=None if runs is None else runs.found)
        output = replace(output, directory=job.directory)
        places = Places.of(inputs.patterns, output=job.directory, format_=inputs.format)
        handler = Counting(
            job=job,
            reading=Reading.of(inputs, job.directory),
            text="" if runs is None else runs.json(),
        )
        with locked(job.directory):
            task = _task(handler, inputs, places, watch)
            decides = {**job.settings, **handler.reading.options.to_json()}
            _prepare(task, decides, output, reads=[] if runs is None else [runs.path])
            return _watch(task, execution, Keeper(task, progress), began)


def _use_here(execution: Execution) -> None:
    """Reach stores as the execution says, and refuse another runner than the local one."""
    if workers_of(options(execution)).kind != "local":
        raise ConfigError(
            f"`runner` {execution.runner}: a watch takes files in this process: leave it out, or "
            "stream in a pipeline of your own (docs/beam.md, Streams)"
        )


def _task(handler: Handler, inputs: InputSettings, places: Places, settings: WatchSettings) -> Task:
    """The task of a run of its own."""
    return Task(
        handler=handler,
        places=places,
        settings=settings,
        run=uuid.uuid4().hex,
        max_failures=inputs.max_failures,
        split_size=inputs.split_size,
    )


def _complete(places: Places, settings: WatchSettings) -> list[InputFile]:
    """The files that are there and complete."""
    arrivals = Arrivals(settings)
    paths = {file.path for file in places.find() if arrivals.is_complete(file)}
    return [file for file in places.inputs() if file.path in paths]


def _prepare(
    task: Task, decides: Mapping[str, Any], output: OutputSettings, reads: Sequence[str] = ()
) -> None:
    """Make the directory ready, or go on with what an earlier run of the same watch left.

    Args:
        task: of this run.
        decides: settings that decide the bytes that are written.
        output: the directory.
        reads: files that are read, beside the inputs.

    Raises:
        OutputError: the directory holds something else.
    """
    directory, root = output.directory, task.places.root
    patterns = [f"{one.folder[len(root) + 1 :]}/{one.glob}" for one in task.places.places]
    plan = Plan(
        kind=task.handler.kind,
        parts=(),
        settings={
            **decides,
            "format": task.places.format,
            "split_size": task.split_size,
            WATCH: [pattern.removeprefix("/") for pattern in patterns],
        },
        inputs={},
        run=task.run,
    )
    refuse_links(directory, FOLDERS)
    reads = [f"{root.rstrip('/')}/", *reads]
    manifest = join(directory, MANIFEST)
    goes_on = not output.overwrite and is_watched(directory) and storage.exists(manifest)
    if not goes_on:
        prepare(output, plan, reads=reads)
    else:
        refuse_inputs_inside(directory, reads)
        if different := plan.differences(read_plan(directory)):
            raise OutputError(
                f"{directory} holds another watch ({'; '.join(different[:3])}): repeat its "
                "command, or use `overwrite` or another directory"
            )
        remove_temporaries(directory)
        storage.write(join(directory, PLAN), json_bytes(plan.to_json()))
        clean(task.handler)
    task.handler.begin(goes_on=goes_on)


def _watch(task: Task, execution: Execution, keeper: Keeper, began: float) -> WatchSummary:
    """Run the job until it is told to stop; ``began`` is when, by the monotonic clock."""
    handler, places = task.handler, task.places
    keeper.begin()
    for place in places.places:
        if not places.look(place).files:
            keeper.progress.log(f"no file matches {place.pattern!r} yet: waiting, Ctrl-C ends it")
    stopped = take_until_stopped(task, keeper, threads=execution.worker_count)
    keeper.look(last=True)
    directory = handler.directory
    taken = standing(read_folded(directory).taken, read_log(directory)).taken.values()
    totals = handler.totals(handler.entries())
    return WatchSummary(
        output=directory,
        kind=handler.kind,
        unit=handler.unit,
        documents=totals.documents,
        bytes=totals.bytes,
        failures=totals.failures,
        formats=totals.formats,
        passed_over=places.look().summary(),
        tokens=totals.pretokens,
        inputs=sum(one.failed is None for one in taken),
        new_inputs=keeper.new,
        failed_inputs=sum(one.failed is not None for one in taken),
        outdated_inputs=sum(one.outdated for one in taken),
        stopped=stopped,
        seconds=time.monotonic() - began,
    )


def _columns_then(directory: str) -> object:
    """The columns that an earlier run of a watch settled; None where there was none."""
    return read_plan(directory)["settings"].get("keep") if is_watched(directory) else None


def _check_baseline(directory: str, tokenizer: Tokenizer) -> None:
    complete(directory, "counts")
    manifest = read_counts_manifest(directory)
    require_pretokens(manifest, title=f"`baseline` {directory}", remedy=_BASELINE)
    if manifest.pretokenizer != tokenizer.pretokenizer:
        raise ConfigError(
            f"`baseline` {directory}: was split with {manifest.pretokenizer}, but the tokenizer "
            f"splits with {tokenizer.pretokenizer}: {_BASELINE}"
        )
