"""Jobs that watch, as the command line and other programs call them."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pipelines import storage
from pipelines.counting import SHARDS, count_job
from pipelines.directory import locked, occupied, refuse_inputs_inside, refuse_links, remove_ours
from pipelines.directory import remove_temporaries as remove_temporaries_in
from pipelines.documents import ReadOptions
from pipelines.encoding import check_tokens, encode_job, load_tokenizer, tokenizer_json
from pipelines.errors import ConfigError, OutputError
from pipelines.inputs import input_file
from pipelines.manifest import EncodedManifest, read_encoded
from pipelines.output import MANIFEST, PLAN, TOKENIZER, Plan, fingerprint, json_bytes
from pipelines.output import read_json_object as read_json
from pipelines.progress import NoProgress
from pipelines.reading import Reading
from pipelines.runners import Failures, job_errors, options
from pipelines.storage import join
from pipelines.submission.submit import check_submission
from pipelines.summaries import WatchSummary
from pipelines.train import read_counts_manifest
from pipelines.watch import counting, log
from pipelines.watch.arrivals import Arrivals, Place
from pipelines.watch.counting import CountWatch, CountWork
from pipelines.watch.drift import Baseline, Series, trained_bytes_per_token
from pipelines.watch.encoding import EncodeWatch, EncodeWork, settled_columns
from pipelines.watch.encoding import clean as clean_encoded
from pipelines.watch.keeper import CountKeeper, EncodeKeeper
from pipelines.watch.remove import FOLDERS, WATCH_KEY, is_watched
from pipelines.watch.run import run_until_stopped
from pipelines.watch.settings import DriftSettings, WatchSettings
from pipelines.watch.transform import add_watching

if TYPE_CHECKING:
    from pipelines.progress import Progress
    from pipelines.settings import (
        EncodeSettings,
        Execution,
        InputSettings,
        OutputSettings,
        PretokenSettings,
    )
    from pipelines.watch.keeper import Keeper
    from pipelines.watch.transform import WorkFactory
    from pipelines.watch.work import Work


@dataclass(frozen=True)
class _EncodeFactory:
    watch: EncodeWatch
    places: tuple[Place, ...]
    settings: WatchSettings

    @property
    def tag(self) -> str:
        return fingerprint([self.watch.job.settings, [asdict(place) for place in self.places]])

    def make(self, failures: Failures) -> Work:
        directory, baseline = self.watch.job.directory, self.watch.baseline
        return EncodeWork(
            self.watch,
            arrivals=Arrivals(self.places, output=directory, settings=self.settings),
            failures=failures,
            alone=failures.path is not None,
            baseline=None if baseline is None else Baseline(baseline),
        )


@dataclass(frozen=True)
class _CountFactory:
    watch: CountWatch
    places: tuple[Place, ...]
    settings: WatchSettings

    @property
    def tag(self) -> str:
        return fingerprint([self.watch.job.directory, [asdict(place) for place in self.places]])

    def make(self, failures: Failures) -> Work:
        directory = self.watch.job.directory
        return CountWork(
            self.watch,
            arrivals=Arrivals(self.places, output=directory, settings=self.settings),
            failures=failures,
            alone=failures.path is not None,
        )


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
        options(execution)
        loaded = load_tokenizer(tokenizer)
        check_tokens(loaded, encoding)
        text = tokenizer_json(loaded, tokenizer)
        directory = storage.located(output.directory)
        places = tuple(Place.of(pattern) for pattern in inputs.patterns)
        arrivals = Arrivals(places, output=directory, settings=watch)
        if drift.baseline is not None:
            _check_baseline(drift.baseline, loaded)
        check_submission(
            options(execution),
            execution,
            reads=[arrivals.root] if drift.baseline is None else [arrivals.root, drift.baseline],
            writes=directory,
            say=progress.log,
        )
        with locked(directory):
            then = None if output.overwrite else _reading_then(directory)
            there = [
                input_file(one.path, arrivals.name(one.path), one.size_in_bytes, inputs.format)
                for one in (arrivals.find() if encoding.keep and then is None else [])
                if arrivals.is_complete(one)
            ]
            job = encode_job(
                loaded,
                text,
                inputs=inputs,
                output=output,
                encoding=encoding,
                keep=settled_columns(there, encoding, then),
                parts=0,
            )
            plan = _plan("encoded", job.settings, inputs, arrivals)
            if _prepare(output, plan, reads=[arrivals.root, tokenizer]):
                clean_encoded(directory)
            else:
                storage.write(join(directory, TOKENIZER), text.encode("utf-8"))
                empty = EncodedManifest.of(
                    (),
                    tokenizer_sha256=job.tokenizer_sha256,
                    vocab_size=job.vocab_size,
                    id_type=job.id_type,
                    reading=job.reading.options,
                    rows=job.rows,
                )
                value = {**empty.to_json(), log.WATCH: []}
                storage.write(join(directory, MANIFEST), json_bytes(value))
            keeper = EncodeKeeper(
                "encode",
                directory=directory,
                arrivals=arrivals,
                settings=watch,
                max_failures=inputs.max_failures,
                progress=progress,
            )
            keeper.series = Series(directory, drift, trained_bytes_per_token(tokenizer))
            factory = _EncodeFactory(
                EncodeWatch(
                    job=job,
                    format=inputs.format,
                    split_size=inputs.split_size,
                    baseline=None if drift.baseline is None else storage.located(drift.baseline),
                ),
                places,
                watch,
            )
            why = _watch(factory, keeper, arrivals, execution=execution, watch=watch)
        manifest = read_encoded(directory)
    return WatchSummary(
        output=directory,
        kind="encoded",
        documents=manifest.totals.documents,
        bytes=manifest.totals.text_bytes,
        failures=manifest.totals.failures,
        tokens=manifest.totals.tokens,
        inputs=len(manifest.inputs),
        new_inputs=keeper.taken,
        failed_inputs=len(manifest.failed or ()),
        stopped=why,
        seconds=time.monotonic() - began,
    )


def watch_count(
    *,
    inputs: InputSettings,
    pretokens: PretokenSettings,
    output: OutputSettings,
    execution: Execution,
    watch: WatchSettings = WatchSettings(),  # noqa: B008  # immutable
    progress: Progress | None = None,
    track_order: bool = False,
    prune_below: int = 1,
    shards: int = SHARDS,
) -> WatchSummary:
    """Count the pre-tokens of files as they arrive, until the job is told to stop.

    Args:
        inputs: patterns of files, and how they are read.
        pretokens: how text is cut.
        output: the directory; one that an earlier run of the same watch left is gone on with.
        execution: where the work is done.
        watch: when a file is complete, and when to stop.
        progress: told what came.
        track_order: keep where each pre-token was first seen, in the order of the files' names.
        prune_below: must be 1: what is rare so far may become frequent.
        shards: files of a set of counts that was brought together.

    Raises:
        JobError: something is wrong; the class says what.
    """
    began = time.monotonic()
    progress = progress or NoProgress()
    if prune_below != 1:
        raise ConfigError(
            "--prune-below does not go with --watch: a pre-token that is rare so far may become "
            "frequent: give it to bpe train"
        )
    with job_errors():
        options(execution)
        job = count_job(
            pretokens, output, track_order=track_order, prune_below=prune_below, shards=shards
        )
        directory = job.directory
        places = tuple(Place.of(pattern) for pattern in inputs.patterns)
        arrivals = Arrivals(places, output=directory, settings=watch)
        reading = Reading(
            directory=directory,
            options=ReadOptions(
                text_field=inputs.text_field,
                id_field=inputs.id_field,
                max_record_bytes=inputs.max_record_size,
            ),
            max_failures=inputs.max_failures,
        )
        settings = {
            **job.pretokenizer.settings,
            "special_tokens": list(job.special_tokens),
            "track_order": track_order,
            "shards": shards,
            **reading.options.to_json(),
        }
        check_submission(
            options(execution),
            execution,
            reads=[arrivals.root],
            writes=directory,
            say=progress.log,
        )
        with locked(directory):
            plan = _plan("counts", settings, inputs, arrivals)
            if _prepare(output, plan, reads=[arrivals.root]):
                counting.clean(directory)
            else:
                counting.write_head(directory, job)
            keeper = CountKeeper(
                "count",
                directory=directory,
                arrivals=arrivals,
                settings=watch,
                max_failures=inputs.max_failures,
                progress=progress,
            )
            keeper.job = job
            factory = _CountFactory(
                CountWatch(
                    job=job, reading=reading, format=inputs.format, split_size=inputs.split_size
                ),
                places,
                watch,
            )
            why = _watch(factory, keeper, arrivals, execution=execution, watch=watch)
        entries = log.read_log(directory).values()
    sums = [entry["totals"] for entry in entries]
    return WatchSummary(
        output=directory,
        kind="counts",
        documents=sum(one["documents"] for one in sums),
        bytes=sum(one["bytes"] for one in sums),
        failures=sum(entry["bad"] for entry in entries),
        tokens=sum(one["pretokens"] for one in sums),
        inputs=sum(len(entry["inputs"]) for entry in entries if entry["failed"] is None),
        new_inputs=keeper.taken,
        failed_inputs=sum(entry["failed"] is not None for entry in entries),
        stopped=why,
        seconds=time.monotonic() - began,
    )


def _watch(
    factory: WorkFactory,
    keeper: Keeper,
    arrivals: Arrivals,
    *,
    execution: Execution,
    watch: WatchSettings,
) -> str:
    keeper.begin()
    why = run_until_stopped(
        lambda pipeline, failures: add_watching(
            pipeline,
            factory,
            failures,
            patterns=arrivals.patterns,
            interval=watch.interval,
            stop_after=watch.stop_after,
            threads=execution.worker_count,
        ),
        execution=execution,
        keeper=keeper,
    )
    keeper.look(last=True)
    return why


def _plan(kind: Any, settings: dict[str, Any], inputs: InputSettings, arrivals: Arrivals) -> Plan:
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


def _prepare(output: OutputSettings, plan: Plan, *, reads: list[str]) -> bool:
    """Make the directory ready; whether an earlier run of the same watch is gone on with.

    Raises:
        OutputError: the directory holds something else.
    """
    directory = storage.located(output.directory)
    refuse_inputs_inside(directory, [f"{path.rstrip('/')}/" for path in reads[:1]] + reads[1:])
    refuse_links(directory, FOLDERS)
    storage.make_directory(directory)
    remove_temporaries_in(directory)
    found = storage.entries(directory)
    if found and output.overwrite:
        remove_ours(directory)
        found = storage.entries(directory)
    goes_on = bool(found) and is_watched(directory) and storage.exists(join(directory, MANIFEST))
    if goes_on:
        then = read_json(join(directory, PLAN)) or {}
        if different := plan.differences(then):
            raise OutputError(
                f"{directory}: cannot go on: it was begun as another watch: "
                f"{'; '.join(different[:3])}: use --overwrite, or another directory"
            )
    elif found and not {entry.name for entry in found} <= {PLAN, TOKENIZER}:
        raise occupied(directory, found)
    storage.write(join(directory, PLAN), json_bytes(plan.to_json()))
    return goes_on


def _reading_then(directory: str) -> Any:
    """The columns that an earlier run of a watch settled; None where there was none."""
    plan = (read_json(join(directory, PLAN)) or {}) if is_watched(directory) else {}
    return plan.get("settings", {}).get("keep")


def _check_baseline(directory: str, tokenizer: Any) -> None:
    manifest = read_counts_manifest(directory)
    if manifest.pretokenizer != tokenizer.pretokenizer:
        raise ConfigError(
            f"--baseline {directory}: was cut with {manifest.pretokenizer}, the tokenizer cuts "
            f"text with {tokenizer.pretokenizer}: give the counts that it was trained on"
        )
