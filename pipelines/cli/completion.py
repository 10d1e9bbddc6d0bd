"""``bpe completion``: what a shell needs to complete ``bpe`` commands."""

from __future__ import annotations

import os

import click
from click.shell_completion import get_completion_class, shell_complete

from pipelines.cli.command import Command

VARIABLE = "_BPE_COMPLETE"
SHELLS = ("bash", "zsh", "fish")


@click.command(
    cls=Command,
    short_help="Print the completion script of a shell.",
    example="""
eval "$(bpe completion bash)"
echo 'eval "$(bpe completion zsh)"' >> ~/.zshrc
bpe completion fish > ~/.config/fish/completions/bpe.fish
""",
)
@click.argument("shell", type=click.Choice(SHELLS), metavar="SHELL")
def completion(shell: str) -> None:
    """Print the completion script for SHELL (bash 4.4 or newer, zsh or fish).

    Evaluate it when the shell starts, as in the examples. The shell then completes commands,
    options and their values: pre-tokenizers, formats, presets, runners, files and directories.
    """
    root = click.get_current_context().find_root()
    shell_class = get_completion_class(shell)
    if shell_class is None:  # click knows all three
        raise click.ClickException(f"no completion is known for {shell}")
    click.echo(shell_class(root.command, {}, "bpe", VARIABLE).source())


def completes(root: click.Command) -> bool:
    """Answer the shell, where it asked for completions; whether it did."""
    asked = os.environ.get(VARIABLE)
    if not asked:
        return False
    shell_complete(root, {}, "bpe", VARIABLE, asked)
    return True
