"""What every command shares: layers of defaults, Beam's own arguments, stray arguments.

A value comes from the command line, else from a configuration file, else from a preset, else from
the option itself.
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from pipelines.cli.moved import instead_of_keys
from pipelines.config import read_config
from pipelines.errors import ConfigError
from pipelines.option import GROUPS, Option

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    ValueType = click.ParamType[Any]
else:
    ValueType = click.ParamType  # generic in click 8.2 and later only

EXAMPLE_PATTERN = "--input 'corpus/*.txt'"
_BEAM_ARGS = Option(name="beam_args", several=True, group="Where it runs", help="Options of Beam.")
_META = "bpe.beam_args"
_JOB = "bpe.job"
_CONFIGS = "bpe.configs"
_PRESET = "bpe.preset"
_HELP_ALL = "bpe.help_all"
_SECTIONS = ("count", "train", "encode", "export")  # of the file of bpe run


class Source(IntEnum):
    """Where the value of an option comes from; the greater wins."""

    DEFAULT = 0
    PRESET = 1
    FILE = 2
    COMMAND_LINE = 3


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
        if _is_short(ctx):
            text = self._short_help() + text.removeprefix(self.spec.help)
        if self.spec.default_is:
            given = (ctx.default_map or {}).get(self.name)
            text += f"  [default: {self.spec.default_is if given is None else given}]"
        return names, text

    def _short_help(self) -> str:
        first, dot, _ = self.spec.help.partition(". ")
        if not dot or not self.spec.choices:
            return first + dot.strip()
        return f"{first}: {', '.join(self.spec.choices)}."


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
        if _is_short(ctx) and any(map(_is_advanced, self.params)):
            self.help = (whole or "").partition("\n\n")[0]
        super().format_help_text(ctx, formatter)
        self.help = whole

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options in groups."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            if not isinstance(param, click.Option) or (_is_short(ctx) and _is_advanced(param)):
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
            if isinstance(default, str) and _PRESET not in ctx.meta:
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


def _is_short(ctx: click.Context) -> bool:
    return not ctx.meta.get(_HELP_ALL)


def _is_advanced(param: click.Parameter) -> bool:
    return isinstance(param, DeclaredOption) and param.spec.advanced


def group_of(param: click.Parameter) -> str:
    """The group in which ``--help`` lists an option."""
    return param.spec.group if isinstance(param, DeclaredOption) else "Options"


def _help_all_option() -> click.Option:
    def show(ctx: click.Context, _: click.Parameter, given: bool) -> None:
        if given and not ctx.resilient_parsing:
            ctx.meta[_HELP_ALL] = True
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
        ctx.meta[_META] = tuple(given)
        return super().parse_args(ctx, args)


def beam_args(ctx: click.Context) -> tuple[str, ...]:
    """Beam's arguments of all layers; of one that is given twice, the higher layer wins."""
    args: tuple[str, ...] = ()
    layers = [values.get(_BEAM_ARGS.name, ()) for values in _files(ctx)]
    for layer in (*layers, ctx.meta[_META]):
        named = {one.partition("=")[0] for one in layer}
        args = (*(one for one in args if one.partition("=")[0] not in named), *layer)
    return args


def use_job(ctx: click.Context, _: click.Parameter, path: str | None) -> None:
    """Make the values of the file of a job defaults, below those of ``--config``."""
    if path is not None and not ctx.resilient_parsing:
        ctx.meta[_JOB] = [_read_file(ctx, path)]
        _set_defaults(ctx)


def use_configs(ctx: click.Context, _: click.Parameter, paths: tuple[str, ...]) -> None:
    """Make the values of configuration files defaults of the command's options."""
    if not ctx.resilient_parsing:
        ctx.meta[_CONFIGS] = [_read_file(ctx, path) for path in paths]
        _set_defaults(ctx)


