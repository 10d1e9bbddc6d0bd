"""Compute 64-bit keys and seeds of documents, the same on every runner.

The key of a document decides what an export does with the document. The key depends on the id
alone, or on the text if the record has no id of its own: the key does not change when the corpus
grows or the file moves, and a duplicate has the same key.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bpe import _native
from bpe._arrow import text_column

if TYPE_CHECKING:
    from pipelines.corpus.documents import Block


def document_keys(block: Block) -> pa.UInt64Array:
    """Return the key of each document: `row_hashes` of the id, or of the text without an id."""
    ids = block.stable_ids
    if ids is None:
        return row_hashes(block.texts)
    of_ids = row_hashes(ids.fill_null(""))
    if not ids.null_count:
        return of_ids
    return pc.if_else(ids.is_valid(), of_ids, row_hashes(block.texts))


def row_hashes(texts: pa.Array) -> pa.UInt64Array:
    """Return the XXH64 (seed 0) of the bytes of each row; strings or binaries, no nulls."""
    hashes = pa.py_buffer(_native.row_hashes(text_column(texts)))
    return pa.Array.from_buffers(pa.uint64(), len(texts), [None, hashes])


def seed64(text: str) -> np.uint64:
    """Return the first eight bytes, little-endian, of the SHA-256 of a text."""
    seed: np.uint64 = np.uint64(
        int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")
    )
    return seed
