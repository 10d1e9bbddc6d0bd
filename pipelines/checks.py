"""What is checked before a job begins: settings, counts, and what a failed one left behind."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bpe.errors import CountsError
from pipelines import storage
from pipelines.corpus.inputs import find_inputs
from pipelines.count.directory import read_counts_manifest
from pipelines.encode.kept import find_kept
from pipelines.encode.steps import check_special_tokens
from pipelines.errors import ConfigError, InputError, OutputError
from pipelines.failures import job_errors
from pipelines.output.directory import is_folder, refuse_links, refuse_occupied, training_failed
from pipelines.output.names import COUNTS, ENCODED, PLAN, read_json_object
from pipelines.run import options
from pipelines.settings import EncodeSettings, Execution
from pipelines.storage import join
from pipelines.train import check_training

if TYPE_CHECKING:
    from pipelines.count.planning import Counting
    from pipelines.settings import (
        CountsInput,
        InputSettings,
        OutputSettings,
        PretokenSettings,
        TrainSettings,
    )


def check_run(
    *,
    pretokens: PretokenSettings,
    training: TrainSettings,
    output: OutputSettings,
    inputs: InputSettings,
    encoding: EncodeSettings = EncodeSettings(),  # noqa: B008  # immutable
    execution: Execution = Execution(),  # noqa: B008
) -> None:
    """Refuse settings and a directory that would end a job only after the corpus is counted.

    Args:
        pretokens: how text is cut; its special tokens get reserved ids.
        training: the vocabulary.
        output: the directory of counts, tokenizer and encoded corpus.
        inputs: the corpus.
        encoding: what the rows are to hold.
        execution: where the work is to be done.

    Raises:
        JobError: something is wrong; the class says what.
    """
    with job_errors():
        options(execution)
        check_special_tokens(pretokens.special_tokens, encoding)
        check_training(
            training,
            pretokenizer=pretokens.cut,
            special_tokens=pretokens.special_tokens,
        )
        refuse_links(storage.located(output.directory), [COUNTS, ENCODED])
        failed = training_failed(storage.located(output.directory))
        refuse_occupied(output, keep=[COUNTS] if failed else ())
        if encoding.keep:
            find_kept(find_inputs(inputs).files, encoding)


def check_cut(
    *,
    counts: tuple[CountsInput, ...],
    pretokens: PretokenSettings,
    execution: Execution = Execution(),  # noqa: B008  # immutable
) -> None:
    """Refuse counts whose text was cut otherwise.

    Args:
        counts: directories of counts.
        pretokens: how a preset cuts text.
        execution: where the work is to be done.

    Raises:
        JobError: there are no counts, or they are of other pre-tokens.
    """
    with job_errors():
        options(execution)
        for source in counts:
            found = read_counts_manifest(source.directory).pretokenizer
            if found != pretokens.cut:
                raise ConfigError(
                    f"{source.directory} was cut with {found}, and the preset cuts text with "
                    f"{pretokens.cut}: count again with the preset, or train without it"
                )


def over_what_failed(counting: Counting, output: OutputSettings) -> OutputSettings:
    """Let a count replace counts of a training that failed, where nobody can miss them.

    These are counts that the same job makes again, and counts that hold nothing to train on. All
    others are work that may be wanted.

    Raises:
        OutputError: there are such others.
    """
    directory, folder = counting.job.directory, folder_of(counting)
    of_training = directory == join(folder, COUNTS) and is_folder(folder, COUNTS)
    if output.overwrite or not of_training or not training_failed(folder):
        return output
    then = read_json_object(join(directory, PLAN)) or {}
    if not counting.plan.differences(then):
        return output if output.resume else replace(output, overwrite=True)
    try:
        parts = read_counts_manifest(directory).parts
    except (CountsError, InputError):
        return output
    if not any(part.rows for part in parts):
        return replace(output, overwrite=True, resume=False)
    raise OutputError(
        f"{directory} holds complete counts of another job, left there by a training that failed "
        f"({'; '.join(counting.plan.differences(then)[:3])}): train on them with `counts` "
        f"{directory}, replace them with `overwrite`, or choose another directory"
    )


def folder_of(counting: Counting) -> str:
    """The folder in which the directory of the counts lies."""
    return counting.job.directory.rpartition("/")[0]
