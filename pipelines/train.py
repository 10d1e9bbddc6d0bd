"""Counts to a tokenizer: once, in a worker, from the count files themselves."""

from __future__ import annotations

import contextlib
import json
import uuid
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import apache_beam as beam
import pyarrow as pa

import bpe
from bpe.counts import PretokenCounts, check_agreement, combine
from bpe.counts.manifest import add_formats
from bpe.formats.huggingface import to_json_and_reason
from bpe.training import MixedSource, model_settings
from pipelines import storage
from pipelines.corpus.inputs import describe_inputs
from pipelines.count.directory import load_counts, read_counts_manifest
from pipelines.elements import StorageDoFn, pack, unpack
from pipelines.encode.tokenizer_files import load_tokenizer
from pipelines.errors import ConfigError, InputError, StoppedError
from pipelines.metrics import counter
from pipelines.output.directory import remove_temporaries
from pipelines.output.names import TOKENIZER, TRAINING, Plan, fingerprint
from pipelines.storage import join

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bpe.models import Model
    from bpe.pretokenize import Pretokenizer
    from pipelines.failures import Failures
    from pipelines.settings import CountsInput, TrainSettings

# Who wants to know how far a training is, by its name, where the worker is in this process.
_listeners: dict[str, Callable[[int, int], object]] = {}


@dataclass(frozen=True, kw_only=True)
class TrainJob:
    """Everything a worker must know to train; small, and picklable.

    Attributes:
        directory: the output directory.
        counts: the counts to train on, each with its weight.
        paths: of these, as they were given.
        special_tokens: get reserved ids, after those the counts were cut at.
        training: the vocabulary.
        listener: the name under which `heard` was told who listens.
    """

    directory: str
    counts: tuple[CountsInput, ...]
    paths: tuple[str, ...]
    special_tokens: tuple[str, ...]
    training: TrainSettings
    listener: str = ""


@contextlib.contextmanager
def heard(job: TrainJob, report: Callable[[int, int], object]) -> Iterator[TrainJob]:
    """Tell ``report`` (merges done, merges at most) while the job runs in this process."""
    name = uuid.uuid4().hex
    _listeners[name] = report
    try:
        yield replace(job, listener=name)
    finally:
        del _listeners[name]


def check_training(
    training: TrainSettings,
    *,
    pretokenizer: Pretokenizer,
    special_tokens: tuple[str, ...],
    counted_without: tuple[str, ...] = (),
) -> None:
    """Refuse what no counts could be trained with, before any are made or read.

    Args:
        training: the vocabulary.
        pretokenizer: of the counts.
        special_tokens: that get reserved ids.
        counted_without: the special tokens that the counts were cut at.

    Raises:
        bpe.TrainingError, bpe.SpecialTokenError: a setting is wrong.
    """
    letter = PretokenCounts.from_items(
        {"a": 1 << 60}, special_tokens=counted_without, track_order=True
    )
    trained(replace(letter, pretokenizer=pretokenizer), training, special_tokens)


def train_tokenizer(job: TrainJob, failures: Failures) -> None:
    """Train on the files of the counts and write ``training.json``, then ``tokenizer.json``.

    Raises:
        InputError: counts cannot be read, or do not go together.
        bpe.TrainingError: a setting is wrong for these counts.
        OutputError: a file cannot be written.
    """
    listener = _listeners.get(job.listener)

    def report(done: int, total: int) -> None:
        if failures.stopped():
            raise StoppedError
        if listener is not None:
            listener(done, total)

    if not job.counts:
        raise ConfigError("nothing to train on: give counts or inputs")
    tokenizer = trained(lambda: _read(job.counts), job.training, job.special_tokens, report)
    training = tokenizer.training
    if training is None:
        raise InputError("the tokenizer does not say how it was trained")
    training = replace(training, mix=effective_mix(job))
    remove_temporaries(job.directory)
    storage.write(join(job.directory, TRAINING), training.to_json().encode("utf-8"))
    storage.write(
        join(job.directory, TOKENIZER), tokenizer.to_json(dialect="beam-bpe").encode("utf-8")
    )
    counter("merges_trained").inc(len(training.merges))


def _read(sources: tuple[CountsInput, ...]) -> PretokenCounts:
    """What there is to train on."""
    counts = _combined(sources)
    if len(counts) == 0:
        raise InputError(
            "there is nothing to train on: the corpus holds no text that is counted (its documents "
            "are empty, or hold special tokens or dropped white space only)"
        )
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


def effective_mix(job: TrainJob) -> tuple[MixedSource, ...]:
    """The share of each of several counts in what is trained on, by bytes and by pre-tokens.

    A weight multiplies counts, so shares follow from the sizes of the corpora as well. Empty for
    one set of counts without a weight, which is all there is.
    """
    if len(job.counts) == 1 and job.counts[0].weight == 1:
        return ()
    sizes = []
    for source in job.counts:
        manifest = read_counts_manifest(source.directory)
        factor = Fraction(source.weight) / manifest.scale
        sizes.append((factor * manifest.totals.bytes, factor * manifest.totals.pretokens))
    totals = [max(sum(column), Fraction(1)) for column in zip(*sizes, strict=True)]
    return tuple(
        MixedSource(
            path=path,
            weight=str(source.weight),
            bytes_share=float(size / totals[0]),
            pretokens_share=float(pretokens / totals[1]),
        )
        for path, source, (size, pretokens) in zip(job.paths, job.counts, sizes, strict=True)
    )


