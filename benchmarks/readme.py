"""Puts a table between two marks of a Markdown page."""

from __future__ import annotations

BEGIN = "<!-- benchmarks: begin (python -m benchmarks table --readme) -->\n"
END = "<!-- benchmarks: end -->\n"


def with_table(page: str, table: str) -> str:
    """The page with another table between the marks.

    Raises:
        ValueError: a mark is missing, or they are in the wrong order.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"there is no line {BEGIN.strip()!r} with {END.strip()!r} below it")
    return f"{before}{BEGIN}\n{table}\n\n{END}{after}"
