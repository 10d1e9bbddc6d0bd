"""Encode tables that are elements as Arrow IPC, with a size estimate that costs nothing."""

from __future__ import annotations

from typing import Any

import apache_beam as beam
import pyarrow as pa

from bpe._arrow import to_stream


class Table(pa.Table):  # type: ignore[misc]  # pyarrow has no types
    """The type of elements that are ``pyarrow.Table``; the class itself has no instances.

    If a type has no coder, Beam pickles some elements (the first ten of each step, later a few)
    just to learn their size, 3 ms for a table of 4 MB. The coder is registered for this class, not
    for ``pyarrow.Table``, so that other transforms keep the coder that they have.
    """


class TableCoder(beam.coders.Coder):  # type: ignore[misc]  # Beam has no types
    """Coder of tables as streams of Arrow IPC."""

    def encode(self, value: pa.Table) -> bytes:
        """Return a table as a stream."""
        stream: bytes = to_stream(value).to_pybytes()
        return stream

    def decode(self, encoded: bytes) -> pa.Table:
        """Return the table of a stream."""
        return pa.ipc.open_stream(encoded).read_all()

    def estimate_size(self, value: pa.Table) -> int:
        """Return the number of bytes in the columns of a table."""
        size: int = value.nbytes
        return size

    def to_type_hint(self) -> Any:
        """Return the type that the coder is for."""
        return Table


beam.coders.registry.register_coder(Table, TableCoder)
