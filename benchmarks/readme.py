"""Puts tables between two marks of a Markdown page."""

from __future__ import annotations

BEGIN = "<!-- benchmarks: begin (python -m benchmarks table --readme) -->\n"
END = "<!-- benchmarks: end -->\n"


def with_table(page: str, table: str) -> str:
    """README.md with another table between its marks.

    Raises:
        ValueError: a mark is missing, or they are in the wrong order.
    """
    return _between(page, table, BEGIN, END)


def with_block(page: str, text: str, *, name: str, command: str) -> str:
    """A page with another text between the marks of this name, which tell the command.

    Raises:
        ValueError: a mark is missing, or they are in the wrong order.
    """
    return _between(page, text, f"<!-- {name}: begin ({command}) -->\n", f"<!-- {name}: end -->\n")


def _between(page: str, text: str, first: str, last: str) -> str:
    before, begin, rest = page.partition(first)
    _, end, after = rest.partition(last)
    if not begin or not end:
        raise ValueError(f"there is no line {first.strip()!r} with {last.strip()!r} below it")
    return f"{before}{first}\n{text}\n\n{last}{after}"
