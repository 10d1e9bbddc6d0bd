"""How many inputs hypothesis tries where a test names a number."""

from __future__ import annotations

from hypothesis import settings

_BRIEF = 5  # an instrumented build is several times slower


def examples(number: int) -> settings:
    """A decorator: so many inputs, or a fifth of them under ``--hypothesis-profile=brief``."""
    brief = settings.get_current_profile_name() == "brief"
    return settings(max_examples=max(5, number // _BRIEF) if brief else number)
