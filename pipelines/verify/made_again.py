"""The comparison of files made again with stored ones: by bytes, or by the rows of Parquet.

Another release of Arrow may write other bytes for the same rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pipelines import storage
from pipelines.encode.parts import open_part
from pipelines.encode.rows import ID, KEY
from pipelines.errors import VerificationError
from pipelines.export.rows import DOCUMENTS
from pipelines.failures import one_line

if TYPE_CHECKING:
    import pyarrow.parquet as pq


def refuse_other(path: str, made: Any) -> None:
    """Check that a stored file has the bytes, or if Parquet, the rows of the file ``made``.

    Args:
        path: the path of the stored file.
        made: the file made again, opened.

    Raises:
        VerificationError: the stored file differs or is damaged; the message says where.
        InputError: the stored file cannot be read.
    """
    with storage.open_binary(path) as stored:
        if not path.endswith(".parquet"):
            at = 0
            while (there := stored.read(storage.CHUNK)) == (here := made.read(storage.CHUNK)):
                if not there:
                    return
                at += len(there)
            pairs = enumerate(zip(there, here, strict=False))
            at += next((i for i, (a, b) in pairs if a != b), min(len(there), len(here)))
            raise VerificationError(f"{path}: it differs at byte {at:,} from what its sources give")
        try:
            _refuse_other_rows(path, open_part(stored), open_part(made))
        except (pa.ArrowException, OSError) as error:
            raise VerificationError(f"{path}: damaged: {one_line(error)}") from error


def _refuse_other_rows(path: str, stored: pq.ParquetFile, made: pq.ParquetFile) -> None:
    if not stored.schema_arrow.equals(made.schema_arrow):
        raise VerificationError(
            f"{path}: its columns are {', '.join(map(str, stored.schema_arrow))}, not "
            f"{', '.join(map(str, made.schema_arrow))}"
        )
    there, here = stored.read(use_threads=False), made.read(use_threads=False)
    rows = min(len(there), len(here))
    differences = [  # the key last, which follows from another
        (at, name == KEY, place, name)
        for place, name in enumerate(made.schema_arrow.names)
        for at in [first_difference(there[name][:rows], here[name][:rows])]
        if at is not None
    ]
    if differences:
        row, _, _, name = min(differences)
        found, expected = (table[name][row].as_py() for table in (there, here))
        what = f"{name} is {found!r:.200}, its input says {expected!r:.200}"
        raise VerificationError(f"{path}, row {row}, {_documents(here, row)}: {what}")
    if len(there) > rows:
        raise VerificationError(
            f"{path}, row {rows}: {_documents(there, rows)} is not in the input"
        )
    if len(here) > rows:
        raise VerificationError(
            f"{path} ends after row {rows}: {_documents(here, rows)} of the input has no row"
        )


def first_difference(found: pa.ChunkedArray, expected: pa.ChunkedArray) -> int | None:
    """Return the first row in which two columns of one type and length differ, or None."""
    if found.equals(expected):
        return None
    for row, (one, other) in enumerate(zip(found, expected, strict=True)):
        # A NaN in both is no difference, but Arrow calls them different.
        if not one.equals(other) and repr(one.as_py()) != repr(other.as_py()):
            return row
    return None


def _documents(table: pa.Table, row: int) -> str:
    """Return the documents of a row, for a message."""
    if ID in table.column_names:
        return f"document {table[ID][row].as_py()!r}"
    ids = [repr(one[ID]) for one in table[DOCUMENTS][row].as_py()]
    return f"documents {', '.join(ids[:3])}" + (f" and {len(ids) - 3} more" if ids[3:] else "")
