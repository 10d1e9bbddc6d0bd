"""Completion in real shells, and the reference of the commands."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import click
import pytest
from click.testing import CliRunner

from pipelines.cli.main import bpe as group
from tests.cli.pages import blocks
from tests.cli.process import BPE, ROOT, bpe, environment

if TYPE_CHECKING:
    from pathlib import Path


PAGE = ROOT / "docs" / "commands.md"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the command on the path, a file and a directory."""
    made = tmp_path_factory.mktemp("shell")
    (made / "bin").mkdir()
    command = made / "bin" / "bpe"
    command.write_text(f'#!/bin/sh\nexec "{BPE[0]}" -m pipelines.cli "$@"\n')
    command.chmod(0o755)
    (made / "corpus").mkdir()
    (made / "model.json").touch()
    return made


# Completes each line of standard input as bash does on Tab; a line of answers for each.
_BASH = """
eval "$(bpe completion bash)"
compopt() { COMPREPLY+=("<$2>"); }  # outside of a completion bash has none
while IFS= read -r line; do
    IFS=' ' read -ra COMP_WORDS <<< "$line"
    [[ $line == *' ' ]] && COMP_WORDS+=("")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
    _bpe_completion bpe
    echo "${COMPREPLY[*]}"
done
"""


def test_bash_completes_commands_options_and_values(folder: Path) -> None:
    expected = {
        "bpe comp": {"compare", "completion"},
        "bpe count --pretokenizer qw": {"qwen2"},
        "bpe train --preset word": {"words", "word-tutorial"},
        "bpe encode --runner Fl": {"FlinkRunner"},
        "bpe count --form": {"--format"},
        "bpe encode --tokenizer mod": {"<default>"},
        "bpe count --output ": {"<dirnames>"},
        "bpe compare mod": {"<default>"},
        "bpe run ": {"<default>"},
    }
    done = subprocess.run(
        ["bash", "--norc", "-c", _BASH],
        cwd=folder,
        input="".join(f"{line}\n" for line in expected),
        env=environment(PATH=f"{folder / 'bin'}:{environment()['PATH']}"),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers = done.stdout.splitlines()
    assert {
        line: set(answer.split()) for line, answer in zip(expected, answers, strict=True)
    } == expected, done.stderr


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_take_their_script(shell: str) -> None:
    done = bpe("completion", shell)
    assert f"_BPE_COMPLETE={shell}_complete" in done.stdout
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed: its script was made, and not run")
    subprocess.run([shell, "-n"], input=done.stdout, text=True, check=True)


def test_bash_and_unknown_shells() -> None:
    assert "bash" in bpe("completion", "tcsh", status=2).stderr


# The reference.


def test_the_reference_is_up_to_date() -> None:
    command = [sys.executable, "scripts/generate_reference.py", "--check"]
    done = subprocess.run(
        command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", list(group.commands))
def test_the_reference_names_every_option(name: str) -> None:
    text = PAGE.read_text("utf-8")
    part = text.split(f"\n## bpe {name}\n")[1].split("\n## ")[0]
    for param in group.commands[name].params:
        if isinstance(param, click.Option) and not param.hidden:
            assert all(f"`{opt}`" in part for opt in param.opts), param.name
    shown = CliRunner().invoke(group, [name, "--help"])
    assert shown.exit_code == 0


# What pages tell people to type, and no test runs.


@pytest.mark.parametrize(
    "path", [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))], ids=lambda path: path.name
)
def test_every_block_is_of_a_kind_that_is_checked(path: Path) -> None:
    fences = [line for line in path.read_text("utf-8").splitlines() if line.startswith("```")]
    opened = [fence.removeprefix("```") for fence in fences[::2]]
    kinds = {"sh", "python", "yaml", "output", "console", "mermaid", "text", "html", "json"}
    assert set(opened) <= kinds, "a block needs a language: only sh, python, yaml and output run"
    assert len(opened) == len(blocks(path))
    for block in blocks(path):
        if block.kind == "console":
            for command in block.text.replace("\\\n", " ").splitlines():
                _check_options(command)


def _check_options(line: str) -> None:
    """A command that is only shown has a name and options that exist."""
    words = line.removeprefix("$ ").split()
    if words[:1] != ["bpe"] or len(words) < 2 or words[1].startswith("-"):
        return
    assert words[1] in group.commands, line
    command = group.commands[words[1]]
    known = {"--help", "-h"}.union(*([*p.opts, *p.secondary_opts] for p in command.params))
    for word in words[2:]:
        if word == "--":
            return
        if word.startswith("--"):
            assert word.partition("=")[0] in known, line
