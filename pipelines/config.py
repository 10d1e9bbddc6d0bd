"""Jobs described in YAML files: option names and their values, checked before anything runs."""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from pipelines.errors import ConfigError
from pipelines.option import MAX_INTEGER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipelines.option import Option

Value = str | int | float | bool | tuple[str, ...]

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9}
_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([A-Za-z]*)")


def parse_size(text: str) -> int:
    """A number of bytes from text such as ``67108864``, ``64 MiB`` or ``0.5GB``.

    Raises:
        ValueError: the text is not a number with one of the units, or below one byte.
    """
    match = _SIZE.fullmatch(text.strip())
    unit = _UNITS.get(match[2].upper()) if match else None
    if match is None or unit is None:
        raise ValueError(
            f"{text!r} is not a size: write bytes, or a number with KB, MB, GB, KiB, MiB or GiB"
        )
    try:
        size = int(match[1]) * unit if match[1].isdigit() else int(float(match[1]) * unit)
    except OverflowError:
        raise ValueError("the size is larger than any file") from None
    if size < 1:
        raise ValueError(f"{text!r} is not a size: it is below one byte")
    return size


def read_config(
    path: str, keys: Mapping[str, Option], *, elsewhere: Mapping[str, str] | None = None
) -> dict[str, Value]:
    """Read a YAML file of option names and values.

    Args:
        path: a local file.
        keys: what may stand in it, by name (with underscores).
        elsewhere: keys that belong to other commands, and which.

    Returns:
        The values by name (with underscores), in the types that ``keys`` state.

    Raises:
        ConfigError: the file cannot be read, is not YAML, or has a key or value that is wrong.
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
    values: dict[str, Value] = {}
    for key, value in document.items():
        name = str(key).replace("-", "_")
        if name not in keys:
            raise ConfigError(_unknown(path, key=str(key), keys=keys, elsewhere=elsewhere or {}))
        if name in values:
            raise ConfigError(f"{path}: {key}: given twice; keep one")
        values[name] = _checked(path, key=str(key), value=value, spec=keys[name])
    return values


class _UniqueKeysLoader(yaml.SafeLoader):
    """YAML's safe loader, refusing a key that stands twice (YAML itself keeps the last)."""

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


def _unknown(
    path: str, *, key: str, keys: Mapping[str, Option], elsewhere: Mapping[str, str]
) -> str:
    name = key.replace("-", "_")
    if name in elsewhere:
        return f"{path}: {key}: an option of {elsewhere[name]}, not of this command; remove it"
    near = max(sorted(keys), key=lambda k: difflib.SequenceMatcher(None, name.lower(), k).ratio())
    return f"{path}: {key}: unknown key; did you mean {near}?"


def _checked(path: str, *, key: str, value: object, spec: Option) -> Value:
    where = f"{path}: {key}"
    if spec.several:
        several = value if isinstance(value, list) else [value]
        return tuple(str(_single(where, value=one, spec=spec)) for one in several)
    return _single(where, value=value, spec=spec)


def _single(where: str, *, value: object, spec: Option) -> str | int | float | bool:
    if value is None:
        raise ConfigError(f"{where}: no value; give one or remove the line")
    if spec.kind == "flag":
        if not isinstance(value, bool):
            raise ConfigError(f"{where}: {value!r} is {_kind_of(value)}; write true or false")
        return value
    if spec.kind == "integer":
        if not isinstance(value, int) or isinstance(value, bool):
            raise ConfigError(f"{where}: {value!r} is {_kind_of(value)}; write a whole number")
        maximum = MAX_INTEGER if spec.maximum is None else spec.maximum
        if spec.minimum is not None and value < spec.minimum:
            raise ConfigError(f"{where}: {value} is too small; use {spec.minimum} or more")
        if value > maximum:
            raise ConfigError(f"{where}: {value} is too large; use {maximum:,} or less")
        return value
    if spec.kind == "number":
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            raise ConfigError(f"{where}: {value!r} is {_kind_of(value)}; write a number, 0.1")
        return value
    if spec.kind == "size":
        if isinstance(value, bool) or not isinstance(value, (int, str)):
            raise ConfigError(f"{where}: {value!r} is {_kind_of(value)}; write a size, 64 MiB")
        try:
            return parse_size(str(value))
        except ValueError as error:
            raise ConfigError(f"{where}: {error}") from error
    if not isinstance(value, str):
        remedy = "put it in quotes" if not isinstance(value, (list, dict)) else "write one text"
        raise ConfigError(f"{where}: {value!r} is {_kind_of(value)}, not text; {remedy}")
    if spec.choices and value not in spec.choices:
        near = ""
        if spec.name == "pretokenizer":
            from bpe.pretokenize import did_you_mean  # noqa: PLC0415 - `--help` does not wait

            near = did_you_mean(value)
        known = ", ".join(spec.choices)
        raise ConfigError(f"{where}: {value!r} is not known{near}; use one of {known}")
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
