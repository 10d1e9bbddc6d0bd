"""Counts to a tokenizer: once, in a worker, from the count files themselves.

The plan of a training on a corpus lies in its directory before the counts do, which `CountCorpus`
makes in the folder ``counts``: its run is that of the counts.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import apache_beam as beam
import pyarrow as pa

import bpe
from bpe import Tokenizer
from bpe._codec import encode
from bpe.counts import PretokenCounts, check_agreement, combine, require_pretokens
from bpe.counts.manifest import add_formats
from bpe.diff import fit
from bpe.errors import BpeError, CountsError
from bpe.formats.cut_at_marks import WORDS
from bpe.formats.huggingface import why_dialect
from bpe.models import CharacterLevel
from bpe.roles import Roles
from bpe.run_counting import runs_of
from bpe.ties import needs_order
from bpe.training_report import MixedSource, model_settings
from pipelines import storage
from pipelines.corpus.inputs import check_sources, describe_inputs
from pipelines.count.directory import load_counts, read_counts_manifest
from pipelines.count.job import CountRequest, count_in, run_count
from pipelines.count.runs import RunsOf
from pipelines.elements import Step
from pipelines.errors import ConfigError, InputError, JobError, StoppedError
from pipelines.extension import extended_pretokens, load_extended, located
from pipelines.failures import job_errors
from pipelines.metrics import counter
from pipelines.option import percent
from pipelines.output.directory import (
    decide,
    is_folder,
    plan_of_run,
    prepare,
    refuse_links,
    remove_ours,
    remove_temporaries,
    run_of,
    training_failed,
)
from pipelines.output.lock import locked
from pipelines.output.names import (
    COUNTS,
    MANIFEST,
    OF_WORDS,
    RUNS,
    SOURCE,
    TOKENIZER,
    TRAINING,
    Plan,
    fingerprint,
    group_folder,
    read_plan,
)
from pipelines.output.state import complete
from pipelines.output.timings import save_timing
from pipelines.parity import check_parity, find_groups
from pipelines.planned import Planned, run_planned
from pipelines.progress import NoProgress, SlotWriter
from pipelines.run import options
from pipelines.settings import (
    CHAT_TEMPLATES,
    CountSettings,
    CountsInput,
    PretokenSettings,
    RunSettings,
    parse_shares,
)
from pipelines.stage.stage import Job
from pipelines.storage import join
from pipelines.summaries import TrainSummary
from pipelines.tokenizer_files import load_tokenizer, write_tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from bpe.counts import Runs
    from bpe.counts.manifest import CountsManifest
    from bpe.models import Model
    from bpe.pretokenizer import Pretokenizer
    from pipelines.failures import Failures
    from pipelines.parity import Groups
    from pipelines.progress import Progress
    from pipelines.settings import (
        Execution,
        InputSettings,
        OutputSettings,
        ParitySettings,
        RoleSettings,
        ShareOf,
        TrainSettings,
    )


@dataclass(frozen=True, kw_only=True)
class TrainRequest(Job):
    """What a training carries in its graph.

    Attributes:
        counts: the counts to train on, each with its weight; where superwords follow words, those
            of pre-tokens.
        paths: of these, as they were given.
        special_tokens: get reserved ids, after those the counts were cut at.
        training: the vocabulary.
        roles: of special tokens; none for those of the tokenizer that is extended.
        extends: the SHA-256 of the tokenizer that is extended; empty where there is none.
        mix: of the corpus, as the plan says it: the shares, and what they are of; None where all
            of it is trained on. ``counts`` have shares until the corpus is counted, then weights.
        groups: of a parity-aware training; None where the counts are added up.
        runs: how runs are found, where words and then superwords are learnt; both phases leave
            their output in folders of the directory.
        then: ``encoded`` where the corpus is encoded next, as ``bpe run`` does it, ``export`` where
            that is exported too: the directory is not complete before.
        tokens: of each of the counts, in tokens of another tokenizer, where shares are of these.
    """

    counts: tuple[CountsInput, ...]
    paths: tuple[str, ...]
    special_tokens: tuple[str, ...]
    training: TrainSettings
    roles: Roles = field(default_factory=Roles)
    extends: str = ""
    mix: dict[str, Any] | None = None
    groups: Groups | None = None
    runs: RunSettings | None = None
    then: Literal["encoded", "export"] | None = None
    tokens: tuple[int, ...] = ()
    name = "train"
    last_file = TOKENIZER

    @property
    def shown(self) -> dict[str, str]:
        """What a runner's web UI shows of it, beside the output."""
        return {**super().shown, "counts": ", ".join(self.paths), "ties": self.training.ties}

    def folder(self, name: str) -> str:
        """Where something lies that is made for the training, such as its counts."""
        return join(self.directory, name)

    def plan(self, counting: Planned | None = None) -> Planned:
        """What makes two trainings the same job: the vocabulary, and what it is trained on.

        Args:
            counting: the counts that are made for it; None where they are there already.

        Raises:
            InputError, bpe.errors.CountsError: counts that should be there are not, or are damaged.
            OutputError: the folder of the counts is a link.
        """
        training = self.training
        settings: dict[str, Any] = {
            "vocab_size": training.vocab_size,
            "max_merges": training.max_merges,
            "ties": training.ties,
            "pair_counts": training.pair_counts,
            "min_frequency": training.min_frequency,
            "prune_below": training.prune_below,
            "model": model_settings(_model(training)),
            "initial_alphabet": list(training.initial_alphabet),
            "character_coverage": training.character_coverage,
            "special_tokens": list(self.special_tokens),
            **({"roles": encode(self.roles)} if self.roles else {}),
            **({"extend": self.extends} if self.extends else {}),
            **({"parity": self.groups.settings()} if self.groups is not None else {}),
            **_superword_settings(training, self.runs),
        }
        if counting is None:
            settings["counts"] = self._checked_counts()
            inputs = describe_inputs(())
        else:
            settings |= counting.plan.settings
            if self.mix is not None:  # its counts keep what the training drops
                settings |= {"prune_below": training.prune_below, "mix": self.mix}
            inputs = dict(counting.plan.inputs)
        own = join(self.folder(COUNTS), "")  # groups are in folders of it
        others = [c.directory for c in self.counts if not join(c.directory, "").startswith(own)]
        phases = [] if self.runs is None else [OF_WORDS, RUNS]
        keep = [*([COUNTS] if len(others) < len(self.counts) else []), *phases]
        refuse_links(self.directory, keep if counting is not None else phases)
        return Planned(
            plan=Plan(
                kind="tokenizer",
                parts=(),
                settings=settings,
                inputs=inputs,
                run=self.run,
                then=self.then,
            ),
            reads=(
                *(counting.reads if counting else ()),
                *(join(source, MANIFEST) for source in others),
                *(join(source, MANIFEST) for source in (self.groups.dev if self.groups else ())),
                *([training.extend] if training.extend else ()),
            ),
            keep=tuple(keep),
        )

    def _checked_counts(self) -> list[list[str]]:
        """Which counts these are, each with its weight."""
        manifests = []
        for source in self.counts:
            complete(source.directory, "counts")
            manifests.append(read_counts_manifest(source.directory))
        first = manifests[0]
        for manifest, source in zip(manifests, self.counts, strict=True):
            check_agreement(first, manifest, titles=(self.counts[0].directory, source.directory))
        extend = load_extended(self.training, sha256=self.extends)
        if self.training.is_of_superwords:
            _check_superwords(self.training, extend, first.runs, title=self.paths[0])
            return self._fingerprints(manifests)
        require_pretokens(
            first,
            title=self.paths[0],
            remedy="learn superwords from them: give `tokenizer`, and `superwords` N or "
            "`boundless`",
        )
        if self.groups is not None:
            self.groups.check(
                self.training,
                pretokenizer=first.pretokenizer,
                special_tokens=self.special_tokens,
                counted_without=first.special_tokens,
            )
            return self._fingerprints(manifests)
        check_training(
            self.training,
            pretokenizer=first.pretokenizer,
            counted_without=first.special_tokens,
            special_tokens=self.special_tokens,
            extend=extend,
            runs=self.runs,
        )
        return self._fingerprints(manifests)

    def _fingerprints(self, manifests: Sequence[CountsManifest]) -> list[list[str]]:
        return [
            [fingerprint(manifest.to_json()), str(source.weight)]
            for manifest, source in zip(manifests, self.counts, strict=True)
        ]

    def begin(self) -> bool:
        """Plan the training and prepare its directory, where this run has not."""
        self.begin_with(None)
        return True

    def begin_with(self, counting: Planned | None) -> None:
        """The same for a training on counts that are made for it; arguments of `plan`.

        Raises:
            JobError: the training cannot be done; the class says why.
        """
        if run_of(self.directory) == self.run:
            return
        planned = self.plan(counting)
        others = [
            name
            for name in (COUNTS, OF_WORDS, RUNS)
            if name not in planned.keep and is_folder(self.directory, name)
        ]
        if self.output.overwrite and others:
            decide(self.output, planned.plan, reads=planned.reads, keep=planned.keep)
            for name in others:  # they are not those of the new tokenizer
                remove_ours(self.folder(name))
        prepare(self.output, planned.plan, reads=planned.reads, keep=planned.keep)

    def steps(self, begun: Any, failures: Failures) -> Any:
        """Train, once."""
        return begun | "Train" >> beam.ParDo(Step(failures, _trained, self, failures))

    def finish(self) -> str:
        """The directory: the training wrote its files itself."""
        return self.directory

    def why_ended(self) -> str:
        """Why the training ended, where it need not reach its total."""
        return str(json.loads(storage.read(join(self.directory, TRAINING)))["stopped"])


