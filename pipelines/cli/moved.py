"""Options that `bpe encode` had, and what to type instead: rows are made by `bpe export`."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from pipelines.option import Option, declared
from pipelines.settings import ExportSettings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_STAYS = ("parquet_encoding",)  # of both commands
_GONE = Option(name="one_file", kind="flag", help="")
MOVED: Mapping[str, Option] = {
    spec.name: spec
    for spec in (*declared(ExportSettings).values(), _GONE)
    if spec.name not in _STAYS
}


def instead(arguments: Sequence[str]) -> str:
    """What to say of a command line of `bpe encode` with an option that moved; else nothing."""
    own, moved = _parted(arguments)
    if not moved:
        return ""
    output = _value_of(own, "--output") or "DIR"
    return _said(f"--{moved[0][0].replace('_', '-')}", shlex.join(own), output, moved)


def instead_of_keys(path: str, values: Mapping[str, Any]) -> str:
    """The same of a configuration file."""
    moved = [
        (key, str(value))
        for key, given in values.items()
        if key in MOVED
        for value in (given if isinstance(given, list) else [given])
    ]
    if not moved:
        return ""
    names = ", ".join(dict.fromkeys(name for name, _ in moved))
    own = f"--config {shlex.quote(path)} (without {names})"
    return _said(f"{path}: {moved[0][0]}", own, str(values.get("output") or "DIR"), moved)


def _said(what: str, own: str, output: str, moved: Sequence[tuple[str, str]]) -> str:
    rows = " ".join(_words([("to", dict(moved).get("to", "parquet")), *moved]))
    ids, made = shlex.quote(output), shlex.quote(f"{output}-rows")
    return (
        f"{what}: bpe encode writes a row a document, and bpe export makes rows of these, as often "
        f"as you like: type\n  bpe encode {own}\n  bpe export {ids} {rows} --output {made}"
    )


def _words(moved: Iterable[tuple[str, str]]) -> list[str]:
    words, seen = [], set[tuple[str, str]]()
    for name, value in moved:
        is_gone = name == _GONE.name or (name, value) == ("pack_remainder", "carry")
        if is_gone or (name, value) in seen:
            continue
        seen.add((name, value))
        flag = f"--{name}".replace("_", "-")
        if MOVED[name].kind == "flag":
            words += [flag] if value in ("", "True") else []
        else:
            words += [flag, shlex.quote(value)]
    return words


def _parted(arguments: Sequence[str]) -> tuple[list[str], list[tuple[str, str]]]:
    """The arguments that stay, and the names and values of those that moved."""
    own: list[str] = []
    moved: list[tuple[str, str]] = []
    left = list(arguments)
    while left:
        argument = left.pop(0)
        if argument == "--":
            return [*own, argument, *left], moved
        flag, equals, value = argument.partition("=")
        spec = MOVED.get(flag.removeprefix("--").replace("-", "_"))
        if not flag.startswith("--") or spec is None:
            own.append(argument)
            continue
        if spec.kind != "flag" and not equals:
            value = left.pop(0) if left else ""
        moved.append((spec.name, value))
    return own, moved


def _value_of(arguments: Sequence[str], flag: str) -> str:
    for place, argument in enumerate(arguments):
        if argument.startswith(f"{flag}="):
            return argument.partition("=")[2]
        if argument == flag and place + 1 < len(arguments):
            return arguments[place + 1]
    return ""
