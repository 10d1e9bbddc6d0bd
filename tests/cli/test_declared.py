"""One declaration an option: command line, YAML, Python and errors follow from it."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import click
import pytest
from click.testing import CliRunner

from pipelines import EncodeCorpus
from pipelines.cli.command import command
from pipelines.cli.commands import NAMES, as_options
from pipelines.cli.layers import option_keys, settings_of
from pipelines.config import read_config
from pipelines.errors import ConfigError
from pipelines.option import Group, Natural, Positive, Settings, declared, option, takes
from pipelines.settings import EncodeSettings, InputSettings
from tests.cli.process import bpe

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Brew(Settings):
    """Settings as a new part of the product would declare them.

    Attributes:
        leaves: Leaf to brew; repeatable.
        minutes: How long to wait. Green tea
            takes two.
        milk: Milk to add.
        sugar: Lumps.
        stir: How often to stir.
        hot: Serve it hot.
    """

    _GROUP: ClassVar[Group] = "Output"

    leaves: tuple[str, ...] = option(name="leaf", group="Input")
    minutes: Positive = option(3, group="Rows", maximum=9)
    milk: Literal["oat", "cow"] | None = option(None, default_is="none", advanced=True)
    sugar: int = option(0, maximum=3, advanced=True)
    stir: Natural = option(0, needs="milk=oat | sugar", excludes=("lid",), advanced=True)
    hot: bool = option(False)


@command(Brew, example="bpe brew --leaf assam")
def brew(ctx: click.Context) -> None:
    """Brew tea.

    It is better with time.
    """
    click.echo(repr(settings_of(ctx, Brew)))


def test_the_command_line_has_what_is_declared() -> None:
    done = CliRunner().invoke(brew, ["--leaf", "assam", "--leaf", "mint", "--milk", "oat", "--hot"])
    assert done.output.strip() == repr(
        Brew(leaves=("assam", "mint"), minutes=3, milk="oat", hot=True)
    )
    for wrong, named in (
        ([], "Missing option '--leaf'"),
        (["--leaf", "a", "--minutes", "10"], "10 is not between 1 and 9"),
        (["--leaf", "a", "--milk", "soy"], "'soy' is unknown: use one of oat, cow"),
        (["--leaf", "a", "--sugar", "4"], "4 is out of range: use 3 or less"),
        (["--leaf", "a", "--sugar", "some"], "'some' is not a whole number"),
    ):
        assert named in CliRunner().invoke(brew, wrong).output


def test_help_is_short_and_in_groups_unless_all_is_asked_for() -> None:
    short = CliRunner().invoke(brew, ["--help"]).output
    assert "It is better" not in short
    assert "--milk" not in short
    assert "Green tea" not in short
    assert "How long to wait.  [default: 3" in short
    assert [line for line in short.splitlines() if line.endswith(":") and line[0] != " "] == [
        "Input:",
        "Output:",
        "Rows:",
        "Options:",
    ]
    whole = " ".join(CliRunner().invoke(brew, ["--help-all"]).output.split())
    assert "It is better with time." in whole
    assert "How long to wait. Green tea takes two. [default: 3" in whole
    assert "--milk VALUE Milk to add. [default: none]" in whole


def test_a_file_has_what_is_declared(tmp_path: Path) -> None:
    keys = option_keys(brew)
    path = tmp_path / "brew.yaml"
    path.write_text("leaf: assam\nminutes: 4\nhot: true\n")
    assert read_config(str(path), keys) == {"leaf": ("assam",), "minutes": 4, "hot": True}
    path.write_text("minutes: 10\n")
    with pytest.raises(ConfigError, match="minutes: 10 is not between 1 and 9"):
        read_config(str(path), keys)


def test_python_has_what_is_declared() -> None:
    with pytest.raises(ConfigError, match="`minutes` 0 is not between 1 and 9"):
        Brew(leaves=("a",), minutes=0)
    with pytest.raises(ConfigError, match="`milk` 'soy' is unknown: use one of oat, cow"):
        Brew(leaves=("a",), milk="soy")  # type: ignore[arg-type]  # what is tested

    Brew(leaves=("a",), stir=2, sugar=1)
    with pytest.raises(ConfigError, match="`stir` needs `milk` oat or `sugar` N"):
        Brew(leaves=("a",), stir=2, milk="cow")

    @takes(Brew)
    class Pot:
        """A pot."""

        def __init__(self, *, leaves: tuple[str, ...], **arguments: object) -> None: ...

    assert list(inspect.signature(Pot).parameters) == [
        *("leaves", "minutes", "milk", "sugar", "stir", "hot")
    ]
    assert "minutes: How long to wait. Green tea takes two." in (Pot.__doc__ or "")


def test_a_transform_takes_what_its_settings_declare() -> None:
    parameters = inspect.signature(EncodeCorpus).parameters
    for settings in (InputSettings, EncodeSettings):
        for name, spec in declared(settings).items():
            assert spec.required or parameters[name].default == spec.default
    with pytest.raises(TypeError, match="'appendtoken': did you mean 'append_token'"):
        EncodeCorpus(inputs=["a"], tokenizer="t", output="o", appendtoken="x")


def test_errors_name_the_option_that_the_declaration_names() -> None:
    said = "`split_size`, `special_tokens`, `leave_out`, `shared_paths`, `tea`"
    assert as_options(said) == ("--split-size, --special-token, --leave-out, --shared-path, `tea`")


@pytest.mark.parametrize("name", NAMES)
def test_help_fits_a_screen(name: str) -> None:
    short = bpe(name, "--help", COLUMNS="80").stdout
    shown = [line for line in short.splitlines() if re.match(r" {2}(-\w, )?--", line)]
    assert len(shown) <= {"train": 30}.get(name, 24)
    assert len(short.splitlines()) <= 60
    if "--help-all" in short:
        assert len(short) < len(bpe(name, "--help-all").stdout) / 2