def check_training(
    training: TrainSettings,
    *,
    pretokenizer: Pretokenizer,
    special_tokens: tuple[str, ...],
    counted_without: tuple[str, ...] = (),
    extend: Tokenizer | None = None,
    runs: RunSettings | None = None,
) -> None:
    """Refuse what no counts could be trained with, before any are made or read.

    Args:
        training: the vocabulary.
        pretokenizer: of the counts.
        special_tokens: that get reserved ids.
        counted_without: the special tokens that the counts were cut at.
        extend: the tokenizer that is extended.
        runs: how runs are found, where superwords are learnt after words.

    Raises:
        bpe.errors.CountsError: superwords cannot be learnt of such a tokenizer, or of such runs.
        bpe.errors.TrainingError, bpe.errors.SpecialTokenError: a setting is wrong.
    """
    falls_back = isinstance(training.model, CharacterLevel) and training.model.byte_fallback
    if falls_back and "mark-spaces" not in pretokenizer.normalizer:
        raise ConfigError(
            f"sentencepiece-bpe needs spaces as marks, and text is split with {pretokenizer}: add "
            f"--normalizer prepend-mark --normalizer mark-spaces and --pattern '{WORDS}'"
        )
    letter = PretokenCounts.from_items(
        {"a": 1 << 60}, special_tokens=counted_without, track_order=True
    )
    letter = replace(letter, pretokenizer=pretokenizer)
    words = trained(letter, training, special_tokens, extend=extend)
    if runs is not None:
        found = runs_of(words, merge_pattern=runs.merge_pattern, max_run=runs.max_run)
        _check_superwords(training.superwords_on(""), words, found, title="")


