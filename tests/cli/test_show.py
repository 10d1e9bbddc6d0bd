"""``bpe show``: steps, colours, roots, pictures."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
from typing import TYPE_CHECKING

import pytest

import bpe as library
from bpe.visible import columns
from tests.cli.process import BPE, bpe, environment

if TYPE_CHECKING:
    from pathlib import Path

TEXTS = ["playing played plays play player"] * 3 + ["日本語 日本 日本人"] * 3


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    counts = library.count_pretokens(TEXTS, pretokenizer="words")
    tokenizer = library.train(counts, vocab_size=264)
    assert tokenizer.training is not None
    tokenizer.save(folder / "tokenizer.json")
    tokenizer.training.save(folder / "training.json")
    return folder / "tokenizer.json"


def test_wide_characters_stand_in_columns(model: Path) -> None:
    lines = bpe("show", model, "日本語").stdout.splitlines()
    steps = [line for line in lines if "rank" in line]
    merges = [line[re.search(r"\S+ \+ ", line).start() :] for line in steps]  # type: ignore[union-attr]
    places = {columns(step) - columns(merge) for step, merge in zip(steps, merges, strict=True)}
    assert len(steps) > 3
    assert len(places) == 1


def test_words_that_begin_alike(model: Path) -> None:
    done = bpe("show", model, "playing", "played", "plays")
    assert done.stdout.splitlines()[-1] == "all begin with: play"
    found = json.loads(bpe("show", model, "playing", "played", "--json").stdout)
    assert [word["common_root"] for word in found] == [["play"], ["play"]]
    none = bpe("show", model, "playing", "日本")
    assert none.stdout.splitlines()[-1] == "all begin with: (no token in common)"
    assert "all begin with" not in bpe("show", model, "playing").stdout


def on_a_terminal(*arguments: str | Path, **env: str) -> str:
    """What a command draws on a terminal."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [*BPE, *arguments], stdout=slave, stderr=slave, env=environment(**env)
    )
    os.close(slave)
    drawn = b""
    try:
        while chunk := os.read(master, 4096):
            drawn += chunk
    except OSError:  # the other end is closed
        pass
    os.close(master)
    assert process.wait(timeout=60) == 0
    return drawn.decode().replace("\r\n", "\n")


def test_colours_are_for_terminals_alone(model: Path) -> None:
    plain = bpe("show", model, "playing", "日本").stdout
    assert "\x1b" not in plain
    assert "\x1b[" in on_a_terminal("show", model, "playing", "日本", TERM="xterm")
    assert on_a_terminal("show", model, "playing", "日本", TERM="xterm", NO_COLOR="1") == plain
    assert on_a_terminal("show", model, "playing", "日本", TERM="dumb") == plain


def test_a_picture_beside_the_text(model: Path, tmp_path: Path) -> None:
    done = bpe("show", model, "playing", "--picture", tmp_path / "p.svg")
    assert done.stdout == bpe("show", model, "playing").stdout
    assert (tmp_path / "p.svg").read_text("utf-8").startswith("<svg ")
    refused = bpe("show", model, "playing", "--picture", tmp_path / "p.jpg", status=1)
    assert "p.jpg: a picture is a file whose name ends in .svg or .png" in refused.stderr
