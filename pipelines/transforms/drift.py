"""The fit of a tokenizer to the documents of each window."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bpe import Tokenizer
from pipelines.batches import (
    TextBatches,
    column_of,
    document_of,
    id_column_of,
    ids_of,
    table_of,
)
from pipelines.elements import (
    OncePerProcess,
    StorageDoFn,
    check_documents,
    check_field,
    in_window,
    require_one_pane,
    row_type,
)
from pipelines.encode.drift import (
    DriftMeasure,
    Gauge,
    Measured,
    check_baseline,
    trained_bytes_per_token,
)
from pipelines.errors import ConfigError, RecordError
from pipelines.transforms.encoding import TokenizerSource, given_tokenizer, load_given

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy.typing as npt

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


@dataclass(eq=False, kw_only=True)
class MeasureDrift(beam.PTransform):  # type: ignore[misc]  # Beam has no types
    """Measures how well a tokenizer fits documents: one row for each window that has any.

    Elements are dicts, Rows or tables with a text and its ids, without a key. A row has
    ``text_bytes`` (of UTF-8), ``tokens`` and the ratios of ``bpe encode --append``:
    ``bytes_per_token``, and ``trained_bytes_per_token`` to compare it with, from ``training.json``
    next to the tokenizer (a tokenizer by value knows its own); ``single_byte_share``, of the
    tokens, which rises with scripts that the training has not seen; and ``unseen_per_million``, of
    the pre-tokens. Ratios of nothing are None. Special tokens are left out, as those that
    `EncodeDocuments` adds. A row's time is the end of its window. With a baseline, each bundle
    looks its pre-tokens up: about 0.05 s for each million of the baseline.

    Example::

        encoded | beam.WindowInto(FixedWindows(3600)) | MeasureDrift(tokenizer=path)

    Args:
        tokenizer: the tokenizer that made the ids: a path that workers can read, or a
            `bpe.Tokenizer`.
        baseline: the directory of the counts of the training, which tell unseen pre-tokens; a
            process holds them in memory. None: they are not looked at.
        text_field: the field or column that holds the text.
        ids_field: the field or column that holds the token ids.

    Raises:
        ConfigError: an argument is wrong, or windows may fire several times.
    """

    tokenizer: Any
    baseline: str | os.PathLike[str] | None = None
    text_field: str = "text"
    ids_field: str = "input_ids"

    def __post_init__(self) -> None:
        beam.PTransform.__init__(self)
        check_field("text_field", self.text_field)
        check_field("ids_field", self.ids_field)
        self._source = given_tokenizer(self.tokenizer)
        if not isinstance(self._source, (str, bytes)):
            raise ConfigError("tokenizer: MeasureDrift takes a path or a bpe.Tokenizer")
        given = self.baseline
        if given is not None and (not isinstance(given, (str, os.PathLike)) or not given):
            raise ConfigError(f"baseline is {given!r:.60}: give a directory of counts")

    def type_check_inputs(self, pvalueish: Any) -> None:
        """Refuse, when the pipeline is built, elements that are declared to be no documents."""
        check_documents(pvalueish.element_type, self.text_field, "MeasureDrift")

    def expand(self, documents: beam.PCollection[Any]) -> Any:
        """Measure in bundles, and add up by window."""
        require_one_pane(documents, "MeasureDrift gives one row for each window")
        baseline = None if self.baseline is None else os.fspath(self.baseline)
        measure = _Measure(self._source, baseline, (self.text_field, self.ids_field))
        training = self.tokenizer.training if isinstance(self.tokenizer, Tokenizer) else None
        row = _Row(self._source, None if training is None else training.bytes_per_token)
        return (
            documents
            | "Measure" >> beam.ParDo(measure).with_output_types(Measured)
            | "Add" >> beam.CombineGlobally(_added).without_defaults()
            | "Rows" >> beam.ParDo(row).with_output_types(_ROW)
        )


def _added(sums: Iterable[Measured]) -> Measured:
    return sum(sums, Measured())


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
        self._gauge, self._ordinary = self._once.get("drift", self._load)

    def _load(self) -> tuple[Gauge, npt.NDArray[np.bool_]]:
        tokenizer = load_given(self._source, "MeasureDrift")
        if self._baseline is not None:
            check_baseline(self._baseline, tokenizer)
        ordinary = np.ones(len(tokenizer.tokens), bool)
        ordinary[list(tokenizer.special_tokens.values())] = False
        return Gauge(tokenizer, self._baseline), ordinary

    def start_bundle(self) -> None:
        self._measures: dict[Any, DriftMeasure] = {}
        self._batches: TextBatches[Any, npt.NDArray[Any]] = TextBatches()

    def process(self, element: Any, window: Any = beam.DoFn.WindowParam) -> None:
        text_field, ids_field = self._fields
        if (table := table_of(element)) is not None:
            texts = column_of(table, text_field, with_nulls=False)
            ids = id_column_of(table, ids_field)
            self._add(window, texts.combine_chunks(), pc.list_flatten(ids).to_numpy())
            return
        values, text = document_of(element, text_field)
        array = ids_of(values, ids_field)
        if self._batches.add(window, array, text):
            self._drain()

    def finish_bundle(self) -> Iterator[Any]:
        self._drain()
        for window, measure in self._measures.items():
            yield in_window(measure.finish(), window)
        self._measures = {}

    def _drain(self) -> None:
        for window, ids, texts in self._batches.drain():
            self._add(window, texts, np.concatenate(ids).astype(np.int64))

    def _add(self, window: Any, texts: pa.Array, ids: npt.NDArray[Any]) -> None:
        known = len(self._gauge.single)
        if len(ids) and not 0 <= ids.min() <= ids.max() < known:
            raise RecordError(
                f"token ids from {ids.min()} to {ids.max()}, of which the tokenizer "
                f"has 0 to {known - 1}: give the tokenizer that made them"
            )
        if window not in self._measures:
            self._measures[window] = self._gauge.measure()
        self._measures[window].add(texts, ids[self._ordinary[ids]])


class _Row(StorageDoFn):
    """Sums to a row, with what the training came to."""

    def __init__(self, source: TokenizerSource, trained: float | None) -> None:
        super().__init__()
        self._source, self._trained = source, trained

    def setup(self) -> None:
        super().setup()
        if isinstance(self._source, str):
            self._trained = trained_bytes_per_token(self._source)

    def process(self, sums: Measured) -> Iterator[beam.Row]:
        yield beam.Row(**sums.figures(self._trained))