def _check_superwords(
    training: TrainSettings, words: Tokenizer | None, runs: Runs | None, *, title: str
) -> None:
    """Refuse what no superwords can be learnt from, before any are.

    Args:
        training: of superwords.
        words: the tokenizer that they are added to.
        runs: what the counts say of themselves.
        title: names the counts in errors.

    Raises:
        ConfigError: the counts are of pre-tokens, or of runs of another tokenizer.
        bpe.errors.TrainingError: a setting is wrong.
    """
    if runs is None:
        raise ConfigError(
            f"{title} holds counts of pre-tokens, superwords are learnt from counts of runs: make "
            f"them with bpe count --runs --tokenizer {training.extend}"
        )
    words = _words(words)
    if runs.tokenizer != words.text_sha256:
        raise ConfigError(
            f"{title} holds counts of runs of another tokenizer than {training.extend}: give the "
            "one that they were counted with, or count runs again"
        )
    nothing = bpe.count_runs(
        [], tokenizer=words, merge_pattern=runs.merge_pattern, max_run=runs.max_run
    )
    trained(nothing, training, (), extend=words)


def train_tokenizer(job: TrainRequest, failures: Failures) -> None:
    """Train on the files of the counts and write ``training.json``, then ``tokenizer.json``.

    Raises:
        InputError: counts cannot be read, or do not go together.
        bpe.errors.TrainingError: a setting is wrong for these counts.
        OutputError: a file cannot be written, or another job has taken the directory over.
    """
    with SlotWriter(job.counters_path, 0) as slot:

        def report(done: int, total: int) -> None:
            if failures.stopped():
                raise StoppedError
            slot.advance(done, total)

        if job.groups is not None:
            tokenizer = job.groups.train(
                [source.directory for source in job.counts],
                job.training,
                job.special_tokens,
                report=report,
            )
        else:
            tokenizer = trained(
                lambda: _read(job.counts, what="run" if job.training.is_of_superwords else "text"),
                job.training,
                job.special_tokens,
                report=report,
                extend=load_extended(job.training, sha256=job.extends),
            )
    training = tokenizer.training
    if training is None:
        raise InputError("the tokenizer has no record of its training")
    if not job.training.is_of_superwords:  # else the mix is that of the words
        training = replace(training, mix=effective_mix(job))
    if job.roles:
        tokenizer = tokenizer.with_roles(job.roles)
    plan_of_run(job.directory, job.run)  # of another job by now: this one ends
    remove_temporaries(job.directory)
    storage.write(join(job.directory, TRAINING), training.to_json().encode("utf-8"))
    write_tokenizer(join(job.directory, TOKENIZER), tokenizer)
    counter("merges_trained").inc(len(training.merges))


