"""What every command shares: its help, Beam's own arguments, stray arguments."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from pipelines.cli.declared import HELP_ALL, DeclaredOption, is_short
from pipelines.cli.layers import BEAM_META, PRESET, use_preset
from pipelines.option import GROUPS

if TYPE_CHECKING:
    from collections.abc import Sequence

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
        # One for good: click finds by identity what was given, and calls that before arguments.
        self._help_all = _help_all_option()

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The parameters, ``--help`` included."""
        params = super().get_params(ctx)
        if any(map(_is_advanced, self.params)):
            params.append(self._help_all)
        return params

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """What the command does; in the short help, the first paragraph."""
        whole = self.help
        if is_short(ctx) and any(map(_is_advanced, self.params)):
            self.help = (whole or "").partition("\n\n")[0]
        super().format_help_text(ctx, formatter)
        self.help = whole

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The examples; in the short help, the first."""
        every = self.epilog
        if every and is_short(ctx) and any(map(_is_advanced, self.params)):
            self.epilog = "\n".join(every.splitlines()[: 2 + _EXAMPLES])
        super().format_epilog(ctx, formatter)
        self.epilog = every

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options in groups."""
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
        """The text of ``--help``, with the defaults of the preset that the command goes by."""
        for param in self.params:
            default = param.default if param.name == "preset" else None
            if isinstance(default, str) and PRESET not in ctx.meta:
                use_preset(ctx, param, default)
        return super().get_help(ctx)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse, and refuse what no argument takes."""
        super().parse_args(ctx, args)
        if ctx.args and not ctx.resilient_parsing:
            raise click.UsageError(
                f"unexpected argument {ctx.args[0]!r}: each option takes one value; if the shell "
                f"expanded a pattern, put it in quotes ({EXAMPLE_PATTERN}), or repeat the option",
                ctx,
            )
        return ctx.args


def _is_advanced(param: click.Parameter) -> bool:
    return isinstance(param, DeclaredOption) and param.spec.advanced


def group_of(param: click.Parameter) -> str:
    """The group in which ``--help`` lists an option."""
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
        """Take Beam's arguments off first; what stands before them is the command's own."""
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
        ctx.meta[BEAM_META] = tuple(given)
        return super().parse_args(ctx, args)
