"""Files to documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Optional

import apache_beam as beam
import pyarrow as pa

from pipelines.corpus.documents import BadRecord, Block, PassthroughColumn, ReadOptions, read_split
from pipelines.corpus.documents.json_values import python_type
from pipelines.corpus.inputs import find_inputs
from pipelines.corpus.reading import describe
from pipelines.corpus.splits import plan_splits
from pipelines.elements import ExceptionHandling, pack, row_type, unpack, with_storage
from pipelines.encode.passthrough import find_passthrough, names_and_types
from pipelines.errors import RecordError
from pipelines.metrics import add_to_metrics
from pipelines.option import list_of, split_arguments, takes
from pipelines.settings import EncodeSettings, InputSettings
from pipelines.tables import Table

if TYPE_CHECKING:
    from collections.abc import Iterator

ID, TEXT = "id", "text"


@takes(InputSettings, leave_out=["max_failures"])  # `with_exception_handling` collects them
class ReadDocuments(ExceptionHandling):
    """Reads files as documents: ``beam.Row(id=..., text=...)`` and the columns to keep.

    Reads what ``bpe count`` and ``bpe encode`` read, with the same ids. The pipeline lists the
    files when it runs, cuts large ones, and distributes the splits to its workers. ``as_tables``
    gives ``pyarrow.Table`` with the same columns, of about 2 MiB of text each: Beam takes about
    10 µs for each element, whatever it holds.

    Example::

        documents = pipeline | ReadDocuments(["corpus/*.jsonl"], keep=["lang:string"])
        german = documents | beam.Filter(lambda document: document.lang == "de")

    Args:
        patterns: files, directories or globs; a list.
        keep: fields or columns to keep, each ``NAME`` or ``NAME:TYPE`` with a type of Arrow;
            without one it is found in the files, and Beam's schema says Any.
        as_tables: whether elements are tables.
        **arguments: options, as below.

    A bad record fails the pipeline, or has an output as Beam's own transforms have one:
    ``with_exception_handling()``. The bad element is a record with the ``name`` of its file,
    ``place`` and ``unit``, ``reason`` and ``raw``. A threshold is a share of all elements, where a
    table is one.

    Raises:
        ConfigError: an argument is wrong.
    """

    def __init__(
        self,
        patterns: Sequence[str],
        *,
        keep: Sequence[str] = (),
        as_tables: bool = False,
        **arguments: Any,
    ) -> None:
        super().__init__()
        (reading,) = split_arguments(self, arguments)
        self._inputs = InputSettings.of(patterns, **reading)
        ReadOptions.of(self._inputs)
        self._as_tables = as_tables
        self._keep = EncodeSettings(keep=list_of("keep", keep)).keep
        self._columns = names_and_types(self._keep, own=(ID, TEXT))

    def display_data(self) -> dict[str, Any]:
        """Return the values that a runner's web UI shows."""
        return {"patterns": " ".join(self._inputs.patterns), "format": self._inputs.format}

    def expand(self, begin: beam.pvalue.PBegin) -> Any:
        """List the files, distribute splits to workers, and read them."""
        splits = (
            begin
            | "Patterns" >> beam.Create([None], reshuffle=False)
            | "List files"
            >> beam.FlatMap(with_storage(_plan), self._inputs, self._keep).with_output_types(bytes)
            | "Reshuffle splits" >> beam.Reshuffle()
        )
        columns = {name: _python_type(kind) for name, kind in self._columns.items()}
        document = row_type({ID: str, TEXT: str, **columns})
        return self.apply_step(
            splits | "Read" >> beam.FlatMap(with_storage(_read), as_tables=self._as_tables),
            beam.Map(_good, collected=self.bad_tag is not None),
            label="Documents",
            types=Table if self._as_tables else document,
        )


def _plan(_: None, inputs: InputSettings, keep: tuple[str, ...]) -> Iterator[bytes]:
    files = find_inputs(inputs).files
    options = ReadOptions.of(inputs, keep=find_passthrough(files, keep))
    for split in plan_splits(files, inputs.split_size):
        yield pack((split, options))


def _read(element: bytes, *, as_tables: bool) -> Iterator[Any]:
    """Yield the documents of a split, and the bad records among them."""
    split, options = unpack(element)
    for block in read_split(split, options):
        add_to_metrics(dead_letters=len(block.bad))
        yield from block.bad
        add_to_metrics(documents_read=len(block), bytes_read=block.input_bytes)
        table = table_of(block, options.keep)
        if not as_tables:
            yield from rows_of(table)
        elif len(table):
            yield table


def _good(record: Any, *, collected: bool) -> Any:
    """Return a record if it is a document.

    Raises:
        RecordError: the record is bad.
    """
    if isinstance(record, BadRecord):
        how = "" if collected else "; collect bad records with with_exception_handling()"
        raise RecordError(f"{describe(record)}{how}")
    return record


def table_of(block: Block, keep: Sequence[PassthroughColumn]) -> pa.Table:
    """Return a block as a table: ``id``, ``text`` and the columns to keep."""
    names = [ID, TEXT, *(column.name for column in keep)]
    return pa.table([block.ids, block.texts, *block.passthrough], names)


def rows_of(table: pa.Table) -> Iterator[beam.Row]:
    """Yield each row of a table."""
    columns = (column.to_pylist() for column in table.columns)
    for values in zip(*columns, strict=True):
        yield beam.Row(**dict(zip(table.schema.names, values, strict=True)))


def _python_type(kind: pa.DataType | None) -> Any:
    """Return the type that a schema of Beam has for values of a column."""
    lists = kind is not None and (pa.types.is_list(kind) or pa.types.is_large_list(kind))
    python: Any = None if kind is None else python_type(kind.value_type if lists else kind)
    if python is None:
        return Any
    if lists:
        return Optional[Sequence[Optional[python]]]  # noqa: UP045 - as below
    return Optional[python]  # noqa: UP045 - Beam's schemas do not know `X | None`