_NOTHING = {
    "text": "no text that is counted (its documents are empty, or hold special tokens or dropped "
    "white space only)",
    "run": "no runs, of which superwords are learnt: nowhere do two pre-tokens follow each other "
    "that are one token each and match the merge pattern (a larger vocabulary of words has more)",
}


def _read(sources: tuple[CountsInput, ...], *, what: Literal["text", "run"]) -> PretokenCounts:
    """What there is to train on."""
    counts = _combined(sources)
    if len(counts) == 0:
        raise InputError(f"there is nothing to train on: the corpus holds {_NOTHING[what]}")
    pa.default_memory_pool().release_unused()  # what the files were unpacked in
    return counts


def _combined(sources: tuple[CountsInput, ...]) -> PretokenCounts:
    """The counts of all directories with their weights; no more than two are held at a time."""
    first, *others = sources
    counts = combine([(load_counts(first.directory), first.weight)], names=[first.directory])
    for source in others:
        more = load_counts(source.directory)
        names = [first.directory, source.directory]
        counts = combine([(counts, 1), (more, source.weight)], names=names)
    return counts


def counts_of_sources(directory: str, shares: Mapping[str, Fraction]) -> tuple[CountsInput, ...]:
    """The counts of each source of a mix, with its share.

    Args:
        directory: of counts by source.
        shares: of each; from `pipelines.settings.parse_shares`.
    """
    return tuple(
        CountsInput(directory=_of_source(directory, name), share=share, source=name)
        for name, share in shares.items()
    )


def _of_source(directory: str, name: str) -> str:
    return join(directory, group_folder(SOURCE, name))


def with_weights(
    sources: Sequence[CountsInput], *, of: ShareOf = "bytes", tokens: Sequence[int] = ()
) -> tuple[CountsInput, ...]:
    """Weights in place of shares: the smallest is 1, the others have up to four decimals.

    So each count is taken once at least, and no share is more than 0.01 % of itself beside what was
    asked for.

    Args:
        sources: all with a share, or none.
        of: what the shares are of: the bytes of all texts, the pre-tokens, or ``tokens``.
        tokens: of each source, where shares are of these (`tokens_of`).

    Raises:
        ConfigError: some have no share, or the shares do not add up to 1.
        InputError: counts cannot be read, or hold nothing to have a share of.
    """
    shares = [source.share for source in sources if source.share is not None]
    if not shares:
        return tuple(sources)
    if len(shares) < len(sources):
        bare = next(source for source in sources if source.share is None)
        raise ConfigError(
            f"`counts` {bare.directory} has no share, others have one: give all of them shares, "
            "or weights"
        )
    if sum(shares) != 1:
        raise ConfigError(
            f"the shares of `counts` add up to {percent(sum(shares, Fraction()))}, not to 100%"
        )
    factors = []
    for number, (source, share) in enumerate(zip(sources, shares, strict=True)):
        complete(source.directory, "counts")
        manifest = read_counts_manifest(source.directory)
        totals = manifest.totals
        size = tokens[number] if of == "tokens" else getattr(totals, of)
        if size == 0:
            raise InputError(f"{source.directory}: no {of} were counted: it can have no share")
        factors.append(share * manifest.scale / size)
    least = min(factors)
    return tuple(
        replace(source, weight=Fraction(round(10_000 * factor / least), 10_000), share=None)
        for source, factor in zip(sources, factors, strict=True)
    )


def tokens_of(sources: Sequence[CountsInput], tokenizer: str | None) -> tuple[int, ...]:
    """How many tokens of a tokenizer each of several counts is, exactly; as the counts are scaled.

    Args:
        sources: with shares.
        tokenizer: its file.

    Raises:
        ConfigError: there is no tokenizer, it cuts otherwise, or no source has a share.
        InputError: counts or tokenizer cannot be read, or the counts are of runs.
    """
    if tokenizer is not None and all(source.share is None for source in sources):
        raise ConfigError(
            "`share_tokenizer` goes with shares, such as `counts` DIR:60% or `mix` NAME=60%"
        )
    loaded = _share_tokenizer(tokenizer, _cuts(sources))
    return tuple(fit(loaded, load_counts(source.directory)).tokens for source in sources)


def _cuts(sources: Sequence[CountsInput]) -> Iterator[tuple[str, Pretokenizer]]:
    for source in sources:
        complete(source.directory, "counts")
        yield source.directory, read_counts_manifest(source.directory).pretokenizer


