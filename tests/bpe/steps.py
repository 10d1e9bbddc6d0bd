"""The work of the core: branches taken, which its build for ``make sanitize`` counts."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

import pytest

from bpe import _native

if TYPE_CHECKING:
    from collections.abc import Callable

_CORE = ctypes.PyDLL(_native.__file__)
INSTRUMENTED = hasattr(_CORE, "bpe_steps")  # the core is many times slower
counts_steps = pytest.mark.skipif(
    not INSTRUMENTED, reason="this core does not count its steps: make sanitize"
)


def steps(call: Callable[[], object]) -> int:
    """The number of branches that the core takes in a call of this thread."""
    count = _CORE.bpe_steps
    count.restype = ctypes.c_uint64
    before = count()
    call()
    return int(count() - before)


def assert_linear(work: Callable[[int], object], size: int) -> None:
    """Check that four times the input takes about four times the steps; quadratic, it takes 16.

    Args:
        work: calls the core with an input of so many bytes.
        size: of the smaller input; large enough that constant work is a small share.
    """
    small, large = steps(lambda: work(size)), steps(lambda: work(4 * size))
    assert small > size / 100, "the core counted nothing"
    assert large < 6 * small
