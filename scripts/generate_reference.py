"""Writes the references of all commands and of `bpe run`'s file from the commands themselves.

They are docs/commands.md and configs/reference.yaml.

python scripts/generate_reference.py          # write them
python scripts/generate_reference.py --check  # exit with status 1 if one is not up to date
"""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import yaml

from pipelines.cli.commands import NAMES, bpe, command_of
from pipelines.cli.count import count
from pipelines.cli.declared import DeclaredOption
from pipelines.cli.encode import encode
from pipelines.cli.run import run
from pipelines.option import GROUPS, declared
from pipelines.settings import EncodeSettings, ExportSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipelines.cli.command import Command
    from pipelines.option import Option

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "commands.md"
CONFIG = ROOT / "configs" / "reference.yaml"

CONFIG_HEAD = """\
# Every option of a job, with what it does. Keys are the names of the options of `bpe`, with - or _.
# A line left out means the default, the command line wins, an unknown key is an error. A key may
# also stand in a section. In encode or export, it is for that stage alone. The sections count and
# train are one: a key in either is for both stages.
#
# The values below are the defaults, except for those marked "chosen". Commented lines are examples
# of options without a default. scripts/generate_reference.py generates this file.
#
#   bpe run configs/reference.yaml                         count, train, encode
#   bpe run configs/reference.yaml --set vocab_size=8192   the same with another vocabulary
#
# bpe count, train, encode and verify take such files too (--config FILE), with the keys they have.
# Options that say where a job runs can have a file of their own, as in configs/runners/.
"""
CHOSEN = {
    "input": ["README.md", "pipelines"],
    "special_token": ["<|endoftext|>"],
    "vocab_size": 4096,
    "output": "build/reference",
}

HEAD = """# Commands and configuration keys

Every command with its options, as `bpe COMMAND --help-all` prints them. `--help` is shorter.
`scripts/generate_reference.py` generates this page. A flag `--NAME` has an opposite, `--no-NAME`.

| exit status | meaning | retry? |
|---|---|---|
| 0 | success; also a loop (`--watch`) that a signal ended after a file was taken | |
| 1 | the job failed | once the cause is gone: with `--resume`, or unchanged if it has `--append` |
| 2 | the command line or the configuration is wrong | after you correct it |
| 130, 143 | SIGINT (Ctrl-C), SIGTERM | with `--resume`, or unchanged if it has `--append` |

Results go to standard output, progress and messages to standard error. Commands that run jobs pass
the arguments after `--` to Beam unchanged, as in `-- --region=europe-west1`.

Whole numbers may have a unit: `32k` is 32,000, `1.5M` is 1,500,000, `10B` is 10 billion,
`2Ki` is 2,048. Sizes are in bytes, or with a unit such as `64MiB` or `64MB`.

"""
_SEVERAL = 4  # commands: an option that as many have is described once
_SHARED = """
## Options of several commands

Each command names those that it takes.

"""
_KEYS = """
## Configuration keys

In a file for `--config` or `bpe run`, a key is the name of an option, with underscores or hyphens:
`vocab_size: 32000`. Flags are `true` or `false`. Repeatable options take one value or a list. The
key `beam_args` holds the arguments after `--`. The command line overrides the file. An unknown key
is an error, which suggests the most similar key.
[configs/reference.yaml](../configs/reference.yaml) has the keys of `bpe run`, `count` and `encode`.
"""


def page() -> str:
    """The text of the page."""
    commands = list(map(command_of, NAMES))
    parts = [HEAD, "| command | does |\n|---|---|\n"]
    for command in commands:
        does = command.get_short_help_str(200)
        parts.append(f"| [`bpe {command.name}`](#bpe-{command.name}) | {_cell(does)} |\n")
    keys = "Keys of configuration files (`--config` and `bpe run`)."
    parts.append(f"| [keys](#configuration-keys) | {keys} |\n")
    tables = [_rows(command) for command in commands]
    uses = Counter(row for rows in tables for row in rows)
    shared = {row: one for rows in tables for row, one in rows.items() if uses[row] >= _SEVERAL}
    parts += (
        _command(command, rows, shared) for command, rows in zip(commands, tables, strict=True)
    )
    parts += (_SHARED, _tables(shared).rstrip("\n"), "\n", _KEYS)
    return "".join(parts)


def _command(
    command: click.Command, rows: Mapping[str, DeclaredOption], shared: Mapping[str, DeclaredOption]
) -> str:
    context = _context(command)
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    parts = [f"\n## bpe {command.name}\n\n```text\n{usage}\n```\n\n", _prose(command.help or "")]
    parts.append(_tables({row: one for row, one in rows.items() if row not in shared}))
    names = [f"`{name}`" for row, one in rows.items() if row in shared for name in one.opts]
    if names:
        parts.append(
            f"And [options of several commands](#options-of-several-commands): {', '.join(names)}."
            "\n\n"
        )
    examples = (command.epilog or "").replace("\b\nExample:\n", "")
    parts.append(f"```console\n{_examples(examples)}```\n")
    return "".join(parts)


