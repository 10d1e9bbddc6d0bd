"""Sizes, numbers of things, times and names as people read them."""

from __future__ import annotations


def size_text(size: float) -> str:
    """``size`` bytes as text, in units of 1000.

    >>> size_text(999), size_text(1_234_567), size_text(123_456_789)
    ('999 bytes', '1.23 MB', '123 MB')
    """
    if size < 9_999.5:
        return many(round(size), "byte")
    unit, value = next(
        (unit, size / scale)
        for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3))
        if size >= scale * (10 if unit == "GB" else 0.9995) or unit == "kB"
    )
    digits = 0 if value >= 99.95 else 1 if value >= 9.995 else 2
    return f"{value:,.{digits}f} {unit}"


def many(number: int, noun: str) -> str:
    """Return a number of things.

    >>> many(1, "file"), many(1200, "file")
    ('1 file', '1,200 files')
    """
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def duration(seconds: float) -> str:
    """``seconds`` as text.

    >>> duration(0.51), duration(75), duration(7384)
    ('0.5 s', '1 min 15 s', '2 h 3 min')
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def printable(text: str) -> str:
    """Return a text in one line that no terminal acts on: names of files may hold anything."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in text
    )
