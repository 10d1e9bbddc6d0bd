"""Documents to counts of pre-tokens, as elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import apache_beam as beam
from apache_beam.transforms.window import TimestampCombiner

from bpe.counting import PretokenCounter
from bpe.counts.files import count_items, counts_from_ipc
from bpe.special_tokens import check_special_tokens
from pipelines.batches import (
    TextBatches,
    column_of,
    document_of,
    sorted_messages,
    split_nulls,
    split_rows,
    table_of,
)
from pipelines.count.beam import AddCounts
from pipelines.count.steps import FLUSH_BYTES, count_texts, shard_messages
from pipelines.elements import (
    BatchDoFn,
    ExceptionHandling,
    check_documents,
    check_field,
    fires_once,
    in_window,
)
from pipelines.errors import RecordError
from pipelines.failures import FailureChannel, job_errors
from pipelines.metrics import add_to_metrics
from pipelines.option import split_arguments, takes
from pipelines.settings import SHARDS, PretokenSettings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa
    from apache_beam.utils.windowed_value import WindowedValue

_GATHERED = 1 << 16  # pre-tokens with counts that become messages together
_SEES_ELEMENTS = ("element_count", "always")  # triggers, as Beam's protocol calls them


def checked_pretokens(arguments: Mapping[str, Any]) -> PretokenSettings:
    """Return the checked settings that text is cut by, from arguments of a transform.

    Raises:
        ConfigError: one is wrong.
    """
    with job_errors():
        settings = PretokenSettings(**arguments)
        check_special_tokens(settings.special_tokens)
        _ = settings.cut
        return settings


def shown_pretokens(settings: PretokenSettings) -> dict[str, Any]:
    """Return the values of the pre-tokenizer that a runner's web UI shows."""
    return {
        "pretokenizer": str(settings.cut),
        "special_tokens": " ".join(settings.special_tokens) or "none",
    }


@takes(PretokenSettings)
class CountPretokens(ExceptionHandling):
    """Counts pre-tokens: documents in, ``(pre-token, count)`` out, once each in every window.

    Elements are str, bytes, dicts, Rows (of `ReadDocuments`, for example) or tables of pyarrow.
    They are counted in batches by the C++ core, with a counter for each window of a bundle; only
    Arrow messages are shuffled. An unbounded PCollection needs windows, as for any other count.

    Windows that may fire several times, for early or late panes, give what
    ``beam.combiners.Count.PerElement`` gives on the pre-tokens: each pre-token fires by itself. A
    trigger that counts elements sees a document as one element of each pre-token in it. A pane
    without counts gives nothing.

    Example::

        texts | CountPretokens(pretokenizer="gpt2")             # (b" the", 53719), ...
        documents | CountPretokens(text_field="body") | WriteCounts("counts")

    Args:
        text_field: the field or column that holds the text.
        **arguments: options, as below.

    An element without a text, whose text is no Unicode, or on which a pattern takes too long fails
    the pipeline, or has an output as Beam's own transforms have one: ``with_exception_handling()``.

    Raises:
        ConfigError: an argument is wrong.
    """

    def __init__(self, *, text_field: str = "text", **arguments: Any) -> None:
        super().__init__()
        self._settings = checked_pretokens(*split_arguments(self, arguments))
        check_field("text_field", text_field)
        self._text_field = text_field

    def display_data(self) -> dict[str, Any]:
        """Return the values that a runner's web UI shows."""
        return shown_pretokens(self._settings)

    def type_check_inputs(self, pvalueish: Any) -> None:
        """Refuse, when the pipeline is built, elements that are declared to be no documents."""
        check_documents(pvalueish.element_type, self._text_field, "CountPretokens")

    def expand(self, documents: beam.PCollection[Any]) -> Any:
        """Count in bundles, merge by shard, and yield each pre-token."""
        windowing = documents.windowing
        dofn = _CountTexts(self._settings, self._text_field, windowing, bad_tag=self.bad_tag)
        at_end = windowing.timestamp_combiner == TimestampCombiner.OUTPUT_AT_EOW
        counts = _merged_counts if at_end and fires_once(windowing) else _added_counts
        return self.apply_step(
            documents, beam.ParDo(dofn), label="Count", types=tuple[int, bytes], then=counts
        )


def _merged_counts(messages: Any) -> Any:
    """Merge ``(shard, message)`` pairs; return each pre-token with its count."""
    return merged(messages) | "Pre-tokens" >> _PAIRS