def _share_tokenizer(tokenizer: str | None, cuts: Iterable[tuple[str, Pretokenizer]]) -> Tokenizer:
    """The tokenizer in a file, whose tokens shares are of.

    Args:
        tokenizer: the file.
        cuts: what errors call each text, and how it is cut.

    Raises:
        ConfigError: there is none, it cuts text otherwise, or it has superwords.
        InputError: it cannot be read.
    """
    if tokenizer is None:
        raise ConfigError(
            "`share_of` tokens: give `share_tokenizer` FILE, whose tokens they are: the tokenizer "
            "that is trained here is not known before its mix is"
        )
    loaded = load_tokenizer(tokenizer)
    if loaded.superwords:
        raise ConfigError(
            f"the `share_tokenizer` {tokenizer} has superwords, which cross pre-tokens: counts do "
            "not say how often they occur: use a tokenizer without superwords, or shares of bytes"
        )
    for title, cut in cuts:
        if cut != loaded.pretokenizer:
            raise ConfigError(
                f"{title} was split with {cut}, and the `share_tokenizer` {tokenizer} "
                f"splits with {loaded.pretokenizer}: its tokens cannot be counted there: use a "
                "tokenizer that splits text likewise, or shares of bytes"
            )
    return loaded


def effective_mix(job: TrainRequest) -> tuple[MixedSource, ...]:
    """The share of each of several counts in what is trained on, by bytes and by pre-tokens.

    By tokens too, where the shares are of these.

    A weight multiplies counts, so shares follow from the sizes of the corpora as well. Empty for
    one set of counts without a weight, which is all there is.
    """
    if len(job.counts) == 1 and job.counts[0].weight == 1:
        return ()
    sizes = []
    for number, source in enumerate(job.counts):
        manifest = read_counts_manifest(source.directory)
        factor = Fraction(source.weight) / manifest.scale
        held = [manifest.totals.bytes, manifest.totals.pretokens, *job.tokens[number : number + 1]]
        sizes.append([factor * size for size in held])
    totals = [max(sum(column), Fraction(1)) for column in zip(*sizes, strict=True)]
    return tuple(
        MixedSource(
            path=path,
            weight=str(source.weight),
            bytes_share=float(size / totals[0]),
            pretokens_share=float(pretokens / totals[1]),
            tokens_share=float(tokens[0] / totals[2]) if tokens else None,
        )
        for path, source, (size, pretokens, *tokens) in zip(
            job.paths, job.counts, sizes, strict=True
        )
    )


def training_facts(job: TrainRequest, words: TrainSummary | None = None) -> dict[str, Any]:
    """What there is to say about a finished training, from the files it left.

    Args:
        job: the training.
        words: the training of words on the same corpus, to which superwords were added.

    Raises:
        InputError: a file cannot be read.
    """
    path = join(job.directory, TOKENIZER)
    tokenizer = load_tokenizer(path)
    training = json.loads(storage.read(join(job.directory, TRAINING)))
    merges, counts = training["merges"], training["counts"]
    superwords: dict[str, Any] = {}
    if (learnt := training.get("superwords")) is not None:
        stopped, run_tokens = learnt["stopped"], learnt["initial_tokens"]
        rows = learnt["merges"]
        left = rows[-1]["tokens_left"] if rows else run_tokens
        pruned = training["pruned"] is not None and training["pruned"]["distinct_pretokens"] > 0
        superwords = {
            "superwords": len(rows),
            "run_tokens": run_tokens,
            "run_tokens_left": left,
            "scale": learnt["counts"].get("scale", 1),
            "mix": effective_mix(job),
            "tokens": None
            if words is None or words.tokens is None or pruned  # runs hold the dropped pre-tokens
            else words.tokens - run_tokens + left,
            "stopped": stopped,
        }
    counted = [read_counts_manifest(source.directory).totals for source in job.counts]
    return {
        "counts": tuple(source.directory for source in job.counts),
        "documents": sum(one.documents for one in counted),
        "bytes": sum(one.bytes for one in counted),
        "pretokens": counts.get("pretokens"),
        "distinct_pretokens": counts.get("distinct_pretokens"),
        "failures": sum(one.failures for one in counted),
        "formats": add_formats(*(one.formats for one in counted)),
        "vocab_size": len(tokenizer),
        "merges": len(merges),
        "initial_bytes": training["initial_bytes"],
        "initial_tokens": training["initial_tokens"],
        "tokens": merges[-1]["tokens_left"] if merges else training["initial_tokens"],
        "stopped": training["stopped"],
        "sha256": storage.digest(path).sha256,
        "dialect": why_dialect(tokenizer.parts),
        "weighted": any(source.weight != 1 for source in job.counts),
        "scale": counts.get("scale", 1),
        "mix": tuple(MixedSource(**source) for source in training["mix"]),
        **superwords,
    }


