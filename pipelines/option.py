"""One declaration an option: command line, YAML, reference and validation follow from it.

A field of a frozen dataclass declares an option. Its type implies the check, and its entry below
``Attributes`` in the docstring is its help, in Python as on the command line::

    @dataclass(frozen=True, kw_only=True)
    class InputSettings:
        max_failures: int = option(0, minimum=0)
"""

from __future__ import annotations

import contextlib
import difflib
import inspect
import re
import sys
from dataclasses import MISSING, dataclass, field, fields
from decimal import Context, Decimal, Inexact, localcontext
from fractions import Fraction
from functools import cache
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

from pipelines.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

Kind = Literal["text", "integer", "number", "share", "size", "flag"]
Group = Literal[
    "Input",
    "Output",
    "Text",
    "Vocabulary",
    "Documents",
    "Rows",
    "Appending",
    "Where it runs",
    "Messages",
    "Options",
]
GROUPS: tuple[str, ...] = get_args(Group)
"""The groups of ``--help``, in its order."""

MAX_INTEGER = 2**63 - 1  # what counts and their files can hold
# Types that say more than their class: pairs of a field of `Option` and its value.
Size = Annotated[int, ("kind", "size"), ("minimum", 1)]
Share = Annotated[float, ("kind", "share")]
Positive = Annotated[int, ("minimum", 1)]
Natural = Annotated[int, ("minimum", 0)]
Seconds = Annotated[float, ("minimum", 0), ("metavar", "SECONDS")]
Seed = Annotated[int, ("minimum", 0), ("maximum", MAX_INTEGER)]

_METAVARS = {"integer": "N", "number": "NUMBER", "share": "SHARE", "size": "SIZE"}
_NAME = "option"
_UNITS = re.compile(
    r"(?P<number>[0-9]{1,999}(?:\.[0-9]{1,999})?) ?(?:(?P<power>[kmgt])(?P<binary>i?))?",
    re.IGNORECASE,
)
_SHARE = re.compile(
    r"(?P<number>[0-9]{1,20}(?:\.[0-9]{1,20})?(?:e-[0-9]{1,2})?) ?(?P<percent>%)?"
    r"|(?P<fraction>[0-9]{1,20}/0*[1-9][0-9]{0,19})"
)
# An entry of a section of a docstring: indented lines follow its first.
_ENTRY = re.compile(r"^ {4}(?P<name>\w+): (?P<text>.*(?:\n {5,}.*)*)", re.MULTILINE)
_Class = TypeVar("_Class")


