"""Read jobs from YAML files of option names and values, checked before anything runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from pipelines.errors import ConfigError
from pipelines.option import Option, nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


_NULL = "tag:yaml.org,2002:null"


def read_config(
    path: str,
    keys: Mapping[str, Option | Mapping[str, Option]],
    *,
    owner: Callable[[str], str] = lambda _: "",
) -> dict[str, Any]:
    """Read a YAML file of option names and values.

    Args:
        path: a local file.
        keys: the options that the file may have, by name (with underscores); of a section, the
            options that it may have.
        owner: returns the other command that has a key, if any.

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
        node = yaml.compose(text, yaml.SafeLoader)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise ConfigError(f"{path}: not a YAML file: {_one_line(error)}") from error
    return {} if node is None else _values(path, node, keys, owner)


def _values(
    where: str,
    node: yaml.Node,
    keys: Mapping[str, Option | Mapping[str, Option]],
    owner: Callable[[str], str],
) -> dict[str, Any]:
    if not isinstance(node, yaml.MappingNode):
        raise ConfigError(f"{where}: this is not a mapping, one 'option: value' a line")
    values: dict[str, Any] = {}
    for key, value in node.value:
        name = str(key.value).replace("-", "_")
        place = f"{where}: {key.value}"
        if name in values:
            raise ConfigError(f"{place}: given twice; keep one")
        spec = keys.get(name)
        if isinstance(spec, Option):
            values[name] = _checked(place, value, spec)
        elif spec is not None:
            values[name] = _values(place, value, spec, lambda _: "")
        elif command := owner(name):
            raise ConfigError(f"{place}: an option of {command}; remove it")
        else:
            raise ConfigError(f"{place}: unknown key; did you mean {nearest(name, keys)}?")
    return values


def _checked(where: str, node: yaml.Node, spec: Option) -> Any:
    """Return the value of an option; a text means the same as on the command line."""
    is_list = spec.repeatable and isinstance(node, yaml.SequenceNode)
    texts: list[str] = []
    for one in node.value if is_list else [node]:
        if one.tag == _NULL:
            raise ConfigError(f"{where}: no value; give one or remove the line")
        if not isinstance(one, yaml.ScalarNode):
            raise ConfigError(f"{where}: write one value, not a list or a mapping")
        texts.append(one.value)
    try:
        values = tuple(map(spec.parse, texts))
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from error
    return values if spec.repeatable else values[0]


def _one_line(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply"
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return f"line {mark.line + 1}, column {mark.column + 1}: {error.problem}"
    return " ".join(str(error).split())
