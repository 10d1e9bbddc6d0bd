"""Train a tokenizer from count files, once, in a worker."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import apache_beam as beam
import pyarrow as pa

import bpe
from bpe import Tokenizer
from bpe._codec import to_jsonable
from bpe.counts import PretokenCounts, Totals, check_agreement, combine, require_pretokens
from bpe.files import fingerprint
from bpe.formats.cut_at_marks import WORDS
from bpe.formats.huggingface import why_dialect
from bpe.models import CharacterLevel, model_settings
from bpe.roles import Roles
from bpe.run_counting import runs_of
from bpe.training_report import Training
from pipelines import storage
from pipelines.count.directory import load_counts, read_counts
from pipelines.elements import Step
from pipelines.errors import ConfigError, InputError, StoppedError
from pipelines.extension import load_extended
from pipelines.metrics import add_to_metrics
from pipelines.mix import effective_mix
from pipelines.output.directory import (
    decide,
    plan_of_run,
    prepare,
    refuse_links,
    remove_ours,
    remove_temporaries,
)
from pipelines.output.names import (
    COUNTS,
    MANIFEST,
    OF_WORDS,
    RUN,
    RUNS,
    TOKENIZER,
    TRAINING,
    Plan,
    read_plan,
)
from pipelines.progress import SlotWriter
from pipelines.settings import CHAT_TEMPLATES, CountsInput, RunSettings
from pipelines.stage.stage import Job
from pipelines.storage import join
from pipelines.summaries import TrainSummary
from pipelines.tokenizer_files import load_tokenizer, write_tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from bpe.counts import Runs
    from bpe.pretokenizer import Pretokenizer
    from pipelines.failures import FailureChannel
    from pipelines.parity import Groups
    from pipelines.settings import RoleSettings, TrainSettings

    _Counts = PretokenCounts | Callable[[], PretokenCounts]


@dataclass(frozen=True, kw_only=True)
class TrainRequest(Job):
    """A training, as the Beam graph carries it.

    Attributes:
        counts: the counts to train on, each with a weight; in a training of words and superwords,
            the counts of pre-tokens.
        special_tokens: the special tokens that get ids after those at which the text was cut.
        training: the settings of the training.
        roles: the roles of special tokens; empty to keep those of the tokenizer that is extended.
        extends: the SHA-256 of the tokenizer that is extended; empty without one.
        shares: for the plan, the measure of the shares of ``counts``; empty without shares. As soon
            as all counts exist, the shares are replaced by weights.
        groups: the groups of a parity-aware training; None if the counts are added up.
        runs: how runs are found in a training of words and superwords, which writes the output of
            its first phases to folders of the directory; None for other trainings.
        then: the last stage of ``bpe run``, whose output makes the directory complete: ``encoded``
            or ``export``; None for a training alone.
        tokens: the size of each set of counts in tokens of another tokenizer; empty unless shares
            are of tokens.
    """

    counts: tuple[CountsInput, ...]
    special_tokens: tuple[str, ...]
    training: TrainSettings
    roles: Roles = field(default_factory=Roles)
    extends: str = ""
    shares: Mapping[str, str] = field(default_factory=dict)
    groups: Groups | None = None
    runs: RunSettings | None = None
    then: Literal["encoded", "export"] | None = None
    tokens: tuple[int, ...] = ()
    name = "train"
    last_file = TOKENIZER

    def folder(self, name: str) -> str:
        """Return the path of a folder in the output directory, such as that of the counts."""
        return join(self.directory, name)

    def _own(self, one: CountsInput) -> str | None:
        """Return the place of counts in the folder ``counts``; None if they are made elsewhere."""
        own, directory = join(self.folder(COUNTS), ""), join(one.directory, "")
        return directory.removeprefix(own) if directory.startswith(own) else None

    @property
    def reads(self) -> tuple[str, ...]:
        """Return the paths of all files that the worker reads."""
        others = (one.directory for one in self.counts if self._own(one) is None)
        held_out = self.groups.dev if self.groups else ()
        extend = () if self.training.extend is None else (self.training.extend,)
        return (*(join(source, MANIFEST) for source in (*others, *held_out)), *extend)

    def plan(self) -> Plan:
        """Return the plan of the training; equal plans are the same job.

        Counts below the output directory may not exist yet: they are jobs with their own plans.

        Raises:
            InputError, bpe.errors.CountsError: other counts are missing or damaged.
            OutputError: the folder of the counts is a link.
        """
        training = self.training
        settings: dict[str, Any] = {
            **to_jsonable(replace(training, model=None, extend=None)),
            "model": model_settings(training.model or bpe.ByteLevel()),
            "special_tokens": list(self.special_tokens),
            **({"roles": to_jsonable(self.roles)} if self.roles else {}),
            **({"extend": self.extends} if self.extends else {}),
            **({"parity": self.groups.settings()} if self.groups is not None else {}),
            **({RUNS: to_jsonable(self.runs)} if self.runs is not None else {}),
            **self.shares,
        }
        own = list(map(self._own, self.counts))
        settings["counts"] = [
            [
                fingerprint(read_counts(one.directory).manifest.to_json())
                if place is None
                else place,
                str(one.weight if one.share is None else one.share),
            ]
            for place, one in zip(own, self.counts, strict=True)
        ]
        keep = [COUNTS] if any(place is not None for place in own) else []
        keep += [] if self.runs is None else [OF_WORDS, RUNS]
        refuse_links(self.directory, keep)
        known: dict[str, Any] = {"run": self.run, "then": self.then, "keep": tuple(keep)}
        return Plan(kind="tokenizer", settings=settings, **known)

    def check_counts(self) -> None:
        """Check that the tokenizer can be trained from the counts; write nothing.

        Raises:
            JobError, bpe.errors.BpeError: counts are missing, damaged, or do not fit.
        """
        manifests = [read_counts(one.directory).manifest for one in self.counts]
        first, title = manifests[0], self.counts[0].title
        for manifest, source in zip(manifests, self.counts, strict=True):
            check_agreement(first, manifest, titles=(self.counts[0].directory, source.directory))
        if self.training.is_of_superwords:
            extend = load_extended(self.training, sha256=self.extends)
            _check_superwords(self.training, extend, first.runs, title=title)
            return
        require_pretokens(
            first,
            title=title,
            remedy="learn superwords from them: give `tokenizer`, and `superwords` N or "
            "`boundless`",
        )
        self.check(first.pretokenizer, first.special_tokens)

    def check(self, cut: Pretokenizer, counted_without: tuple[str, ...]) -> None:
        """Check settings that would fail with any counts; arguments as for `check_training`."""
        extend = load_extended(self.training, sha256=self.extends)
        words = check_training(
            *(self.training, cut, self.special_tokens),
            counted_without=counted_without,
            extend=extend,
            groups=self.groups,
        )
        if self.runs is not None:
            found = runs_of(words, **vars(self.runs))
            _check_superwords(self.training.superwords_on(OF_WORDS), words, found, title="")

    def begin(self) -> bool:
        """Plan the training and prepare its directory, unless this run has done so; return True.

        Raises:
            JobError: the training cannot be done; the class says why.
        """
        if read_plan(self.directory).get(RUN) == self.run:
            return True
        plan = self.plan()
        if self.output.overwrite:
            decide(self.output, plan, reads=self.reads)
            for name in {COUNTS, OF_WORDS, RUNS}.difference(plan.keep):  # of another tokenizer
                remove_ours(self.folder(name))
        prepare(self.output, plan, reads=self.reads)
        return True

    def steps(self, begun: Any, failures: FailureChannel) -> Any:
        """Return the step that trains."""
        return begun | "Train" >> beam.ParDo(Step(failures, train_tokenizer, self, failures))

    def finish(self) -> str:
        """Return the directory; the step has written all files."""
        return self.directory


def check_training(
    training: TrainSettings,
    cut: Pretokenizer,
    special_tokens: tuple[str, ...],
    *,
    counted_without: tuple[str, ...] = (),
    extend: Tokenizer | None = None,
    groups: Groups | None = None,
) -> Tokenizer:
    """Check settings of a training that would fail with any counts, by training on one letter.

    Args:
        training: the settings of the training.
        cut: the pre-tokenizer of the counts.
        special_tokens: the special tokens that get ids.
        counted_without: the special tokens at which the text was cut.
        extend: the tokenizer that is extended.
        groups: the groups of a parity-aware training.

    Returns:
        The tokenizer of that letter.

    Raises:
        bpe.errors.TrainingError, bpe.errors.SpecialTokenError: a setting is wrong.
    """
    falls_back = isinstance(training.model, CharacterLevel) and training.model.byte_fallback
    if falls_back and "mark-spaces" not in cut.normalizer:
        raise ConfigError(
            f"sentencepiece-bpe needs spaces as marks, and text is split with {cut}: add "
            f"--normalizer prepend-mark --normalizer mark-spaces and --pattern '{WORDS}'"
        )
    letter = PretokenCounts.from_items(
        {"a": 1 << 50}, special_tokens=counted_without, track_order=True
    )
    counts = [replace(letter, pretokenizer=cut)]
    if groups is not None:
        groups.check_cut(cut)
        counts, groups = counts * len(groups.names), replace(groups, dev=())
    return trained(counts, training, special_tokens, extend=extend, groups=groups)


def _check_superwords(
    training: TrainSettings, words: Tokenizer | None, runs: Runs | None, *, title: str
) -> None:
    """Check that superwords can be learnt from counts; read no counts.

    Args:
        training: the settings of the training of superwords.
        words: the tokenizer to which superwords are added.
        runs: how the counted runs were found; None if the counts are of pre-tokens.
        title: the name of the counts in errors.

    Raises:
        ConfigError: the counts are of pre-tokens, or of runs of another tokenizer.
        bpe.errors.TrainingError: a setting is wrong.
    """
    words = _words(words)
    if runs is None:
        raise ConfigError(
            f"{title} holds counts of pre-tokens, superwords are learnt from counts of runs: make "
            f"them with bpe count --runs --tokenizer {training.extend}"
        )
    if runs.tokenizer != words.text_sha256:
        raise ConfigError(
            f"{title} holds counts of runs of another tokenizer than {training.extend}: give the "
            "one that they were counted with, or count runs again"
        )
    nothing = bpe.count_runs(
        [], tokenizer=words, merge_pattern=runs.merge_pattern, max_run=runs.max_run
    )
    trained([nothing], training, (), extend=words)


def train_tokenizer(work: bool, job: TrainRequest, failures: FailureChannel) -> list[bool]:
    """Train on the files of the counts and write ``training.json``, then ``tokenizer.json``.

    Args:
        work: the element of the step, which is returned in a list.
        job: the training.
        failures: says whether the job was stopped.

    Raises:
        InputError: counts cannot be read, or do not go together.
        bpe.errors.TrainingError: a setting is wrong for these counts.
        OutputError: a file cannot be written, or another job has taken the directory over.
    """
    slot = SlotWriter(job.slots, 0)

    def report(done: int, total: int) -> None:
        if failures.stopped():
            raise StoppedError
        slot.advance(done, total)

    what: Literal["text", "run"] = "run" if job.training.is_of_superwords else "text"
    counts: list[_Counts] = [partial(_read, job.counts, what=what)]
    if job.groups is not None:
        counts = [partial(load_counts, source.directory) for source in job.counts]
    tokenizer = trained(
        counts,
        job.training,
        job.special_tokens,
        report=report,
        extend=load_extended(job.training, sha256=job.extends),
        groups=job.groups,
    )
    training = tokenizer.training
    if training is None:
        raise InputError("the tokenizer has no record of its training")
    if not job.training.is_of_superwords:  # else the mix is that of the words
        training = replace(training, mix=effective_mix(job.counts, job.tokens))
    if job.roles:
        tokenizer = tokenizer.with_roles(job.roles)
    plan_of_run(job.directory, job.run)  # of another job by now: this one ends
    remove_temporaries(job.directory)
    storage.write(join(job.directory, TRAINING), training.to_json().encode("utf-8"))
    write_tokenizer(join(job.directory, TOKENIZER), tokenizer)
    add_to_metrics(merges_trained=len((training.superwords or training).merges))
    return [work]


_NOTHING = {
    "text": "no text that is counted (its documents are empty, or hold special tokens or dropped "
    "white space only)",
    "run": "no runs, of which superwords are learnt: nowhere do two pre-tokens follow each other "
    "that are one token each and match the merge pattern (a larger vocabulary of words has more)",
}


def _read(sources: tuple[CountsInput, ...], *, what: Literal["text", "run"]) -> PretokenCounts:
    """Return the weighted sum of the counts to train on; at most two are in memory."""
    first, *others = sources
    counts = combine([(load_counts(first.directory), first.weight)], names=[first.directory])
    for source in others:
        pairs = [(counts, 1), (load_counts(source.directory), source.weight)]
        counts = combine(pairs, names=[first.directory, source.directory])
    if len(counts) == 0:
        raise InputError(f"there is nothing to train on: the corpus holds {_NOTHING[what]}")
    pa.default_memory_pool().release_unused()  # what the files were unpacked in
    return counts


def trained_summary(
    job: TrainRequest, *, seconds: float = 0.0, words: TrainSummary | None = None
) -> TrainSummary:
    """Summarize a finished training from its files.

    Args:
        job: the training.
        seconds: the duration of the training.
        words: the training, on the same corpus, of the words to which superwords were added.

    Raises:
        InputError, bpe.BpeError: a file cannot be read.
    """
    path, report = join(job.directory, TOKENIZER), join(job.directory, TRAINING)
    tokenizer = load_tokenizer(path)
    training = Training.read(storage.read(report), where=report)
    learnt = training.superwords
    last, mix = learnt or training, training.mix
    tokens: int | None = training.tokens
    if learnt is not None:
        mix, tokens = effective_mix(job.counts, job.tokens), None
        pruned = training.pruned and training.pruned["distinct_pretokens"]  # runs hold these
        if words is not None and words.tokens is not None and not pruned:
            tokens = words.tokens - learnt.initial_tokens + learnt.tokens
    manifests = (read_counts(source.directory).manifest for source in job.counts)
    counted = sum((manifest.totals for manifest in manifests), Totals())
    return TrainSummary(
        output=job.directory,
        counts=tuple(source.directory for source in job.counts),
        documents=counted.documents,
        bytes=counted.bytes,
        pretokens=training.counts.get("pretokens"),
        distinct_pretokens=training.counts.get("distinct_pretokens"),
        failures=counted.failures,
        formats=counted.formats,
        vocab_size=len(tokenizer),
        merges=len(training.merges),
        initial_bytes=training.initial_bytes,
        initial_tokens=training.initial_tokens,
        tokens=tokens,
        superwords=None if learnt is None else len(learnt.merges),
        run_tokens=None if learnt is None else learnt.initial_tokens,
        run_tokens_left=None if learnt is None else learnt.tokens,
        stopped=last.stopped,
        sha256=storage.digest(path).sha256,
        dialect=why_dialect(tokenizer.parts),
        scale=last.counts.get("scale", 1),
        mix=mix,
        seconds=seconds,
    )


def trained(
    counts: Sequence[_Counts],
    training: TrainSettings,
    special_tokens: tuple[str, ...],
    *,
    report: Callable[[int, int], object] | None = None,
    extend: Tokenizer | None = None,
    groups: Groups | None = None,
) -> Tokenizer:
    """Return the trained tokenizer.

    Arguments and errors are those of ``bpe.train``; for superwords, of ``bpe.train_superwords``,
    where ``extend`` is the tokenizer of words; for groups, of ``bpe.train_parity``.

    Args:
        counts: of each group in their order; without groups, of the whole text alone.
        training: the settings.
        special_tokens: those that get ids.
        report: called with the number of merges, and of all.
        extend: the tokenizer that is extended.
        groups: of a parity-aware training.
    """
    if groups is not None:
        dev = [partial(load_counts, directory) for directory in groups.dev]
        return bpe.train_parity(
            groups.named(counts),
            dev=groups.named(dev) if dev else None,
            global_merges=groups.parity.global_merges,
            window=groups.parity.window,
            alpha=groups.parity.alpha,
            special_tokens=special_tokens,
            progress=report,
            **training.limits,
        )
    (whole,) = counts
    if training.is_of_superwords:
        return bpe.train_superwords(
            whole,
            tokenizer=_words(extend),
            superwords=training.superwords,
            boundless=training.boundless,
            ties=training.ties,
            pair_counts=training.pair_counts,
            min_frequency=training.min_frequency,
            prune_below=training.prune_runs_below,
            progress=report,
        )
    return bpe.train(
        whole,
        special_tokens=special_tokens,
        extend=extend,
        progress=report,
        **training.arguments,
    )


def _words(tokenizer: Tokenizer | None) -> Tokenizer:
    """Return the tokenizer of words to which superwords are added.

    Raises:
        ConfigError: no tokenizer is given.
    """
    if tokenizer is None:
        raise ConfigError(
            "superwords are added to a tokenizer of words: give `tokenizer` FILE, whose runs were "
            "counted"
        )
    return tokenizer


def read_roles(settings: RoleSettings) -> Roles:
    """Return the roles of settings, with the text of the chat template.

    Raises:
        InputError: the file of the template cannot be read, or is not UTF-8.
    """
    named = {**vars(settings)}
    template = settings.chat_template
    if template in CHAT_TEMPLATES:
        named["chat_template"] = CHAT_TEMPLATES[template]
    elif template is not None:
        try:
            named["chat_template"] = storage.read(template).decode()
        except UnicodeDecodeError as error:
            raise InputError(f"{template}: the chat template is not UTF-8: {error}") from None
        except InputError as error:
            known = ", ".join(CHAT_TEMPLATES)
            raise InputError(f"{error} (or name a chat template: {known})") from None
    return Roles(**named)


def check_cut(counts: tuple[CountsInput, ...], cut: Pretokenizer) -> None:
    """Check that the text of counts was cut as the options of a training say.

    Raises:
        ConfigError: counts have another pre-tokenizer.
        InputError, bpe.errors.CountsError: counts are missing or damaged.
    """
    for source in counts:
        found = read_counts(source.directory).manifest.pretokenizer
        if found != cut:
            raise ConfigError(
                f"{source.directory} was split with {found}, but the options or the preset say "
                f"{cut}: count again so, or leave them out"
            )
