"""The values of options, from the layers that give them.

A value comes from the command line, else from a configuration file, else from a preset, else from
the option itself.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pipelines.errors import ConfigError
from pipelines.option import Option, check_rules, declared, is_absent, nearest

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    Specs = Mapping[str, Option]

_Settings = TypeVar("_Settings")


class Origin(IntEnum):
    """The source of the value of an option; the greater wins."""

    DEFAULT = 0
    PRESET = 1
    FILE = 2
    COMMAND_LINE = 3


class Values(dict[str, Any]):
    """The values of a command's options, by name, and of its arguments.

    Attributes:
        specs: the declarations of the options, by name.
        layers: the values of each source, the lowest first.
        origins: the source of each value.
    """

    def __init__(self, specs: Specs, layers: Sequence[tuple[Origin, Mapping[str, Any]]]) -> None:
        self.specs, self.layers = specs, layers
        self.origins = dict.fromkeys(specs, Origin.DEFAULT)
        super().__init__({name: spec.default for name, spec in specs.items()})
        for origin, values in layers:
            for name in specs.keys() & values.keys():
                value = values[name]
                self[name] = (*self[name], *value) if specs[name].joined else value
                self.origins[name] = origin

    def settle(self) -> Values:
        """Drop values that a higher layer excludes; check the other rules between options.

        Raises:
            click.UsageError: an option is missing, or two of one layer exclude each other.
            ConfigError: an option needs another one.
        """
        for name, spec in self.specs.items():
            if spec.required and self[name] is None:
                raise click.MissingParameter(param_hint=f"'{spec.flag}'", param_type="option")
            for other in filter(self.specs.__contains__, spec.excludes):
                self.choose(*sorted((name, other), key=[*self.specs].index))
        check_rules(self.specs, self)
        return self

    def choose(self, first: str, second: str) -> None:
        """Settle two options that exclude each other: the one from the higher layer is meant.

        Raises:
            click.UsageError: both are from one layer.
        """
        if is_absent(self[first]) or is_absent(self[second]):
            return
        origins = self.origins[first], self.origins[second]
        if origins[0] == origins[1] != Origin.DEFAULT:
            flags = (self.specs[name].flag for name in (first, second))
            raise click.UsageError(f"{' and '.join(flags)} exclude each other: choose one")
        self.forget(second if origins[0] > origins[1] else first)

    def forget(self, name: str) -> None:
        """Give an option its default, as if no layer had said anything."""
        self[name] = self.specs[name].default

    def settings(self, settings: type[_Settings], **values: Any) -> _Settings:
        """Return settings from the values of options, and defaults where the command lacks one.

        Args:
            settings: the class.
            values: the values of fields that are not options, or differ from the option.
        """
        given = {
            name: self[spec.name]
            for name, spec in declared(settings).items()
            if self.get(spec.name) is not None
        }
        return settings(**{**given, **values})


def stage_values(values: Values, stages: Mapping[str, Specs], name: str) -> Values:
    """Return the values of one stage of a job of several stages.

    They are those of the options that both the job and the stage have, and above them those of
    ``--set``. In each layer, the section of the stage wins over keys outside of sections.

    Raises:
        click.UsageError: ``--set`` names no option, or a value is wrong.
        ConfigError: two sections of one stage give the same key.
    """
    specs = stages[name]
    sections = [section for section, stage in stages.items() if stage is specs]
    layers = (*values.layers, (Origin.COMMAND_LINE, _set_values(values["set"], stages)))
    return Values(
        specs, [(origin, _of_stage(layer, sections, specs)) for origin, layer in layers]
    ).settle()


def _of_stage(values: Mapping[str, Any], sections: Collection[str], specs: Specs) -> dict[str, Any]:
    """Return the values of one layer for the stage that has these sections and options."""
    found = {name: value for name, value in values.items() if name in specs}
    seen: dict[str, str] = {}
    for section in sections:
        for name, value in values.get(section, {}).items():
            if name in seen:
                raise ConfigError(f"{name}: given in {seen[name]} and in {section}: keep one")
            found[name], seen[name] = value, section
    return found


def _set_values(texts: Sequence[str], stages: Mapping[str, Specs]) -> dict[str, Any]:
    """Return the values of ``--set``, in the form of a file: with sections.

    Raises:
        click.UsageError: one is not KEY=VALUE, no stage has the key, or the value is wrong.
    """
    values: dict[str, Any] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            raise click.UsageError(f"--set {text}: write KEY=VALUE")
        section, _, name = key.strip().replace("-", "_").rpartition(".")
        of_all = {name: spec for stage in stages.values() for name, spec in stage.items()}
        specs = stages.get(section, {}) if section else of_all
        if name not in specs:
            near = nearest(name, of_all)
            raise click.UsageError(f"--set {key}: no stage has this option; did you mean {near}?")
        try:
            parsed = specs[name].parse(value)
        except ValueError as error:
            raise click.UsageError(f"--set {text}: {error}") from error
        among = values.setdefault(section, {}) if section else values
        among[name] = (*among.get(name, ()), parsed) if specs[name].repeatable else parsed
    return values
