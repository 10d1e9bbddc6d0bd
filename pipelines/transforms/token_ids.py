"""Documents with token ids to a directory of Parquet files."""

from __future__ import annotations

import contextlib
import uuid
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import starmap
from typing import TYPE_CHECKING, Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bpe._arrow import to_stream, utf8
from bpe._native import stable_hash
from pipelines import storage
from pipelines.batches import column_of, fields_of, id_column_of, ids_of, only_column, table_of
from pipelines.corpus.documents import PassthroughColumn, ReadOptions
from pipelines.corpus.documents.types import type_text
from pipelines.corpus.inputs import describe_inputs
from pipelines.corpus.keys import row_hashes
from pipelines.corpus.reading import text_bytes
from pipelines.corpus.splits import Split
from pipelines.elements import (
    call_once,
    check_field,
    pack,
    require_global_window,
    unpack,
    with_storage,
)
from pipelines.encode.fold import write_manifest
from pipelines.encode.manifest import unit_name
from pipelines.encode.passthrough import names_and_types
from pipelines.encode.rows import ID, INPUT_IDS, rows_of
from pipelines.encode.steps import EncodeJob, encode_job, tokenizer_of, write_part
from pipelines.errors import ConfigError, RecordError
from pipelines.option import list_of
from pipelines.output.directory import plan_of_run, prepare, write_files
from pipelines.output.names import MANIFEST, MAX_PARTS, TOKENIZER, read_manifest_object
from pipelines.planned import absolute
from pipelines.settings import EncodeSettings, IdType, OutputSettings, ParquetEncoding
from pipelines.stage import stage
from pipelines.stage.record import Record
from pipelines.storage import join
from pipelines.tokenizer_files import files_of
from pipelines.transforms.encoding import given_tokenizer, load_given

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


_TEXT_BYTES = "text_bytes"
_KEEP = "keep."  # before the names of columns that pass through: none is that of another
_GATHERED_IDS = 1 << 20  # that are dealt together
_LEAST_IDS = 64  # of a row, so that no more than 2^14 rows are dealt together
_ROWS_AT_ONCE = 1 << 12  # that are written together


