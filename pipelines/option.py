"""One declaration an option: command line, YAML, reference and validation follow from it.

A field of a frozen dataclass in `pipelines.settings` declares an option::

    max_failures: int = field(
        default=0,
        metadata=option(group="Input", kind="integer", minimum=0, help="Tolerate N bad records."),
    )
"""

from __future__ import annotations

import difflib
import inspect
import math
from dataclasses import MISSING, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

from pipelines.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Kind = Literal["text", "integer", "number", "size", "flag"]
Group = Literal[
    "Input", "Text", "Vocabulary", "Rows", "Output", "Watching", "Where it runs", "Messages"
]
GROUPS: tuple[str, ...] = get_args(Group)
"""The groups of ``--help``, in its order."""

MAX_INTEGER = 2**63 - 1  # what counts and their files can hold
_NAME = "option"
_Class = TypeVar("_Class")


@dataclass(frozen=True, kw_only=True)
class Option:
    """What a reader, a shell and a check need to know of an option.

    Attributes:
        name: with underscores, on the command line and in YAML; in Python the field's own.
        help: sentences; the first one alone stands in the short ``--help``.
        group: where ``--help`` lists it.
        kind: of its value, or of each of several.
        several: whether it is given several times, or as a list.
        default: that of the field.
        required: whether the field has no default.
        default_is: the default in words, where the value does not say it.
        metavar: what stands for the value in help.
        choices: the texts allowed; empty for any.
        suggestions: what shells complete, where any text is allowed.
        minimum: the smallest number allowed; None for any.
        maximum: the greatest number allowed; None for any.
        advanced: whether the short ``--help`` leaves it out.
    """

    help: str
    group: Group
    name: str = ""
    kind: Kind = "text"
    several: bool = False
    default: Any = None
    required: bool = False
    default_is: str = ""
    metavar: str = ""
    choices: tuple[str, ...] = ()
    suggestions: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    advanced: bool = False


def option(**declaration: Any) -> dict[str, Option]:
    """The metadata of a field that is an option; the keywords are those of `Option`."""
    return {_NAME: Option(**declaration)}


def declared(settings: type) -> Mapping[str, Option]:
    """The options that a settings class declares, by field; with name and default."""
    return {
        field.name: replace(
            field.metadata[_NAME],
            name=field.metadata[_NAME].name or field.name,
            default=None if field.default is MISSING else field.default,
            required=field.default is MISSING,
        )
        for field in fields(settings)
        if _NAME in field.metadata
    }


def split_arguments(arguments: Mapping[str, Any], *settings: type) -> list[dict[str, Any]]:
    """Keyword arguments of a program for each class of settings; sequences become tuples.

    Raises:
        ConfigError: an option that takes several values has one string.
        TypeError: none of the classes declares an argument.
    """
    known = [declared(cls) for cls in settings]
    names = [name for specs in known for name in specs]
    for name in arguments:
        if name not in names:
            near = max(names, key=lambda one: difflib.SequenceMatcher(None, name, one).ratio())
            raise TypeError(f"unknown argument {name!r}: did you mean {near!r}?")
    return [
        {
            name: several(name, value) if specs[name].several else value
            for name, value in arguments.items()
            if name in specs
        }
        for specs in known
    ]


def takes(*settings: type) -> Callable[[type[_Class]], type[_Class]]:
    """A class whose keyword arguments are options: they stand in its signature and docstring."""

    def decorate(cls: type[_Class]) -> type[_Class]:
        own = inspect.signature(cls)
        specs = {name: spec for one in settings for name, spec in declared(one).items()}
        kept = [one for one in own.parameters.values() if one.kind is not one.VAR_KEYWORD]
        named = {one.name for one in kept}
        more = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=spec.default)
            for name, spec in specs.items()
            if name not in named and not spec.required
        ]
        cls.__signature__ = own.replace(parameters=[*kept, *more])  # type: ignore[attr-defined]
        lines = [f"{one.name}: {specs[one.name].help}" for one in more]
        cls.__doc__ = inspect.cleandoc(cls.__doc__ or "") + "\n\nOptions:\n    "
        cls.__doc__ += "\n    ".join(lines) + "\n"
        return cls

    return decorate


def several(name: str, values: Sequence[str]) -> tuple[str, ...]:
    """The values of an argument that takes several; one string is none of them.

    Raises:
        ConfigError: it is one string.
    """
    if isinstance(values, str):
        raise ConfigError(f"{name} is one string: give a list, [{values!r}]")
    return tuple(values)


def check_declared(settings: object) -> None:
    """Refuse values that the declarations do not allow.

    Raises:
        ConfigError: a text is none of the choices, or a number is out of bounds.
    """
    for name, spec in declared(type(settings)).items():
        value = getattr(settings, name)
        if value is None:
            continue
        if spec.choices and not spec.several and value not in spec.choices:
            raise ConfigError(
                f"`{name}` {value!r} is unknown: use one of {', '.join(spec.choices)}"
            )
        if spec.minimum is not None and not isinstance(value, tuple):
            _check_bounds(name, value, spec.minimum, spec.maximum)


def _check_bounds(name: str, value: float, minimum: float, maximum: float | None) -> None:
    if math.isfinite(value) and minimum <= value <= (math.inf if maximum is None else maximum):
        return
    if maximum is None or maximum >= MAX_INTEGER:
        raise ConfigError(f"`{name}` {value} is out of range: use {minimum:g} or more")
    raise ConfigError(f"`{name}` {value} is not between {minimum:g} and {maximum:,.16g}")
