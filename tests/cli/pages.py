"""Runs what a page of documentation tells people to type, in the order of the page.

A page finds a small ``corpus/``, made as ``docs/README.md`` tells to make it, and ``bpe`` on the
path. ``sh`` and ``python`` blocks run one after the other; a ``yaml`` block whose first line is
``# name.yaml`` becomes that file; an ``output`` block is what the block before it prints (a line
``…`` represents any lines, ``…`` in a line any text). ``console`` blocks are for what cannot run
here, ``py`` blocks for programs that tests of a cluster run.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cli.process import BPE, ROOT, execute

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# ([\w./-]+\.(?:yaml|txt|jsonl))\n")
_OTHER_PLACES = re.compile(r"^(?:make|pip|git) ", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A block of code: its language and its lines."""

    kind: str
    text: str


def blocks(page: Path) -> list[Block]:
    return [Block(*found) for found in _BLOCK.findall(page.read_text("utf-8"))]


def commands_of(block: Block) -> list[str]:
    """The commands of a ``console`` block, without the prompt."""
    lines = re.sub(r" *\\\n *", " ", block.text).splitlines()
    return [line.removeprefix("$ ") for line in lines]


def links(page: Path) -> list[tuple[str, str]]:
    """Relative links: the file ("" for the page itself) and the anchor ("" for none)."""
    return re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", page.read_text("utf-8"))


def anchors(page: Path) -> set[str]:
    """The targets of links into a page: its headings, as GitHub names them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings}


def make_folder(folder: Path) -> Path:
    """A folder with a corpus, as a reader of the documentation has it, and the command."""
    corpus = next(block for block in blocks(ROOT / "docs" / "README.md") if block.kind == "python")
    execute(sys.executable, "-c", corpus.text, cwd=folder)
    make_command(folder)
    return folder


def make_command(folder: Path) -> dict[str, Any]:
    """Put ``bpe`` and ``python`` into ``bin/`` of a folder; what the environment needs for it."""
    for name in ("bin", "home"):
        (folder / name).mkdir(exist_ok=True)
    for name, words in (("bpe", BPE), ("python", [sys.executable])):
        program = folder / "bin" / name
        program.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
        program.chmod(0o755)
    return {
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "HOME": str(folder / "home"),
        "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache")),
    }


def is_elsewhere(block: Block) -> bool:
    """Return whether an ``sh`` block needs a clone, or an environment of its own."""
    return block.kind == "sh" and _OTHER_PLACES.search(block.text) is not None


def run_page(page: Path, folder: Path) -> list[str]:
    """Run a page in what `make_folder` made; returns the kinds of the blocks that ran."""
    env = make_command(folder)
    ran = []
    printed = ""
    for block in blocks(page):
        if block.kind == "output":
            assert _matches(block.text, printed), f"{page.name} says\n{block.text}\nnot\n{printed}"
        elif block.kind == "yaml" and (named := _FILE.match(block.text)):
            (folder / named[1]).write_text(block.text, "utf-8")
        elif block.kind in ("sh", "python") and not is_elsewhere(block):
            shell = {"sh": ["sh", "-euc"], "python": [sys.executable, "-c"]}[block.kind]
            printed = execute(*shell, block.text, cwd=folder, seconds=900, **env).stdout
            ran.append(block.kind)
    return ran


def _matches(said: str, printed: str) -> bool:
    """Return whether a text was printed; ``…`` is any lines, or any text in a line."""
    lines = (
        "(?:.*\n)*" if line == "…" else re.escape(line).replace("…", ".*") + "\n"
        for line in said.splitlines()
    )
    return re.fullmatch("".join(lines), printed) is not None
