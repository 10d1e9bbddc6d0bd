"""Find documents with equal ids: compare their keys first, then the ids themselves."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines import storage
from pipelines.encode.parts import open_part
from pipelines.encode.rows import ID, KEY
from pipelines.errors import InputError
from pipelines.failures import one_line
from pipelines.parquet_writer import batches_of
from pipelines.storage import join
from pipelines.totals import DuplicateIds

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bpe.splitmix import Hashes
    from pipelines.encode.manifest import Part

KEYS_AT_ONCE = 1 << 23  # in memory, with the ids of those that are not unique
_READERS = 8


def duplicate_ids(directory: str, parts: Sequence[Part]) -> DuplicateIds:
    """Return the number of documents whose id an earlier document has.

    Equal ids have equal keys, so all keys are read first, and then only the ids of documents whose
    key is not unique. Memory is bounded: with many documents, the keys are divided, and the parts
    are read once for each division.

    Args:
        directory: the directory of the corpus.
        parts: the parts.

    Raises:
        InputError: a part cannot be read.
    """
    paths = [join(directory, part.file) for part in parts]
    divisions = max(-(-sum(part.documents for part in parts) // KEYS_AT_ONCE), 1)
    documents, example = 0, ""
    with ThreadPoolExecutor(_READERS) as readers:
        for division in range(divisions):
            found = readers.map(lambda path: _keys(path, division, divisions), paths)  # noqa: B023 - used at once
            keys = np.sort(np.concatenate([np.empty(0, np.uint64), *found]))
            again = np.unique(keys[1:][keys[1:] == keys[:-1]])
            if not len(again):
                continue
            ids = pa.chunked_array(readers.map(lambda path: _ids(path, again), paths), pa.string())  # noqa: B023
            counts = pc.value_counts(ids)
            repeated = counts.filter(pc.greater(counts.field("counts"), 1))
            if len(repeated):
                documents += pc.sum(repeated.field("counts")).as_py() - len(repeated)
                example = example or min(repeated.field("values").to_pylist())
    return DuplicateIds(documents=documents, example=example)


def _keys(path: str, division: int, divisions: int) -> Hashes:
    """Return the keys of a part that are of a division."""
    found = [np.empty(0, np.uint64)]
    for batch in _batches(path, [KEY]):
        keys = batch.column(KEY).to_numpy()
        found.append(keys[keys % np.uint64(divisions) == division])
    return np.concatenate(found)


def _ids(path: str, keys: Hashes) -> pa.Array:
    """Return the ids of the documents of a part whose key is one of the sorted ``keys``."""
    found = [pa.array([], pa.string())]
    for batch in _batches(path, [ID, KEY]):
        own = batch.column(KEY).to_numpy()
        place = np.minimum(np.searchsorted(keys, own), len(keys) - 1)
        found.append(batch.column(ID).filter(pa.array(keys[place] == own)))
    return pa.concat_arrays(found)


def _batches(path: str, columns: list[str]) -> Iterable[pa.RecordBatch]:
    try:
        with storage.open_binary(path) as file:
            yield from batches_of(open_part(file), 1 << 16, columns=columns)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path}: damaged: {one_line(error)}") from error
