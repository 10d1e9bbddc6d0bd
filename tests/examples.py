"""The number of inputs that hypothesis tries where a test names one.

``make test-long`` tries that many, ``make test`` a tenth.
"""

from __future__ import annotations

from hypothesis import settings

from tests.shared_data import LONG

_SHORT = 10
_BRIEF = 40  # an instrumented build is several times slower


def examples(number: int) -> settings:
    """A decorator: so many inputs, or the part of them that this run tries."""
    if settings.get_current_profile_name() == "brief":
        return settings(max_examples=max(5, number // _BRIEF))
    return settings(max_examples=number if LONG else max(5, number // _SHORT))