@dataclass(frozen=True, kw_only=True)
class Option:
    """An option of the command line, YAML and Python.

    Attributes:
        name: the name, with underscores, on the command line and in YAML.
        field: the name in Python.
        help: sentences; the short ``--help`` shows the first one.
        group: the heading under which ``--help`` lists the option.
        kind: the kind of the value, or of each value of several.
        repeatable: whether the option takes several values.
        default: the default value of the field.
        required: whether the field has no default.
        default_is: the default in words, if help does not show the value.
        metavar: the name of the value in help.
        choices: the allowed texts; empty if all texts are allowed.
        suggestions: texts that shells complete, if all texts are allowed.
        minimum: the smallest allowed number; None without a limit.
        maximum: the greatest allowed number; None without a limit.
        advanced: whether the short ``--help`` leaves the option out.
        needs: the options that must be given with this one: ``NAME`` or ``NAME=VALUE``; ``A|B``
            needs one of them, ``A&B`` both. Names of options that a command lacks are ignored.
        excludes: the options that may not be given with this one.
        short: a letter, the short name on the command line.
        joined: whether a value joins those of lower layers. The command line has a place of its own
            for it, after ``--``.
    """

    help: str
    group: Group = "Options"
    name: str = ""
    field: str = ""
    kind: Kind = "text"
    repeatable: bool = False
    default: Any = None
    required: bool = False
    default_is: str = ""
    metavar: str = ""
    choices: tuple[str, ...] = ()
    suggestions: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    advanced: bool = False
    needs: str = ""
    excludes: tuple[str, ...] = ()
    short: str = ""
    joined: bool = False

    @property
    def flag(self) -> str:
        """Return the name on the command line."""
        return f"--{self.name}".replace("_", "-")

    def parse(self, text: str) -> Any:
        """Return the value that a text of the command line means.

        Raises:
            ValueError: the text is of another kind, or the value is refused (`problem`).
        """
        value = parse(self.kind, text)
        if problem := self.problem(value):
            raise ValueError(problem)
        return value

    def problem(self, value: Any) -> str:
        """Return the reason why a value is refused; empty if it is allowed."""
        if self.choices and value not in self.choices:
            near = ""
            if self.name == "pretokenizer":
                from bpe.pretokenizer import did_you_mean  # noqa: PLC0415 - not for `--help`

                near = did_you_mean(str(value))
            return f"{value!r} is unknown{near}: use one of {', '.join(self.choices)}"
        if value == "":
            return f"is empty: give {self.metavar}"
        if self.minimum is None and self.maximum is None:
            return ""
        kinds = (int, float) if self.kind in ("number", "share") else int
        if not isinstance(value, kinds) or isinstance(value, bool):
            return f"{value!r:.60} is not {_KINDS.get(self.kind, _KINDS['integer'])[1]}"
        maximum = MAX_INTEGER if self.maximum is None else self.maximum
        minimum = -MAX_INTEGER if self.minimum is None else self.minimum
        if minimum <= value <= maximum:
            return ""
        if maximum < MAX_INTEGER and self.minimum is not None:
            return f"{value} is not between {minimum:g} and {maximum:,.16g}"
        limit = f"{maximum:,} or less" if value > maximum else f"{minimum:g} or more"
        return f"{value} is out of range: use {limit}"

    def default_text(self, given: Any = None) -> str:
        """Return the default as help shows it, or the value that is ``given`` instead."""
        if given is None and self.default_is:
            return self.default_is
        value = self.default if given is None else given
        if is_absent(value) or self.kind == "flag":
            return ""
        return ", ".join(value) if isinstance(value, tuple) else str(value)


def parse(kind: str, text: str) -> Any:
    """Return the value of a kind, one of ``_KINDS``, that a text means.

    Raises:
        ValueError: the text is not of the kind.
    """
    convert, name = _KINDS[kind]
    try:
        return convert(text)
    except (ValueError, KeyError):
        raise ValueError(f"{text!r} is not {name}") from None


def _whole(text: str) -> int:
    """Return the whole number in a text such as ``32000``, ``32k``, ``1.5M``, ``10B``, ``2Ki``."""
    with contextlib.suppress(ValueError):
        return int(text)
    # Tokens and parameters are counted in billions, B.
    number = _in_units(re.sub(r"[bB]$", "G", text.strip()))
    if number.denominator > 1:
        raise ValueError
    return int(number)


def _size(text: str) -> int:
    """Return the number of bytes in a text such as ``67108864``, ``64 MiB``, ``64M``, ``0.5GB``."""
    return int(_in_units(re.sub(r"[bB]$", "", text.strip())))


def _in_units(text: str) -> Fraction:
    match = _UNITS.fullmatch(text)
    if match is None:
        raise ValueError
    power = "kmgt".index(match["power"].lower()) + 1 if match["power"] else 0
    unit: int = (1024 if match["binary"] else 1000) ** power
    return Fraction(match["number"]) * unit


def _exact_share(text: str) -> Fraction:
    """Return the share in a text such as ``0.5%``, ``0.005`` or ``1/200``."""
    match = _SHARE.fullmatch(text.strip())
    if match is None:
        raise ValueError
    if match["fraction"]:
        return Fraction(match["fraction"])
    return Fraction(match["number"]) / (100 if match["percent"] else 1)


_A_SHARE = "a share: write 0.5%, 0.005 or 1/200, for example"
_KINDS: dict[str, tuple[Callable[[str], Any], str]] = {
    "text": (str, "a text"),
    "flag": (lambda text: {"true": True, "false": False}[text.lower()], "true or false"),
    "integer": (_whole, "a whole number"),
    "number": (float, "a number"),
    "exact share": (_exact_share, _A_SHARE),
    "share": (lambda text: float(_exact_share(text)), _A_SHARE),
    "size": (_size, "a size: write bytes, or a number with KB, MB, GB, KiB, MiB or GiB"),
}


