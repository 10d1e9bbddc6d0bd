"""``--preset``: defaults below a configuration and the command line; where its files are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from bpe import presets
from pipelines.cli.train import train
from tests.cli.process import bpe, refused

if TYPE_CHECKING:
    from pathlib import Path

TEXT = "Low low low lower Lower newest newest widest wide\n" * 2


def training(folder: Path, *arguments: str) -> dict[str, Any]:
    """The summary of `bpe train` on ``a.txt``."""
    (folder / "a.txt").write_text(TEXT, "utf-8")
    bpe("train", "--input", "a.txt", "--output", "m", "--overwrite", *arguments, cwd=folder)
    found: dict[str, Any] = json.loads((folder / "m" / "training.json").read_text("utf-8"))
    return found


@pytest.mark.parametrize("name", presets.names())
def test_presets_hold_options_alone_and_say_why(name: str) -> None:
    text = presets.path(name).read_text("utf-8")
    keys = {*train.keys, "track_order"}
    assert set(yaml.safe_load(text)) <= keys
    assert text.startswith("# ")
    assert "docs/systems.md" in text


def test_the_layers(tmp_path: Path) -> None:
    preset = ("--preset", "interview")
    (tmp_path / "c.yaml").write_text("ties: first-seen\nvocab_size: 25\nspecial_token: <s>\n")
    found = training(tmp_path, *preset, "--config", "c.yaml")
    assert (found["ties"], found["max_merges"], found["vocab_size"]) == ("first-seen", None, 25)
    assert found["counts"]["special_tokens"] == ["<s>"]

    found = training(tmp_path, "--config", "c.yaml", "--max-merges", "3", *preset)
    assert (found["ties"], found["max_merges"], found["vocab_size"]) == ("first-seen", 3, None)


def test_a_configuration_names_a_preset(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("preset: interview\nmax_merges: 4\n")
    found = training(tmp_path, "--config", "c.yaml")
    assert (found["ties"], found["max_merges"]) == ("bytes-max", 4)
    assert found["counts"]["special_tokens"] == ["[PAD]", "[UNK]", "[BOS]", "[EOS]"]
    found = training(tmp_path, "--config", "c.yaml", "--preset", "words")
    assert (found["ties"], found["max_merges"], found["min_frequency"]) == ("first-seen", 4, 2)
    (tmp_path / "c.yaml").write_text("preset: intervew\n")
    said = bpe("train", "--config", "c.yaml", cwd=tmp_path, status=2).stderr
    assert "c.yaml: preset: 'intervew' is unknown: use one of byte-level" in said


@pytest.mark.long
@pytest.mark.parametrize(
    ("chosen", "part", "key", "value"),
    [
        ("--symbols bytes --vocab-size 264", "model", "type", "ByteLevel"),
        ("--model wordpiece --vocab-size 40", "model", "unknown", "<unk>"),
        ("--normalizer none --max-merges 1", "counts", "normalizer", None),
        (r"--pattern \S --max-merges 1", "counts", "pattern", r"\S"),
        ("--end-of-word= --max-merges 1", "model", "end_of_word", ""),
    ],
)
def test_what_does_not_go_with_another_choice_is_dropped_with_the_preset(
    tmp_path: Path, chosen: str, part: str, key: str, value: str | None
) -> None:
    found = training(tmp_path, "--preset", "word-tutorial", *chosen.split())
    assert found[part][key] == value


NO_LIMIT = "the training has no limit: give --vocab-size, --max-merges or both"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--vocab-size 300 --end-of-word _", "--end-of-word _ needs --symbols characters"),
        ("--vocab-size 9 --model wordpiece --symbols bytes", "--symbols bytes needs --model bpe"),
        ("--vocab-size 300 --model wordpiece --end-of-word _", "needs --model bpe"),
        ("--vocab-size 300 --preset word", "'word' is unknown: use one of byte-level, interview"),
        (
            "--vocab-size 9 --normalizer nfc --normalizer none",
            "--normalizer none goes with no other",
        ),
        ("--vocab-size 9 --pretokenizer words --pattern x", "--pretokenizer and --pattern exclude"),
        ("--preset word-tutorial", NO_LIMIT),
        ("--preset byte-level", NO_LIMIT),
    ],
)
def test_what_does_not_go_together(tmp_path: Path, arguments: str, message: str) -> None:
    train = ("train", "--input", "a.txt", "--output", "m", *arguments.split())
    refused(message, *train, cwd=tmp_path, status=(2,))


def test_too_small_a_vocabulary_warns(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(TEXT, "utf-8")
    given = ("train", "--preset", "interview", "--vocab-size", "5", "--input", "a.txt")
    done = bpe(*given, "--output", "m", cwd=tmp_path)
    assert "no merge was trained: special tokens and characters alone are" in done.stdout


def test_words_by_other_settings() -> None:
    facts = json.loads(bpe("words", "low", "low", "--symbols", "bytes", "--json").stdout)
    assert facts["vocab_size"] == 256 + 2
    facts = json.loads(bpe("words", "low low", "low", "--max-merges", "1", "--json").stdout)
    assert facts["merges"] == [{"left": "l", "right": "o", "count": 3}]
    assert "no words: give some as arguments" in bpe("words", status=2).stderr
    assert "training has no limit" in bpe("words", "--preset", "byte-level", "low", status=2).stderr
