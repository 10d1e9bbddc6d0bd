"""Messages of the library, in the words of the command line.

An error names an argument between backticks, as Python and YAML spell it: ```vocab_size` 10 is too
small``. Who typed a command is told the option that the argument's declaration names.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from pipelines.option import declared
from pipelines.settings import (
    CountSettings,
    EncodeSettings,
    Execution,
    InputSettings,
    ModelSettings,
    OutputSettings,
    PretokenSettings,
    TrainSettings,
)
from pipelines.watch.settings import DriftSettings, WatchSettings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_SETTINGS = (
    *(InputSettings, OutputSettings, PretokenSettings, CountSettings, TrainSettings),
    *(ModelSettings, EncodeSettings, Execution, WatchSettings, DriftSettings),
)
_NAMED = re.compile(r"`([a-z]+(?:_[a-z]+)*)`")


def option_names(commands: Iterable[click.Command]) -> dict[str, str]:
    """The option of each argument, by its name in Python and by that in YAML."""
    names = {
        field: f"--{spec.name.replace('_', '-')}"
        for settings in _SETTINGS
        for field, spec in declared(settings).items()
    }
    of_commands = {
        param.name: param.opts[0]
        for command in commands
        for param in command.params
        if isinstance(param, click.Option) and param.name
    }
    return {**names, **of_commands, "beam_args": "--"}


def as_options(message: str, options: Mapping[str, str]) -> str:
    """``message`` with options in the place of arguments.

    Args:
        message: of an error.
        options: what `option_names` made.

    >>> as_options("replace it with `overwrite`, or name `another_one`", {"overwrite": "--force"})
    'replace it with --force, or name `another_one`'
    """
    return _NAMED.sub(lambda match: options.get(match[1], match[0]), message)
