"""``bpe completion``: what a shell needs to complete ``bpe`` commands."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click
from click.shell_completion import get_completion_class, shell_complete

from pipelines.cli.command import command

if TYPE_CHECKING:
    from pipelines.cli.layers import Values


VARIABLE = "_BPE_COMPLETE"
SHELLS = ("bash", "zsh", "fish")


@command()
@click.argument("shell", type=click.Choice(SHELLS), metavar="SHELL")
def completion(values: Values) -> None:
    """Print the completion script of a shell.

    SHELL is bash (4.4 or newer), zsh or fish. Evaluate it when the shell starts, as in the
    examples. In zsh, run autoload -Uz compinit && compinit first. The shell then completes
    commands, options and their values.

    Example:
        eval "$(bpe completion bash)"
        echo 'eval "$(bpe completion zsh)"' >> ~/.zshrc
        bpe completion fish > ~/.config/fish/completions/bpe.fish
    """
    shell_class = get_completion_class(values["shell"])
    if shell_class is not None:  # click knows all three
        root = click.get_current_context().find_root().command
        click.echo(shell_class(root, {}, "bpe", VARIABLE).source())


def completes(root: click.Command) -> bool:
    """Answer the shell, where it asked for completions; whether it did."""
    asked = os.environ.get(VARIABLE)
    if not asked:
        return False
    shell_complete(root, {}, "bpe", VARIABLE, asked)
    return True
