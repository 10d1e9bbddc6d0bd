"""Commands of several jobs: a list of stages, each a job of its own.

A stage begins when the one before it is complete, and its output is the input of the next. A
command that died goes on with the first stage that is not complete: what stages before it made in
folders of the directory is kept.

- A training on a corpus: ``counts/``, then the tokenizer.
- One with superwords: ``counts/``, ``words/``, ``runs/``, then the tokenizer.
- ``bpe run``: one of these, then ``encoded/`` and ``export/``.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from bpe.errors import BpeError, CountsError
from bpe.models import ByteLevel
from bpe.ties import needs_order
from pipelines import storage
from pipelines.corpus.inputs import check_sources, find_inputs
from pipelines.count.directory import read_counts
from pipelines.count.job import CountRequest
from pipelines.encode.fold import discard_parts
from pipelines.encode.job import EncodeRequest
from pipelines.encode.manifest import read_header
from pipelines.encode.passthrough import find_passthrough
from pipelines.encode.tokens import check_special_tokens, in_tokens
from pipelines.errors import ConfigError, InputError, JobError
from pipelines.export.job import export
from pipelines.extension import extended_pretokens, load_extended, located
from pipelines.failures import job_errors
from pipelines.mix import (
    counts_of_sources,
    load_share_tokenizer,
    of_source,
    tokens_of,
    with_weights,
)
from pipelines.output.directory import decide, locked, refuse_inputs_inside, refuse_links
from pipelines.output.names import COUNTS, ENCODED, EXPORTED, OF_WORDS, RUNS, TOKENIZER, read_plan
from pipelines.parity import check_parity, expected_groups, find_groups
from pipelines.planned import run_once
from pipelines.progress import UNSEEN
from pipelines.run import options
from pipelines.settings import (
    CountSettings,
    CountsInput,
    InputSettings,
    ParitySettings,
    PretokenSettings,
    RoleSettings,
    RunSettings,
    parse_shares,
)
from pipelines.stage.job import run_job
from pipelines.storage import join
from pipelines.timings import save_timing
from pipelines.tokenizer_files import forget_tokenizer, load_tokenizer
from pipelines.train import TrainRequest, check_cut, read_roles, trained_summary
from pipelines.verify.job import verify
from pipelines.watch import run_or_watch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pipelines.planned import Planned
    from pipelines.progress import Progress
    from pipelines.settings import (
        EncodeSettings,
        Execution,
        ExportSettings,
        OutputSettings,
        ShareOf,
        TrainSettings,
    )
    from pipelines.summaries import CountSummary, EncodeSummary, ExportSummary, TrainSummary


def train(**arguments: Any) -> TrainSummary:
    """Train a tokenizer; arguments and errors are those of `count_and_train`."""
    _, trained = count_and_train(**arguments)
    return trained


@job_errors()
def count_and_train(
    *,
    inputs: InputSettings | None = None,
    counts: tuple[CountsInput, ...] = (),
    pretokens: PretokenSettings,
    training: TrainSettings,
    output: OutputSettings,
    execution: Execution,
    counting: CountSettings = CountSettings(),  # noqa: B008  # immutable
    roles: RoleSettings = RoleSettings(),  # noqa: B008
    share_of: ShareOf = "bytes",
    share_tokenizer: str | None = None,
    parity: ParitySettings = ParitySettings(),  # noqa: B008
    runs: RunSettings = RunSettings(),  # noqa: B008
    mix: Sequence[str] = (),
    progress: Progress = UNSEEN,
    then: Literal["encoded", "export"] | None = None,
    check: Callable[[TrainRequest], object] = lambda _: None,
) -> tuple[CountSummary | None, TrainSummary]:
    """Train a tokenizer on a corpus, or on counts that were made before.

    The counts of a corpus go to ``counts/`` in the output directory; with a mix, each source has
    a folder there. A job that is resumed keeps complete counts and trains again.

    A training of words and superwords also writes the tokenizer of words to ``words/``, and the
    counts of its runs to ``runs/``. A training of superwords alone takes counts of runs.

    Args:
        inputs: the corpus; None to train on ``counts``.
        counts: directories of counts.
        pretokens: the pre-tokenizer of ``inputs``, and special tokens, which get reserved ids.
        training: the settings of the training.
        output: the output directory.
        execution: where the job runs.
        counting: the settings of the counting of ``inputs``; the training may add some.
        roles: the roles of tokens; each token of a role becomes a special token.
        share_of: the measure of the shares of ``counts`` or ``mix``.
        share_tokenizer: the tokenizer file if the measure is tokens.
        parity: whether merges are chosen in turn for groups: the directories of ``counts``, or the
            groups by which ``inputs`` are counted.
        runs: how the runs for superwords are found.
        mix: ``NAME=SHARE`` of each source of ``inputs``, whose patterns begin with ``NAME=``.
        progress: the display of the progress.
        then: as in `pipelines.train.TrainRequest`.
        check: called with the training before anything begins; may refuse it.

    Returns:
        The summaries of the counting of ``inputs`` (None without inputs) and of the training.

    Raises:
        JobError: something is wrong; the class says what.
    """
    began = time.monotonic()
    options(execution)
    two_phases = training.crosses_words and inputs is not None
    if (inputs is None) == (not counts):
        raise ConfigError("give `input` (a corpus) or `counts` (from bpe count), one of them")
    _check_phases(training, inputs)
    pretokens = roles.with_tokens(pretokens)
    training = located(training)
    extend = load_extended(training)
    if extend is not None:
        pretokens = extended_pretokens(pretokens, training, extend)
    elif pretokens.gives_cut:
        check_cut(counts, pretokens.cut)
    groups = None
    if parity.parity and inputs is not None:
        groups = expected_groups(parity, training)
    elif parity.parity:
        check_parity(counts, training)
        counts, groups = find_groups(counts, parity)
    directory, shares = storage.located(output.directory), parse_shares(mix)
    own = join(directory, COUNTS)
    if shares and inputs is not None:
        check_sources(inputs, shares)
    elif shares:
        raise ConfigError(
            "`mix` NAME=SHARE goes with `input` NAME=PATTERN; for shares of counts, give "
            "`counts` DIR:SHARE%"
        )
    if share_tokenizer is not None and share_of != "tokens":
        raise ConfigError("`share_tokenizer` goes with `share_of` tokens")
    counts = counts or counts_of_sources(own, shares) or (CountsInput(directory=own),)
    measure: dict[str, str] = {"share_of": share_of} if shares else {}
    if shares and share_of == "tokens":
        cut = [("the corpus", pretokens.cut)]
        loaded = load_share_tokenizer(share_tokenizer, cut, of_any_text=True)
        measure["share_tokenizer"] = loaded.sha256
    request = TrainRequest(
        output=replace(output, directory=directory),
        counts=_located(counts),
        special_tokens=pretokens.special_tokens,
        training=training,
        roles=read_roles(roles),
        extends="" if extend is None else extend.sha256,
        shares=measure,
        groups=groups,
        runs=runs if two_phases else None,
        then=then,
    ).started()
    check(request)

    def counted() -> TrainRequest:
        """Return the training after counting: with weights instead of shares."""
        if groups is not None and inputs is not None:
            whole = CountsInput(directory=join(output.directory, COUNTS))
            found, there = find_groups((whole,), groups.parity)
            return replace(request, groups=there, counts=_located(found))
        tokens = tokens_of(request.counts, share_tokenizer) if share_of == "tokens" else ()
        weights = with_weights(request.counts, of=share_of, tokens=tokens)
        return replace(request, counts=weights, tokens=tokens)

    counting_job = None
    if inputs is None:
        job = counted()
        job.check_counts()
    else:
        counting_job = CountRequest.of(
            inputs=inputs,
            pretokens=pretokens,
            output=replace(output, directory=own),
            settings=replace(
                counting,
                track_order=counting.track_order or needs_order(training.ties),
                # Of a mix, what is rare is so in all of it, with its weights.
                prune_below=1 if shares else training.prune_below,
            ),
            sources=tuple(sorted(shares)),
        )
        request.check(pretokens.cut, pretokens.special_tokens)
    plan, summary = request.plan(), None

    def begin(stage: Planned) -> None:
        """Begin the whole training when its first stage begins."""
        refuse_inputs_inside(directory, [file.path for file in stage.files])
        request.begin()

    where: dict[str, Any] = {"execution": execution, "progress": progress}
    with locked(directory):
        decide(request.output, plan, reads=request.reads)
        if counting_job is not None:
            out = _in_training(counting_job.output, directory)
            summary = run_once(replace(counting_job, output=out), ready=begin, **where)
            job = counted()
        phases: dict[str, Any] = {}
        if two_phases and inputs is not None:
            phases["words"] = _train_words(job, **where)
            phases["runs"] = _count_runs(job, inputs, **where)
            job = _of_superwords(job)
        words = None if training.boundless else phases.get("words")
        trained = _train(job, words=words, ready=request.begin, **where)
    return summary, replace(
        trained,
        passed_over=() if summary is None else summary.passed_over,
        seconds=time.monotonic() - began,
        **phases,
    )


def _located(counts: Iterable[CountsInput]) -> tuple[CountsInput, ...]:
    """Return the counts with absolute paths."""
    return tuple(replace(one, directory=storage.located(one.directory)) for one in counts)


def run(
    *,
    output: OutputSettings,
    execution: Execution,
    encoded_inputs: InputSettings,
    encoding: EncodeSettings,
    exporting: ExportSettings | None = None,
    discard_ids: bool = False,
    progress: Progress = UNSEEN,
    **more: Any,
) -> dict[str, CountSummary | TrainSummary | EncodeSummary | ExportSummary]:
    """Count a corpus, train a tokenizer, encode the corpus and export it.

    Args:
        output: the directory that gets the outputs of all stages.
        execution: where the job runs.
        encoded_inputs: the corpus to encode.
        encoding: the settings of the encoding.
        exporting: the settings of the export; None: no export. The training has the same mix.
        discard_ids: whether to remove the encoded parts after the export is verified.
        progress: the display of the progress.
        **more: more arguments of `count_and_train`.

    Returns:
        The summary of each stage, by its name.

    Raises:
        JobError: something is wrong; the class says what.
    """
    mix = () if exporting is None else exporting.mix
    done: dict[str, Any] = {"execution": execution, "progress": progress}

    def check(request: TrainRequest) -> None:
        """Check the settings of later stages before the first one begins."""
        if mix:
            check_sources(encoded_inputs, parse_shares(mix))
        refuse_links(request.directory, [ENCODED, EXPORTED])
        tokens, extend = request.special_tokens, load_extended(request.training)
        known = request.roles if extend is None else request.roles or extend.roles
        check_special_tokens(tokens, in_tokens(encoding, tokens, known))
        if encoding.keep:
            find_passthrough(find_inputs(encoded_inputs).files, encoding.keep)

    def below(folder: str) -> OutputSettings:
        return replace(output, directory=join(output.directory, folder))

    counted, trained = count_and_train(
        output=output,
        mix=mix,
        then="encoded" if exporting is None else "export",
        check=check,
        **done,
        **more,
    )
    encoding_job = partial(
        EncodeRequest.of,
        inputs=encoded_inputs,
        tokenizer=join(output.directory, TOKENIZER),
        output=below(ENCODED),
        encoding=encoding,
    )
    encoded = run_or_watch(encoding_job, **done)
    summaries: dict[str, Any] = {"count": counted, "train": trained, "encode": encoded}
    if exporting is not None:
        ids, rows = below(ENCODED).directory, below(EXPORTED)
        forget_tokenizer()  # its caches of words, some 20 MB a thread, are not for rows
        summaries["export"] = export(sources=[ids], output=rows, settings=exporting, **done)
        if discard_ids:
            _discard(ids, rows.directory, **done)
    return summaries


def _discard(ids: str, rows: str, *, execution: Execution, progress: Progress) -> None:
    """Verify an export against its ids, then remove the ids; do nothing if they were removed."""
    with job_errors():
        if not read_header(ids, discarded=True).discarded:
            inputs = InputSettings(patterns=(ids,))
            verify(directory=rows, inputs=inputs, execution=execution, progress=progress)
        discard_parts(ids, progress)


def _train(
    request: TrainRequest,
    *,
    execution: Execution,
    words: TrainSummary | None = None,
    **more: Any,
) -> TrainSummary:
    """Train, and save the duration in the output directory.

    Args:
        request: the training.
        execution: where the job runs.
        words: as in `trained_summary`.
        **more: more arguments of `run_job`.

    Raises:
        JobError: something is wrong; the class says what.
    """
    began = time.monotonic()
    run_job(request, execution=execution, reads=request.reads, pieces=1, size=None, **more)
    trained = trained_summary(request, seconds=time.monotonic() - began, words=words)
    save_timing(trained, execution, stage="train", items=trained.merges, unit="merges")
    return trained


def _in_training(output: OutputSettings, training: str) -> OutputSettings:
    """Return the output settings of a job in a folder of a training.

    If an earlier run of the training failed, the job is resumed; but empty counts, from which
    nothing can be trained, are made again.

    Args:
        output: the output settings of the job.
        training: the directory of the training.
    """
    begun = read_plan(training).get("kind") == "tokenizer"
    if output.overwrite or not begun or storage.exists(join(training, TOKENIZER)):
        return output
    try:
        manifest = read_counts(output.directory).manifest
    except (InputError, CountsError):
        return replace(output, resume=True)
    empty = not any(part.rows for part in manifest.parts)
    return replace(output, resume=not empty, overwrite=empty)


def _check_phases(training: TrainSettings, inputs: InputSettings | None) -> None:
    """Check that the settings of superwords suit the inputs or counts.

    Raises:
        ConfigError: a setting does not suit.
    """
    if not training.crosses_words:
        return
    if needs_order(training.ties):
        raise ConfigError(
            f"`ties` {training.ties}: counts of runs do not track the order of documents: use "
            "other ties for superwords"
        )
    if inputs is not None and training.is_of_superwords:
        raise ConfigError(
            "superwords are learnt after words, whose training has no limit: give `vocab_size`, "
            "`max_merges` or both"
        )
    if inputs is None and not training.is_of_superwords:
        raise ConfigError(
            "superwords are learnt from counts of runs, and added to the tokenizer of words whose "
            "runs were counted: `vocab_size` and `max_merges` go with `input`, leave them out"
        )
    if not isinstance(training.model, (ByteLevel, type(None))):
        raise ConfigError("`model`: superwords need tokens of bytes: use bpe, or leave it out")
    if inputs is None and training.prune_below != 1:
        raise ConfigError(
            "`prune_below` is of pre-tokens: to drop rare runs, use `prune_runs_below`"
        )


def _train_words(request: TrainRequest, *, progress: Progress, **done: Any) -> TrainSummary:
    """Train the words before superwords, in a folder of the training; arguments as for `_train`.

    A training that is resumed keeps complete words of the same job.

    Raises:
        JobError: something is wrong; the class says what.
    """
    folder = request.folder(OF_WORDS)
    words = replace(
        request,
        output=_in_training(replace(request.output, directory=folder), request.directory),
        training=request.training.words,
        runs=None,
        then=None,
        shares={},
        run="",
    ).started()
    if words.output.resume and not words.plan().differences(read_plan(words.directory)):
        with contextlib.suppress(JobError, BpeError):  # else it is not complete
            trained = trained_summary(words)
            progress.log(f"train: {words.directory} is complete")
            return trained
    with locked(words.directory):
        return _train(words, progress=progress, **done)


def _count_runs(request: TrainRequest, inputs: InputSettings, **where: Any) -> CountSummary:
    """Count the runs of the trained words, in another folder; arguments as for `run_once`.

    Raises:
        JobError: something is wrong; the class says what.
    """
    words, folder = join(request.folder(OF_WORDS), TOKENIZER), request.folder(RUNS)
    counting = CountRequest.of(
        inputs=inputs,
        tokenizer=words,
        runs=request.runs or RunSettings(),
        output=_in_training(replace(request.output, directory=folder), request.directory),
        sources=tuple(sorted(one.source for one in request.counts if one.source)),
    )
    counted: CountSummary = run_once(counting, **where)
    of_words, of_runs = (read_counts(request.folder(one)).manifest.inputs for one in (COUNTS, RUNS))
    if of_words and sorted(of_words) != sorted(of_runs):
        raise InputError(
            f"{folder} is of other files than the counts of words (by name and size): the input "
            "was changed while the job ran: start it again with `overwrite`"
        )
    return counted


def _of_superwords(request: TrainRequest) -> TrainRequest:
    """Return the last phase of a training with superwords, under the plan of the whole training.

    In a mix, the runs of a source have the weight of its words.
    """
    path, runs = join(request.folder(OF_WORDS), TOKENIZER), request.folder(RUNS)
    counts = tuple(
        replace(one, directory=of_source(runs, one.source)) for one in request.counts if one.source
    ) or (CountsInput(directory=runs),)
    return replace(
        request,
        counts=counts,
        tokens=(),
        special_tokens=(),
        training=request.training.superwords_on(path),
        extends=load_tokenizer(path).sha256,
    )
