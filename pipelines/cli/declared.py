"""Options of commands, made from their declarations."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from pipelines.cli.layers import use_configs, use_preset
from pipelines.option import declared

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pipelines.option import Option

_CLAUSE = re.compile(r"(?:With [^:]*: )?.*?(?=[.:;] |\.$)")
HELP_ALL = "bpe.help_all"  # in the meta of a context whose help shows everything
# What others take their defaults from comes before them.
_FIRST = {"config": use_configs, "preset": use_preset}


class Value(click.ParamType):  # type: ignore[type-arg]  # generic in click 8.2 and later only
    """A value that a declaration allows."""

    name = "value"

    def __init__(self, spec: Option) -> None:
        self._spec = spec

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value of a text; return checked values of files unchanged."""
        try:
            return self._spec.parse(value) if isinstance(value, str) else value
        except ValueError as error:
            self.fail(str(error), param, ctx)


class DeclaredOption(click.Option):
    """An option that ``--help`` lists in the group of its declaration."""

    def __init__(self, spec: Option) -> None:
        flag, short = spec.flag, [f"-{spec.short}"] if spec.short else []
        attributes: dict[str, Any] = {"help": spec.help, "required": spec.required}
        if spec.default not in (None, "", ()):  # click takes None for a value that was given
            is_one = spec.repeatable and isinstance(spec.default, str)
            attributes["default"] = [spec.default] if is_one else spec.default
        if spec.default_is or spec.kind == "flag":
            attributes["show_default"] = False
        if spec.kind == "flag":
            flag += f"/--no-{flag[2:]}"
        else:
            is_checked = spec.kind != "text" or spec.choices
            attributes |= {"multiple": spec.repeatable, "metavar": spec.metavar or None}
            attributes["type"] = Value(spec) if is_checked else str
        if texts := (*spec.choices, *spec.suggestions):
            attributes["shell_complete"] = lambda *asked: [
                text for text in texts if text.startswith(asked[-1])
            ]
        first = _FIRST.get(spec.name)
        super().__init__(
            [flag, *short, spec.name], is_eager=first is not None, callback=first, **attributes
        )
        self.spec = spec

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the names of the option, and what it does: in the short help, in one sentence."""
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
        """Return the first clause of the help, and the choices."""
        match = _CLAUSE.match(self.spec.help)
        first = self.spec.help if match is None else match[0]
        choices = f": {', '.join(self.spec.choices)}" if self.spec.choices else ""
        return f"{first}{choices}."


def is_short(ctx: click.Context) -> bool:
    """Return whether ``--help`` is shown, not ``--help-all``."""
    return not ctx.meta.get(HELP_ALL)


def declared_options(
    *settings: type,
    optional: Collection[str] = (),
    leave_out: Collection[str] = (),
    changes: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[click.Parameter]:
    """Return the options that classes of settings declare, each once.

    Args:
        settings: the classes.
        optional: names of options that the command can do without.
        leave_out: names of options that the command has not.
        changes: fields of `Option`, by name of an option, that are others for this command.
    """
    specs = {spec.name: spec for cls in settings for spec in declared(cls).values()}
    optional_changes = {name: {"required": False} for name in optional}
    return [
        DeclaredOption(replace(spec, **{**optional_changes, **(changes or {})}.get(name, {})))
        for name, spec in specs.items()
        if name not in leave_out
    ]
