"""Searches by the package ``regex``, each text within a time limit.

``regex`` backtracks. For some patterns the time grows exponentially with the text: ``(a|a)*$``
needs ages for sixty ``a`` before a ``b``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TypeVar

from bpe.errors import PatternTimeoutError

SECONDS = 5.0
SECONDS_PER_BYTE = 1e-5

_CORES = os.cpu_count() or 1
_Result = TypeVar("_Result")


class TimedSearch:
    """Searches in one text; together they take at most `SECONDS` and `SECONDS_PER_BYTE`.

    Only CPU time of this thread counts, so that a busy machine does not make a text bad.

    Args:
        size: of the text, in bytes.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._limit = SECONDS + size * SECONDS_PER_BYTE
        self._started = time.thread_time()
        self._due = time.perf_counter() + self._limit  # before that, no CPU time can be used up

    def run(self, pattern: str, find: Callable[..., _Result]) -> _Result:
        """Return the result of ``find``.

        Args:
            pattern: to search for; for the error.
            find: searches for it, with the ``timeout=`` of ``regex`` that it is given.

        Raises:
            PatternTimeoutError: the time is used up.
        """
        timeout = self._limit
        while True:
            try:
                result = find(timeout=timeout)
            except TimeoutError:  # noqa: PERF203 - `regex` counts all threads: give it more
                timeout = min(2 * timeout, self._left(pattern) * _CORES)
            else:
                if time.perf_counter() >= self._due:
                    self._due = time.perf_counter() + self._left(pattern)
                return result

    def _left(self, pattern: str) -> float:
        """Return the seconds that are left, more than 0."""
        left = self._limit - (time.thread_time() - self._started)
        if left <= 0:
            raise PatternTimeoutError(
                f"the pattern {pattern!r} is too slow for this text: the search in "
                f"{self._size:,} bytes did not end within {self._limit:.3g} s of CPU time; it "
                "backtracks too much: use possessive quantifiers or atomic groups in it"
            )
        return left
