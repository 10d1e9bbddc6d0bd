"""The report of a contender, and digests of outputs that can be compared."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

T = TypeVar("T")
SEPARATOR = "<|endoftext|>"
"""The separator of documents for those that take one buffer."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """The result of one process.

    Attributes:
        digest: SHA-256 of what it made; equal outputs of different contenders have equal digests.
        measures: seconds by name, unless it was only checked; ``memory``, the most that the
            process had, what was prepared included, in bytes (0 where the system does not tell).
        text_bytes: UTF-8 of the texts that went in; 0 where a rate means nothing.
        part_bytes: the same of those measures that are of a part of the texts.
    """

    digest: str
    measures: dict[str, float]
    text_bytes: int = 0
    part_bytes: dict[str, int] = field(default_factory=dict)


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """Seconds of a call, and what it returned."""
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def ids_digest(ids: np.ndarray[Any, Any], lengths: np.ndarray[Any, Any]) -> str:
    """The digest of the ids of all documents, and of how many each has."""
    digest = hashlib.sha256(np.ascontiguousarray(lengths, dtype="<i8").tobytes())
    digest.update(np.ascontiguousarray(ids, dtype="<u4").tobytes())
    return digest.hexdigest()


def rows_digest(rows: Sequence[Sequence[int]]) -> str:
    """The same of lists of ids."""
    lengths = np.fromiter(map(len, rows), dtype="<i8", count=len(rows))
    flat = np.fromiter((id_ for row in rows for id_ in row), dtype="<u4", count=int(lengths.sum()))
    return ids_digest(flat, lengths)


def strings_digest(rows: Iterable[tuple[bytes, ...]]) -> str:
    """The digest of rows of byte strings, wherever they begin and end."""
    digest = hashlib.sha256()
    for row in rows:
        for string in row:
            digest.update(b"%d:" % len(string) + string)
        digest.update(b";")
    return digest.hexdigest()