def _context(command: click.Command) -> click.Context:
    parent = click.Context(bpe, info_name="bpe")
    return click.Context(command, info_name=command.name, parent=parent)


def _rows(command: Command) -> dict[str, DeclaredOption]:
    """The options of a command, by their rows of a table."""
    defaults = command.defaults(_context(command))  # of the preset that is the command's default
    options = [one for one in command.params if isinstance(one, DeclaredOption)]
    return {_option(one, defaults): one for one in options}


def _tables(rows: Mapping[str, DeclaredOption]) -> str:
    parts: list[str] = []
    for group in GROUPS:
        of_group = [row for row, one in rows.items() if one.spec.group == group]
        if of_group:
            parts += (f"| {group} | meaning | default |\n|---|---|---|\n", *of_group, "\n")
    return "".join(parts)


def _examples(epilog: str) -> str:
    lines = (re.sub(r"^  ", "", line) for line in epilog.splitlines())
    return "".join(f"{'' if line.startswith(' ') else '$ '}{line}\n" for line in lines)


def _prose(text: str) -> str:
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "".join(f"{_escaped(' '.join(one.split()))}\n\n" for one in paragraphs)


def _option(option: DeclaredOption, defaults: Mapping[str, Any]) -> str:
    names = ", ".join(f"`{name}`" for name in option.opts)
    if option.metavar:
        names += f" `{option.metavar}`"
    help_text = _cell(option.help or "")
    if option.spec.required:
        help_text += " Required."
    if choices := _untold(option.spec):
        help_text += f" One of {', '.join(f'`{one}`' for one in choices)}."
    return f"| {names} | {help_text} | {_default(option, defaults)} |\n"


def _default(option: DeclaredOption, defaults: Mapping[str, Any]) -> str:
    given = defaults.get(option.spec.name)
    default = option.spec.default_text(given)
    return f"`{default}`" if default and (given or not option.spec.default_is) else _cell(default)


def config() -> str:
    """The text of the file of `bpe run` with all keys, and those of counting and encoding alone."""
    chain = run.keys
    others = {name: key for one in (count, encode) for name, key in one.keys.items()}
    groups = {group: [key for key in chain.values() if key.group == group] for group in GROUPS}
    groups["Of bpe count and encode alone (docs/appending.md)"] = [
        key for name, key in others.items() if name not in chain
    ]
    parts = [CONFIG_HEAD]
    for group, keys in groups.items():
        if keys:
            parts.append(f"\n# --- {group} {'-' * (93 - len(group))}\n")
            parts += map(_config_key, keys)
    return "".join(parts)


def _config_key(key: Option) -> str:
    exported = {one.name for one in declared(ExportSettings).values()}
    exported -= {one.name for one in declared(EncodeSettings).values()}
    default = None if key.default in (None, ()) else key.default
    value = CHOSEN.get(key.name, _example(key) if default is None else default)
    choices = f" One of {', '.join(key.choices)}." if _untold(key) else ""
    is_set = key.name in CHOSEN or default is not None
    is_set = is_set and key.name in run.keys and key.name not in exported
    line = f"{key.name}: {yaml.safe_dump(value, default_flow_style=True).splitlines()[0]}"
    mark = "  # chosen" if key.name in CHOSEN else ""
    lines = textwrap.wrap(key.help + choices, 98, break_on_hyphens=False)
    text = "\n".join(f"# {one}" for one in lines)
    return f"\n{text}\n{'' if is_set else '# '}{line}{mark}\n"


def _untold(key: Option) -> tuple[str, ...]:
    """The choices of an option; none if its help names each of them."""
    told = set(re.findall(r"[\w-]+(?:\.\w+)*", key.help))
    return () if set(key.choices) <= told else tuple(key.choices)


def _example(key: Option) -> Any:
    """A value of an option without a default."""
    least = int(key.minimum or 0)
    kinds = {"integer": least, "number": max(least, 1), "size": "64MiB", "share": "0.5%"}
    value = key.choices[0] if key.choices else kinds.get(key.kind, key.metavar or "TEXT")
    value = "--direct_num_workers=2" if key.name == "beam_args" else value
    return [value] if key.repeatable else value


def _cell(text: str) -> str:
    return _escaped(" ".join(text.split())).replace("|", "\\|")


def _escaped(text: Any) -> str:
    """A text whose ``<`` and ``*`` are no markup."""
    return re.sub(r"([<*])", r"\\\1", str(text))


def main(arguments: list[str]) -> int:
    """Write the files, or with ``--check`` compare them."""
    for path, made in ((PAGE, page()), (CONFIG, config())):
        if "--check" not in arguments:
            path.write_text(made, "utf-8")
        elif not path.exists() or path.read_text("utf-8") != made:
            sys.stderr.write(f"{path}: not up to date: run python scripts/generate_reference.py\n")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
