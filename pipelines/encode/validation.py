"""Which documents are held out for validation: those with small hashes.

A document's hash depends on its id alone, or on its text where the record has no id of its own: it
stays in its half when the corpus grows, wherever its file lies. Other programs find the same with
``hashlib.blake2b(id, digest_size=8, person=b"bpe validation")``, a number of 64 bits, big-endian.
"""

from __future__ import annotations

from fractions import Fraction
from hashlib import blake2b
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pipelines.corpus.documents import Block

PERSON = b"bpe validation"


def held_out(block: Block, share: float) -> pa.BooleanArray:
    """For each document of a block, whether it is held out.

    Args:
        block: the documents.
        share: of all documents, from 0 to 1.
    """
    limit = int(Fraction(share) * (1 << 64))
    ids = block.stable_ids
    none = [None] * len(block)
    return pa.array(
        (
            is_below(text.as_buffer() if id_ is None else id_.encode(), limit)
            for id_, text in zip(none if ids is None else ids.to_pylist(), block.texts, strict=True)
        ),
        pa.bool_(),
    )


def is_below(key: bytes | pa.Buffer, limit: int) -> bool:
    """Whether the hash of an id or text, in UTF-8, is below ``limit``, of 2^64."""
    return int.from_bytes(blake2b(key, digest_size=8, person=PERSON).digest(), "big") < limit
