"""Counts to a tokenizer, as an element."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import apache_beam as beam

import bpe
from bpe._native import add_counts
from bpe.counts.files import counts_to_ipc
from bpe.ties import needs_order
from pipelines.batches import counts_of_messages
from pipelines.elements import require_one_pane
from pipelines.errors import ConfigError, InputError
from pipelines.extension import load_extended, located
from pipelines.failures import job_errors
from pipelines.metrics import add_to_metrics
from pipelines.option import list_of, split_arguments, takes
from pipelines.settings import SHARDS, PretokenSettings, TrainSettings
from pipelines.train import check_training, trained
from pipelines.transforms.counting import checked_pretokens, gathered, shown_pretokens

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bpe.models import Model


_ACROSS_WORDS = ("superwords", "boundless", "prune_runs_below")  # need the texts once more


@takes(PretokenSettings, TrainSettings, leave_out=_ACROSS_WORDS)
class TrainTokenizer(beam.PTransform):  # type: ignore[misc]  # Beam has no types
    """Trains on ``(pre-token, count)``: one `bpe.Tokenizer`, in every window.

    The result is a PCollection for ``AsSingleton`` or `EncodeDocuments`. A window
    without counts gives no tokenizer, and one that may fire several times is refused, since a
    tokenizer of some of its counts cannot be right. The tokenizer is that of ``bpe.train`` on the
    same counts, whatever their order; it pickles, and ``tokenizer.training`` holds every merge with
    its count. The merge loop runs once, in one worker, on sorted Arrow messages: about 130 bytes of
    memory a distinct pre-token, more if pre-tokens are long.

    Example::

        tokenizer = counts | TrainTokenizer(vocab_size=32_000, pretokenizer="gpt2")
        tokenizer | beam.Map(lambda trained: trained.save("tokenizer.json"))

    Args:
        model: what a pre-token consists of; None for ``bpe.ByteLevel()``.
        initial_alphabet: characters that have tokens in any case, where the model is of characters.
        **arguments: options, as below. Those of the text say how it was cut before it was counted;
            ``ties`` cannot be ``first-seen``.

    Raises:
        ConfigError: an argument is wrong.
    """

    def __init__(
        self, *, model: Model | None = None, initial_alphabet: Sequence[str] = (), **arguments: Any
    ) -> None:
        super().__init__()
        pretokens, training = split_arguments(self, arguments)
        alphabet = list_of("initial_alphabet", initial_alphabet)
        self._pretokens = checked_pretokens(pretokens)
        settings = TrainSettings(model=model, initial_alphabet=alphabet, **training)
        with job_errors():
            self._training = located(settings)
        if needs_order(self._training.ties):
            raise ConfigError(
                f"ties {self._training.ties!r}: the elements of a PCollection have no order, so no "
                "pair is the first: use bytes-min, or bpe.train on counts that track the order of "
                "documents"
            )
        with job_errors():
            check_training(
                replace(self._training, extend=None),  # workers read that file
                self._pretokens.cut,
                self._pretokens.special_tokens,
            )

    def display_data(self) -> dict[str, Any]:
        """Return the values that a runner's web UI shows."""
        asked = self._training
        limits = {"vocab_size": asked.vocab_size, "max_merges": asked.max_merges}
        shown = {name: limit for name, limit in limits.items() if limit is not None}
        return {**shown_pretokens(self._pretokens), "ties": asked.ties, **shown}

    def expand(self, counts: beam.PCollection[tuple[bytes, int]]) -> Any:
        """Merge the counts by shard, and train on all shards in one worker."""
        require_one_pane(counts, "TrainTokenizer trains one tokenizer in each window")
        whole = counts.windowing.is_default()
        messages = gathered(counts, shards=SHARDS, label="TrainTokenizer")
        if whole:  # so that a worker sees that there are no counts at all
            empty = (0, counts_to_ipc(add_counts([])))
            seed = counts.pipeline | "No counts" >> beam.Create([empty], reshuffle=False)
            messages = (messages, seed) | "All counts" >> beam.Flatten()
        return (
            messages
            | "Messages"
            >> beam.Map(lambda shard: (None, shard[1])).with_output_types(tuple[None, bytes])
            | "Bring together" >> beam.GroupByKey()
            | "Train"
            >> beam.FlatMap(_train, self._pretokens, self._training, whole=whole).with_output_types(
                bpe.Tokenizer
            )
        )


def _train(
    element: tuple[None, Iterable[bytes]],
    pretokens: PretokenSettings,
    training: TrainSettings,
    *,
    whole: bool,
) -> list[bpe.Tokenizer]:
    """Return the tokenizer of a pane in a list; an empty list for a pane without counts.

    Raises:
        InputError: the pane is the ``whole`` of the counts, and there are none.
    """
    found = counts_of_messages(element[1], pretokens)
    if not len(found):
        if whole:
            raise InputError("TrainTokenizer: there are no counts to train on")
        return []
    extend = load_extended(training)
    tokenizer = trained([lambda: found], training, pretokens.special_tokens, extend=extend)
    add_to_metrics(merges_trained=len(tokenizer.merges))
    return [tokenizer]
