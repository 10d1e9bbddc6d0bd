"""Read jobs from YAML files of option names and values, checked before anything runs."""

from __future__ import annotations

import contextlib
import difflib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from pipelines.errors import ConfigError
from pipelines.option import parse_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from pipelines.option import Option

_WRITE: dict[str, tuple[type | tuple[type, ...], str]] = {
    "text": (str, "text, in quotes"),
    "flag": (bool, "true or false"),
    "integer": (int, "a whole number"),
    "number": ((int, float), "a number, such as 0.1"),
    "share": ((int, float, str), "a share, such as 0.5%"),
    "size": ((int, str), "a size, such as 64MiB"),
}


def read_config(
    path: str,
    keys: Mapping[str, Option],
    *,
    owner: Callable[[str], str] = lambda _: "",
    sections: Mapping[str, Mapping[str, Option]] | None = None,
) -> dict[str, Any]:
    """Read a YAML file of option names and values.

    Args:
        path: a local file.
        keys: the options that the file may have, by name (with underscores).
        owner: returns the other command that has a key, if any.
        sections: the keys that each section of the file may hold, by its name.

    Returns:
        The values by name (with underscores), in the types that ``keys`` state; the values of a
        section are in a mapping under the name of the section.

    Raises:
        ConfigError: the file cannot be read, is not YAML, or has a wrong key or value.
    """
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot read the configuration: {error.strerror or error}"
        ) from error
    try:
        document = _UniqueKeysLoader(text).get_single_data()
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise ConfigError(f"{path}: not a YAML file: {_one_line(error)}") from error
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ConfigError(
            f"{path}: a configuration is a mapping, one 'option: value' a line; "
            f"this file is {_kind_of(document)}"
        )
    values = _values(path, document, {**keys, **dict.fromkeys(sections or {})}, owner)
    for name, inner in (sections or {}).items():
        if name in values:
            values[name] = _section(path, name, values[name], inner)
    return values


def _values(
    path: str,
    document: Mapping[Any, Any],
    keys: Mapping[str, Option | None],
    owner: Callable[[str], str],
) -> dict[str, Any]:
    """Return the values of a mapping; check each value whose key is declared as an option."""
    values: dict[str, Any] = {}
    for key, value in document.items():
        name = str(key).replace("-", "_")
        if name not in keys:
            raise ConfigError(_unknown(path, str(key), keys, owner))
        if name in values:
            raise ConfigError(f"{path}: {key}: given twice; keep one")
        spec = keys[name]
        values[name] = value if spec is None else _checked(f"{path}: {key}", value, spec)
    return values


def _section(path: str, name: str, value: Any, keys: Mapping[str, Option]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ConfigError(f"{path}: {name}: {value!r} is {_kind_of(value)}; write a mapping")
    return _values(f"{path}: {name}", value, keys, lambda _: "")


class _UniqueKeysLoader(yaml.SafeLoader):
    """YAML's safe loader, which also refuses a key that is given twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"{key.value}: given twice; keep one", key.start_mark
                    )
                seen.add(key.value)
        return super().construct_mapping(node, deep=deep)


def _unknown(path: str, key: str, keys: Collection[str], owner: Callable[[str], str]) -> str:
    name = key.replace("-", "_")
    if place := owner(name):
        return f"{path}: {key}: an option of {place}; remove it"
    near = max(sorted(keys), key=lambda k: difflib.SequenceMatcher(None, name.lower(), k).ratio())
    return f"{path}: {key}: unknown key; did you mean {near}?"


def _checked(where: str, value: object, spec: Option) -> Any:
    if not spec.repeatable:
        return _single(where, value=value, spec=spec)
    values = value if isinstance(value, list) else [value]
    return tuple(str(_single(where, value=one, spec=spec)) for one in values)


def _single(where: str, *, value: Any, spec: Option) -> Any:
    if value is None:
        raise ConfigError(f"{where}: no value; give one or remove the line")
    types, form = _WRITE[spec.kind]
    if spec.kind == "integer" and isinstance(value, str) and not value.isdigit():
        with contextlib.suppress(ValueError):
            value = parse_whole(value)  # 32k
    if not isinstance(value, types) or isinstance(value, bool) != (spec.kind == "flag"):
        raise ConfigError(f"{where}: {value!r} is {_kind_of(value)}; write {form}")
    if spec.kind in ("share", "size"):
        try:
            return spec.parse(str(value))
        except ValueError as error:
            raise ConfigError(f"{where}: {error}") from error
    if problem := spec.problem(value):
        raise ConfigError(f"{where}: {problem}")
    return value


def _kind_of(value: object) -> str:
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, (int, float)):
        return "a number"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, dict):
        return "a mapping"
    return "text" if isinstance(value, str) else f"a {type(value).__name__}"


def _one_line(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply"
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return f"line {mark.line + 1}, column {mark.column + 1}: {error.problem}"
    return " ".join(str(error).split())
