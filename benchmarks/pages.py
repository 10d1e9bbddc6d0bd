"""Puts generated text between two marks of a Markdown page."""

from __future__ import annotations

COMMAND = "python -m benchmarks table --pages"


def with_block(page: str, text: str, *, name: str) -> str:
    """A page with another text between the marks of this name, which tell the command.

    Raises:
        ValueError: a mark is missing, or they are in the wrong order.
    """
    first, last = f"<!-- {name}: begin ({COMMAND}) -->\n", f"<!-- {name}: end -->\n"
    before, begin, rest = page.partition(first)
    _, end, after = rest.partition(last)
    if not begin or not end:
        raise ValueError(f"there is no line {first.strip()!r} with {last.strip()!r} below it")
    return f"{before}{first}\n{text}\n\n{last}{after}"
