"""``bpe show``: steps, colours, roots."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING

import pytest
from rich.cells import cell_len

import bpe as library
from tests.cli.process import bpe, on_a_terminal, refused

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
    places = {cell_len(step) - cell_len(merge) for step, merge in zip(steps, merges, strict=True)}
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


def test_colours_are_for_terminals_alone(model: Path) -> None:
    plain = bpe("show", model, "playing", "日本").stdout
    assert "\x1b" not in plain
    assert "\x1b[" in on_a_terminal("show", model, "playing", "日本", TERM="xterm")
    assert on_a_terminal("show", model, "playing", "日本", TERM="xterm", NO_COLOR="1") == plain
    assert on_a_terminal("show", model, "playing", "日本", TERM="dumb") == plain


def test_words_that_are_not_merged_say_why(model: Path, tmp_path: Path) -> None:
    library.Tokenizer.load(model).save(tmp_path / "x.tiktoken")
    given = (tmp_path / "x.tiktoken", "--pretokenizer", "words", "play")
    shown = bpe("show", *given).stdout
    assert "(no merges: this tokenizer looks words up whole before it merges)" in shown
    (word,) = json.loads(bpe("show", *given, "--json").stdout)
    assert "looks words up whole" in word["pretokens"][0]["unmerged"]
    assert "no merges" not in bpe("show", model, "play").stdout


def test_the_curve(model: Path) -> None:
    rows = json.loads(bpe("show", model.parent, "--curve", "--json").stdout)
    assert [row["vocab_size"] for row in rows] == list(range(256, 265))
    assert rows[0]["bytes_per_token"] == 1.0
    lines = bpe("show", model, "--curve").stdout.splitlines()
    assert " ".join(lines[0].split()) == "vocabulary tokens tokens per word bytes per token"
    assert [line.split()[0] for line in lines[1:]] == ["256", "264"]


def test_a_character_without_a_token_has_no_id(tmp_path: Path) -> None:
    counts = library.count_pretokens(["low lower"], pretokenizer="words")
    model = library.CharacterLevel()
    library.train(counts, max_merges=2, model=model).save(tmp_path / "t.json", dialect="beam-bpe")
    lines = bpe("show", tmp_path / "t.json", "lowly").stdout.splitlines()
    assert [line.split() for line in lines[-6:-1]] == [
        ["id", "token", "bytes"],
        ["none", "low", "6c", "6f", "77"],
        ["none", "l", "6c"],
        ["none", "y", "79"],
        ["none", "</w>", "3c", "2f", "77", "3e"],
    ]
    assert lines[-1] == "  (a character has no token)"
    (word,) = json.loads(bpe("show", tmp_path / "t.json", "lowly", "--json").stdout)
    assert word["ids"] is None


def test_show_explains_a_word(work: Path) -> None:
    done = bpe("show", "model/tokenizer.json", "lowest", cwd=work)
    lines = done.stdout.splitlines()
    assert lines[0] == "lowest"
    assert lines[1].split() == list("lowest")
    assert re.search(r" \+ \S+  \(rank \d+, count \d+\)$", lines[2])
    tokenizer = library.Tokenizer.load(work / "model" / "tokenizer.json")
    tokens = {id_: tokenizer.token_bytes(id_) for id_ in tokenizer.encode("lowest")}
    assert [line.split(maxsplit=2) for line in lines[-len(tokens) :]] == [
        [str(id_), token.decode(), token.hex(" ")] for id_, token in tokens.items()
    ]
    assert done.stderr == ""


def test_show_as_json(work: Path) -> None:
    words = ["lowest", " the new", "価", "<|endoftext|>", "", "\n"]
    found = json.loads(bpe("show", "model/tokenizer.json", "--json", *words, cwd=work).stdout)
    tokenizer = library.Tokenizer.load(work / "model" / "tokenizer.json")
    assert [word["ids"] for word in found] == [tokenizer.encode(word) for word in words]
    assert [word["word"] for word in found] == ["lowest", "␣the␣new", *words[2:5], "\\n"]
    assert found[0]["pretokens"][0]["steps"][0] == {"symbols": list("lowest")}
    assert len(found[1]["pretokens"]) == 2


def test_show_takes_any_bytes_and_any_terminal(work: Path) -> None:
    done = bpe("show", "model/tokenizer.json", b"\xff\xe4x", cwd=work, PYTHONIOENCODING="ascii")
    assert done.stdout.startswith("\\xff\\xe4x\n")


def test_show_without_training_json_has_no_counts(work: Path, tmp_path: Path) -> None:
    shutil.copy(work / "model" / "tokenizer.json", tmp_path / "t.json")
    assert "count" not in bpe("show", "t.json", "lowest", cwd=tmp_path).stdout
    (tmp_path / "training.json").write_text("{broken")
    done = bpe("show", "t.json", "lowest", cwd=tmp_path)
    assert "bpe: warning: no counts shown: training.json" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ("missing.json word", 1, "missing.json: "),
        ("copy --curve", 1, "training.json is missing: the curve is in it"),
        ("damaged --curve", 1, "not a training.json"),
        ("copy word --curve", 2, "give WORD..., or --id or --search, or --curve"),
        ("copy --id 9999", 1, "no token has the id 9999"),
        ("copy --id 3 --curve", 2, "--id and --curve exclude each other: choose one"),
        ("copy", 2, "give WORD..., or --id or --search, or --curve"),
        ("copy --id 3 word", 2, "give WORD..., or --id or --search, or --curve"),
        ("copy word --allow-special <|none|>", 1, "'<|none|>'"),
    ],
)
def test_what_cannot_be_shown_is_named(
    model: Path, tmp_path: Path, arguments: str, status: int, message: str
) -> None:
    for folder in ("copy", "damaged"):
        (tmp_path / folder).mkdir()
        shutil.copy(model, tmp_path / folder)
    (tmp_path / "damaged" / "training.json").write_text("{}")
    refused(message, "show", *arguments.split(), cwd=tmp_path, status=(status,))


def test_special_tokens_of_a_text(work: Path) -> None:
    text = "low<|endoftext|>low"
    plain, special = (
        json.loads(bpe("show", "model/tokenizer.json", text, "--json", *more, cwd=work).stdout)[0]
        for more in ((), ("--allow-special", "<|endoftext|>"))
    )
    tokenizer = library.Tokenizer.load(work / "model" / "tokenizer.json")
    assert plain["ids"] == tokenizer.encode(text)
    assert special["ids"] == tokenizer.encode(text, allowed_special="all")
    assert [part["pretoken"] for part in special["pretokens"]] == ["low", "<|endoftext|>", "low"]
    assert (
        special["pretokens"][1]["unmerged"] == "it is a special or added token, cut out of the text"
    )
    shown = bpe("show", "model/tokenizer.json", text, "--allow-special", "all", cwd=work).stdout
    assert "    <|endoftext|>\n    (no merges: it is a special or added token" in shown


def test_tokens_by_id_and_by_what_they_contain(model: Path) -> None:
    tokenizer = library.Tokenizer.load(model)
    left, right, made = tokenizer.merges[0]
    merge, symbol = json.loads(bpe("show", model, "--id", str(made), "--id", "97", "--json").stdout)
    assert (merge["id"], merge["kind"], merge["rank"]) == (made, "merge", 0)
    assert merge["count"] > 1
    assert bytes.fromhex(merge["bytes"]) == b"".join(map(tokenizer.token_bytes, (left, right)))
    assert symbol == {"id": 97, "token": "a", "bytes": "61", "kind": "symbol"}
    found = json.loads(bpe("show", model, "--search", "pla", "--search", "日", "--json").stdout)
    assert [row["id"] for row in found] == [
        id_
        for id_, token in enumerate(tokenizer.tokens)
        if token is not None and (b"pla" in token or "日".encode() in token)
    ]
    lines = bpe("show", model, "--search", "pla").stdout.splitlines()
    assert lines[0].split() == ["id", "token", "bytes", "made", "of"]
    assert all("(rank " in line for line in lines[1:])
    assert bpe("show", model, "--search", "xyz").stdout == "no token contains that\n"
    assert bpe("show", model, "--search", "xyz", "--json").stdout == "[]\n"
