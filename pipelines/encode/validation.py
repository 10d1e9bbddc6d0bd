"""Which documents are held out for validation: those with small hashes.

A document's hash depends on its id alone, or on its text where the record has no id of its own: it
stays in its half when the corpus grows, wherever its file lies. Other programs find the same with
``hashlib.blake2b(id, digest_size=8, person=b"bpe validation")``, a number of 64 bits, big-endian.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pipelines.corpus.hashes import hashes

if TYPE_CHECKING:
    from pipelines.corpus.documents import Block

PERSON = b"bpe validation"


def held_out(block: Block, share: float) -> pa.BooleanArray:
    """For each document of a block, whether it is held out.

    Args:
        block: the documents.
        share: of all documents, from 0 to below 1.
    """
    limit = np.uint64(int(Fraction(share) * (1 << 64)))
    return pa.array(hashes(block, person=PERSON) < limit)