def _read_file(ctx: click.Context, path: str) -> dict[str, Any]:
    own = option_keys(ctx.command)
    elsewhere = {
        name: f"bpe {command.name}"
        for command in reversed(_jobs(ctx))
        for name in option_keys(command)
        if name not in own
    }
    sections = {
        str(command.name): option_keys(command)
        for command in _jobs(ctx)
        if ctx.command.name == "run" and command.name in _SECTIONS
    }

    def check(values: Mapping[str, Any]) -> None:
        if ctx.command.name == "encode" and (said := instead_of_keys(path, values)):
            raise click.UsageError(said, ctx)

    values: dict[str, Any] = read_config(
        path, own, elsewhere=elsewhere, check=check, sections=sections
    )
    for one in values.get(_BEAM_ARGS.name, ()):
        if not one.startswith("--"):
            raise ConfigError(f"{path}: beam_args: {one!r} does not begin with --")
    return values


def _files(ctx: click.Context) -> list[dict[str, Any]]:
    """The values of the configuration files, the lowest layer first."""
    return [*ctx.meta.get(_JOB, ()), *ctx.meta.get(_CONFIGS, ())]


def use_preset(ctx: click.Context, _: click.Parameter, name: str | None) -> None:
    """Make the values of a preset defaults, below those of a configuration file.

    A preset says how to train: what a command has no option for goes by it.
    """
    if name is None or ctx.resilient_parsing:
        return
    from bpe.presets import path

    own = option_keys(ctx.command)
    keys = {key: spec for command in _jobs(ctx) for key, spec in option_keys(command).items()}
    values = read_config(str(path(name)), keys | own)
    ctx.meta[_PRESET] = {key: value for key, value in values.items() if key in own}
    _set_defaults(ctx)


def _set_defaults(ctx: click.Context) -> None:
    layers = [ctx.meta.get(_PRESET, {}), *_files(ctx)]
    ctx.default_map = {name: value for layer in layers for name, value in layer.items()}


def _jobs(ctx: click.Context) -> list[click.Command]:
    root = ctx.find_root().command
    commands = root.commands.values() if isinstance(root, click.Group) else ()
    return [command for command in commands if isinstance(command, JobCommand)]


def source(ctx: click.Context, name: str) -> Source:
    """Where the value of an option comes from."""
    known = ctx.get_parameter_source(name)
    if known in (ParameterSource.DEFAULT, None):
        return Source.DEFAULT
    if known is not ParameterSource.DEFAULT_MAP:
        return Source.COMMAND_LINE
    in_file = any(name in values for values in _files(ctx))
    return Source.FILE if in_file else Source.PRESET


def option_keys(command: click.Command) -> dict[str, Option]:
    """The keys that a configuration for ``command`` may have: its options, by name."""
    specs = [param.spec for param in command.params if isinstance(param, DeclaredOption)]
    return {spec.name: spec for spec in (_BEAM_ARGS, *specs) if spec.name != "config"}


def choose(ctx: click.Context, first: str, second: str) -> None:
    """Settle two options that exclude each other: the one from the higher layer is the one meant.

    Raises:
        click.UsageError: both stand on the command line, or both in the file.
    """
    if not (_is_given(ctx, first) and _is_given(ctx, second)):
        return
    sources = (source(ctx, first), source(ctx, second))
    if sources[0] == sources[1] != Source.DEFAULT:
        raise click.UsageError(
            f"--{first} and --{second} exclude each other: choose one".replace("_", "-"), ctx
        )
    forget(ctx, second if sources[0] > sources[1] else first)


def _is_given(ctx: click.Context, name: str) -> bool:
    return ctx.params[name] not in (None, (), False)


def forget(ctx: click.Context, name: str) -> None:
    """Give an option its default, as if no layer had said anything."""
    option = next(param for param in ctx.command.params if param.name == name)
    default = option.to_info_dict()["default"]  # None, not click's unset
    ctx.params[name] = () if option.multiple else default


def stack(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """One decorator from several, shown in ``--help`` in the order given."""

    def decorate(function: Any) -> Any:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate
