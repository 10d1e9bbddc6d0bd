"""The base of every command: its help, Beam's own arguments, stray arguments, values."""

from __future__ import annotations

import inspect
import re
import textwrap
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from pipelines.cli.declared import DeclaredOption, specs_of
from pipelines.cli.layers import Origin, Values
from pipelines.cli.logs import use_format
from pipelines.config import read_config
from pipelines.errors import ConfigError
from pipelines.option import GROUPS, declared
from pipelines.settings import CountSettings, ModelSettings, PretokenSettings, TrainSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pipelines.option import Option

EXAMPLE_PATTERN = "--input 'corpus/*.txt'"
_EXAMPLES = 2  # lines of them in the short help
_HELP_ALL = "--help-all"
_NO_KEYS = ("config", "set")
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
    """A command whose options are declared, and whose function takes their values.

    Attributes:
        specs: the declarations of its options, by name.
        stages: the options of the stages of `bpe run`, by the name of their section in a file.
    """

    allow_extra_args = True  # which `parse_args` refuses

    def __init__(
        self,
        name: str | None,
        *,
        specs: Mapping[str, Option],
        stages: Mapping[str, Mapping[str, Option]],
        params: Sequence[click.Parameter],
        **attributes: Any,
    ) -> None:
        self.specs, self.stages = specs, stages
        self._has_more = any(spec.advanced for spec in specs.values())
        names = ["-h", "--help", *([_HELP_ALL] if self._has_more else [])]
        attributes["help"], _, example = inspect.cleandoc(attributes["help"]).partition(
            "\n\nExample:\n"
        )
        super().__init__(
            name,
            params=[*(DeclaredOption(spec) for spec in specs.values() if not spec.joined), *params],
            context_settings={"help_option_names": names, "max_content_width": 100},
            epilog=f"\b\nExample:\n{textwrap.indent(textwrap.dedent(example), '  ')}",
            **attributes,
        )
        _complete_paths(self.params)

    @property
    def keys(self) -> dict[str, Option]:
        """Return the keys that a configuration file may have outside of sections, by name."""
        keys = {
            name: spec for stage in [*self.stages.values()][::-1] for name, spec in stage.items()
        }
        keys |= self.specs
        return {name: spec for name, spec in keys.items() if name not in _NO_KEYS}

    def get_help_option_names(self, ctx: click.Context) -> list[str]:
        """Return the names of the option of click, which 8.2 takes from a set."""
        return sorted(super().get_help_option_names(ctx), key=len)

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """Return the option of click, which has another text if there are advanced options."""
        option = super().get_help_option(ctx)
        if option is not None and self._has_more:
            option.help = f"Show this message ({_HELP_ALL}: all options, in full) and exit."
        return option

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Return the help; the short one has the first paragraph and the first example."""
        whole = self.help, self.epilog
        if _is_short(ctx) and self._has_more:
            self.help = (self.help or "").partition("\n\n")[0]
            self.epilog = "\n".join((self.epilog or "").splitlines()[: 2 + _EXAMPLES])
        super().format_help(ctx, formatter)
        self.help, self.epilog = whole

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Return the options in groups, with the defaults of a preset or file that is given."""
        groups: dict[str, list[tuple[str, str]]] = {}
        short, defaults = _is_short(ctx), self.defaults(ctx)
        for param in self.get_params(ctx):
            if isinstance(param, DeclaredOption):
                if not (short and param.spec.advanced):
                    record = param.record(ctx, defaults, short=short)
                    groups.setdefault(param.spec.group, []).append(record)
            elif isinstance(param, click.Option):
                groups.setdefault("Options", []).append(param.get_help_record(ctx) or ("", ""))
        for group in GROUPS:
            if group in groups:
                with formatter.section(group):
                    formatter.write_dl(groups[group])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse; refuse what no argument takes: mostly patterns that the shell has expanded."""
        if "beam_args" in self.specs and "--" in args:
            number = args.index("--")
            args, given = args[:number], args[number + 1 :]
            ctx.params["beam_args"] = tuple(given)
            for one in given:
                if not one.startswith("--"):
                    raise click.UsageError(
                        f"{one!r} after -- does not begin with --: arguments there are passed to "
                        "Beam (its options take values with =, as in --region=europe-west1). Was "
                        "it a pattern that the shell expanded? Put it in quotes: "
                        f"{EXAMPLE_PATTERN}",
                        ctx,
                    )
        ctx.meta[_HELP_ALL] = _HELP_ALL in args
        try:
            super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if place := self._owner(ctx, error.option_name.lstrip("-").replace("-", "_")):
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
        return ctx.args

    def invoke(self, ctx: click.Context) -> Any:
        """Call the function of the command with the values of its options and arguments."""
        return ctx.invoke(self._call, ctx)

    def _call(self, ctx: click.Context) -> Any:
        values = self.values(ctx)
        return None if self.callback is None else self.callback(values)

    def values(self, ctx: click.Context) -> Values:
        """Return the values of options and arguments; errors have the format that they ask for."""
        values = Values(self.specs, self._layers(ctx))
        if "log_format" in values:
            use_format(values["log_format"])
        values.settle()
        arguments = ctx.params.keys() - values.keys()
        values.update((name, ctx.params[name]) for name in arguments)
        return values

    def defaults(self, ctx: click.Context) -> dict[str, Any]:
        """Return the values of preset and files, by name."""
        layers = self._layers(ctx)[:-1]
        return {name: value for _, layer in layers for name, value in layer.items()}

    def _layers(self, ctx: click.Context) -> list[tuple[Origin, Mapping[str, Any]]]:
        """Return the values of each source, the lowest first; of those that are parsed by now."""
        given = {
            name: value
            for name, value in ctx.params.items()
            if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT
        }
        # That of `bpe run` is the lowest.
        paths = [*([given["job"]] if "job" in given else ()), *given.get("config", ())]
        layers: list[tuple[Origin, Mapping[str, Any]]] = [
            *((Origin.FILE, self._read(ctx, path)) for path in paths),
            (Origin.COMMAND_LINE, given),
        ]
        presets = [layer["preset"] for _, layer in layers if "preset" in layer]
        if "preset" in self.specs and not presets:
            presets = [self.specs["preset"].default]
        return [(Origin.PRESET, self._preset(presets[-1])), *layers] if any(presets) else layers

    def _preset(self, name: str) -> dict[str, Any]:
        """Return the values of a preset, which says how to train, that the command has."""
        from bpe.presets import path

        trained = (PretokenSettings, CountSettings, TrainSettings, ModelSettings)
        keys = {spec.name: spec for cls in trained for spec in declared(cls).values()} | self.keys
        values = read_config(str(path(name)), keys)
        return {key: value for key, value in values.items() if key in self.keys}

    def _read(self, ctx: click.Context, path: str) -> dict[str, Any]:
        """Return the values of a configuration file."""
        keys: dict[str, Any] = {**self.keys, **self.stages}
        values = read_config(path, keys, owner=lambda name: self._owner(ctx, name))
        for one in values.get("beam_args", ()):
            if not one.startswith("--"):
                raise ConfigError(f"{path}: beam_args: {one!r} does not begin with --")
        return values

    def _owner(self, ctx: click.Context, name: str) -> str:
        """Who has an option that this command lacks: a stage, another command; else nobody."""
        if any(name in stage for stage in self.stages.values()):
            return f"a stage: give --set {name}=VALUE"
        root = ctx.find_root().command
        group = root if isinstance(root, click.Group) else click.Group()
        commands = (group.get_command(ctx, one) for one in group.list_commands(ctx))
        # Of those that take files: others have short names, as --id, that say nothing of this one.
        having = (
            f"bpe {one.name}, not of this command"
            for one in commands
            if isinstance(one, Command) and {name, "config"} <= one.specs.keys()
        )
        return next(having, "") if name not in _NO_KEYS else ""


def command(
    *settings: type, stages: Mapping[str, Mapping[str, Option]] | None = None, **choice: Any
) -> Callable[[Callable[[Values], None]], Command]:
    """Return a command with the options that classes of settings declare.

    Args:
        settings: the classes, in the order of the help.
        stages: as in `Command`.
        choice: arguments of `specs_of`.
    """
    return click.command(cls=Command, specs=specs_of(*settings, **choice), stages=stages or {})


def _is_short(ctx: click.Context) -> bool:
    """Return whether ``--help`` is shown, not ``--help-all``."""
    return not ctx.meta.get(_HELP_ALL)
