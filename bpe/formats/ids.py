"""How sparse ids may be: tokens are kept in a table that ids index."""

from __future__ import annotations


def id_limit(tokens: int) -> int:
    """Ids must lie below this in a file of so many tokens.

    Published vocabularies have gaps of a few hundred ids. One absurd id must not cost gigabytes.
    """
    return 4 * tokens + (1 << 20)