def percent(share: Fraction) -> str:
    """Return a share in per cent, exactly; as a fraction if it has more than 50 digits.

    >>> percent(Fraction("0.999999999")), percent(Fraction(1, 3))
    ('99.9999999%', '1/3')
    """
    with localcontext(Context(prec=50)) as context:
        value = 100 * Decimal(share.numerator) / share.denominator
        return str(share) if context.flags[Inexact] else f"{value:f}%"


def option(default: Any = MISSING, /, **declaration: Any) -> Any:
    """Return a dataclass field that declares an option; the keywords are those of `Option`.

    By default, ``kind``, ``choices`` and ``repeatable`` follow from the type of the field, and
    ``help`` is the entry in the docstring of the class.
    """
    return field(default=default, metadata={_NAME: declaration})


def advanced(default: Any = MISSING, /, **declaration: Any) -> Any:
    """Return an `option` that the short ``--help`` leaves out."""
    return option(default, advanced=True, **declaration)


def declared(settings: type) -> Mapping[str, Option]:
    """Return the options that a settings class declares, by field."""
    return _declared(settings)


@cache  # workers make settings too, for each split
def _declared(settings: Any) -> Mapping[str, Option]:
    own = [one for one in fields(settings) if _NAME in one.metadata]
    # Of these alone: types of other fields may be imported for checkers only.
    annotated = type("Options", (), {"__annotations__": {one.name: one.type for one in own}})
    module = vars(sys.modules[settings.__module__])
    types = get_type_hints(annotated, module, include_extras=True)
    documented = _attributes(settings)
    found = {}
    for one in own:
        said = _of_type(types[one.name]) | {"help": documented.get(one.name, "")}
        said |= {"group": settings.group, "name": one.name}
        said |= one.metadata[_NAME]
        said.setdefault("metavar", _METAVARS.get(said["kind"], ""))
        required = one.default is MISSING
        default = None if required else one.default
        found[one.name] = Option(**said, field=one.name, default=default, required=required)
    return found


def _attributes(settings: type) -> dict[str, str]:
    """Return the text about each attribute in the docstrings of a class and its bases."""
    entries: dict[str, str] = {}
    for base in reversed(settings.__mro__):
        _, _, attributes = inspect.cleandoc(base.__doc__ or "").partition("\nAttributes:\n")
        entries |= {
            one["name"]: " ".join(one["text"].split()) for one in _ENTRY.finditer(attributes)
        }
    return entries


def _of_type(hint: Any) -> dict[str, Any]:
    """Return the parts of an option that follow from the type of its field."""
    leaves = list(_leaves(hint))
    kinds = {bool: "flag", int: "integer", float: "number"}
    said = {
        "kind": next((kind for cls, kind in kinds.items() if cls in leaves), "text"),
        "repeatable": tuple in leaves,
        "choices": tuple(one for one in leaves if isinstance(one, str)),
    }
    return said | dict(one for one in leaves if isinstance(one, tuple))


def _leaves(hint: Any) -> Iterator[Any]:
    """Yield the classes in a type, ``tuple`` included, the values of literals, and annotations."""
    if get_origin(hint) is tuple:
        yield tuple
    elif not get_args(hint):
        yield hint
    for one in get_args(hint):
        yield from _leaves(one)


def changed(settings: Any) -> dict[str, Any]:
    """Return the fields of settings that differ from their defaults, as JSON values.

    The fingerprint of a job is made of them. So a new option does not change the fingerprints of
    jobs without the option.
    """
    from bpe._codec import to_jsonable  # noqa: PLC0415 - `--help` does not wait for bpe

    values = {
        one.name: getattr(settings, one.name)
        for one in fields(settings)
        if getattr(settings, one.name) != one.default
    }
    return dict(to_jsonable(values))


