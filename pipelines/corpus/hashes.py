"""Hashes that choose documents, the same on every runner and after a corpus has grown."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from pipelines.corpus.documents import Block


def hashes(block: Block, *, person: bytes, salt: bytes = b"") -> npt.NDArray[np.uint64]:
    """The hash of each document of a block: of its id, or of its text where it has none of its own.

    Args:
        block: the documents.
        person: up to 16 bytes, which tell what the hashes are for.
        salt: up to 16 bytes, such as a seed.
    """
    ids = block.stable_ids
    none = [None] * len(block)
    digests = b"".join(
        blake2b(
            text.as_buffer() if id_ is None else id_.encode(),
            digest_size=8,
            person=person,
            salt=salt,
        ).digest()
        for id_, text in zip(none if ids is None else ids.to_pylist(), block.texts, strict=True)
    )
    return np.frombuffer(digests, ">u8").astype(np.uint64)