@dataclass(eq=False, kw_only=True)
class WriteTokenIds(beam.PTransform):  # type: ignore[misc]  # Beam has no types
    """Writes documents with token ids as ``bpe encode`` writes a corpus; yields its manifest.

    Elements are those of `EncodeDocuments`: dicts, Rows or tables with ``id`` and ``input_ids``.
    The directory holds a row a document in ``data/train-…parquet``, the tokenizer, and last
    ``manifest.json``; ``bpe verify`` and ``bpe decode`` take it. A document goes to the part that
    its id's hash says; the rows of a part are sorted by id. So the same documents give the same
    bytes, in whatever order they arrive. The column ``key`` is the hash of the id. A worker holds
    all rows of a part in memory. A runner that starts the job anew finds its own directory and goes
    on; if another job has taken it over, this one ends.

    Example::

        documents | EncodeDocuments(tokenizer=path) | WriteTokenIds("encoded", tokenizer=path)

    Args:
        path: a directory that is empty, or not there yet.
        tokenizer: the tokenizer that made the ids, as for `EncodeDocuments`.
        id_field: the field or column of the document's id, a str or int.
        ids_field: the field or column of the token ids.
        text_field: the field or column of the text, for the number of its bytes; where there is
            none, the bytes of the tokens count.
        keep: fields or columns that pass through, each ``NAME:TYPE`` with a type of Arrow.
        id_type: ``uint16``, ``uint32``, or ``auto`` for the smaller that holds all ids.
        parquet_encoding: ``byte-stream-split``, or ``plain`` for older readers of Parquet.
        parts: Parquet files to write.
        overwrite: replace what an earlier job left in the directory.

    Raises:
        ConfigError: an argument is wrong.
    """

    path: str = field(kw_only=False)
    tokenizer: Any
    id_field: str = ID
    ids_field: str = INPUT_IDS
    text_field: str = "text"
    keep: Sequence[str] = ()
    id_type: IdType = "auto"
    parquet_encoding: ParquetEncoding = "byte-stream-split"
    parts: int = 16
    overwrite: bool = False

    def __post_init__(self) -> None:
        beam.PTransform.__init__(self)
        for name in ("id_field", "ids_field", "text_field"):
            check_field(name, getattr(self, name))
        if not 1 <= self.parts <= MAX_PARTS:
            raise ConfigError(f"parts {self.parts} is not between 1 and {MAX_PARTS}")
        output = OutputSettings(directory=self.path, overwrite=self.overwrite)
        self._output = replace(output, directory=absolute(self.path))
        self._settings = EncodeSettings(
            keep=list_of("keep", self.keep),
            id_type=self.id_type,
            parquet_encoding=self.parquet_encoding,
        )
        self._keep = tuple(starmap(_passthrough, names_and_types(self._settings.keep).items()))
        self._given = given_tokenizer(self.tokenizer)

    def display_data(self) -> dict[str, Any]:
        """Return the values that a runner's web UI shows."""
        return {"path": self.path, "parts": self.parts}

    def expand(self, documents: beam.PCollection[Any]) -> Any:
        """Distribute the rows to parts, sort and write each part, and the manifest."""
        require_global_window(documents, "WriteTokenIds writes one directory")
        begin = documents.pipeline
        asked = {
            "encoding": self._settings,
            "settings": ReadOptions(keep=self._keep),
            "parts": self.parts,
            "run": uuid.uuid4().hex,
        }
        prepared = call_once(_prepare, self._given, self._output, asked, types=bytes)
        job = beam.pvalue.AsSingleton(begin | "Prepare directory" >> prepared)
        kept, schema = (column.name for column in self._keep), schema_of(self._keep)
        names = (self.id_field, self.ids_field, self.text_field, *kept)
        size = {"min_batch_size": _GATHERED_IDS, "max_batch_size": _GATHERED_IDS}
        rows = (
            documents
            | "Rows" >> beam.Map(_rows, names, schema.names).with_output_types(Any)
            | "Gather" >> beam.BatchElements(**size, element_size_fn=_size)
            | "Key" >> beam.FlatMap(_keyed, self.parts, schema).with_output_types(tuple[int, bytes])
        )
        nothing = to_stream(schema.empty_table()).to_pybytes()
        empty = [(part, nothing) for part in range(self.parts)]
        seeds = begin | "Empty parts" >> beam.Create(empty, reshuffle=False)
        written = (
            (rows, seeds)
            | "All rows" >> beam.Flatten()
            | "Group parts" >> beam.GroupByKey()
            | "Write parts" >> beam.Map(with_storage(_write_part), job).with_output_types(bytes)
        )
        return begin | "Write manifest" >> call_once(
            _write_manifest, job, beam.pvalue.AsIter(written), types=dict[str, Any]
        )


def _passthrough(name: str, kind: pa.DataType | None) -> PassthroughColumn:
    if kind is None:
        raise ConfigError(f"keep {name}: say its type, {name}:string for example")
    return PassthroughColumn(name=name, type=type_text(kind))


def _prepare(_: None, given: Any, output: OutputSettings, asked: dict[str, Any]) -> bytes:
    """Prepare the directory, put the tokenizer into it, and say what the job is."""
    loaded = load_given(given, "WriteTokenIds")
    files = files_of(loaded, "the tokenizer")
    directory = storage.located(output.directory)
    job = encode_job(loaded, files[TOKENIZER], directory=directory, **asked)
    prepare(output, replace(job.plan, inputs=describe_inputs(())))
    write_files(job.directory, files)
    return pack(job)


def schema_of(keep: Iterable[PassthroughColumn]) -> pa.Schema:
    """Return the columns of rows on their way to their part."""
    own = [pa.field(ID, pa.string()), pa.field(INPUT_IDS, pa.list_(pa.uint32()))]
    passthrough = (column.field.with_name(_KEEP + column.name) for column in keep)
    return pa.schema([*own, pa.field(_TEXT_BYTES, pa.int64()), *passthrough])


