"""The jobs, as the command line and other programs call them.

Each function does a whole job and returns when its output is complete; whatever goes wrong, in
whatever worker, comes out as one `JobError` with a message of one line.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from bpe.errors import CountsError
from pipelines import storage
from pipelines.checks import check_cut, check_run, folder_of, over_what_failed
from pipelines.compare import RESULT, add_comparing
from pipelines.comparing import EXAMPLES, plan_comparing
from pipelines.comparison import read_comparison, to_bytes
from pipelines.count import add_counting
from pipelines.counting import SHARDS, plan_counting
from pipelines.decode import decode_directory
from pipelines.directory import (
    is_folder,
    locked,
    prepare,
    refuse_links,
    refuse_occupied,
    remove_ours,
)
from pipelines.encode import add_encoding
from pipelines.encoding import (
    load_tokenizer,
    plan_encoding,
    prepare_encoding,
)
from pipelines.errors import ConfigError, JobError, OutputError
from pipelines.manifest import read_encoded, read_kind
from pipelines.output import COUNTS, MANIFEST, PLAN, TOKENIZER, read_json_object
from pipelines.progress import NoProgress, many, size_text
from pipelines.runners import job_errors, metric, options, run, use_filesystems
from pipelines.settings import CountsInput, EncodeSettings, Execution
from pipelines.storage import join
from pipelines.submission.submit import check_submission
from pipelines.summaries import CountSummary, EncodeSummary, TrainSummary, VerifySummary
from pipelines.timings import save_timing
from pipelines.train import (
    TrainJob,
    add_training,
    check_training,
    heard,
    read_counts_manifest,
    training_facts,
    training_plan,
)
from pipelines.verify import verify_encoded
from pipelines.verify_counts import verify_counts
from pipelines.workspace import workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pipelines.comparing import Comparing, TokenizerFile
    from pipelines.counting import Counting
    from pipelines.encoding import Encoding
    from pipelines.progress import Progress
    from pipelines.runners import Failures
    from pipelines.settings import (
        InputSettings,
        OutputSettings,
        PretokenSettings,
        TrainSettings,
    )

_Planned = TypeVar("_Planned", "Counting", "Encoding", "Comparing")

__all__ = [
    "CountSummary",
    "CountsInput",
    "EncodeSettings",
    "EncodeSummary",
    "TrainSummary",
    "VerifySummary",
    "check_cut",
    "check_run",
    "compare",
    "count",
    "decode",
    "encode",
    "train",
    "verify",
]


def count(
    *,
    inputs: InputSettings,
    pretokens: PretokenSettings,
    output: OutputSettings,
    execution: Execution,
    progress: Progress | None = None,
    track_order: bool = False,
    prune_below: int = 1,
    shards: int = SHARDS,
) -> CountSummary:
    """Count the pre-tokens of a corpus into a directory of Parquet shards.

    Args:
        inputs: the corpus.
        pretokens: how text is cut.
        output: the directory.
        execution: where the work is done.
        progress: told how far it is.
        track_order: keep where each pre-token was first seen, for ties ``first-seen``.
        prune_below: pre-tokens that occur fewer times are dropped.
        shards: files of counts.

    Raises:
        JobError: something is wrong; the class says what.
    """
    began = time.monotonic()
    with job_errors():
        options(execution)
        counting = plan_counting(
            inputs=inputs,
            pretokens=pretokens,
            output=output,
            track_order=track_order,
            prune_below=prune_below,
            shards=shards,
        )
        _check_submission(
            execution,
            progress,
            reads=[file.path for file in counting.files],
            writes=counting.job.directory,
        )
        over = over_what_failed(counting, output)
        # What looks failed may be at work; a lock tells.
        training = contextlib.nullcontext() if over is output else locked(folder_of(counting))
        with training:
            resumed = _counted(counting, over, execution, progress or NoProgress())
        manifest = read_counts_manifest(counting.job.directory)
    return CountSummary(
        output=counting.job.directory,
        documents=manifest.totals.documents,
        bytes=manifest.totals.bytes,
        pretokens=manifest.totals.pretokens,
        distinct_pretokens=sum(part.rows for part in manifest.parts),
        failures=manifest.totals.failures,
        parts=len(manifest.parts),
        output_bytes=sum(part.bytes for part in manifest.parts),
        seconds=time.monotonic() - began,
        resumed=resumed,
    )


def _counted(
    counting: Counting, output: OutputSettings, execution: Execution, progress: Progress
) -> bool:
    """Run a planned count; returns whether an earlier run had finished it."""
    directory = counting.job.directory
    with locked(directory):
        if output.resume and _has_counts(counting):
            progress.log(f"count: {directory} is complete")
            return True
        prepare(output, counting.plan, reads=[file.path for file in counting.files])
        began = time.monotonic()
        _run_over_splits("count", counting, add_counting, execution=execution, progress=progress)
        _see_arrived(directory, MANIFEST)
        seconds, totals = time.monotonic() - began, read_counts_manifest(directory).totals
        read, made = (totals.documents, totals.bytes), (totals.pretokens, "pre-tokens")
        save_timing(directory, "count", seconds, read=read, made=made, execution=execution)
    return False


def _has_counts(counting: Counting) -> bool:
    """Whether an earlier run of this job finished, and left every file as it should be."""
    directory = counting.job.directory
    if read_json_object(join(directory, PLAN)) != counting.plan.to_json():
        return False
    try:
        verify_counts(directory)
    except (JobError, CountsError):
        return False
    return True


def _run_over_splits(
    name: str,
    planned: _Planned,
    add: Callable[[Any, _Planned, Failures], Any],
    *,
    execution: Execution,
    progress: Progress,
) -> Any:
    """Run the pipeline of a prepared job, and show how far it is; returns what Beam does."""
    size, splits = sum(file.size for file in planned.files), len(planned.splits)
    files = many(len(planned.files), "file")
    progress.log(f"{name}: {files}, {size_text(size)} as stored, {many(splits, 'split')}")
    with progress.stage(name, size) as stage:
        stage.set_slots(splits)
        watched = planned.watched(stage.counters_path)
        return run(
            lambda p, failures: add(p, watched, failures),
            execution=execution,
            pieces=splits,
            stage=stage,
            say=progress.log,
            name=name,
        )


def _see_arrived(directory: str, name: str) -> None:
    """See that what workers wrote is where this process looks for it.

    Raises:
        OutputError: it is not: they wrote to files of their own.
    """
    path = join(directory, name)
    if not storage.exists(path):
        raise OutputError(
            f"{path} is not there, though the runner says the job is done: its workers wrote to "
            "files of their own. Use a filesystem that both see (gs://, s3://, hdfs://, a mounted "
            "directory)"
        )


def _check_submission(
    execution: Execution, progress: Progress | None, *, reads: Iterable[str], writes: str
) -> None:
    """Refuse a job that cannot work where it is sent, before anything is written."""
    say = (progress or NoProgress()).log
    check_submission(options(execution), execution, reads=reads, writes=writes, say=say)


def train(
    *,
    inputs: InputSettings | None = None,
    counts: tuple[CountsInput, ...] = (),
    pretokens: PretokenSettings,
    training: TrainSettings,
    output: OutputSettings,
    execution: Execution,
    progress: Progress | None = None,
) -> TrainSummary:
    """Train a tokenizer on a corpus, or on counts that were made before.

    With inputs, their counts go to ``counts/`` in the output directory. When a job is resumed,
    counts that are complete are kept, and training, which is short, is done again.

    Args:
        inputs: the corpus; None to train on ``counts``.
        counts: directories of counts.
        pretokens: how the text of ``inputs`` is cut; its special tokens get reserved ids.
        training: the vocabulary.
        output: the directory.
        execution: where the work is done.
        progress: told how far it is.

    Raises:
        JobError: something is wrong; the class says what.
    """
    began = time.monotonic()
    progress = progress or NoProgress()
    with job_errors():
        options(execution)
        if (inputs is None) == (not counts):
            raise ConfigError("train on inputs or on counts: give one of them")
        directory = storage.located(output.directory)
        inner = replace(output, directory=join(directory, COUNTS))
        counting = None
        if inputs is not None:
            check_training(
                training,
                pretokenizer=pretokens.cut,
                special_tokens=pretokens.special_tokens,
            )
            counting = plan_counting(
                inputs=inputs,
                pretokens=pretokens,
                output=inner,
                track_order=training.ties == "first-seen",
                prune_below=training.prune_below,
            )
            counts = (CountsInput(directory=inner.directory),)
        job = TrainJob(
            directory=directory,
            counts=tuple(replace(c, directory=storage.located(c.directory)) for c in counts),
            special_tokens=pretokens.special_tokens,
            training=training,
        )
        plan = training_plan(job, counting.plan if counting else None)
        reads = [file.path for file in counting.files] if counting else []
        counted = [c.directory for c in job.counts if c.directory != inner.directory]
        _check_submission(execution, progress, reads=[*reads, *counted], writes=directory)
        with locked(directory):
            if counting is not None:  # before this training leaves its plan
                refuse_links(directory, [COUNTS])
                refuse_occupied(output, keep=[COUNTS])
                inner = over_what_failed(counting, inner)
                refuse_occupied(inner)
            uses_inner = any(source.directory == inner.directory for source in job.counts)
            reads += [join(source, MANIFEST) for source in counted]
            prepare(output, plan, reads=reads, keep=[COUNTS] if uses_inner else ())
            if counting is not None:
                _counted(counting, inner, execution, progress)
            elif output.overwrite and not uses_inner and is_folder(directory, COUNTS):
                remove_ours(inner.directory)  # they are not those of the new tokenizer
            facts = _train(job, execution, progress)
    return TrainSummary(output=directory, seconds=time.monotonic() - began, **facts)


def _train(job: TrainJob, execution: Execution, progress: Progress) -> dict[str, Any]:
    began = time.monotonic()
    with progress.stage("train", None) as stage, heard(job, stage.advance) as watched:
        run(
            lambda p, failures: add_training(p, watched, failures),
            execution=execution,
            pieces=1,
            stage=stage,
            say=progress.log,
            name="train",
        )
        _see_arrived(job.directory, TOKENIZER)
        facts = training_facts(job)
        stage.ended(facts["stopped"])
    seconds, read = time.monotonic() - began, (facts["documents"], facts["bytes"])
    made = (facts["merges"], "merges")
    save_timing(job.directory, "train", seconds, read=read, made=made, execution=execution)
    return facts


def encode(
    *,
    inputs: InputSettings,
    tokenizer: str,
    output: OutputSettings,
    execution: Execution,
    encoding: EncodeSettings = EncodeSettings(),  # noqa: B008  # immutable
    progress: Progress | None = None,
) -> EncodeSummary:
    """Encode a corpus into a directory of Parquet parts.

    Args:
        inputs: the corpus.
        tokenizer: a tokenizer file, as `bpe.Tokenizer.load` takes it; of any filesystem.
        output: the directory.
        execution: where the work is done.
        encoding: what the rows hold.
        progress: told how far it is.

    Raises:
        JobError: something is wrong; the class says what.
    """
    began = time.monotonic()
    progress = progress or NoProgress()
    with job_errors():
        options(execution)
        planned = plan_encoding(
            inputs=inputs, tokenizer=tokenizer, output=output, encoding=encoding
        )
        directory = planned.job.directory
        _check_submission(
            execution,
            progress,
            reads=[file.path for file in planned.files],
            writes=directory,
        )
        with locked(directory):
            prepare_encoding(planned, output)
            result = _run_over_splits(
                "encode", planned, add_encoding, execution=execution, progress=progress
            )
            _see_arrived(directory, MANIFEST)
            manifest = read_encoded(directory)
            totals = manifest.totals
            if not metric(result, "parts_resumed"):  # else an earlier run did some of the work
                seconds, made = time.monotonic() - began, (totals.tokens, "tokens")
                read = (totals.documents, totals.text_bytes)
                save_timing(directory, "encode", seconds, read=read, made=made, execution=execution)
    return EncodeSummary(
        output=directory,
        documents=manifest.totals.documents,
        bytes=manifest.totals.text_bytes,
        rows=manifest.totals.rows,
        tokens=manifest.totals.tokens,
        unknown_tokens=manifest.totals.unknown,
        dropped_tokens=manifest.totals.dropped.tokens,
        dropped_documents=manifest.totals.dropped.documents,
        failures=manifest.totals.failures,
        parts=len(manifest.parts),
        # A runner that starts a job again finds the parts of its own first try, too.
        resumed_parts=metric(result, "parts_resumed") if output.resume else 0,
        output_bytes=manifest.totals.bytes,
        id_type=manifest.id_type,
        seconds=time.monotonic() - began,
    )


def verify(
    *,
    directory: str,
    inputs: InputSettings | None = None,
    execution: Execution = Execution(),  # noqa: B008  # immutable
    progress: Progress | None = None,
) -> VerifySummary:
    """Check counts or an encoded corpus against the manifest, and against its inputs if given.

    Args:
        directory: that holds the manifest.
        inputs: the corpus, given as when the output was made.
        execution: says what Beam's filesystems need; the work is done in this process.
        progress: told how far it is.

    Raises:
        VerificationError: something is not as it must be; the message names what and where.
        JobError: it cannot be checked.
    """
    began = time.monotonic()
    progress = progress or NoProgress()
    with job_errors():
        use_filesystems(execution)
        if read_kind(directory) == "encoded":
            totals, parts = _verify_encoded(directory, inputs, progress)
        else:
            totals, parts = _verify_counts(directory, inputs, progress)
    return VerifySummary(
        directory=storage.located(directory),
        parts=parts,
        compared=inputs is not None,
        seconds=time.monotonic() - began,
        **totals,
    )


def _verify_encoded(
    directory: str, inputs: InputSettings | None, progress: Progress
) -> tuple[dict[str, Any], int]:
    manifest = read_encoded(directory)
    size = sum(source.size for source in manifest.inputs) if inputs else manifest.totals.bytes
    with progress.stage("verify", size) as stage:
        stage.set_slots(len(manifest.parts))
        totals = verify_encoded(directory, inputs=inputs, counters_path=stage.counters_path).totals
    facts = {
        "kind": "encoded",
        "lossless": load_tokenizer(join(storage.located(directory), TOKENIZER)).lossless,
        "documents": totals.documents,
        "bytes": totals.text_bytes,
        "tokens": totals.tokens,
        "unknown_tokens": totals.unknown,
        "failures": totals.failures,
    }
    return facts, len(manifest.parts)


def _verify_counts(
    directory: str, inputs: InputSettings | None, progress: Progress
) -> tuple[dict[str, Any], int]:
    manifest = read_counts_manifest(directory)
    size = sum(source.size for source in manifest.inputs) if inputs else None
    with progress.stage("verify", size) as stage:
        stage.set_slots(1)
        counts = verify_counts(directory, inputs=inputs, counters_path=stage.counters_path)
    facts = {
        "kind": "counts",
        "lossless": None,
        "documents": counts.totals.documents,
        "bytes": counts.totals.bytes,
        "tokens": counts.totals.pretokens,
        "unknown_tokens": 0,
        "failures": counts.totals.failures,
    }
    return facts, len(manifest.parts)


def compare(
    *,
    inputs: InputSettings,
    tokenizers: Sequence[TokenizerFile],
    execution: Execution,
    by: str | None = None,
    examples: int = EXAMPLES,
    output: str | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Compare what tokenizers make of a corpus; return the result, as JSON values.

    Args:
        inputs: the corpus.
        tokenizers: two or more.
        execution: where the work is done.
        by: ``file``, or a field (jsonl) or column (parquet) whose values are groups.
        examples: how many pieces to show on which two tokenizers differ most; 0: do not look.
        output: a file to write the result to; needed where workers do not share this machine.
        progress: told how far it is.

    Raises:
        JobError: something is wrong; the class says what.
    """
    progress = progress or NoProgress()
    with job_errors(), workspace(execution, output) as directory:
        comparing = plan_comparing(
            inputs=inputs,
            tokenizers=tokenizers,
            directory=directory,
            by=by,
            examples=examples,
        )
        _run_over_splits(
            "compare", comparing, add_comparing, execution=execution, progress=progress
        )
        result = read_comparison(join(directory, RESULT))
        if output is not None:
            storage.write(storage.located(output), to_bytes(result))
    return result


def decode(
    *,
    directory: str,
    stream: BinaryIO,
    execution: Execution = Execution(),  # noqa: B008  # immutable
) -> int:
    """Write the documents of an encoded corpus to ``stream`` as JSON lines; return how many.

    Args:
        directory: that holds the corpus.
        stream: where the lines go.
        execution: says what Beam's filesystems need; the work is done in this process.

    Raises:
        JobError: the directory is not an encoded corpus, or is damaged.
        BrokenPipeError: nobody reads the stream any more.
    """
    with job_errors():
        use_filesystems(execution)
        return decode_directory(directory, stream)