def trained(
    counts: PretokenCounts | Callable[[], PretokenCounts],
    training: TrainSettings,
    special_tokens: tuple[str, ...],
    *,
    report: Callable[[int, int], object] | None = None,
    extend: Tokenizer | None = None,
) -> Tokenizer:
    """The tokenizer that these settings ask for; arguments and errors of ``bpe.train``.

    Of superwords, those of ``bpe.train_superwords``: ``extend`` is the tokenizer of words.
    """
    if training.is_of_superwords:
        return bpe.train_superwords(
            counts,
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
        counts,
        vocab_size=training.vocab_size,
        max_merges=training.max_merges,
        ties=training.ties,
        pair_counts=training.pair_counts,
        special_tokens=special_tokens,
        min_frequency=training.min_frequency,
        prune_below=training.prune_below,
        model=_model(training),
        initial_alphabet=training.initial_alphabet,
        character_coverage=training.character_coverage,
        extend=extend,
        progress=report,
    )


def _words(tokenizer: Tokenizer | None) -> Tokenizer:
    """The tokenizer of words that superwords are added to.

    Raises:
        ConfigError: there is none.
    """
    if tokenizer is None:
        raise ConfigError(
            "superwords are added to a tokenizer of words: give `tokenizer` FILE, whose runs were "
            "counted"
        )
    return tokenizer


def _superword_settings(training: TrainSettings, runs: RunSettings | None) -> dict[str, Any]:
    """What a plan says of superwords; nothing where none are learnt."""
    if not training.crosses_words:
        return {}
    return {
        "superwords": training.superwords,
        "boundless": training.boundless,
        "prune_runs_below": training.prune_runs_below,
        **({} if runs is None else {RUNS: encode(runs)}),
    }


def _model(training: TrainSettings) -> Model:
    return bpe.ByteLevel() if training.model is None else training.model


def read_roles(settings: RoleSettings | None) -> Roles:
    """The roles that settings describe, with the chat template itself.

    Raises:
        InputError: its file cannot be read, or is not UTF-8.
    """
    if settings is None:
        return Roles()
    named = {one.name: getattr(settings, one.name) for one in fields(settings)}
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


def _trained(_: None, request: TrainRequest, failures: Failures) -> list[None]:
    train_tokenizer(request, failures)
    return [None]


