"""What every command shares: layers of defaults, Beam's own arguments, stray arguments.

A value comes from the command line, else from a configuration file, else from a preset, else from
the option itself.
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import TYPE_CHECKING, Any, cast

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from pipelines.config import parse_size, read_config
from pipelines.errors import ConfigError
from pipelines.option import GROUPS, MAX_INTEGER, Option

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pipelines.option import Group, Kind

    IntegerType = click.ParamType[int]
else:
    IntegerType = click.ParamType  # generic in click 8.2 and later only

EXAMPLE_PATTERN = "--input 'corpus/*.txt'"
# Options that say how to run the command itself; they have no place in a file.
_NOT_IN_FILES = frozenset({"config", "help", "traceback"})
_BEAM_ARGS = Option(name="beam_args", several=True, group="Where it runs", help="Options of Beam.")
_META = "bpe.beam_args"
_IN_FILES = "bpe.beam_args_in_files"
_FILE = "bpe.file"
_PRESET = "bpe.preset"
_HELP_ALL = "bpe.help_all"


class Source(IntEnum):
    """Where the value of an option comes from; the greater wins."""

    DEFAULT = 0
    PRESET = 1
    FILE = 2
    COMMAND_LINE = 3


class WholeNumber(IntegerType):
    """An integer from ``minimum`` to ``maximum``."""

    name = "number"

    def __init__(self, minimum: int, maximum: int = MAX_INTEGER) -> None:
        self.minimum = minimum
        self.maximum = maximum

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number, from a text of the command line or a number of a configuration."""
        try:
            number = int(value)
        except ValueError:
            self.fail(f"{value!r} is not a whole number", param, ctx)
        if number < self.minimum:
            self.fail(f"{number} is too small; use {self.minimum} or more", param, ctx)
        if number > self.maximum:
            self.fail(f"{number} is too large; use {self.maximum:,} or less", param, ctx)
        return number


