"""The job of training a tokenizer, on a corpus or on counts."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from pipelines import storage
from pipelines.checks import over_what_failed
from pipelines.count.planning import CountRequest, plan_counting
from pipelines.errors import ConfigError
from pipelines.failures import job_errors
from pipelines.jobs.counting import count_planned
from pipelines.jobs.execution import check_job, see_arrived
from pipelines.output.directory import (
    is_folder,
    prepare,
    refuse_links,
    refuse_occupied,
    remove_ours,
)
from pipelines.output.lock import locked
from pipelines.output.names import COUNTS, MANIFEST, TOKENIZER
from pipelines.output.state import complete
from pipelines.output.timings import save_timing
from pipelines.progress import NoProgress
from pipelines.run import options, run
from pipelines.settings import CountSettings, CountsInput, Execution
from pipelines.storage import join
from pipelines.summaries import TrainSummary
from pipelines.train import (
    TrainJob,
    add_training,
    check_training,
    heard,
    training_facts,
    training_plan,
)

if TYPE_CHECKING:
    from pipelines.progress import Progress
    from pipelines.settings import (
        InputSettings,
        OutputSettings,
        PretokenSettings,
        TrainSettings,
    )


def train(
    *,
    inputs: InputSettings | None = None,
    counts: tuple[CountsInput, ...] = (),
    pretokens: PretokenSettings,
    training: TrainSettings,
    output: OutputSettings,
    execution: Execution,
    progress: Progress | None = None,
    then: Literal["encoded"] | None = None,
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
        then: ``encoded`` where the corpus is encoded next, as ``bpe run`` does it: the directory is
            not complete before.

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
            request = CountRequest.of(
                inputs=inputs,
                pretokens=pretokens,
                output=inner,
                settings=CountSettings(
                    track_order=training.ties == "first-seen", prune_below=training.prune_below
                ),
            )
            counting = plan_counting(replace(request, inputs=inputs))
            counts = (CountsInput(directory=inner.directory),)
        job = TrainJob(
            directory=directory,
            counts=tuple(replace(c, directory=storage.located(c.directory)) for c in counts),
            paths=tuple(c.directory for c in counts),
            special_tokens=pretokens.special_tokens,
            training=training,
        )
        for source in counts if counting is None else ():
            complete(source.directory, "counts")
        plan = replace(training_plan(job, counting.plan if counting else None), then=then)
        reads = [file.path for file in counting.files] if counting else []
        counted = [c.directory for c in job.counts if c.directory != inner.directory]
        check_job(execution, progress, reads=[*reads, *counted], writes=directory)
        resumed = False
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
                request = replace(request, output=inner)
                resumed = count_planned(counting, request, execution, progress)
            elif output.overwrite and not uses_inner and is_folder(directory, COUNTS):
                remove_ours(inner.directory)  # they are not those of the new tokenizer
            facts = _train(job, execution, progress)
    return TrainSummary(
        output=directory,
        passed_over=counting.passed_over if counting else (),
        resumed_counts=resumed,
        seconds=time.monotonic() - began,
        **facts,
    )


def _train(job: TrainJob, execution: Execution, progress: Progress) -> dict[str, Any]:
    began = time.monotonic()
    with progress.stage("train", None) as stage, heard(job, stage.advance) as watched:
        run(
            lambda p, failures: add_training(p, watched, failures),
            execution=execution,
            pieces=1,
            stage=stage,
            progress=progress,
            name="train",
        )
        see_arrived(job.directory, TOKENIZER)
        facts = training_facts(job)
        stage.ended(facts["stopped"])
    seconds, read = time.monotonic() - began, (facts["documents"], facts["bytes"])
    made = (facts["merges"], "merges")
    save_timing(job.directory, "train", seconds, read=read, made=made, execution=execution)
    return facts
