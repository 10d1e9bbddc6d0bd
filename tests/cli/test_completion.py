"""Completion in real shells, and the reference of the commands."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import shlex
import shutil
import struct
import subprocess
import sys
import termios
from typing import TYPE_CHECKING

import pytest

from pipelines.cli.commands import NAMES, command_of
from tests.cli.pages import blocks, commands_of, make_command
from tests.cli.process import ROOT, bpe, environment

if TYPE_CHECKING:
    from pathlib import Path

    from typing_extensions import Self


PAGE = ROOT / "docs" / "commands.md"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the command on the path, a file and a directory."""
    made = tmp_path_factory.mktemp("shell")
    make_command(made)
    (made / "corpus").mkdir()
    (made / "model.json").touch()
    return made


# What each line becomes: what of our own, of files and of directories is offered.
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
# With the name of a file or a directory where the shell itself completes it.
IN_FOLDER = {
    **{line: words for line, words in EXPECTED.items() if "<" not in "".join(words)},
    "bpe encode --tokenizer mod": {"model.json"},
    "bpe count --output cor": {"corpus/"},
}

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


def shell(name: str) -> str:
    """The shell; where it is not there the test is skipped, or fails in CI."""
    found = shutil.which(name)
    if found is None:
        message = f"no {name} here (Debian: apt-get install {name})"
        if os.environ.get("BPE_SHELLS_REQUIRED"):
            pytest.fail(message)
        pytest.skip(message)
    return found


def with_bpe(folder: Path) -> dict[str, str]:
    """An environment with the command on the path, and nothing of the user's own."""
    path = f"{folder / 'bin'}:{environment()['PATH']}"
    return environment(PATH=path, HOME=str(folder), TERM="xterm", LC_ALL="C.UTF-8")


def test_bash_completes_commands_options_and_values(folder: Path) -> None:
    done = subprocess.run(
        ["bash", "--norc", "-c", _BASH],
        cwd=folder,
        input="".join(f"{line}\n" for line in EXPECTED),
        env=with_bpe(folder),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers = done.stdout.splitlines()
    assert {
        line: set(answer.split()) for line, answer in zip(EXPECTED, answers, strict=True)
    } == EXPECTED, done.stderr


@pytest.mark.long
def test_fish_completes_commands_options_and_values(folder: Path) -> None:
    script = "bpe completion fish | source\n" + "".join(
        f"complete --do-complete={shlex.quote(line)}; echo ---\n" for line in IN_FOLDER
    )
    done = subprocess.run(
        [shell("fish"), "--no-config", "-c", script],
        cwd=folder,
        env=with_bpe(folder),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers = done.stdout.split("---\n")[:-1]
    found = {
        line: {offered.split("\t")[0] for offered in answer.splitlines()}
        for line, answer in zip(IN_FOLDER, answers, strict=True)
    }
    assert found == IN_FOLDER, done.stderr


# In a terminal: types a line, presses Tab, and shows what is in it then; where several words
# fit, Tab alone makes a list of them.
_ZSH = r"""
autoload -Uz compinit && compinit -u -D
eval "$(bpe completion zsh)"
PS1='' RPS1='' LISTMAX=0
unsetopt beep prompt_cr prompt_sp
setopt auto_list no_list_ambiguous no_auto_menu
show() { print -r -- "@${BUFFER}@"; BUFFER=; zle accept-line; }
zle -N show
bindkey -e '^X' show
print ready@@
"""


class Terminal:
    """zsh in a terminal of its own."""

    def __init__(self, folder: Path) -> None:
        (folder / ".zshrc").write_text(_ZSH)
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
        self._process = subprocess.Popen(
            [shell("zsh"), "-d", "-i"],
            cwd=folder,
            env=with_bpe(folder) | {"ZDOTDIR": str(folder)},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        self._read_until("ready@@")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._master)

    def _read_until(self, end: str) -> str:
        text = ""
        while not re.search(end, text):
            readable, _, _ = select.select([self._master], [], [], 120)
            assert readable, f"zsh says no more than {text!r}"
            text += os.read(self._master, 65536).decode("utf-8", "replace")
        return text

    def complete(self, line: str) -> str:
        """The terminal after a line was typed and Tab pressed, and then the line."""
        os.write(self._master, f"{line}\t\x18".encode())
        return self._read_until(r"@[^@]*@")


@pytest.mark.long
def test_zsh_completes_commands_options_and_values(folder: Path) -> None:
    with Terminal(folder) as terminal:
        for line, words in IN_FOLDER.items():
            shown = terminal.complete(line)
            if len(words) > 1:
                assert all(word in shown for word in words), shown
                continue
            found = re.search(r"@([^@]*)@", shown)
            assert found
            assert found[1].split()[-1] in words, shown


def test_bash_and_unknown_shells() -> None:
    assert "bash" in bpe("completion", "tcsh", status=2).stderr


# The reference.


def test_the_reference_is_up_to_date() -> None:
    command = [sys.executable, "scripts/generate_reference.py", "--check"]
    done = subprocess.run(
        command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


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
