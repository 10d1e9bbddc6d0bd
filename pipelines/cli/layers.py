"""The sources of the values of a command's options.

A value comes from the command line, else from a configuration file, else from a preset, else from
the option itself.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from pipelines.config import read_config
from pipelines.errors import ConfigError
from pipelines.option import Option, check_rules, declared, is_absent
from pipelines.settings import CountSettings, ModelSettings, PretokenSettings, TrainSettings

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_BEAM_ARGS = Option(
    name="beam_args", repeatable=True, group="Where it runs", help="Options of Beam."
)
_NO_KEYS = ("config", "set")
_Settings = TypeVar("_Settings")


class Origin(IntEnum):
    """The source of the value of an option; the greater wins."""

    DEFAULT = 0
    PRESET = 1
    FILE = 2
    COMMAND_LINE = 3


@dataclass
class Layers:
    """The layers that give values to a command's options, by name.

    Attributes:
        preset: the lowest.
        files: the file of `bpe run`, then those of ``--config``, the lowest first.
        beam_args: what follows ``--`` on the command line.
    """

    preset: dict[str, Any] = field(default_factory=dict)
    files: list[dict[str, Any]] = field(default_factory=list)
    beam_args: tuple[str, ...] = ()

    def merged(self) -> dict[str, Any]:
        """Return the values below the command line."""
        return {name: value for one in (self.preset, *self.files) for name, value in one.items()}


def layers_of(ctx: click.Context) -> Layers:
    """Return the layers of a command, which are empty at first."""
    if not isinstance(ctx.obj, Layers):
        ctx.obj = Layers()
    return ctx.obj


def beam_args(ctx: click.Context) -> tuple[str, ...]:
    """Beam's arguments of all layers; of one that is given twice, Beam takes the last."""
    layers = layers_of(ctx)
    in_files = (arg for file in layers.files for arg in file.get(_BEAM_ARGS.name, ()))
    return (*in_files, *layers.beam_args)


def use_job(ctx: click.Context, _: click.Parameter, path: str | None) -> None:
    """Make the values of the file of a job defaults, below those of ``--config``."""
    if path is not None and not ctx.resilient_parsing:
        layers_of(ctx).files.insert(0, _read_file(ctx, path))
        ctx.default_map = layers_of(ctx).merged()


def use_configs(ctx: click.Context, _: click.Parameter, paths: tuple[str, ...]) -> None:
    """Make the values of configuration files defaults of the command's options."""
    if not ctx.resilient_parsing:
        layers_of(ctx).files += [_read_file(ctx, path) for path in paths]
        ctx.default_map = layers_of(ctx).merged()


def use_preset(ctx: click.Context, _: click.Parameter, name: str | None) -> None:
    """Make the values of a preset defaults, below those of a configuration file.

    A preset says how to train: what a command has no option for goes by it.
    """
    if name is None or ctx.resilient_parsing:
        return
    from bpe.presets import path

    own = option_keys(ctx.command)
    trained = (PretokenSettings, CountSettings, TrainSettings, ModelSettings)
    keys = {spec.name: spec for cls in trained for spec in declared(cls).values()}
    values = read_config(str(path(name)), keys | own)
    layers_of(ctx).preset = {key: value for key, value in values.items() if key in own}
    ctx.default_map = layers_of(ctx).merged()


def _read_file(ctx: click.Context, path: str) -> dict[str, Any]:
    sections = {name: option_keys(stage) for name, stage in stages_of(ctx.command).items()}
    values = read_config(
        path, option_keys(ctx.command), owner=lambda name: owner(ctx, name), sections=sections
    )
    for one in values.get(_BEAM_ARGS.name, ()):
        if not one.startswith("--"):
            raise ConfigError(f"{path}: beam_args: {one!r} does not begin with --")
    return values


def owner(ctx: click.Context, name: str) -> str:
    """Who has an option that a command lacks: a stage of it, or another command; else nobody."""
    if any(name in option_keys(stage) for stage in stages_of(ctx.command).values()):
        return f"a stage: give --set {name}=VALUE"
    root = ctx.find_root().command
    group = root if isinstance(root, click.Group) else click.Group()
    commands = (group.get_command(ctx, one) for one in group.list_commands(ctx))
    # Of those that take files: others have short names, as --id, that say nothing of this command.
    having = (
        one.name
        for one in commands
        if one and name not in _NO_KEYS and {name, "config"} <= specs_of(one).keys()
    )
    return next((f"bpe {one}, not of this command" for one in having), "")


def source(ctx: click.Context, name: str) -> Origin:
    """Return the source of the value of an option."""
    known = ctx.get_parameter_source(name)
    if known in (ParameterSource.DEFAULT, None):
        return Origin.DEFAULT
    if known is not ParameterSource.DEFAULT_MAP:
        return Origin.COMMAND_LINE
    in_file = any(name in values for values in layers_of(ctx).files)
    return Origin.FILE if in_file else Origin.PRESET


def specs_of(command: click.Command) -> dict[str, Option]:
    """Return the declarations of a command's options, by name."""
    specs = (getattr(param, "spec", None) for param in command.params)
    return {spec.name: spec for spec in specs if isinstance(spec, Option)}


