"""Writes docs/commands.md, the reference of all commands, from the commands themselves.

python scripts/generate_reference.py          # write it
python scripts/generate_reference.py --check  # exit with status 1 if it is not up to date
"""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipelines.cli.command import DeclaredOption, JobCommand, group_of, option_keys
from pipelines.cli.commands import bpe
from pipelines.option import GROUPS

if TYPE_CHECKING:
    from pipelines.option import Option

PAGE = Path(__file__).resolve().parents[1] / "docs" / "commands.md"

HEAD = """# Commands and configuration keys

Every command with its options, and every key of a configuration file.
`scripts/generate_reference.py` writes this page from the commands themselves, and a test compares:
it says what `bpe COMMAND --help-all` says; `--help` is shorter.

Exit status of every command: 0 done, 1 the job failed, 2 the command line or the configuration is
wrong, 130 interrupted from the keyboard. Results go to standard output, progress and messages to
standard error. What stands after a lone `--` of a job goes to Beam unchanged, as in
`-- --region=europe-west1`.

"""
_KEYS = """
## Configuration keys

A key is the name of an option with underscores (hyphens do too), its value that of the option;
where several are allowed, one alone or a list. The command line wins. An unknown key is an error
that names its nearest neighbour. [configs/reference.yaml](../configs/reference.yaml) explains those
of `bpe run`.

| key | value | commands |
|---|---|---|
"""


def page() -> str:
    """The text of the page."""
    commands = list(bpe.commands.values())
    parts = [HEAD, "| command | does |\n|---|---|\n"]
    for command in commands:
        does = command.get_short_help_str(200)
        parts.append(f"| [`bpe {command.name}`](#bpe-{command.name}) | {_cell(does)} |\n")
    keys = "What a file given with `--config`, or to `bpe run`, may say."
    parts.append(f"| [keys](#configuration-keys) | {keys} |\n")
    parts += (_command(command) for command in commands)
    parts.append(_keys(commands))
    return "".join(parts)


def _command(command: click.Command) -> str:
    context = click.Context(command, info_name=f"bpe {command.name}")
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    parts = [f"\n## bpe {command.name}\n\n```text\n{usage}\n```\n\n", _prose(command.help or "")]
    options = [one for one in command.params if isinstance(one, click.Option) and not one.hidden]
    for group in GROUPS:
        of_group = [one for one in options if group_of(one) == group]
        if of_group:
            parts.append(f"| {group} | meaning | default |\n|---|---|---|\n")
            parts += (*map(_option, of_group), "\n")
    examples = (command.epilog or "").replace("\b\nExample:\n", "")
    parts.append(f"```console\n{_examples(examples)}```\n")
    return "".join(parts)


def _examples(epilog: str) -> str:
    lines = (re.sub(r"^  ", "", line) for line in epilog.splitlines())
    return "".join(f"{'' if line.startswith(' ') else '$ '}{line}\n" for line in lines)


def _prose(text: str) -> str:
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "".join(f"{_escaped(' '.join(one.split()))}\n\n" for one in paragraphs)


def _option(option: click.Option) -> str:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    if option.metavar:
        names += f" `{option.metavar}`"
    help_text = _cell(option.help or "")
    if option.required:
        help_text += " Required."
    if isinstance(option, DeclaredOption) and option.spec.choices:
        help_text += f" One of {', '.join(f'`{one}`' for one in option.spec.choices)}."
    return f"| {names} | {help_text} | {_default(option)} |\n"


def _default(option: click.Option) -> str:
    if isinstance(option, DeclaredOption) and option.spec.default_is:
        return _cell(option.spec.default_is)
    value = option.to_info_dict()["default"]
    if value is None or value is False or value == ():
        return ""
    return f"`{value}`"


def _keys(commands: list[click.Command]) -> str:
    """The keys of configuration files, with the commands that take each."""
    found: dict[str, tuple[Option, list[str]]] = {}
    for command in commands:
        if isinstance(command, JobCommand):
            for name, key in option_keys(command).items():
                found.setdefault(name, (key, []))[1].append(command.name or "")
    parts = [_KEYS]
    for name, (key, of) in sorted(found.items()):
        parts.append(f"| `{name}` | {_value(key)} | {', '.join(dict.fromkeys(of))} |\n")
    return "".join(parts)


def _value(key: Option) -> str:
    kinds = {"text": "text", "integer": "a whole number", "number": "a number"}
    kinds |= {"size": "a size, such as `64MiB`", "flag": "`true` or `false`"}
    text = " or ".join(f"`{one}`" for one in key.choices) or kinds[key.kind]
    if key.kind == "integer" and key.minimum is not None:
        text += f", {key.minimum} or more"
    return text + ("; several" if key.several else "")


def _cell(text: str) -> str:
    return _escaped(" ".join(text.split())).replace("|", "\\|")


def _escaped(text: Any) -> str:
    """A text whose ``<`` and ``*`` are no markup."""
    return re.sub(r"([<*])", r"\\\1", str(text))


def main(arguments: list[str]) -> int:
    """Write the page, or with ``--check`` compare it."""
    made = page()
    if "--check" in arguments:
        if not PAGE.exists() or PAGE.read_text("utf-8") != made:
            sys.stderr.write(f"{PAGE}: not up to date: run python scripts/generate_reference.py\n")
            return 1
        return 0
    PAGE.write_text(made, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
