"""Completion in real shells, and the reference of the commands."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

import pytest

from pipelines.cli.commands import NAMES, command_of
from tests.cli.pages import blocks, commands_of, make_command
from tests.cli.process import ROOT, execute, refused
from tests.shared_data import long_but, missing

if TYPE_CHECKING:
    from pathlib import Path


# What each line becomes; <default> and <dirnames>: what the shell has of files and of folders.
EXPECTED = {
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

# Complete each line of standard input as the shell does on Tab; a line of answers for each.
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
_ZSH = """
compdef() { : }  # of its system of completion, which only a terminal has
eval "$(bpe completion zsh)"
compadd() { print -rn -- "$completions " }
_describe() { print -rn -- "${(@)completions_with_descriptions%%:*} " }
_path_files() { [[ $1 == -/ ]] && print -n '<dirnames> ' || print -n '<default> ' }
while IFS= read -r line; do
    words=(${=line}) && [[ $line == *' ' ]] && words+=("")
    CURRENT=$#words
    _bpe_completion
    print
done
"""
_FISH = r"""
bpe completion fish | source
function __fish_complete_directories; echo (commandline -ct)"<dirnames>"; end
function __fish_complete_path; echo (commandline -ct)"<default>"; end
while read --local --line line
    complete --do-complete=$line | string replace --regex '^\w*(?=<)|\t.*' '' | string join " "
end
true  # not the status of the last read
"""


def shell(name: str) -> str:
    """The shell; where it is not there the test is skipped, or fails in CI."""
    found = shutil.which(name)
    if found is None:
        missing(f"no {name} here (Debian: apt-get install {name})", "BPE_SHELLS_REQUIRED")
    return found


SHELLS = {
    "bash": ["--norc", "-c", _BASH],
    "zsh": ["-f", "-c", _ZSH],
    "fish": ["--no-config", "-c", _FISH],
}


@pytest.mark.parametrize("name", long_but(SHELLS, "bash"))
def test_a_shell_completes_commands_options_and_values(tmp_path: Path, name: str) -> None:
    lines = "".join(f"{line}\n" for line in EXPECTED)
    done = execute(shell(name), *SHELLS[name], stdin=lines, **make_command(tmp_path))
    answers = (set(answer.split()) for answer in done.stdout.splitlines())
    assert dict(zip(EXPECTED, answers, strict=True)) == EXPECTED, done.stderr


def test_an_unknown_shell_is_refused(tmp_path: Path) -> None:
    refused("'tcsh' is not one of 'bash', 'zsh', 'fish'", "completion", "tcsh", cwd=tmp_path)


# The reference.


def test_the_reference_is_up_to_date() -> None:
    execute(sys.executable, "scripts/generate_reference.py", "--check", cwd=ROOT)


# What pages tell people to type, and no test runs.


@pytest.mark.parametrize(
    "path", [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))], ids=lambda path: path.name
)
def test_every_block_is_of_a_kind_that_is_checked(path: Path) -> None:
    fences = [line for line in path.read_text("utf-8").splitlines() if line.startswith("```")]
    opened = [fence.removeprefix("```") for fence in fences[::2]]
    kinds = {"sh", "python", "yaml", "output", "console", "mermaid", "text", "html", "json"}
    kinds.add("py")  # a whole program, which a test of its own runs
    assert set(opened) <= kinds, "a block needs a language: only sh, python, yaml and output run"
    assert len(opened) == len(blocks(path))
    for block in blocks(path):
        if block.kind == "console":
            for command in commands_of(block):
                _check_options(command)


def _check_options(line: str) -> None:
    """A command that is only shown has a name and options that exist."""
    words = line.split()
    if words[:1] != ["bpe"] or len(words) < 2 or words[1].startswith("-"):
        return
    assert words[1] in NAMES, line
    command = command_of(words[1])
    known = {"--help", "--help-all", "-h"}.union(
        *([*p.opts, *p.secondary_opts] for p in command.params)
    )
    for word in words[2:]:
        if word == "--":
            return
        if word.startswith("--"):
            assert word.partition("=")[0] in known, line