def _added_counts(messages: Any) -> Any:
    """Merge as `_merged_counts`, but by Beam's sum, so that each pre-token has its own panes."""
    counts = messages | "Pre-tokens" >> _PAIRS | "Add up" >> beam.CombinePerKey(sum)
    return counts | "Not empty" >> beam.Filter(_not_empty).with_output_types(tuple[bytes, int])


def _not_empty(count: tuple[bytes, int]) -> bool:
    """Return whether a pane has counts: some runners fire empty ones."""
    return count[1] > 0


def merged(messages: Any) -> Any:
    """Merge ``(shard, message)`` pairs to one message for each shard and window."""
    return messages | "Merge" >> beam.CombinePerKey(AddCounts(FailureChannel()))


def gathered(counts: Any, *, shards: int, label: str) -> Any:
    """Gather ``(pre-token, count)`` pairs in one message (Arrow IPC) for each shard and window.

    Args:
        counts: the PCollection of pairs.
        shards: the number of shards.
        label: the name of the transform in errors.
    """
    return merged(
        counts
        | "Gather" >> beam.BatchElements(min_batch_size=_GATHERED, max_batch_size=_GATHERED)
        | "Sort"
        >> beam.FlatMap(sorted_messages, shards, label).with_output_types(tuple[int, bytes])
    )


class _CountTexts(BatchDoFn):
    def __init__(
        self, settings: PretokenSettings, text_field: str, windowing: Any, *, bad_tag: str | None
    ) -> None:
        super().__init__(bad_tag=bad_tag)
        self._settings = settings
        self._text_field = text_field
        trigger = str(windowing.triggerfn.to_runner_api(None))
        self._singly = (
            any(kind in trigger for kind in _SEES_ELEMENTS)
            or windowing.timestamp_combiner != TimestampCombiner.OUTPUT_AT_EOW
        )

    def start_bundle(self) -> None:
        self._counters: dict[Any, PretokenCounter] = {}  # by window
        self._batches = TextBatches[Any, Any]()

    def process(
        self,
        element: Any,
        window: Any = beam.DoFn.WindowParam,
        windowed: WindowedValue = beam.DoFn.WindowedValueParam,
    ) -> Iterator[Any]:
        try:
            if (table := table_of(element)) is not None:
                table, bad = split_nulls(table, self._text_field)
                yield from self.bad(bad)
                first = 0
                for texts in column_of(table, self._text_field).chunks:
                    rows = table.slice(first, len(texts))
                    yield from self.bad(split_rows(rows, self._count(window, texts))[1])
                    first += len(texts)
            elif self._batches.add(window, windowed, document_of(element, self._text_field)[1]):
                yield from self._count_batches()
            elif not self._singly:
                return
        except RecordError as error:
            yield from self.bad([(element, str(error))])
            return
        if self._singly:
            yield from self._drain(windowed.timestamp)
        elif sum(counter.nbytes for counter in self._counters.values()) > FLUSH_BYTES:
            yield from self._drain()

    def finish_bundle(self) -> Iterator[Any]:
        yield from self._drain()

    def _drain(self, time: Any = None) -> Iterator[Any]:
        yield from self._count_batches()
        while self._counters:
            window, counter = self._counters.popitem()
            for message in shard_messages(counter.drain(1 if self._singly else SHARDS)):
                yield in_window(message, window, time)

    def _count_batches(self) -> Iterator[Any]:
        for window, elements, texts in self._batches.drain():
            bad = self._count(window, texts)
            yield from self.bad((elements[row], why) for row, why in bad.items())

    def _count(self, window: Any, texts: pa.Array) -> dict[int, str]:
        """Count texts without nulls; return the reasons why texts cannot be counted, by row."""
        settings, reasons = self._settings, dict[int, str]()
        if window not in self._counters:
            self._counters[window] = PretokenCounter(
                settings.cut, special_tokens=settings.special_tokens
            )
        totals = count_texts((texts,), self._counters[window], reasons.__setitem__)
        add_to_metrics(
            documents_counted=totals.documents,
            pretokens_counted=totals.pretokens,
            text_bytes_counted=totals.bytes,
        )
        return dict(sorted(reasons.items()))


def _pairs(element: tuple[int, bytes]) -> Iterator[tuple[bytes, int]]:
    return count_items(counts_from_ipc(element[1]))


_PAIRS = beam.FlatMap(_pairs).with_output_types(tuple[bytes, int])
