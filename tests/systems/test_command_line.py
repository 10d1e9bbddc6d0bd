"""The values of the descriptions by the command line: `bpe words`, and jobs with --preset."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.cli.process import bpe
from tests.systems.values import SYSTEMS, System, pieces

if TYPE_CHECKING:
    from pathlib import Path


def limits(system: System) -> list[str]:
    return [
        part
        for name, value in system.options.items()
        for part in (f"--{name.replace('_', '-')}", str(value))
    ]


@pytest.mark.parametrize("name", SYSTEMS)
def test_bpe_words(name: str) -> None:
    system = SYSTEMS[name]
    more = [part for text in system.splits for part in ("--encode", text)]
    pairs = ("--pairs", str(len(system.pairs)))
    given = ("words", "--preset", system.preset, *limits(system), *more, *pairs, "--json")
    facts = json.loads(bpe(*given, *system.texts).stdout)
    found = [(merge["left"], merge["right"], merge["count"]) for merge in facts["merges"]]
    assert found == system.merges
    splits = {word["word"]: word["tokens"] for word in facts["words"]}
    splits |= {word["word"]: word["tokens"] for word in facts.get("encoded", [])}
    for text in system.splits:
        assert splits[text] == pieces(system, text)
    assert [pair["count"] for pair in facts.get("pairs", [])] == list(system.pairs.values())
    assert facts["vocab_size"] == (system.size or facts["vocab_size"])
    by_lines = bpe(*given, stdin="\n".join(system.texts) + "\n").stdout
    assert json.loads(by_lines) == facts


def test_bpe_words_shows_the_pieces_of_word_piece() -> None:
    given = ("words", "--model", "wordpiece", "--max-merges", "5", "hug hugs hugging", "hug hugs")
    facts = json.loads(bpe(*given, "--encode", "bug", "--json").stdout)
    splits = {word["word"]: word["tokens"] for word in (*facts["words"], *facts["encoded"])}
    assert all(set(tokens) <= set(facts["vocabulary"]) for tokens in splits.values())
    assert splits["hug"] == ["hug"]
    assert splits["hugs"][0].startswith("hug")
    assert splits["bug"] == ["[UNK]"]


def test_bpe_words_warns_of_a_vocabulary_without_room_for_merges() -> None:
    given = ("words", "low", "lower", "--vocab-size", "5")
    said = "no merge was trained: special tokens and characters alone are 6 tokens"
    assert f"\n\nwarning   {said}" in bpe(*given).stdout
    assert json.loads(bpe(*given, "--json").stdout)["warnings"][0].startswith(said)


def test_counts_of_a_preset_train_the_preset(tmp_path: Path) -> None:
    system = SYSTEMS["A"]
    (tmp_path / "a.txt").write_text("\n".join(system.texts), "utf-8")
    preset = ("--preset", system.preset)
    bpe("count", *preset, "--input", "a.txt", "--format", "lines", "--output", "c", cwd=tmp_path)
    bpe("train", *preset, "--counts", "c", *limits(system), "--output", "m", cwd=tmp_path)
    training = json.loads((tmp_path / "m" / "training.json").read_text("utf-8"))
    assert [merge["count"] for merge in training["merges"]] == [n for *_, n in system.merges]
    other = ("train", "--preset", "interview", "--counts", "c", "--output", "n")
    said = bpe(*other, cwd=tmp_path, status=2).stderr
    assert "c was split with words, normalizer lowercase, but the options or the preset say" in said
    assert not (tmp_path / "n").exists()
