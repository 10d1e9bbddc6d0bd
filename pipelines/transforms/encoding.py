"""Documents to documents with token ids."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import apache_beam as beam
import pyarrow as pa
from apache_beam.typehints.schemas import named_fields_from_element_type

import bpe
from pipelines.batches import (
    IdEncoder,
    TextBatches,
    document_of,
    id_arrays,
    table_of,
    with_ids,
)
from pipelines.elements import (
    BatchDoFn,
    ExceptionHandling,
    OncePerProcess,
    check_documents,
    check_field,
    keyed_type,
    pack,
    require_one_pane,
    row_type,
    unpack,
)
from pipelines.errors import ConfigError, RecordError
from pipelines.option import list_of
from pipelines.settings import EncodeSettings
from pipelines.tables import Table
from pipelines.tokenizer_files import load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from apache_beam.utils.windowed_value import WindowedValue

    from pipelines.settings import IdType

TokenizerSource: TypeAlias = str | bytes  # as workers get it: the path, or the value, packed


@dataclass(eq=False, kw_only=True)
class EncodeDocuments(ExceptionHandling):
    """Encodes documents: each comes out with its token ids, in its own window, at its own time.

    =========================  =============================================================
    element                    result
    =========================  =============================================================
    str, bytes                 ``beam.Row(text=..., input_ids=...)``
    dict                       a new dict with ``input_ids``
    Row, NamedTuple, dataclass ``beam.Row`` of the same fields and ``input_ids``
    pyarrow.Table, RecordBatch the table with a column ``input_ids``, a list a row
    (key, any of these)        (key, the result)
    =========================  =============================================================

    ``input_ids`` is a list of int, and the schema of a row says so; with ``as_numpy`` it is an
    array of uint16 where all ids fit, else of uint32, of which schemas know nothing. A table has a
    list of one of these types. The ids are those of ``Tokenizer.encode``. Texts are gathered into
    batches of about 4 MiB, which the C++ core encodes without the GIL; a batch ends with the bundle
    at the latest, so streams do not wait. Any windows will do. An element takes about 8 µs with
    ``as_numpy``, most of it Beam's, and longer without: tables of many rows avoid that.

    Example::

        documents | EncodeDocuments(tokenizer="tokenizer.json")
        documents | EncodeDocuments(tokenizer=counts | TrainTokenizer(vocab_size=32_000))

    Args:
        tokenizer: a path that workers can read, a `bpe.Tokenizer`, or a PCollection of one (or a
            side input, ``AsSingleton``) whose windows fire once. One of a path or a value is loaded
            once in each process.
        text_field: the field or column that holds the text.
        output_field: the field or column for the ids; one of that name is replaced, the text too.
        allowed_special: special tokens that are recognized in the text, or ``"all"``; by default
            none is: what looks like one is plain text.
        prepend_token: a special token before each text.
        append_token: a special token after each text, such as ``<|endoftext|>``.
        id_type: the type of ids in arrays and tables: ``uint16``, ``uint32``, or ``auto`` for the
            smaller type that holds all ids.
        as_numpy: whether ids outside of tables are numpy arrays.

    An element without a text, whose text is no Unicode, or that the tokenizer has no tokens for
    fails the pipeline, or has an output as Beam's own transforms have one:
    ``with_exception_handling()``. A table's bad rows are tables of one row.

    Raises:
        ConfigError: an argument is wrong; a path is read by the workers, not here.
    """

    tokenizer: Any
    text_field: str = "text"
    output_field: str = "input_ids"
    allowed_special: Collection[str] | str = ()
    prepend_token: str | None = None
    append_token: str | None = None
    id_type: IdType = "auto"
    as_numpy: bool = False

    def __post_init__(self) -> None:
        beam.PTransform.__init__(self)
        check_field("text_field", self.text_field)
        check_field("output_field", self.output_field)
        allowed: Any = ("all",) if self.allowed_special == "all" else self.allowed_special
        self._settings = EncodeSettings(
            allow_special=list_of("allowed_special", allowed),
            prepend_token=self.prepend_token,
            append_token=self.append_token,
            id_type=self.id_type,
        )
        self._given = given_tokenizer(self.tokenizer)
        if isinstance(self.tokenizer, bpe.Tokenizer):
            IdEncoder(self.tokenizer, self._settings)

    def display_data(self) -> dict[str, Any]:
        """Return the values that a runner's web UI shows."""
        shown = "a side input" if self._is_side_input else self.tokenizer
        return {
            "tokenizer": str(shown),
            "text_field": self.text_field,
            "output_field": self.output_field,
        }

    @property
    def _is_side_input(self) -> bool:
        return isinstance(self._given, beam.pvalue.AsSideInput)

    def type_check_inputs(self, pvalueish: Any) -> None:
        """Refuse, when the pipeline is built, elements that are declared to be no documents."""
        check_documents(pvalueish.element_type, self.text_field, "EncodeDocuments", keys=True)

    def expand(self, documents: beam.PCollection[Any]) -> Any:
        """Encode in batches inside one step."""
        dofn = _Encode(
            settings=self._settings,
            source=None if self._is_side_input else self._given,
            text_field=self.text_field,
            output_field=self.output_field,
            as_numpy=self.as_numpy,
            bad_tag=self.bad_tag,
        )
        key, kind = keyed_type(documents.element_type)
        ids = Any if self.as_numpy else Sequence[int]
        encoded = _encoded_type(kind, self.text_field, self.output_field, ids)
        types = encoded if key is None else beam.typehints.Tuple[key, encoded]
        step = beam.ParDo(dofn, self._given if self._is_side_input else None)
        return self.apply_step(documents, step, label="Encode", types=types, then=_passed)