class Size(IntegerType):
    """A number of bytes with an optional unit."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Bytes, from a text of the command line or a number of a configuration."""
        try:
            return parse_size(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


class GroupedOption(click.Option):
    """An option that ``--help`` lists in a group.

    Args:
        group: of `pipelines.option.GROUPS`.
        advanced: whether the short ``--help`` leaves it out.
        default_is: words for the default, such as "one for each core"; shown where no preset or
            file gives a value.
        spec: the declaration, where settings have one.
    """

    def __init__(
        self,
        names: Sequence[str],
        *,
        group: Group = "Input",
        advanced: bool = False,
        default_is: str = "",
        spec: Option | None = None,
        **attributes: Any,
    ) -> None:
        if default_is:
            attributes["show_default"] = False
        super().__init__(names, **attributes)
        self.group = group
        self.advanced = advanced
        self.default_is = default_is
        self.spec = spec

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """The names of the option, and what it does: in the short help, in one sentence."""
        record = super().get_help_record(ctx)
        if record is None:
            return None
        names, text = record
        if _is_short(ctx):
            text = self._short_help() + text.removeprefix(self.help or "")
        if self.default_is:
            given = (ctx.default_map or {}).get(self.name)
            text += f"  [default: {self.default_is if given is None else given}]"
        return names, text

    def _short_help(self) -> str:
        first, dot, _ = (self.help or "").partition(". ")
        if not dot or not isinstance(self.type, click.Choice):
            return first + dot.strip()
        return f"{first}: {', '.join(self.type.choices)}."


class PathText(click.types.StringParamType):
    """A text that shells complete as a file or directory; where it may also be a pattern or URL.

    Args:
        kind: ``file`` or ``dir``.
    """

    name = "text"

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's interface
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        """Leave it to the shell."""
        return [CompletionItem(incomplete, type=self._kind)]


_PATHS = re.compile(r"(FILE|DIR|PATH|FROM|TO|TOKENIZER\.\.\.|CONFIG)(?![A-Z])")


def _complete_paths(params: Sequence[click.Parameter]) -> None:
    """Let shells complete what the metavar calls a path."""
    for param in params:
        match = _PATHS.match(param.metavar or "")
        if isinstance(param.type, click.types.StringParamType) and (match or param.name == "input"):
            param.type = PathText("dir" if match and match[1] == "DIR" else "file")


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

    @property
    def _has_more(self) -> bool:
        """Whether the short help leaves something out."""
        return any(map(_is_advanced, self.params))

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The parameters, ``--help`` included."""
        params = super().get_params(ctx)
        if self._has_more:
            params.append(_help_all_option())
        return params

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """What the command does; in the short help, the first paragraph."""
        whole = self.help
        if _is_short(ctx) and self._has_more:
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
                groups.setdefault(getattr(param, "group", "Options"), []).append(record)
        for group in (*GROUPS, "Options"):
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
    return isinstance(param, GroupedOption) and param.advanced


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
        given: list[str] = []
        if "--" in args:
            place = args.index("--")
            args, given = args[:place], args[place + 1 :]
        for one in given:
            if not one.startswith("--"):
                raise click.UsageError(
                    f"{one!r} after -- does not begin with --: what stands there goes to Beam "
                    "(its options take values with =, as in --region=europe-west1). Was it a "
                    f"pattern that the shell expanded? Put it in quotes: {EXAMPLE_PATTERN}",
                    ctx,
                )
        ctx.meta[_META] = tuple(given)
        return super().parse_args(ctx, args)


def beam_args(ctx: click.Context) -> tuple[str, ...]:
    """What stands under ``beam_args`` in the configuration and after ``--``, which wins."""
    return _over(ctx.meta.get(_IN_FILES, ()), ctx.meta[_META])


def _over(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    """Both, without options of ``first`` that stand in ``second`` too."""
    named = {one.partition("=")[0] for one in second}
    return (*(one for one in first if one.partition("=")[0] not in named), *second)


def use_job(ctx: click.Context, _: click.Parameter, path: str | None) -> str | None:
    """Make the values of the file of a job defaults, below those of ``--config``."""
    if path is None or ctx.resilient_parsing:
        return path
    # click comes to arguments when it is through with options.
    above, args = ctx.meta.pop(_FILE, {}), ctx.meta.pop(_IN_FILES, ())
    _use_file(ctx, path)
    ctx.meta[_FILE] |= above
    ctx.meta[_IN_FILES] = _over(ctx.meta[_IN_FILES], args)
    _set_defaults(ctx)
    return path


def _use_file(ctx: click.Context, path: str) -> None:
    """Make the values of a configuration file defaults of the command's options."""
    keys = dict(option_keys(ctx.command))
    values = read_config(path, keys, elsewhere=_elsewhere(ctx, own=keys))
    in_file = cast("tuple[str, ...]", values.pop(_BEAM_ARGS.name, ()))
    for one in in_file:
        if not one.startswith("--"):
            raise ConfigError(f"{path}: beam_args: {one!r} does not begin with --")
    ctx.meta[_IN_FILES] = _over(ctx.meta.get(_IN_FILES, ()), in_file)
    ctx.meta[_FILE] = {**ctx.meta.get(_FILE, {}), **values}  # of two files, the later one wins
    _set_defaults(ctx)


def use_configs(ctx: click.Context, _: click.Parameter, paths: tuple[str, ...]) -> tuple[str, ...]:
    """Make the values of configuration files defaults of the command's options."""
    if not ctx.resilient_parsing:
        for path in paths:
            _use_file(ctx, path)
    return paths


def use_preset(ctx: click.Context, _: click.Parameter, name: str | None) -> str | None:
    """Make the values of a preset defaults, below those of a configuration file.

    A preset says how to train: what a command has no option for goes by it.
    """
    if name is None or ctx.resilient_parsing:
        return name
    from bpe.presets import path

    own = dict(option_keys(ctx.command))
    values = read_config(str(path(name)), _others(ctx) | own)
    ctx.meta[_PRESET] = {key: value for key, value in values.items() if key in own}
    _set_defaults(ctx)
    return name


def _set_defaults(ctx: click.Context) -> None:
    ctx.default_map = {**ctx.meta.get(_PRESET, {}), **ctx.meta.get(_FILE, {})}


def source(ctx: click.Context, name: str) -> Source:
    """Where the value of an option comes from."""
    known = ctx.get_parameter_source(name)
    if known in (ParameterSource.DEFAULT, None):
        return Source.DEFAULT
    if known is not ParameterSource.DEFAULT_MAP:
        return Source.COMMAND_LINE
    return Source.FILE if name in ctx.meta.get(_FILE, {}) else Source.PRESET


def option_keys(command: click.Command) -> Iterator[tuple[str, Option]]:
    """The keys that a configuration for ``command`` may have: its options, by name."""
    yield _BEAM_ARGS.name, _BEAM_ARGS
    for param in command.params:
        if isinstance(param, click.Option) and param.name not in _NOT_IN_FILES:
            yield param.name, _key(param)


def _key(option: click.Option) -> Option:
    """What declares an option; of one that a command has for itself, what click knows of it."""
    if isinstance(option, GroupedOption) and option.spec is not None:
        return option.spec
    kind: Kind = "text"
    minimum, maximum = None, None
    if option.is_flag:
        kind = "flag"
    elif isinstance(option.type, WholeNumber):
        kind, minimum, maximum = "integer", option.type.minimum, option.type.maximum
    return Option(
        name=option.name or "",
        help=option.help or "",
        group=getattr(option, "group", "Input"),
        kind=kind,
        several=option.multiple,
        choices=tuple(option.type.choices) if isinstance(option.type, click.Choice) else (),
        minimum=minimum,
        maximum=maximum,
    )


def _elsewhere(ctx: click.Context, *, own: dict[str, Option]) -> dict[str, str]:
    """Keys of other commands, so that a file for `bpe run` is told apart from a typing error."""
    others: dict[str, str] = {}
    for command in _jobs(ctx):
        for name, _ in option_keys(command):
            if name not in own:
                others.setdefault(name, f"bpe {command.name}")
    return others


def _others(ctx: click.Context) -> dict[str, Option]:
    """The keys of all commands that run jobs."""
    return {name: key for command in _jobs(ctx) for name, key in option_keys(command)}


def _jobs(ctx: click.Context) -> list[click.Command]:
    root = ctx.find_root().command
    commands = root.commands.values() if isinstance(root, click.Group) else ()
    return [command for command in commands if isinstance(command, JobCommand)]


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