def _rows(element: Any, names: Sequence[str], columns: list[str]) -> dict[str, Any] | pa.Table:
    """Return a document as a row on its way, or a table of documents as a table of rows.

    Args:
        element: the document or the table.
        names: the fields of id, token ids, text and what passes through.
        columns: the columns of `schema_of`, one for each field.

    Raises:
        RecordError: there is no id, or there are no token ids.
    """
    id_field, ids_field, text_field, *keep = names
    if (table := table_of(element)) is not None:
        nothing = pa.nulls(len(table))
        ids = only_column(table, id_field, "name the one of the ids, id_field=...")
        arrays = [ids, id_column_of(table, ids_field), nothing]
        with contextlib.suppress(RecordError):  # there is no text
            arrays[2] = pc.binary_length(column_of(table, text_field))
        there = table.schema.names
        arrays += [table[name] if name in there else nothing for name in keep]
        return pa.Table.from_arrays(arrays, columns)
    values = fields_of(element, text_field)
    id_, text = values.get(id_field), values.get(text_field)
    if isinstance(id_, bool) or not isinstance(id_, (str, int, np.integer)):
        raise RecordError(
            f"field {id_field!r} is {id_!r:.60}, where a document's id, str or int, is needed — "
            f"element {element!r:.200} — name the field, id_field=..."
        )
    size = len(utf8(text)) if isinstance(text, (str, bytes)) else None
    row = (str(id_), ids_of(values, ids_field), size, *map(values.get, keep))
    return dict(zip(columns, row, strict=True))


def _size(row: dict[str, Any] | pa.Table) -> int:
    """Return how much of a batch is full with it; a table is a batch."""
    return _GATHERED_IDS if isinstance(row, pa.Table) else max(len(row[INPUT_IDS]), _LEAST_IDS)


def _keyed(
    batch: list[dict[str, Any] | pa.Table], parts: int, schema: pa.Schema
) -> Iterator[tuple[int, bytes]]:
    """Yield the rows of each part, as Arrow IPC."""
    tables = [one for one in batch if isinstance(one, pa.Table)]
    documents = [one for one in batch if isinstance(one, dict)]
    try:
        tables = [pa.Table.from_pylist(documents, schema), *(one.cast(schema) for one in tables)]
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise RecordError(f"rows do not have the types asked for: {error}") from error
    rows = pa.concat_tables(tables)
    of = np.array([stable_hash(id_.encode()) % parts for id_ in rows[ID].to_pylist()])
    for part in np.unique(of).tolist():
        yield part, to_stream(rows.filter(pa.array(of == part))).to_pybytes()


def _write_part(element: tuple[int, Iterable[bytes]], packed: bytes) -> bytes:
    """Sort the rows of a part and write its file."""
    number, messages = element
    job: EncodeJob = unpack(packed)
    plan_of_run(job.directory, job.run)  # of another job by now: this one ends
    tokenizer = tokenizer_of(job)
    rows = in_order(pa.concat_tables(pa.ipc.open_stream(one).read_all() for one in messages))
    _check_ids(rows, job)
    split = Split(part=number, parts=job.parts, pieces=())

    def batches() -> Iterator[tuple[pa.RecordBatch, int]]:
        for batch in rows.to_batches(max_chunksize=_ROWS_AT_ONCE):
            ids, input_ids, sizes, *passthrough = batch.columns
            keys = row_hashes(ids)
            made = rows_of(
                job.schema, ids=ids, passthrough=passthrough, keys=keys, input_ids=input_ids
            )
            without = tokenizer.decode_arrow(input_ids.filter(pc.is_null(sizes)))
            yield made, (pc.sum(sizes).as_py() or 0) + text_bytes(without)

    made = write_part(split, job, tokenizer, batches())
    fingerprint = job.fingerprint(split)
    return pack((number, Record(unit=unit_name(split.file), fingerprint=fingerprint, **vars(made))))


def in_order(rows: pa.Table) -> pa.Table:
    """Rows sorted by their ids, those of one id by all else: one order, however they came."""
    ids = rows[ID].to_pylist()
    times = Counter(ids)

    def key(row: int) -> tuple[str, str]:
        return ids[row], repr(rows.slice(row, 1).to_pylist()) if times[ids[row]] > 1 else ""

    order = sorted(range(len(rows)), key=key)
    return rows.take(pa.array(order, pa.int64())).combine_chunks()


def _check_ids(rows: pa.Table, job: EncodeJob) -> None:
    greatest = pc.max(pc.list_flatten(rows[INPUT_IDS])).as_py()
    if greatest is not None and greatest >= job.tokenizer.vocab_size:
        raise RecordError(
            f"a document has the id {greatest}, and the greatest of the tokenizer "
            f"is {job.tokenizer.vocab_size - 1}: give the tokenizer that encoded it"
        )


def _write_manifest(_: None, packed: bytes, parts: Iterable[bytes]) -> dict[str, Any]:
    job: EncodeJob = unpack(packed)
    records = stage.in_order("WriteTokenIds", [job.parts, *map(unpack, parts)])
    write_manifest(records, job)
    return read_manifest_object(join(job.directory, MANIFEST))
