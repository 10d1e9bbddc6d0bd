"""Options of commands, made from their declarations."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from pipelines.option import Option

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    ValueType = click.ParamType[Any]
else:
    ValueType = click.ParamType  # generic in click 8.2 and later only

_CLAUSE = re.compile(r"(?:With [^:]*: )?.*?(?=[.:;] |\.$)")
HELP_ALL = "bpe.help_all"  # in the meta of a context whose help shows everything


class Value(ValueType):
    """A value that a declaration allows."""

    name = "value"

    def __init__(self, spec: Option) -> None:
        self._spec = spec

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value, from a text of the command line; values of files were checked before."""
        try:
            return self._spec.parse(value) if isinstance(value, str) else value
        except ValueError as error:
            self.fail(str(error), param, ctx)

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's interface
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        """The choices and suggestions that begin so."""
        texts = (*self._spec.choices, *self._spec.suggestions)
        return [CompletionItem(text) for text in texts if text.startswith(incomplete)]


class DeclaredOption(click.Option):
    """An option that ``--help`` lists in the group of its declaration.

    Args:
        names: of the option.
        spec: the declaration.
    """

    def __init__(self, names: Sequence[str], *, spec: Option, **attributes: Any) -> None:
        attributes = {"help": spec.help, "required": spec.required, **attributes}
        if spec.default not in (None, "", ()):  # click takes None for a value that was given
            is_one = spec.several and isinstance(spec.default, str)
            attributes["default"] = [spec.default] if is_one else spec.default
        if spec.default_is or spec.kind == "flag":
            attributes["show_default"] = False
        if spec.kind != "flag":
            attributes |= {"multiple": spec.several, "metavar": spec.metavar or None}
            attributes["type"] = Value(spec) if _needs_check(spec) else str
        super().__init__(names, **attributes)
        self.spec = spec

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """The names of the option, and what it does: in the short help, in one sentence."""
        record = super().get_help_record(ctx)
        if record is None:
            return None
        names, text = record
        given = (ctx.default_map or {}).get(self.name)
        if is_short(ctx):
            names = names.partition(" / ")[0]
            text = self._short_help() + text.removeprefix(self.spec.help)
        elif self.spec.default_is and given is None:
            text += f"  [default: {self.spec.default_is}]"
        if self.spec.default_is and given is not None:
            text += f"  [default: {given}]"
        return names, text

    def _short_help(self) -> str:
        """The first clause of the help, and the choices."""
        match = _CLAUSE.match(self.spec.help)
        first = self.spec.help if match is None else match[0]
        choices = f": {', '.join(self.spec.choices)}" if self.spec.choices else ""
        return f"{first}{choices}."


def is_short(ctx: click.Context) -> bool:
    """Whether ``--help`` is shown, not ``--help-all``."""
    return not ctx.meta.get(HELP_ALL)


def _needs_check(spec: Option) -> bool:
    return spec.kind != "text" or bool(spec.choices or spec.suggestions)


def own_option(name: str, *short: str, **declaration: Any) -> Callable[[Any], Any]:
    """An option that one command declares; the keywords are those of `Option`."""
    return add_option(Option(name=name, field=name, **declaration), *short)


def add_option(spec: Option, *short: str, **attributes: Any) -> Callable[[Any], Any]:
    """An option of a command from its declaration; ``attributes`` are those of click."""
    flag = f"--{spec.name}".replace("_", "-")
    if spec.kind == "flag":
        flag += f"/--no-{flag[2:]}"
    return click.option(flag, *short, spec.name, cls=DeclaredOption, spec=spec, **attributes)


def stack(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """One decorator from several, shown in ``--help`` in the order given."""

    def decorate(function: Any) -> Any:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate
