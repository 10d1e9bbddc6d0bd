"""Compute 64-bit keys, seeds and orders of documents, the same on every runner.

The key of a document decides what an export does with the document. The key depends on the id
alone, or on the text if the record has no id of its own: the key does not change when the corpus
grows or the file moves, and a duplicate has the same key.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bpe import _native
from bpe._arrow import text_column

if TYPE_CHECKING:
    from pipelines.corpus.documents import Block

Hashes: TypeAlias = npt.NDArray[np.uint64]
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


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


def mix64(values: Hashes) -> Hashes:
    """Mix 64-bit values by a one-to-one function whose results look random.

    Source: Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators" (2014), figure
    17: the last steps of SplitMix64.
    """
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Hashes = values ^ (values >> np.uint64(31))
    return mixed


def numbers_at(positions: npt.NDArray[np.int64], *, start: np.uint64 | Hashes) -> Hashes:
    """Return the numbers of a SplitMix64 sequence at some positions, counted from 0."""
    return mix64(start + (positions.astype(np.uint64) + np.uint64(1)) * _GOLDEN)