def train(
    *,
    inputs: InputSettings | None = None,
    counts: tuple[CountsInput, ...] = (),
    pretokens: PretokenSettings,
    training: TrainSettings,
    output: OutputSettings,
    execution: Execution,
    roles: RoleSettings | None = None,
    share_of: ShareOf = "bytes",
    share_tokenizer: str | None = None,
    parity: ParitySettings | None = None,
    runs: RunSettings = RunSettings(),  # noqa: B008  # immutable
    mix: Sequence[str] = (),
    progress: Progress | None = None,
    then: Literal["encoded", "export"] | None = None,
) -> TrainSummary:
    """Train a tokenizer on a corpus, or on counts that were made before.

    With inputs, their counts go to ``counts/`` in the output directory, those of a mix to a folder
    for each source. When a job is resumed, counts that are complete are kept, and training, which
    is short, is done again.

    With superwords, a tokenizer of words goes to ``words/``, and the counts of its runs to
    ``runs/``. A training of superwords alone takes such counts.

    Args:
        inputs: the corpus; None to train on ``counts``. For superwords on words from ``counts``,
            the corpus that these are of.
        counts: directories of counts.
        pretokens: how the text of ``inputs`` is cut; its special tokens get reserved ids.
        training: the vocabulary.
        output: the directory.
        execution: where the work is done.
        roles: of special tokens, which become special tokens.
        share_of: what shares of ``counts``, or of ``mix``, are of.
        share_tokenizer: a tokenizer file, where they are of tokens.
        parity: whether the directories of ``counts`` are groups, which choose merges in turn.
        runs: how runs are found, of which superwords are learnt.
        mix: ``NAME=SHARE`` of each source of ``inputs``, whose patterns begin with ``NAME=``.
        progress: told how far it is.
        then: as in `TrainRequest`.

    Raises:
        JobError: something is wrong; the class says what.
    """
    began = time.monotonic()
    progress = progress or NoProgress()
    with job_errors():
        options(execution)
        two_phases = training.crosses_words and inputs is not None
        if (inputs is None) == (not counts) and not (two_phases and counts):
            raise ConfigError("train on inputs or on counts: give one of them")
        _check_phases(training, inputs)
        if roles is not None:
            pretokens = roles.with_tokens(pretokens)
        training = located(training)
        cut_given = pretokens.cut != PretokenSettings().cut
        extend = load_extended(training)
        if extend is not None:
            pretokens = extended_pretokens(pretokens, training, extend, cut_given=cut_given)
        groups = None
        if parity is not None and parity.parity:
            check_parity(counts, training)
            counts, groups = find_groups(counts, parity)
        directory = storage.located(output.directory)
        own, is_counted = join(directory, COUNTS), not counts
        shares = parse_shares(mix)
        if inputs is not None and shares:
            check_sources(inputs, shares)
        if shares and not (is_counted and inputs is not None):
            raise ConfigError(
                "`mix` NAME=SHARE goes with `input` NAME=PATTERN; for shares of counts, give "
                "`counts` DIR:SHARE%"
            )
        counts = counts or counts_of_sources(own, shares) or (CountsInput(directory=own),)
        sources = [replace(c, directory=storage.located(c.directory)) for c in counts]
        if share_tokenizer is not None and share_of != "tokens":
            raise ConfigError("`share_tokenizer` goes with `share_of` tokens")
        asked = _mix_settings(shares, share_of, share_tokenizer, cut=pretokens.cut)

        def in_shares(request: TrainRequest) -> TrainRequest:
            tokens = tokens_of(sources, share_tokenizer) if share_of == "tokens" else ()
            weighted = with_weights(sources, of=share_of, tokens=tokens)
            return replace(request, counts=weighted, tokens=tokens)

        request = TrainRequest(
            output=replace(output, directory=directory),
            counts=tuple(sources),
            mix=asked,
            paths=tuple(c.title for c in counts),
            special_tokens=pretokens.special_tokens,
            training=training,
            roles=read_roles(roles),
            extends="" if extend is None else extend.sha256,
            groups=groups,
            runs=runs if two_phases else None,
            then=then,
        ).started()
        if asked is None:
            request = in_shares(request)
        counting = None
        if inputs is not None and is_counted:
            check_training(
                training,
                pretokenizer=pretokens.cut,
                special_tokens=pretokens.special_tokens,
                extend=extend,
                runs=request.runs,
            )
            ordered = needs_order(training.ties)
            count_request = CountRequest.of(
                inputs=inputs,
                pretokens=pretokens,
                output=in_training(replace(output, directory=own), directory),
                settings=CountSettings(
                    track_order=ordered,
                    # Of a mix, what is rare is so in all of it, with its weights.
                    prune_below=training.prune_below if asked is None else 1,
                ),
                sources=tuple(sorted(shares)),
            )
            count_request = replace(count_request, run=request.run, training=request)
            counting = replace(count_request, inputs=inputs).plan()
        planned, resumed = request.plan(counting), False
        with locked(directory):
            decide(request.output, planned.plan, reads=planned.reads, keep=planned.keep)
            if counting is not None:
                resumed = run_count(
                    *(count_request, counting),
                    execution=execution,
                    progress=progress,
                    held=directory,
                )
            if asked is not None:
                request = in_shares(request)
            phases: dict[str, Any] = {}
            if two_phases and inputs is not None:
                request.begin_with(counting)
                phases = _words_and_runs(request, inputs, execution=execution, progress=progress)
                request = _of_superwords(request)
            trained_since = time.monotonic()
            with run_planned(
                request, planned, execution=execution, progress=progress, held=directory
            ):
                words = None if training.boundless else phases.get("words")
                facts = training_facts(request, words)
            _save_time(request, facts, time.monotonic() - trained_since, execution=execution)
    return TrainSummary(
        output=directory,
        passed_over=counting.passed_over if counting else (),
        resumed_counts=resumed,
        seconds=time.monotonic() - began,
        **phases,
        **facts,
    )


def in_training(output: OutputSettings, training: str) -> OutputSettings:
    """The settings of a job in a folder of a training, where that may be repeated after it failed.

    What it made is gone on with; counts of nothing, on which nobody can train, are replaced.

    Args:
        output: of the job.
        training: the directory of the training.
    """
    if output.overwrite or not training_failed(training):
        return output
    try:
        manifest = read_counts_manifest(output.directory)
    except (InputError, CountsError):
        return replace(output, resume=True)
    empty = not any(part.rows for part in manifest.parts)
    return replace(output, resume=not empty, overwrite=empty)


def _mix_settings(
    shares: Mapping[str, Fraction], of: ShareOf, tokenizer: str | None, *, cut: Pretokenizer
) -> dict[str, Any] | None:
    """What the plan of a training says of the mix of its corpus; None where it has none.

    Args:
        shares: of each source.
        of: what they are of.
        tokenizer: a file, where they are of its tokens.
        cut: how the corpus is cut.

    Raises:
        ConfigError, InputError: as in `tokens_of`; also of a tokenizer that may meet characters
            that it has no token for.
    """
    if not shares:
        return None
    settings: dict[str, Any] = {
        "shares": [[name, str(share)] for name, share in shares.items()],
        "of": of,
    }
    if of == "tokens":
        loaded = _share_tokenizer(tokenizer, [("the corpus", cut)])
        model = loaded.model
        if isinstance(model, CharacterLevel) and not (model.unknown or model.byte_fallback):
            raise ConfigError(
                f"the `share_tokenizer` {tokenizer} has no token for unknown characters, so its "
                "tokens cannot be counted in any corpus: use one with an unknown token or byte "
                "fallback, or shares of bytes"
            )
        settings["tokenizer"] = loaded.sha256
    return settings


