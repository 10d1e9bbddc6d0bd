"""Find the first cause of an error in tracebacks inside stack traces."""

from __future__ import annotations

import re

LONGEST = 2000
# "ValueError: wrong", at the beginning of a line, as Python ends a traceback.
_PYTHON = re.compile(r"^[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit)\b.*$", re.MULTILINE)
# "java.io.IOException: wrong", as Java begins a stack trace.
_JAVA = re.compile(r"(?:[a-z][\w$]*\.)+([A-Z][\w$]*)(?::\s*(.*))?", re.DOTALL)
_OF_JAVA = re.compile(r"(?:java|javax|jdk|sun|scala|org|com|io)\.")
_CAUSED_BY = re.compile(r"^\s*Caused by: (.*)$", re.MULTILINE)
_FRAME = re.compile(r"^\s*(?:at [\w$.<>/ -]+\(.*\)|\.\.\. \d+ (?:more|common frames.*))\s*$")
_PREFIX = re.compile(r"^Pipeline \S+ failed in state \w+: (?:unknown error$)?")  # Beam's own
_WHILE = re.compile(r"\s*\[while running '[^']*'\](?:: \w+)?$")


def first_cause(text: str) -> str:
    r"""Return the first cause of an error, in one line; empty if ``text`` has no cause.

    The cause is the exception of the last Python traceback, since Beam puts the first exception of
    a worker last; else the innermost cause of a Java stack trace; else the first line.

    >>> first_cause("a.b.JobException: over\nCaused by: java.io.IOException: disk full\n\tat x.Y()")
    'IOException: disk full'
    """
    text = _PREFIX.sub("", text)
    found = [match[0] for match in _PYTHON.finditer(text) if not _OF_JAVA.match(match[0])]
    if "Traceback (most recent call last)" in text and found:
        return _short(_WHILE.sub("", found[-1]))
    if causes := _CAUSED_BY.findall(text):
        return _short(_without_package(causes[-1]))
    if found:
        return _short(_WHILE.sub("", found[-1]))
    lines = [line for line in text.splitlines() if line.strip() and not _FRAME.match(line)]
    return _short(_without_package(lines[0])) if lines else ""


def _without_package(line: str) -> str:
    """Return ``IOException: x`` for ``java.io.IOException: x``; unwrap nested exceptions."""
    match = _JAVA.fullmatch(line.strip()) if _OF_JAVA.match(line) else None
    while match is not None and (inner := _JAVA.fullmatch((match[2] or "").strip())):
        match = inner
    if match is None:
        return line
    return f"{match[1]}: {match[2]}" if match[2] else match[1]


def _short(line: str) -> str:
    return " ".join(line.split())[:LONGEST]
