"""Where the values of a command's options come from.

A value comes from the command line, else from a configuration file, else from a preset, else from
the option itself.
"""

from __future__ import annotations

import difflib
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from pipelines.cli.declared import DeclaredOption
from pipelines.cli.moved import instead_of_keys
from pipelines.config import read_config
from pipelines.errors import ConfigError
from pipelines.option import Option

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

BEAM_META = "bpe.beam_args"
_BEAM_ARGS = Option(name="beam_args", several=True, group="Where it runs", help="Options of Beam.")
_JOB = "bpe.job"
_CONFIGS = "bpe.configs"
PRESET = "bpe.preset"
NO_KEYS = ("config", "set")


class Source(IntEnum):
    """Where the value of an option comes from; the greater wins."""

    DEFAULT = 0
    PRESET = 1
    FILE = 2
    COMMAND_LINE = 3


def beam_args(ctx: click.Context) -> tuple[str, ...]:
    """Beam's arguments of all layers; of one that is given twice, the higher layer wins."""
    args: tuple[str, ...] = ()
    layers = [values.get(_BEAM_ARGS.name, ()) for values in _files(ctx)]
    for layer in (*layers, ctx.meta[BEAM_META]):
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
    sections = {name: option_keys(stage) for name, stage in stages_of(ctx.command).items()}
    elsewhere = {
        name: f"bpe {command.name}"
        for command in reversed(_configured(ctx))
        for name in option_keys(command)
        if name not in own
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
    keys = {key: spec for command in _configured(ctx) for key, spec in option_keys(command).items()}
    values = read_config(str(path(name)), keys | own)
    ctx.meta[PRESET] = {key: value for key, value in values.items() if key in own}
    _set_defaults(ctx)


def _set_defaults(ctx: click.Context) -> None:
    ctx.default_map = _merged([ctx.meta.get(PRESET, {}), *_files(ctx)])


def _merged(layers: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    return {name: value for layer in layers for name, value in layer.items()}


def _configured(ctx: click.Context) -> list[click.Command]:
    """The commands that take configuration files."""
    root = ctx.find_root().command
    commands = root.commands.values() if isinstance(root, click.Group) else ()
    return [one for one in commands if any(param.name == "config" for param in one.params)]


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
    keys = {spec.name: spec for spec in (_BEAM_ARGS, *specs) if spec.name not in NO_KEYS}
    for stage in stages_of(command).values():
        keys |= {name: spec for name, spec in option_keys(stage).items() if name not in keys}
    return keys


def stages_of(command: click.Command) -> Mapping[str, click.Command]:
    """The commands whose options `bpe run` takes, by the name of their section of its file."""
    stages: Mapping[str, click.Command] = getattr(command, "stages", {})
    return stages


def stage_context(ctx: click.Context, name: str) -> click.Context:
    """The values that a job of several stages has for one of them.

    The command line is ``--set``, and options that both the job and the stage have. In each layer
    below it, a section wins over keys outside of sections.

    Raises:
        click.UsageError: ``--set`` names no option, or a value is wrong.
        ConfigError: two sections of one stage give the same key.
    """
    stages = stages_of(ctx.command)
    command = stages[name]
    sections = [section for section, stage in stages.items() if stage is command]
    layers = [
        _of_stage(values, sections, option_keys(command))
        for values in (ctx.meta.get(PRESET, {}), *_files(ctx))
    ]
    args = [
        f"--{param.name}={value}"
        for param in command.params
        if isinstance(param, DeclaredOption) and source(ctx, param.name) is Source.COMMAND_LINE
        for value in (ctx.params[param.name] if param.multiple else [ctx.params[param.name]])
    ]
    args += [arg for text in ctx.params["set"] for arg in _as_argument(ctx, text, command)]
    child = command.make_context(ctx.command_path, args, default_map=_merged(layers))
    child.meta[PRESET], child.meta[_CONFIGS] = layers[0], layers[1:]
    return child


def _of_stage(
    values: Mapping[str, Any], sections: Collection[str], keys: Collection[str]
) -> dict[str, Any]:
    """The values of one layer for the stage that has these sections and keys."""
    found = {name: value for name, value in values.items() if name in keys}
    seen: dict[str, str] = {}
    for section in sections:
        for name, value in values.get(section, {}).items():
            if name in seen:
                raise ConfigError(f"{name}: given in {seen[name]} and in {section}: keep one")
            found[name], seen[name] = value, section
    return found


def _as_argument(ctx: click.Context, text: str, command: click.Command) -> list[str]:
    """What ``--set`` says as an argument of a stage; none where it is of another one.

    Raises:
        click.UsageError: it is not KEY=VALUE, or no stage has the key.
    """
    key, equals, value = text.partition("=")
    section, _, name = key.strip().replace("-", "_").rpartition(".")
    stages = stages_of(ctx.command)
    among = {section: stages[section]} if section in stages else {} if section else stages
    owners = [stage for stage in among.values() if name in option_keys(stage)]
    if not equals or not owners:
        known = sorted({one for stage in stages.values() for one in option_keys(stage)})
        near = difflib.get_close_matches(name, known, n=1, cutoff=0)[0]
        raise click.UsageError(
            f"--set {text}: write KEY=VALUE"
            if not equals
            else f"--set {key}: no stage has this option; did you mean {near}?",
            ctx,
        )
    if command not in owners:
        return []
    flag = name.replace("_", "-")
    if option_keys(command)[name].kind != "flag":
        return [f"--{flag}={value}"]
    if value not in ("true", "false"):
        raise click.UsageError(f"--set {text}: write true or false", ctx)
    return [f"--{flag}" if value == "true" else f"--no-{flag}"]


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