def training_facts(job: TrainJob) -> dict[str, Any]:
    """What there is to say about a finished training, from the files it left.

    Raises:
        InputError: a file cannot be read.
    """
    path = join(job.directory, TOKENIZER)
    tokenizer = load_tokenizer(path)
    training = json.loads(storage.read(join(job.directory, TRAINING)))
    merges, counts = training["merges"], training["counts"]
    counted = [read_counts_manifest(source.directory).totals for source in job.counts]
    return {
        "documents": counts["documents"],
        "bytes": counts["bytes"],
        "pretokens": counts["pretokens"],
        "distinct_pretokens": counts["distinct_pretokens"],
        "failures": sum(one.failures for one in counted),
        "formats": add_formats(*(one.formats for one in counted)),
        "vocab_size": len(tokenizer),
        "merges": len(merges),
        "initial_bytes": training["initial_bytes"],
        "initial_tokens": training["initial_tokens"],
        "tokens": merges[-1]["tokens_left"] if merges else training["initial_tokens"],
        "stopped": training["stopped"],
        "sha256": storage.digest(path).sha256,
        "dialect": to_json_and_reason(tokenizer, dialect="beam-bpe")[1],
        "weighted": any(source.weight != 1 for source in job.counts),
        "scale": counts.get("scale", 1),
        "mix": tuple(MixedSource(**source) for source in training["mix"]),
    }


def training_plan(job: TrainJob, counting: Plan | None) -> Plan:
    """What makes two trainings the same job: the vocabulary, and what it is trained on.

    Args:
        job: the training.
        counting: the plan of the counts that are made for it; None where they are there already.

    Raises:
        InputError, bpe.CountsError: counts that should be there are not, or are damaged.
    """
    settings: dict[str, Any] = {
        "vocab_size": job.training.vocab_size,
        "max_merges": job.training.max_merges,
        "ties": job.training.ties,
        "min_frequency": job.training.min_frequency,
        "prune_below": job.training.prune_below,
        "model": model_settings(_model(job.training)),
        "initial_alphabet": list(job.training.initial_alphabet),
        "special_tokens": list(job.special_tokens),
    }
    if counting is not None:
        return Plan(
            kind="tokenizer",
            parts=(),
            settings={**settings, **counting.settings},
            inputs=counting.inputs,
        )
    manifests = [read_counts_manifest(source.directory) for source in job.counts]
    settings["counts"] = [
        [fingerprint(manifest.to_json()), str(source.weight)]
        for manifest, source in zip(manifests, job.counts, strict=True)
    ]
    for manifest, source in zip(manifests, job.counts, strict=True):
        check_agreement(manifests[0], manifest, titles=(job.counts[0].directory, source.directory))
    for manifest in manifests[:1]:
        check_training(
            job.training,
            pretokenizer=manifest.pretokenizer,
            counted_without=manifest.special_tokens,
            special_tokens=job.special_tokens,
        )
    return Plan(kind="tokenizer", parts=(), settings=settings, inputs=describe_inputs(()))


def trained(
    counts: PretokenCounts | Callable[[], PretokenCounts],
    training: TrainSettings,
    special_tokens: tuple[str, ...],
    report: Callable[[int, int], object] | None = None,
) -> bpe.Tokenizer:
    """The tokenizer that these settings ask for; arguments and errors of ``bpe.train``."""
    return bpe.train(
        counts,
        vocab_size=training.vocab_size,
        max_merges=training.max_merges,
        ties=training.ties,
        special_tokens=special_tokens,
        min_frequency=training.min_frequency,
        prune_below=training.prune_below,
        model=_model(training),
        initial_alphabet=training.initial_alphabet,
        progress=report,
    )


def _model(training: TrainSettings) -> Model:
    return bpe.ByteLevel() if training.model is None else training.model


class _Train(StorageDoFn):
    def __init__(self, failures: Failures) -> None:
        super().__init__()
        self._failures = failures

    def process(self, element: bytes) -> Iterator[str]:
        if self._failures.stopped():
            return
        job: TrainJob = unpack(element)
        with self._failures.reported():
            train_tokenizer(job, self._failures)
            yield job.directory


def add_training(
    pipeline: beam.Pipeline, job: TrainJob, failures: Failures
) -> beam.PCollection[str]:
    """Add a training to a pipeline; the one element of the result is the output directory."""
    return (
        pipeline
        | "Training" >> beam.Create([pack(job)], reshuffle=False)
        | "Train" >> beam.ParDo(_Train(failures))
    )