def _save_time(
    request: TrainRequest, facts: Mapping[str, Any], seconds: float, *, execution: Execution
) -> None:
    save_timing(
        *(request.directory, "train", seconds),
        read=(facts["documents"], facts["bytes"]),
        made=(facts["merges"], "merges"),
        execution=execution,
    )


def _check_phases(training: TrainSettings, inputs: InputSettings | None) -> None:
    """Refuse settings of superwords that do not go with what is trained on.

    Raises:
        ConfigError: they do not.
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
    if not isinstance(training.model, (bpe.ByteLevel, type(None))):
        raise ConfigError("`model`: superwords need tokens of bytes: use bpe, or leave it out")
    if inputs is None and training.prune_below != 1:
        raise ConfigError(
            "`prune_below` is of pre-tokens: to drop rare runs, use `prune_runs_below`"
        )


def _words_and_runs(
    request: TrainRequest, inputs: InputSettings, *, execution: Execution, progress: Progress
) -> dict[str, Any]:
    """Train the words of a training with superwords, and count their runs; what was made.

    Each is a job of its own, in a folder of the training's directory, which is locked. Complete
    ones of the same job are kept where the training is resumed.

    Args:
        request: of the whole training, which has begun.
        inputs: the corpus.
        execution: where the work is done.
        progress: told how far it is.

    Raises:
        JobError: something is wrong; the class says what.
    """
    held, began = request.directory, time.monotonic()
    words = replace(
        request,
        output=in_training(
            replace(request.output, directory=request.folder(OF_WORDS)), request.directory
        ),
        training=request.training.words,
        runs=None,
        then=None,
        run="",
    ).started()
    planned = words.plan()
    if words.output.resume and _is_trained(words, planned):
        progress.log(f"train: {words.directory} is complete")
    else:
        with run_planned(words, planned, execution=execution, progress=progress, held=held):
            pass
    facts = training_facts(words)
    _save_time(words, facts, time.monotonic() - began, execution=execution)
    trained_words = TrainSummary(output=words.directory, seconds=time.monotonic() - began, **facts)
    counted = count_in(
        inputs=inputs,
        runs=RunsOf.of(join(words.directory, TOKENIZER), request.runs or RunSettings()),
        output=in_training(
            replace(request.output, directory=request.folder(RUNS)), request.directory
        ),
        sources=tuple(sorted(one.source for one in request.counts if one.source)),
        execution=execution,
        progress=progress,
        held=held,
    )
    _check_same_corpus(request)
    return {"words": trained_words, "runs": counted}


def _is_trained(request: TrainRequest, planned: Planned) -> bool:
    """Whether an earlier run of this training finished, and left its files as they should be."""
    if planned.plan.differences(read_plan(request.directory)):
        return False
    try:
        training_facts(request)
    except (JobError, BpeError, ValueError, LookupError):
        return False
    return True


def _check_same_corpus(request: TrainRequest) -> None:
    """Refuse runs of a corpus that has changed since its words were counted.

    Raises:
        InputError: it has.
    """
    counts = [request.folder(COUNTS)]  # those by source say only together which files they are of
    if not request.counts[0].source:
        counts = [one.directory for one in request.counts]
    words, runs = (
        [file for source in sources for file in read_counts_manifest(source).inputs]
        for sources in (counts, [request.folder(RUNS)])
    )
    if words and sorted(words) != sorted(runs):
        raise InputError(
            f"{request.folder(RUNS)} is of other files than the counts of words (by name and "
            "size): the input was changed while the job ran: start it again with `overwrite`"
        )


def _of_superwords(request: TrainRequest) -> TrainRequest:
    """The last phase of a training with superwords, under the plan of the whole.

    Runs of each source of a mix weigh as much as its words.
    """
    path, runs = join(request.folder(OF_WORDS), TOKENIZER), request.folder(RUNS)
    counts = tuple(
        replace(one, directory=_of_source(runs, one.source)) for one in request.counts if one.source
    ) or (CountsInput(directory=runs),)
    return replace(
        request,
        counts=counts,
        tokens=(),
        paths=tuple(one.title for one in counts),
        special_tokens=(),
        training=request.training.superwords_on(path),
        extends=load_tokenizer(path).sha256,
    )


def check_cut(
    *,
    counts: tuple[CountsInput, ...],
    pretokens: PretokenSettings,
    execution: Execution,
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
                    f"{source.directory} was split with {found}, but the preset splits with "
                    f"{pretokens.cut}: count again with the preset, or train without it"
                )
