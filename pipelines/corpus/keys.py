"""The key of a document: a number that says what an export does with it.

It depends on the document's id alone, or on its text where the record has no id of its own: it
stays the same when the corpus grows, wherever the file lies, and a duplicate has the same one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from bpe import _native
from bpe._arrow import text_column

if TYPE_CHECKING:
    from pipelines.corpus.documents import Block


def document_keys(block: Block) -> pa.UInt64Array:
    """The key of each document: `row_hashes` of its id, or of its text where it has none."""
    ids = block.stable_ids
    if ids is None:
        return row_hashes(block.texts)
    of_ids = row_hashes(ids.fill_null(""))
    if not ids.null_count:
        return of_ids
    return pc.if_else(ids.is_valid(), of_ids, row_hashes(block.texts))


def row_hashes(texts: pa.Array) -> pa.UInt64Array:
    """XXH64 of the bytes of each row, with the seed 0; strings or binaries, no nulls."""
    hashes = pa.py_buffer(_native.row_hashes(text_column(texts)))
    return pa.Array.from_buffers(pa.uint64(), len(texts), [None, hashes])
