"""All commands: exit statuses, and one line for whatever goes wrong.

Exit status: 0 success, 1 the job failed, 2 the command line or the configuration is wrong, 130
interrupted (SIGINT), 143 terminated (SIGTERM) while a job ran.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import traceback
from functools import cache
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bpe import __version__
from pipelines.cli.completion import completes
from pipelines.cli.loading import INTERRUPTED, end, interrupt_quietly, on_interrupt
from pipelines.cli.logs import choose_format, log_line, put_back
from pipelines.errors import Interrupted, JobError
from pipelines.progress import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipelines.cli.command import Command

# In the order of a job: the modules of this package, each with a command of its name.
NAMES = (
    *("count", "train", "encode", "run", "verify", "decode", "export", "compare", "convert"),
    *("show", "words", "report", "completion"),
)


@cache
def command_of(name: str) -> Command:
    """Return the command of one of `NAMES`, whose module is imported when it is asked for."""
    with on_interrupt(end):
        module = import_module(f"pipelines.cli.{name}")
    command: Command = getattr(module, name)
    return command


class _Lazy(click.Group):
    """All commands, in the order of a job, not of the alphabet."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's interface
        return list(NAMES)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:  # noqa: ARG002
        return command_of(name) if name in NAMES else None


@click.group(
    cls=_Lazy,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="\b\nA tokenizer and a tokenized corpus in two commands:\n"
    "  bpe train --input 'corpus/*.jsonl' --output model --vocab-size 32000\n"
    "  bpe encode --input 'corpus/*.jsonl' --tokenizer model/tokenizer.json --output ids\n"
    "\nHelp for one command: bpe train --help",
)
@click.version_option(__version__, message="%(prog)s %(version)s")
def bpe() -> None:
    """Exact byte-pair encoding for large corpora.

    Count a corpus, train a tokenizer on the counts, encode the corpus into Parquet files of token
    ids, and verify the result. The same corpus and options give the same bytes, on every
    tested runner and with any number of workers.
    """


_NAMED = re.compile(r"`([a-z]+(?:_[a-z]+)*)`")


@cache
def _options() -> dict[str, str]:
    """Return the options of all commands, by the names that errors have for them."""
    return {
        name: spec.flag
        for command in map(command_of, NAMES)
        for spec in command.specs.values()
        for name in (spec.name, spec.field)
    } | {"beam_args": "--"}


def as_options(message: str) -> str:
    """``message`` of an error with options in the place of arguments.

    An error names an argument between backticks, as Python or YAML spells it.

    >>> as_options("replace it with `overwrite`, or name `another_one`")
    'replace it with --overwrite, or name `another_one`'
    """
    return _NAMED.sub(lambda match: _options().get(match[1], match[0]), message)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``bpe`` with ``arguments`` (those of the process by default).

    Returns:
        The exit status.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    _open_closed_streams()
    choose_format(arguments)
    debug = bool(os.environ.get("BPE_DEBUG"))
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal that is not UTF-8
    stderr = sys.stderr
    try:
        if completes(bpe):
            return 0
        with put_back(), on_interrupt(interrupt_quietly):
            with bpe.make_context("bpe", list(arguments)) as context:
                bpe.invoke(context)
            sys.stdout.flush()
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.exceptions.NoArgsIsHelpError as help_text:
        click.echo(help_text.format_message(), err=True)
        return 2
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - whatever it is, one sentence
        if debug:
            traceback.print_exception(error)
        message, status = _explain(error)
        if not isinstance(error, click.UsageError):  # which has a line for --help
            message = printable(message)
        if message:
            with contextlib.suppress(OSError):  # nobody reads stderr any more
                click.echo(log_line("ERROR", message), file=stderr)
        return status
    return 0


def _open_closed_streams() -> None:
    """Replace a stdout or stderr that was closed at the start by one that drops all.

    Python has None in their place then, and the next file that is opened would get their number.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115


def _explain(error: BaseException) -> tuple[str, int]:
    """Return the sentence for stderr (empty: none) and the exit status."""
    from bpe.errors import BpeError

    if isinstance(error, (BpeError, MemoryError)):
        from pipelines.failures import as_job_error

        error = as_job_error(error)
    if isinstance(error, (Interrupted, JobError)):
        return as_options(str(error)), error.exit_status
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        return "interrupted", INTERRUPTED
    if isinstance(error, click.UsageError):
        command = error.ctx.command_path if error.ctx else "bpe"
        return f"{error.format_message()}\nSee: {command} --help", 2
    if isinstance(error, click.ClickException):
        return error.format_message(), error.exit_code
    if isinstance(error, OSError):
        return _explain_os(error)
    detail = " ".join(f"{type(error).__name__}: {error}".split())[:500]
    return (
        f"unexpected {detail}; this is a fault of bpe: please report it, with what the same "
        "command prints under BPE_DEBUG=1"
    ), 1


def _explain_os(error: OSError) -> tuple[str, int]:
    if isinstance(error, BrokenPipeError) or error.filename is None:
        # Most likely standard output: keep Python from failing again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):
        return "", 1  # the reader, such as `head`, has had enough
    where = f"{error.filename}: " if error.filename is not None else ""
    return f"{where}{error.strerror or error}", 1