def _passed(encoded: Any) -> Any:
    """Return the elements after a step of their own.

    Beam 2.77 loses what finish_bundle yields where a step that takes batches, as that of
    WriteToParquet without a schema, is the next one.
    """
    step = beam.Map(lambda element: element).with_output_types(encoded.element_type)
    return encoded | "Encoded" >> step


def given_tokenizer(tokenizer: Any) -> Any:
    """Return the tokenizer as an argument of a step: path, packed value, or side input.

    `load_given` takes what Beam makes of it in a worker.

    Raises:
        ConfigError: the argument is no path, tokenizer or PCollection, or its windows fire several
            times.
    """
    if isinstance(tokenizer, beam.pvalue.AsSideInput):
        tokenizer = tokenizer.pvalue  # how many there are is ours to see and to say
    if isinstance(tokenizer, beam.PCollection):
        require_one_pane(tokenizer, "a side input holds one tokenizer a window, unlike a path")
        return beam.pvalue.AsList(tokenizer)
    if isinstance(tokenizer, bpe.Tokenizer):
        return pack(tokenizer.with_training(None))  # workers do not need how it was trained
    if isinstance(tokenizer, (str, os.PathLike)) and os.fspath(tokenizer):
        return os.fspath(tokenizer)
    raise ConfigError(
        f"tokenizer is {tokenizer!r:.80}: give the path of a file, a bpe.Tokenizer, or a "
        "PCollection that holds one"
    )


def load_given(given: TokenizerSource | Sequence[Any], transform: str) -> bpe.Tokenizer:
    """Return the tokenizer of a path or a packed value, or the only one of a side input.

    Args:
        given: the argument of the step, in a worker.
        transform: the name of the transform, for the message.

    Raises:
        ConfigError: the side input holds no tokenizer, or several.
        InputError: the file cannot be read.
    """
    if isinstance(given, str):
        return load_tokenizer(given)
    found = [unpack(given)] if isinstance(given, bytes) else given
    if len(found) == 1 and isinstance(found[0], bpe.Tokenizer):
        return found[0]
    if len(found) > 1:
        raise ConfigError(
            f"{transform}: the side input of the tokenizer holds {len(found)} values in one "
            "window: a trigger fired several times: let it fire once a window, "
            "as Beam's default trigger does, or give the path of a file"
        )
    what = f"{found[0]!r:.60}, no tokenizer" if found else "no tokenizer"
    raise ConfigError(
        f"{transform}: the side input holds {what} in the window of an element: train it on "
        "elements of the same windows, or give the path of a file"
    )


