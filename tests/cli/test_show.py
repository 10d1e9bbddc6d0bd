"""``bpe show``: steps, colours, roots."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from rich.cells import cell_len

import bpe as library
from tests.cli import process
from tests.cli.process import in_process as bpe
from tests.cli.process import on_a_terminal

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
    training = library.Tokenizer.load(model).training
    assert training is None  # it is in a file of its own
    rows = json.loads(bpe("show", model.parent, "--curve", "--json").stdout)
    assert [row["vocab_size"] for row in rows] == list(range(256, 265))
    assert rows[0]["bytes_per_token"] == 1.0
    lines = bpe("show", model, "--curve").stdout.splitlines()
    assert " ".join(lines[0].split()) == "vocabulary tokens tokens per word bytes per token"
    assert [line.split()[0] for line in lines[1:]] == ["256", "264"]
    lines = bpe(
        "show", model, "--size", "100", "--size", "260", "--size", "5000"
    ).stdout.splitlines()
    assert [line.split()[0] for line in lines[1:4]] == ["256", "260", "264"]
    assert lines[4:] == [
        "100: special tokens and alphabet alone are 256",
        "5,000: training ended at 264, vocabulary full",
    ]


def test_a_curve_needs_training_json(model: Path, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_bytes(model.read_bytes())
    refused = bpe("show", tmp_path, "--curve", status=1)
    assert "training.json is missing: the curve is in it" in refused.stderr
    (tmp_path / "training.json").write_text("{}")
    assert "not a training.json" in bpe("show", tmp_path, "--curve", status=1).stderr
    refused = bpe("show", model, "word", "--curve", status=2)
    assert "--curve and --size show no words or curves" in refused.stderr


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
    ids = tokenizer.encode("lowest")
    rows = [line.split(maxsplit=2) for line in lines[-len(ids) :]]
    tokens = [tokenizer.token_bytes(id_) for id_ in ids]
    assert rows == [
        [str(id_), token.decode(), token.hex(" ")] for id_, token in zip(ids, tokens, strict=True)
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
    done = process.bpe(
        "show", "model/tokenizer.json", b"\xff\xe4x", cwd=work, PYTHONIOENCODING="ascii"
    )
    assert done.stdout.startswith("\\xff\\xe4x\n")


def test_show_without_training_json_has_no_counts(work: Path, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_bytes((work / "model" / "tokenizer.json").read_bytes())
    assert "count" not in bpe("show", "t.json", "lowest", cwd=tmp_path).stdout
    (tmp_path / "training.json").write_text("{broken")
    done = bpe("show", "t.json", "lowest", cwd=tmp_path)
    assert "bpe: warning: no counts shown: training.json" in done.stderr


@pytest.mark.parametrize(
    ("name", "content"),
    [("missing.json", None), ("broken.json", "{"), ("other.json", "{}"), ("x.tiktoken", "a b c")],
)
def test_show_refuses_what_is_no_tokenizer(tmp_path: Path, name: str, content: str | None) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    done = bpe("show", name, "word", cwd=tmp_path, status=1)
    assert done.stderr.startswith(f"bpe: error: {name}")
    assert len(done.stderr.splitlines()) == 1


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
    assert special["pretokens"][1]["unmerged"] == "it is a special token"
    shown = bpe("show", "model/tokenizer.json", text, "--allow-special", "all", cwd=work).stdout
    assert "    <|endoftext|>\n    (no merges: it is a special token)" in shown
    refused = bpe(
        "show", "model/tokenizer.json", text, "--allow-special", "<|none|>", cwd=work, status=1
    )
    assert "'<|none|>'" in refused.stderr


def test_tokens_by_id_and_by_what_they_contain(model: Path) -> None:
    tokenizer = library.Tokenizer.load(model)
    left, right, made = tokenizer.merges[0]
    rows = json.loads(bpe("show", model, "--id", str(made), "--id", "97", "--json").stdout)
    assert [row["id"] for row in rows] == [made, 97]
    assert rows[0]["kind"] == "merge"
    assert rows[0]["rank"] == 0
    assert rows[0]["count"] > 1
    assert bytes.fromhex(rows[0]["bytes"]) == tokenizer.token_bytes(left) + tokenizer.token_bytes(
        right
    )
    assert rows[1] == {"id": 97, "token": "a", "bytes": "61", "kind": "symbol"}
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


def test_ids_and_searches_that_cannot_be(model: Path) -> None:
    assert "no token has the id 9999" in bpe("show", model, "--id", "9999", status=1).stderr
    for more in (("word",), ("--curve",)):
        refused = bpe("show", model, "--id", "3", *more, status=2)
        assert "--id and --search show no words or curves: leave one out" in refused.stderr
