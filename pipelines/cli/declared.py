"""Options of the command line from the declarations in settings, and settings from their values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from pipelines.cli.command import GroupedOption, Size, WholeNumber, stack
from pipelines.option import MAX_INTEGER, declared
from pipelines.settings import PRETOKENIZERS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from pipelines.option import Option

if TYPE_CHECKING:
    ChoiceType = click.Choice[str]
else:
    ChoiceType = click.Choice  # generic in click 8.2 and later only

Settings = TypeVar("Settings")


def declared_options(
    *settings: type, optional: Collection[str] = (), leave_out: Collection[str] = ()
) -> Callable[[Any], Any]:
    """The options that classes of settings declare, each once.

    Args:
        settings: the classes.
        optional: names of options that the command can do without.
        leave_out: names of options that the command has not.
    """
    specs = {spec.name: spec for cls in settings for spec in declared(cls).values()}
    return stack(
        *(
            _option(spec, required=spec.required and name not in optional)
            for name, spec in specs.items()
            if name not in leave_out
        )
    )


def _option(spec: Option, *, required: bool) -> Callable[[Any], Any]:
    name = "--" + spec.name.replace("_", "-")
    attributes: dict[str, Any] = {"required": required}
    if spec.default not in (None, "", ()):  # click takes None for a value that was given
        attributes["default"] = spec.default
    if spec.kind == "flag":
        name += f"/--no-{name[2:]}"
        attributes["show_default"] = False
    else:
        attributes |= {
            "type": _type(spec),
            "multiple": spec.several,
            "metavar": spec.metavar or None,
        }
    if spec.suggestions:
        attributes["shell_complete"] = lambda _, __, begun: [
            text for text in spec.suggestions if text.startswith(begun)
        ]
    return click.option(
        name,
        spec.name,
        cls=GroupedOption,
        group=spec.group,
        advanced=spec.advanced,
        default_is=spec.default_is,
        spec=spec,
        help=spec.help,
        **attributes,
    )


class PretokenizerName(ChoiceType):
    """The name of a pre-tokenizer; of another one, the error says which was meant."""

    def __init__(self) -> None:
        super().__init__(PRETOKENIZERS)

    def fail(
        self,
        message: str,
        param: click.Parameter | None = None,
        ctx: click.Context | None = None,
    ) -> NoReturn:
        """Raise the error."""
        from bpe.pretokenize import did_you_mean

        name = message.partition("'")[2].partition("'")[0]
        super().fail(message.removesuffix(".") + did_you_mean(name), param, ctx)


def _type(spec: Option) -> Any:
    if spec.choices == PRETOKENIZERS:
        return PretokenizerName()
    if spec.choices:
        return click.Choice(spec.choices)
    if spec.kind == "size":
        return Size()
    if spec.kind == "integer":
        return WholeNumber(int(spec.minimum or 0), int(spec.maximum or MAX_INTEGER))
    return float if spec.kind == "number" else str


def settings_of(ctx: click.Context, settings: type[Settings], **values: Any) -> Settings:
    """Settings from the values of a command's options; of those that it lacks, the defaults.

    Args:
        ctx: of the command.
        settings: the class.
        values: of fields that are not taken from an option as they are.
    """
    given = {
        name: ctx.params[spec.name]
        for name, spec in declared(settings).items()
        if ctx.params.get(spec.name) is not None
    }
    return settings(**{**given, **values})