def takes(
    *settings: type, leave_out: Collection[str] = ()
) -> Callable[[type[_Class]], type[_Class]]:
    """Return a decorator that adds options to the signature and docstring of a class."""

    def decorate(cls: type[_Class]) -> type[_Class]:
        taken = [
            {name: spec for name, spec in declared(one).items() if name not in leave_out}
            for one in settings
        ]
        specs = {name: spec for one in taken for name, spec in one.items()}
        own = inspect.signature(cls)
        plain = [one for one in own.parameters.values() if one.kind is not one.VAR_KEYWORD]
        named = {one.name for one in plain}
        more = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=spec.default)
            for name, spec in specs.items()
            if name not in named and not spec.required
        ]
        lines = [f"{one.name}: {specs[one.name].help}" for one in more]
        cls.__doc__ = inspect.cleandoc(cls.__doc__ or "") + "\n\nOptions:\n    "
        cls.__doc__ += "\n    ".join(lines) + "\n"
        target: Any = cls
        target.__signature__ = own.replace(parameters=[*plain, *more])
        target.taken = taken
        return cls

    return decorate


def split_arguments(taker: Any, arguments: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the keyword arguments for each class of settings that `takes` names.

    Args:
        taker: an instance of the class that takes them.
        arguments: the keyword arguments for all classes of settings together.

    Raises:
        TypeError: no class declares an argument.
    """
    names = [name for specs in taker.taken for name in specs]
    for name in arguments:
        if name not in names:
            raise TypeError(f"unknown argument {name!r}: did you mean {nearest(name, names)!r}?")
    return [
        {name: value for name, value in arguments.items() if name in specs} for specs in taker.taken
    ]


def nearest(name: str, names: Iterable[str]) -> str:
    """Return the one of ``names`` that is spelled most like ``name``."""
    return difflib.get_close_matches(name.lower(), sorted(names), n=1, cutoff=0)[0]


def list_of(name: str, values: Sequence[str]) -> tuple[str, ...]:
    """Return the values of an argument that takes a list.

    Raises:
        ConfigError: the argument is a string.
    """
    if isinstance(values, str):
        raise ConfigError(f"{name} is one string: give a list, [{values!r}]")
    return tuple(values)


class Settings:
    """A base of dataclasses whose fields declare options; values are checked when one is made.

    Sequences become tuples.

    Raises:
        ConfigError: a value is none of the choices, of another kind or out of bounds, a string is
            given instead of a list, or a rule between options is broken.
    """

    group: ClassVar[Group] = "Options"

    def __init_subclass__(cls, *, group: Group | None = None) -> None:
        cls.group = group or cls.group

    def __post_init__(self) -> None:
        specs = declared(type(self))
        for name, spec in specs.items():
            values: Any = (getattr(self, name),)
            may_be_one = spec.default is None or isinstance(spec.default, str)
            if spec.repeatable and not (may_be_one and isinstance(values[0], str | None)):
                values = list_of(name, values[0])
                object.__setattr__(self, name, values)
            for one in values:
                if one is not None and (problem := spec.problem(one)):
                    raise ConfigError(f"`{name}` {problem}")
        check_rules(specs, {name: getattr(self, name) for name in specs})


def is_absent(value: object) -> bool:
    """Return whether a value is None, False or an empty tuple."""
    return value is None or value is False or value == ()


def check_rules(specs: Mapping[str, Option], values: Mapping[str, Any]) -> None:
    """Check the rules ``needs`` and ``excludes`` of options; ignore names not in ``specs``.

    Args:
        specs: the options, by name.
        values: the values, by name.

    Raises:
        ConfigError: an option needs or excludes another one.
    """

    def is_given(name: str) -> bool:
        value, default = values[name], specs[name].default
        return not is_absent(value) if default is None else value not in (default, None)

    for name, spec in specs.items():
        if not is_given(name):
            continue
        for other in filter(specs.__contains__, spec.excludes):
            if is_given(other):
                raise ConfigError(f"`{name}` and `{other}` exclude each other: choose one")
        for needed in spec.needs.split("&") if spec.needs else ():
            ways = [one.strip().partition("=") for one in needed.split("|")]
            ways = [way for way in ways if way[0] in specs]
            if ways and not any(
                values[other] == value if value else is_given(other) for other, _, value in ways
            ):
                remedies = (
                    f"`{other}` {value or specs[other].metavar}".strip() for other, _, value in ways
                )
                raise ConfigError(f"`{name}` needs {' or '.join(remedies)}")
