"""One declaration an option: command line, YAML, Python and errors follow from it."""

from __future__ import annotations

import inspect
import re

import pytest

from pipelines import EncodeCorpus
from pipelines.cli.commands import as_options
from pipelines.option import declared
from pipelines.settings import EncodeSettings, InputSettings
from tests.cli.process import bpe


def test_help_is_in_groups_and_leaves_out_what_is_advanced() -> None:
    short = bpe("encode", "--help").stdout
    assert re.findall(r"^(\w.*):$", short, re.MULTILINE) == [
        *("Input", "Output", "Rows", "Appending", "Where it runs", "Messages", "Options")
    ]
    assert "--dropout-seed" not in short
    assert "--dropout-seed" in bpe("encode", "--help-all").stdout


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
