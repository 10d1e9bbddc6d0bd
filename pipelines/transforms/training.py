"""Counts to a tokenizer, as an element."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import apache_beam as beam

import bpe
from pipelines.batches import counts_of_messages
from pipelines.errors import ConfigError, InputError
from pipelines.failures import job_errors
from pipelines.metrics import counter
from pipelines.option import several
from pipelines.settings import SHARDS, TrainSettings
from pipelines.train import check_training, trained
from pipelines.transforms.counting import Cutting, gathered

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bpe.models import Model
    from pipelines.settings import PretokenSettings


@dataclass(eq=False, kw_only=True)
class TrainTokenizer(Cutting, beam.PTransform):  # type: ignore[misc]  # Beam has no types
    """Trains on ``(pre-token, count)``: one `bpe.Tokenizer`, in every window.

    The result is a PCollection for ``AsSingleton``, or for `EncodeDocuments` as it is. The
    tokenizer is that of ``bpe.train`` on the same counts, whatever their order; it pickles, and
    ``tokenizer.training`` holds every merge with its count. The merge loop runs once, in one
    worker, on sorted Arrow runs: about 100 bytes of memory a distinct pre-token.

    Example::

        tokenizer = counts | TrainTokenizer(vocab_size=32_000, pretokenizer="gpt2")
        tokenizer | beam.Map(lambda trained: trained.save("tokenizer.json"))

    Args:
        vocab_size: tokens in the vocabulary, special tokens and alphabet included.
        max_merges: merges at most; one of the two limits is needed.
        ties: the rule that chooses among equally frequent pairs, of ``bpe.TIES``; not
            ``first-seen``.
        min_frequency: a pair that occurs fewer times is never merged.
        prune_below: pre-tokens that occur fewer times are dropped before.
        model: what a pre-token consists of; None for ``bpe.ByteLevel()``.
        initial_alphabet: characters that have tokens in any case, where the model is of characters.
        pretokenizer, pattern, normalizer, never_split: how the text was cut that was counted.
        special_tokens: get reserved ids; those that were cut out of the text among them.

    Raises:
        ConfigError: an argument is wrong.
    """

    vocab_size: int | None = None
    max_merges: int | None = None
    ties: str = "bytes-min"
    min_frequency: int = 1
    prune_below: int = 1
    model: Model | None = None
    initial_alphabet: Sequence[str] = ()

    def __post_init__(self) -> None:
        beam.PTransform.__init__(self)
        if self.ties == "first-seen":
            raise ConfigError(
                "ties 'first-seen': the elements of a PCollection have no order, so no pair is the "
                "first: use bytes-min, or bpe.train on counts that track the order of documents"
            )
        with job_errors():
            self._training = TrainSettings(
                vocab_size=self.vocab_size,
                max_merges=self.max_merges,
                ties=self.ties,
                min_frequency=self.min_frequency,
                prune_below=self.prune_below,
                model=self.model,
                initial_alphabet=several("initial_alphabet", self.initial_alphabet),
            )
            self._pretokens = self.settings()
            check_training(
                self._training,
                pretokenizer=self._pretokens.cut,
                special_tokens=self._pretokens.special_tokens,
            )

    def display_data(self) -> dict[str, Any]:
        """What a runner's page shows."""
        limits = {"vocab_size": self.vocab_size, "max_merges": self.max_merges}
        shown = {name: limit for name, limit in limits.items() if limit is not None}
        return {**super().display_data(), "ties": self.ties, **shown}

    def expand(self, counts: beam.PCollection[tuple[bytes, int]]) -> Any:
        """Merge the counts by shard, and train on all shards in one worker."""
        whole = counts.windowing.is_default()
        runs = gathered(counts, shards=SHARDS, label="TrainTokenizer", every_shard=whole)
        return (
            runs
            | "Runs"
            >> beam.Map(lambda shard: (None, shard[1])).with_output_types(tuple[None, bytes])
            | "Bring together" >> beam.GroupByKey()
            | "Train"
            >> beam.Map(_train, self._pretokens, self._training).with_output_types(bpe.Tokenizer)
        )


def _train(
    element: tuple[None, Iterable[bytes]], pretokens: PretokenSettings, training: TrainSettings
) -> bpe.Tokenizer:
    def counts() -> bpe.PretokenCounts:
        found = counts_of_messages(
            element[1], pretokenizer=pretokens.cut, special_tokens=pretokens.special_tokens
        )
        if not len(found):
            raise InputError("TrainTokenizer: there are no counts to train on")
        return found

    tokenizer = trained(counts, training, pretokens.special_tokens)
    counter("merges_trained").inc(len(tokenizer.merges))
    return tokenizer
