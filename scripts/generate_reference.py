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

from pipelines.cli.command import group_of
from pipelines.cli.commands import bpe
from pipelines.cli.declared import DeclaredOption
from pipelines.cli.layers import option_keys
from pipelines.option import GROUPS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipelines.option import Option

PAGE = Path(__file__).resolve().parents[1] / "docs" / "commands.md"

HEAD = """# Commands and configuration keys

Every command with its options, and every key of a configuration file.
`scripts/generate_reference.py` generates this page from the commands; it is identical to
`bpe COMMAND --help-all`. `--help` is shorter.

| exit status | meaning | retry? |
|---|---|---|
| 0 | success; also a loop (`--watch`) that a signal ended | |
| 1 | the job failed | with `--resume`, once the cause is gone |
| 2 | the command line or the configuration is wrong | after you correct it |
| 130, 143 | interrupted by SIGINT (Ctrl-C), terminated by SIGTERM | with `--resume` |

Results go to standard output, progress and messages to standard error. Commands that run jobs pass
the arguments after `--` to Beam unchanged, as in `-- --region=europe-west1`.

Whole numbers may have a unit: `32k` is 32,000, `1.5M` is 1,500,000, `10B` is 10 billion,
`2Ki` is 2,048. Sizes are in bytes, or with a unit such as `64MiB` or `64MB`.

"""
_KEYS = """
## Configuration keys

Keys are option names, with underscores or hyphens. Repeatable options take one value or a list.
The command line overrides the file. An unknown key is an error, which suggests the most similar
key. [configs/reference.yaml](../configs/reference.yaml) explains the keys of `bpe run`.

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
    keys = "Keys of configuration files (`--config` and `bpe run`)."
    parts.append(f"| [keys](#configuration-keys) | {keys} |\n")
    parts += (_command(command) for command in commands)
    parts.append(_keys(commands))
    return "".join(parts)


def _command(command: click.Command) -> str:
    context = click.Context(
        command, info_name=command.name, parent=click.Context(bpe, info_name="bpe")
    )
    command.get_help(context)  # applies the preset that is the command's default
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    parts = [f"\n## bpe {command.name}\n\n```text\n{usage}\n```\n\n", _prose(command.help or "")]
    options = [one for one in command.params if isinstance(one, click.Option) and not one.hidden]
    for group in GROUPS:
        of_group = [one for one in options if group_of(one) == group]
        if of_group:
            parts.append(f"| {group} | meaning | default |\n|---|---|---|\n")
            parts += (*(_option(one, context.default_map or {}) for one in of_group), "\n")
    examples = (command.epilog or "").replace("\b\nExample:\n", "")
    parts.append(f"```console\n{_examples(examples)}```\n")
    return "".join(parts)


def _examples(epilog: str) -> str:
    lines = (re.sub(r"^  ", "", line) for line in epilog.splitlines())
    return "".join(f"{'' if line.startswith(' ') else '$ '}{line}\n" for line in lines)


def _prose(text: str) -> str:
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "".join(f"{_escaped(' '.join(one.split()))}\n\n" for one in paragraphs)


def _option(option: click.Option, defaults: Mapping[str, Any]) -> str:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    if option.metavar:
        names += f" `{option.metavar}`"
    help_text = _cell(option.help or "")
    if option.required:
        help_text += " Required."
    if isinstance(option, DeclaredOption) and option.spec.choices:
        help_text += f" One of {', '.join(f'`{one}`' for one in option.spec.choices)}."
    return f"| {names} | {help_text} | {_default(option, defaults)} |\n"


def _default(option: click.Option, defaults: Mapping[str, Any]) -> str:
    if option.name in defaults:
        return f"`{defaults[option.name]}`"
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
        if any(one.name == "config" for one in command.params):
            for name, key in option_keys(command).items():
                if name == "beam_args" and not any(one.name == "runner" for one in command.params):
                    continue  # accepted, for files that several commands share, and not used
                found.setdefault(name, (key, []))[1].append(command.name or "")
    parts = [_KEYS]
    for name, (key, of) in sorted(found.items()):
        parts.append(f"| `{name}` | {_value(key)} | {', '.join(dict.fromkeys(of))} |\n")
    return "".join(parts)


def _value(key: Option) -> str:
    kinds = {"text": "text", "integer": "a whole number", "number": "a number"}
    kinds |= {"share": "a share, such as `0.5%`"}
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
