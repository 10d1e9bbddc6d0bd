"""Options of commands, made from their declarations."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from pipelines.option import declared

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pipelines.option import Option

_CLAUSE = re.compile(r"(?:With [^:]*: )?.*?(?=[.:;] |\.$)")
_EAGER = ("config", "preset")  # their defaults are in the help of options


class DeclaredOption(click.Option):
    """An option that ``--help`` lists in the group of its declaration.

    Its default is left to `pipelines.cli.layers.Values`.
    """

    def __init__(self, spec: Option) -> None:
        flag, short = spec.flag, [f"-{spec.short}"] if spec.short else []
        attributes: dict[str, Any] = {"help": spec.help, "is_eager": spec.name in _EAGER}
        if spec.kind == "flag":
            flag += f"/--no-{flag[2:]}"
        else:
            is_checked = spec.kind != "text" or spec.choices
            attributes |= {"multiple": spec.repeatable, "metavar": spec.metavar or None}
            attributes["type"] = self._parsed if is_checked else str
        if texts := (*spec.choices, *spec.suggestions):
            attributes["shell_complete"] = lambda *asked: [
                text for text in texts if text.startswith(asked[-1])
            ]
        super().__init__([flag, *short, spec.name], **attributes)
        self.spec = spec

    def _parsed(self, text: str) -> Any:
        """Return the value of a text."""
        try:
            return self.spec.parse(text)
        except ValueError as error:
            raise click.BadParameter(str(error)) from error

    def record(
        self, ctx: click.Context, defaults: Mapping[str, Any], *, short: bool
    ) -> tuple[str, str]:
        """Return the names of the option, and what it does: in the short help, in one sentence.

        Args:
            ctx: the context of the command.
            defaults: the values of lower layers, by name.
            short: whether the help is the short one.
        """
        names, _ = self.get_help_record(ctx) or ("", "")
        names = names.partition(" / ")[0] if short else names
        text = self._short_help() if short else self.spec.help
        default = self.spec.default_text(defaults.get(self.spec.name))
        if self.spec.required and not default:
            text += "  [required]"
        elif default and not (short and default == self.spec.default_is):
            text += f"  [default: {default}]"
        return names, text

    def _short_help(self) -> str:
        """Return the first clause of the help, and the choices."""
        match = _CLAUSE.match(self.spec.help)
        first = self.spec.help if match is None else match[0]
        choices = f": {', '.join(self.spec.choices)}" if self.spec.choices else ""
        return f"{first}{choices}."


def specs_of(
    *settings: type,
    leave_out: Collection[str] = (),
    changes: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, Option]:
    """Return the options that classes of settings declare, each once, by name.

    Args:
        settings: the classes.
        leave_out: names of options that the command has not.
        changes: fields of `Option`, by name of an option, that are others for this command.
    """
    specs = {spec.name: spec for cls in settings for spec in declared(cls).values()}
    return {
        name: replace(spec, **(changes or {}).get(name, {}))
        for name, spec in specs.items()
        if name not in leave_out
    }
