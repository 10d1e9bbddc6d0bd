"""The base of every command: its help, Beam's own arguments, stray arguments, rules."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from pipelines.cli.declared import HELP_ALL, DeclaredOption, declared_options, is_short
from pipelines.cli.layers import check_options, layers_of, owner, use_preset
from pipelines.cli.logs import use_format
from pipelines.option import GROUPS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

EXAMPLE_PATTERN = "--input 'corpus/*.txt'"
_EXAMPLES = 2  # lines of them in the short help
_PATHS = re.compile(r"(FILE|DIR|PATH|FROM|TO|TOKENIZER\.\.\.|CONFIG)(?![A-Z])")


class _PathText(click.Path):
    """A text that shells complete as a path; it may be a pattern or URL, so nothing is checked."""

    def convert(self, value: Any, *_: Any) -> Any:
        return value


def _complete_paths(params: Sequence[click.Parameter]) -> None:
    """Let shells complete what the metavar calls a path."""
    for param in params:
        match = _PATHS.match(param.metavar or "")
        if isinstance(param.type, click.types.StringParamType) and (match or param.name == "input"):
            folder = match is not None and match[1] == "DIR"
            param.type = _PathText(file_okay=not folder)


class Command(click.Command):
    """A command that explains stray arguments: mostly patterns the shell has expanded."""

    def __init__(self, name: str | None, *, example: str, **attributes: Any) -> None:
        settings = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
        lines = "\n".join(f"  {line}" for line in example.strip().splitlines())
        super().__init__(
            name,
            context_settings=settings | {"show_default": True, "allow_extra_args": True},
            epilog=f"\b\nExample:\n{lines}",
            **attributes,
        )
        _complete_paths(self.params)
        self._has_more = any(map(_is_advanced, self.params))
        if self._has_more:
            self.params.append(_help_all_option())

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Return the help; the short one has the first paragraph and the first example."""
        whole = self.help, self.epilog
        if is_short(ctx) and self._has_more:
            self.help = (self.help or "").partition("\n\n")[0]
            self.epilog = "\n".join((self.epilog or "").splitlines()[: 2 + _EXAMPLES])
        super().format_help(ctx, formatter)
        self.help, self.epilog = whole

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Return the options in groups."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            if not isinstance(param, click.Option) or (is_short(ctx) and _is_advanced(param)):
                continue
            record = param.get_help_record(ctx)
            if record is not None:
                groups.setdefault(group_of(param), []).append(record)
        for group in GROUPS:
            if group in groups:
                with formatter.section(group):
                    formatter.write_dl(groups[group])

    def get_help(self, ctx: click.Context) -> str:
        """Return the text of ``--help``, with defaults of the preset if one is given."""
        for param in self.params:
            default = param.default if param.name == "preset" else None
            if isinstance(default, str) and not layers_of(ctx).preset:
                use_preset(ctx, param, default)
        return super().get_help(ctx)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse, and refuse what no argument takes and what breaks rules between options."""
        try:
            super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if place := owner(ctx, error.option_name.lstrip("-").replace("-", "_")):
                raise click.UsageError(
                    f"{error.option_name} is an option of {place}", ctx
                ) from error
            raise
        if ctx.args and not ctx.resilient_parsing:
            raise click.UsageError(
                f"unexpected argument {ctx.args[0]!r}: each option takes one value; if the shell "
                f"expanded a pattern, put it in quotes ({EXAMPLE_PATTERN}), or repeat the option",
                ctx,
            )
        if not ctx.resilient_parsing:
            if "log_format" in ctx.params:
                use_format(ctx.params["log_format"])
            check_options(ctx)
        return ctx.args

    def invoke(self, ctx: click.Context) -> Any:
        """Call the function of the command, which finds the values in the context."""
        return None if self.callback is None else ctx.invoke(self.callback, ctx)


def command(
    *settings: type, cls: type[Command] = Command, **attributes: Any
) -> Callable[[Callable[[click.Context], None]], Command]:
    """Return a command with the options that classes of settings declare.

    Args:
        settings: the classes, in the order of the help.
        cls: of the command.
        attributes: of `declared_options`, and of ``click.command``.
    """
    names = ("optional", "leave_out", "changes")
    ours = {name: attributes.pop(name) for name in names if name in attributes}
    return click.command(cls=cls, params=declared_options(*settings, **ours), **attributes)


def _is_advanced(param: click.Parameter) -> bool:
    return isinstance(param, DeclaredOption) and param.spec.advanced


def group_of(param: click.Parameter) -> str:
    """Return the group in which ``--help`` lists an option."""
    return param.spec.group if isinstance(param, DeclaredOption) else "Options"


def _help_all_option() -> click.Option:
    def show(ctx: click.Context, _: click.Parameter, given: bool) -> None:
        if given and not ctx.resilient_parsing:
            ctx.meta[HELP_ALL] = True
            click.echo(ctx.get_help(), color=ctx.color)
            ctx.exit()

    return click.Option(
        ["--help-all"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=show,
        help="Show all options, in full, and exit.",
    )


class JobCommand(Command):
    """A command that uses Beam: ``--`` hands over to it, ``--config`` gives defaults."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take Beam's arguments off first; those before them are the command's own."""
        place = args.index("--") if "--" in args else len(args)
        args, given = args[:place], args[place + 1 :]
        for one in given:
            if not one.startswith("--"):
                raise click.UsageError(
                    f"{one!r} after -- does not begin with --: arguments there are passed to Beam "
                    "(its options take values with =, as in --region=europe-west1). Was it a "
                    f"pattern that the shell expanded? Put it in quotes: {EXAMPLE_PATTERN}",
                    ctx,
                )
        layers_of(ctx).beam_args = tuple(given)
        return super().parse_args(ctx, args)