def option_keys(command: click.Command) -> dict[str, Option]:
    """Return the keys that a configuration for ``command`` may have: its options, by name."""
    keys = {_BEAM_ARGS.name: _BEAM_ARGS, **specs_of(command)}
    for stage in stages_of(command).values():
        keys = {**option_keys(stage), **keys}
    return {name: spec for name, spec in keys.items() if name not in _NO_KEYS}


def stages_of(command: click.Command) -> Mapping[str, click.Command]:
    """Return the commands whose options `bpe run` takes, by the name of their section."""
    stages: Mapping[str, click.Command] = getattr(command, "stages", {})
    return stages


def settings_of(ctx: click.Context, settings: type[_Settings], **values: Any) -> _Settings:
    """Settings from the values of a command's options; of those that it lacks, the defaults.

    Args:
        ctx: the context of the command.
        settings: the class.
        values: the values of fields that are not options, or differ from the option.
    """
    given = {
        name: ctx.params[spec.name]
        for name, spec in declared(settings).items()
        if ctx.params.get(spec.name) is not None
    }
    return settings(**{**given, **values})


def stage_context(ctx: click.Context, name: str) -> click.Context:
    """Return the context of one stage of a job of several stages.

    Its layer of the command line has ``--set``, and the options that both the job and the stage
    have. In each lower layer, the section of the stage wins over keys outside of sections.

    Raises:
        click.UsageError: ``--set`` names no option, or a value is wrong.
        ConfigError: two sections of one stage give the same key.
    """
    stages = stages_of(ctx.command)
    command, all_layers = stages[name], layers_of(ctx)
    sections = [section for section, stage in stages.items() if stage is command]
    keys = option_keys(command)
    layers = Layers(
        preset=_of_stage(all_layers.preset, sections, keys),
        files=[_of_stage(values, sections, keys) for values in all_layers.files],
    )
    args = [
        f"{spec.flag}={value}"
        for param, spec in specs_of(ctx.command).items()
        if param in keys and source(ctx, param) is Origin.COMMAND_LINE
        for value in (ctx.params[param] if spec.repeatable else [ctx.params[param]])
    ]
    args += [arg for text in ctx.params["set"] for arg in _as_argument(ctx, text, command)]
    return command.make_context(ctx.command_path, args, default_map=layers.merged(), obj=layers)


def _of_stage(
    values: Mapping[str, Any], sections: Collection[str], keys: Collection[str]
) -> dict[str, Any]:
    """Return the values of one layer for the stage that has these sections and keys."""
    found = {name: value for name, value in values.items() if name in keys}
    seen: dict[str, str] = {}
    for section in sections:
        for name, value in values.get(section, {}).items():
            if name in seen:
                raise ConfigError(f"{name}: given in {seen[name]} and in {section}: keep one")
            found[name], seen[name] = value, section
    return found


def _as_argument(ctx: click.Context, text: str, command: click.Command) -> list[str]:
    """Return a ``--set`` as arguments of a stage; empty if it is for another stage.

    Raises:
        click.UsageError: it is not KEY=VALUE, or no stage has the key.
    """
    key, equals, value = text.partition("=")
    if not equals:
        raise click.UsageError(f"--set {text}: write KEY=VALUE", ctx)
    section, _, name = key.strip().replace("-", "_").rpartition(".")
    stages = stages_of(ctx.command)
    among = {section: stages[section]} if section in stages else {} if section else stages
    owners = [stage for stage in among.values() if name in option_keys(stage)]
    if not owners:
        known = sorted({one for stage in stages.values() for one in option_keys(stage)})
        near = difflib.get_close_matches(name, known, n=1, cutoff=0)[0]
        raise click.UsageError(f"--set {key}: no stage has this option; did you mean {near}?", ctx)
    if command not in owners:
        return []
    spec = option_keys(command)[name]
    if spec.kind != "flag":
        return [f"{spec.flag}={value}"]
    try:
        return [spec.flag if spec.parse(value) else f"--no-{spec.flag[2:]}"]
    except ValueError as error:
        raise click.UsageError(f"--set {text}: {error}", ctx) from error


def check_options(ctx: click.Context) -> None:
    """Settle options that exclude each other, and refuse those that need others.

    Raises:
        click.UsageError: two that exclude each other come from one layer.
        ConfigError: one needs another one.
    """
    specs = specs_of(ctx.command)
    for spec in specs.values():
        for other in spec.excludes:
            if other in specs:
                choose(ctx, *sorted((spec.name, other), key=[*specs].index))
    check_rules(specs, {name: ctx.params[name] for name in specs})


def choose(ctx: click.Context, first: str, second: str) -> None:
    """Settle two options that exclude each other: the one from the higher layer is the one meant.

    Raises:
        click.UsageError: both are on the command line, or both in the file.
    """
    if any(is_absent(ctx.params[name]) for name in (first, second)):
        return
    sources = (source(ctx, first), source(ctx, second))
    if sources[0] == sources[1] != Origin.DEFAULT:
        raise click.UsageError(
            f"--{first} and --{second} exclude each other: choose one".replace("_", "-"), ctx
        )
    forget(ctx, second if sources[0] > sources[1] else first)


def forget(ctx: click.Context, name: str) -> None:
    """Give an option its default, as if no layer had said anything."""
    spec = specs_of(ctx.command)[name]
    default = () if spec.repeatable else spec.default
    ctx.params[name] = default