def _encoded_type(documents: Any, text_field: str, output_field: str, ids: Any) -> Any:
    """Return the type of encoded documents, as far as that of the documents says it."""
    if documents in (str, bytes):
        return row_type({text_field: documents, output_field: ids})
    if documents in (Table, pa.Table, pa.RecordBatch):
        return Table
    try:
        fields = dict(named_fields_from_element_type(documents))
    except TypeError:  # no schema
        return Any
    return row_type(fields | {output_field: ids})


@dataclass(eq=False, kw_only=True)
class _Encode(BatchDoFn):
    settings: EncodeSettings
    source: TokenizerSource | None  # None if each window has a tokenizer of its own
    text_field: str
    output_field: str
    as_numpy: bool
    bad_tag: str | None

    def __post_init__(self) -> None:
        super().__init__(bad_tag=self.bad_tag)
        self._once = OncePerProcess()

    def setup(self) -> None:
        super().setup()
        if self.source is not None:
            self._encoder(self.source)

    def start_bundle(self) -> None:
        self._encoders: dict[Any, IdEncoder] = {}
        self._batches: TextBatches[Any, tuple[WindowedValue, dict[str, Any]]] = TextBatches()

    def process(
        self,
        element: Any,
        tokenizer: Any,
        window: Any = beam.DoFn.WindowParam,
        windowed: WindowedValue = beam.DoFn.WindowedValueParam,
    ) -> Iterable[Any]:
        key = window if self.source is None else None
        document = _document(element)
        if (table := table_of(document)) is not None:
            return self._table(element, table, self._ready(key, tokenizer))
        try:
            values, text = document_of(document, self.text_field)
        except RecordError as error:
            return self.bad([(element, str(error))])
        self._ready(key, tokenizer)
        return self._drain() if self._batches.add(key, (windowed, values), text) else ()

    def finish_bundle(self) -> Iterator[Any]:
        yield from self._drain()
        self._encoders.clear()

    def _drain(self) -> Iterator[Any]:
        """Yield the elements that wait, each in its own window, at its own time."""
        for key, elements, texts in self._batches.drain():
            yield from self._encoded(elements, texts, self._encoders[key])

    def _encoded(
        self,
        elements: list[tuple[WindowedValue, dict[str, Any]]],
        texts: pa.LargeBinaryArray,
        encoder: IdEncoder,
    ) -> Iterator[Any]:
        ids, bad = encoder.encode(texts)
        arrays = id_arrays(ids)
        for row, (windowed, values) in enumerate(elements):
            if row in bad:
                yield from self.bad([(windowed, bad[row])])
                continue
            array = next(arrays)
            values[self.output_field] = array if self.as_numpy else array.tolist()
            is_dict = isinstance(_document(windowed.value), dict)
            made = values if is_dict else beam.Row(**values)
            yield windowed.with_value(_keyed_as(windowed.value, made))

    def _table(self, element: Any, table: pa.Table, encoder: IdEncoder) -> Iterator[Any]:
        fields = {"text_field": self.text_field, "output_field": self.output_field}
        try:
            table, bad = with_ids(table, encoder, **fields)
        except RecordError as error:
            yield from self.bad([(element, str(error))])
            return
        yield from self.bad((_keyed_as(element, row), reason) for row, reason in bad)
        yield _keyed_as(element, table)

    def _ready(self, key: Any, tokenizer: Any) -> IdEncoder:
        """Return the encoder of a window: made once in a bundle, however windows alternate."""
        if key not in self._encoders:
            self._encoders[key] = self._encoder(tokenizer)
        return self._encoders[key]

    def _encoder(self, tokenizer: Any) -> IdEncoder:
        """Return an encoder: of ``source``, one in a process."""

        def made() -> IdEncoder:
            return IdEncoder(load_given(self.source or tokenizer, "EncodeDocuments"), self.settings)

        return made() if self.source is None else self._once.get("encoder", made)


def _document(element: Any) -> Any:
    """Return the document of an element, which may have a key."""
    return element[1] if _has_key(element) else element


def _keyed_as(element: Any, value: Any) -> Any:
    """Return a value with the key of an element, if that has one."""
    return (element[0], value) if _has_key(element) else value


def _has_key(element: Any) -> bool:
    return type(element) is tuple and len(element) == 2
