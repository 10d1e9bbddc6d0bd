"""How well a tokenizer fits the documents of each window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

import apache_beam as beam
import numpy as np
import pyarrow as pa

from pipelines.batches import TextBatch, as_table, column_of, field_text, fields_of
from pipelines.elements import (
    OncePerProcess,
    StorageDoFn,
    check_documents,
    check_field,
    in_window,
    require_one_pane,
    row_type,
)
from pipelines.encode.drift import Gauge, Measured, trained_bytes_per_token
from pipelines.errors import ConfigError, RecordError
from pipelines.transforms.encoding import TokenizerSource, given_tokenizer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_RATIOS = (
    *("bytes_per_token", "trained_bytes_per_token"),
    *("single_byte_share", "unseen_per_million"),
)
_ROW = row_type(
    {
        "text_bytes": int,
        "tokens": int,
        **dict.fromkeys(_RATIOS, Optional[float]),  # noqa: UP045 - Beam knows no `X | None`
    }
)


class MeasureDrift(beam.PTransform):  # type: ignore[misc]  # Beam has no types
    """Measures how well a tokenizer fits documents: one row for each window that has any.

    Elements are those of `EncodeDocuments`: dicts, Rows or tables with a text and its ids. A row
    has ``text_bytes`` (of UTF-8), ``tokens`` and the ratios of ``bpe encode --append``:
    ``bytes_per_token``, and ``trained_bytes_per_token`` to compare it with, from ``training.json``
    beside the tokenizer; ``single_byte_share``, of the tokens, which rises with scripts that the
    training has not seen; and ``unseen_per_million``, of the pre-tokens. Ratios of nothing are
    None.

    Example::

        encoded | beam.WindowInto(FixedWindows(3600)) | MeasureDrift(tokenizer=path)

    Args:
        tokenizer: that made the ids, a path that workers can read or a `bpe.Tokenizer`.
        baseline: the directory of the counts of the training, which tell unseen pre-tokens; a
            process holds them in memory. None: they are not looked at.
        text_field: the field or column that holds the text.
        ids_field: the field or column that holds the token ids.

    Raises:
        ConfigError: an argument is wrong, or windows may fire several times.
    """

    def __init__(
        self,
        *,
        tokenizer: Any,
        baseline: str | None = None,
        text_field: str = "text",
        ids_field: str = "input_ids",
    ) -> None:
        super().__init__()
        check_field("text_field", text_field)
        check_field("ids_field", ids_field)
        source, side_input = given_tokenizer(tokenizer)
        if source is None or side_input is not None:
            raise ConfigError("tokenizer: MeasureDrift takes a path or a bpe.Tokenizer")
        self._source, self._baseline = source, baseline
        self._text_field, self._ids_field = text_field, ids_field

    def type_check_inputs(self, pvalueish: Any) -> None:
        """Refuse, when the pipeline is built, elements that are declared to be no documents."""
        check_documents(pvalueish.element_type, self._text_field, "MeasureDrift")

    def expand(self, documents: beam.PCollection[Any]) -> Any:
        """Measure in bundles, and add up by window."""
        require_one_pane(documents, "MeasureDrift gives one row for each window")
        measure = _Measure(self._source, self._baseline, (self._text_field, self._ids_field))
        return (
            documents
            | "Measure" >> beam.ParDo(measure).with_output_types(tuple[int, ...])
            | "Add" >> beam.CombineGlobally(_added).without_defaults()
            | "Rows" >> beam.ParDo(_Row(self._source.path)).with_output_types(_ROW)
        )


def _added(sums: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(vars(sum((Measured(*one) for one in sums), Measured())).values())


class _Measure(StorageDoFn):
    """Documents to the sums of a bundle in each window."""

    def __init__(
        self, source: TokenizerSource, baseline: str | None, fields: tuple[str, str]
    ) -> None:
        super().__init__()
        self._source = source
        self._baseline = baseline
        self._fields = fields
        self._once = OncePerProcess()

    def setup(self) -> None:
        super().setup()
        key = f"drift {self._source.path} {hash(self._source.packed)} {self._baseline}"
        self._gauge = self._once.get(key, lambda: Gauge(self._source.load(), self._baseline))

    def start_bundle(self) -> None:
        self._sums: dict[Any, Measured] = {}
        self._batches: dict[Any, TextBatch[Any]] = {}

    def process(self, element: Any, window: Any = beam.DoFn.WindowParam) -> None:
        text_field, ids_field = self._fields
        if isinstance(element, (pa.Table, pa.RecordBatch)):
            table = as_table(element)
            texts = column_of(table, text_field)
            self._add(window, texts.combine_chunks(), _flat(table[ids_field]))
            return
        values = fields_of(element)
        text = field_text(values, text_field)
        if ids_field not in values:
            raise RecordError(f"the element has no field {ids_field!r}: encode it first")
        if self._batches.setdefault(window, TextBatch()).add(values[ids_field], text):
            self._measure(window)

    def finish_bundle(self) -> Iterator[Any]:
        for window in list(self._batches):
            self._measure(window)
        for window, sums in self._sums.items():
            yield in_window(tuple(vars(sums).values()), window)

    def _measure(self, window: Any) -> None:
        ids, texts = self._batches.pop(window).drain()
        arrays = [np.asarray(one, np.int64) for one in ids]
        self._add(window, texts, np.concatenate(arrays))

    def _add(self, window: Any, texts: pa.Array, ids: Any) -> None:
        measure = self._gauge.measure()
        measure.add(texts, ids)
        self._sums[window] = self._sums.get(window, Measured()) + measure.finish()


def _flat(ids: pa.ChunkedArray) -> Any:
    chunks = [chunk.flatten().to_numpy(zero_copy_only=False) for chunk in ids.chunks]
    return np.concatenate(chunks) if chunks else np.array([], np.int64)


class _Row(StorageDoFn):
    """Sums to a row, with what the training came to."""

    def __init__(self, path: str | None) -> None:
        super().__init__()
        self._path = path

    def setup(self) -> None:
        super().setup()
        self._trained = None if self._path is None else trained_bytes_per_token(self._path)

    def process(self, element: tuple[int, ...]) -> Iterator[beam.Row]:
        sums = Measured(*element)
        yield beam.Row(
            text_bytes=sums.text_bytes,
            tokens=sums.tokens,
            bytes_per_token=sums.bytes_per_token,
            trained_bytes_per_token=self._trained,
            single_byte_share=sums.single_byte_share,
            unseen_per_million=sums.unseen_per_million,
        )
