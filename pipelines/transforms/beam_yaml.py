"""Transforms as Beam YAML takes them: rows in, rows out, ``error_handling`` as an argument.

A pipeline names them in its ``providers``, of type ``python``. Each takes the arguments of the
transform of its name, by keyword.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

import apache_beam as beam
from apache_beam.typehints import Tuple

from pipelines.corpus.documents import BadRecord
from pipelines.elements import row_type
from pipelines.errors import ConfigError, RecordError
from pipelines.transforms.counting import CountPretokens
from pipelines.transforms.counts_files import ReadCounts, WriteCounts
from pipelines.transforms.documents import ReadDocuments
from pipelines.transforms.encoding import EncodeDocuments
from pipelines.transforms.token_ids import WriteTokenIds

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pipelines.elements import ExceptionHandling

_COUNT = row_type({"pretoken": bytes, "count": int})
_BAD_RECORD = row_type({"file": str, "unit": str, "place": int, "reason": str, "raw": str})


def read_documents(
    *, error_handling: Mapping[str, Any] | None = None, **arguments: Any
) -> beam.PTransform:
    """`ReadDocuments`; the element of an error is a row that names file, unit and place."""
    if arguments.get("as_tables"):
        raise ConfigError("as_tables: Beam YAML takes rows; leave it out")
    return _with_errors(ReadDocuments(**arguments), error_handling)


def encode_documents(
    *, error_handling: Mapping[str, Any] | None = None, **arguments: Any
) -> beam.PTransform:
    """`EncodeDocuments`; the tokenizer is a path."""
    if arguments.get("as_numpy"):
        raise ConfigError("as_numpy: schemas do not know arrays; leave it out")
    return _with_errors(EncodeDocuments(**arguments), error_handling)


def count_pretokens(
    *, error_handling: Mapping[str, Any] | None = None, **arguments: Any
) -> beam.PTransform:
    """`CountPretokens`; gives rows of ``pretoken``, bytes, and ``count``."""
    return _with_errors(CountPretokens(**arguments), error_handling, _count_rows)


@beam.ptransform_fn  # type: ignore[untyped-decorator]  # Beam has no types
def read_counts(begin: beam.pvalue.PBegin, **arguments: Any) -> Any:
    """`ReadCounts`; gives rows of ``pretoken`` and ``count``."""
    return _count_rows(begin | ReadCounts(**arguments))


@beam.ptransform_fn  # type: ignore[untyped-decorator]  # as above
def write_counts(rows: beam.PCollection[Any], **arguments: Any) -> Any:
    """`WriteCounts`; takes rows of ``pretoken`` and ``count``, gives one row as all sinks here."""
    counts = rows | "Counts" >> beam.Map(_pair).with_output_types(Tuple[bytes, int])
    return _written(counts | WriteCounts(**arguments), arguments["path"])


@beam.ptransform_fn  # type: ignore[untyped-decorator]  # as above
def write_token_ids(rows: beam.PCollection[Any], **arguments: Any) -> Any:
    """`WriteTokenIds`; gives one row, with the ``path`` of the directory, when it is complete."""
    return _written(rows | WriteTokenIds(**arguments), arguments["path"])


@beam.ptransform_fn  # type: ignore[untyped-decorator]  # as above
def _with_errors(
    source: Any,
    transform: ExceptionHandling,
    error_handling: Mapping[str, Any] | None,
    rows: Callable[[Any], Any] = lambda good: good,
) -> Any:
    """Return the rows; or, by their names, the rows and the errors as rows of Beam's fields."""
    yaml_errors = import_module("apache_beam.yaml.yaml_errors")  # workers do without the extra
    handling = yaml_errors.exception_handling_args(error_handling)
    if handling is None:
        return rows(source | transform)
    handled = transform.with_exception_handling(**handling)
    good, bad = source | handled
    kind = _BAD_RECORD if isinstance(source, beam.pvalue.PBegin) else source.element_type
    errors = (
        bad
        | "Elements" >> beam.MapTuple(_error)
        | "Errors" >> yaml_errors.map_errors_to_standard_format(kind)
    )
    return {handling.get("main_tag", "good"): rows(good), str(handled.bad_tag): errors}


def _count_rows(counts: Any) -> Any:
    return counts | "Rows" >> beam.MapTuple(
        lambda pretoken, count: beam.Row(pretoken=pretoken, count=count)
    ).with_output_types(_COUNT)


def _pair(row: Any) -> tuple[bytes, int]:
    pretoken, count = (getattr(row, name, None) for name in ("pretoken", "count"))
    if not isinstance(pretoken, bytes) or not isinstance(count, int):
        raise RecordError(
            f"write_counts: the row {row!r:.200} has not `pretoken`, bytes, and `count`, an "
            "integer: give the rows of count_pretokens"
        )
    return pretoken, count


def _error(element: Any, error: Any) -> tuple[Any, Any]:
    return (_bad_record(element) if isinstance(element, BadRecord) else element), error


def _bad_record(record: BadRecord) -> beam.Row:
    raw, file = (
        data.decode(errors="backslashreplace") for data in (record.raw, os.fsencode(record.path))
    )
    return beam.Row(file=file, unit=record.unit, place=record.place, reason=record.reason, raw=raw)


def _written(manifest: Any, path: str) -> Any:
    return manifest | "Written" >> beam.Map(lambda _: beam.Row(path=path)).with_output_types(
        row_type({"path": str})
    )
