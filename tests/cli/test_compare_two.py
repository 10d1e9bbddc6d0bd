"""``bpe compare`` of two tokenizers: what changed from one to the other."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import bpe
from bpe.diff import Agreement, Fit, agreement, fit
from tests.cli.process import bpe as run
from tests.cli.process import refused

if TYPE_CHECKING:
    from pathlib import Path


def trained(words: dict[str, int], merges: int, pretokenizer: str = "gpt2") -> bpe.Tokenizer:
    counts = bpe.PretokenCounts.from_items(words, pretokenizer=pretokenizer)
    return bpe.train(counts, vocab_size=256 + merges)


@pytest.mark.parametrize("pretokenizer", ["gpt2", "words", "none"])
def test_the_fit_is_that_of_training(pretokenizer: str) -> None:
    texts = ["the low lower lowest", "  new\n\nnewer don't", "naïve 東京"] * 3
    counts = bpe.count_pretokens(texts, pretokenizer=pretokenizer)
    tokenizer = bpe.train(counts, vocab_size=280)
    assert tokenizer.training is not None
    measured = fit(tokenizer, counts)
    assert measured.bytes == tokenizer.training.initial_bytes
    assert measured.tokens == tokenizer.training.merges[-1].tokens_left


def test_totals_are_exact_beyond_64_bits() -> None:
    counts = bpe.PretokenCounts.from_items({"aaaa": 2**61})
    old, new = trained({"ab": 9}, 1), trained({"aa": 9}, 1)
    assert fit(old, counts) == Fit(bytes=2**63, tokens=2**63)
    assert agreement(old, old, counts=counts) == Agreement(
        texts=2**61, texts_that_differ=0, tokens=2**63, tokens_that_differ=0
    )
    assert agreement(old, new, counts=counts).texts_that_differ == 2**61


def test_on_the_command_line(tmp_path: Path) -> None:
    counts = bpe.PretokenCounts.from_items({"ab": 9, "cd": 8, "gh": 7})
    counts.save(tmp_path / "counts")
    trained({"ab": 9, "cd": 8, "ef": 7}, 3).save(tmp_path / "old.json")
    trained({"cd": 9, "ab": 8, "gh": 7}, 3).save(tmp_path / "new.json")
    done = run("compare", "old.json", "new.json", "--counts", "counts", cwd=tmp_path)
    assert done.stdout.splitlines() == [
        "tokens    259 → 259",
        "gained    1: gh",
        "lost      1: ef",
        "ids       2 of the tokens of both have another id",
        "merges    2 in both, 1 gained, 1 lost",
        "moved     2: a b (0 → 1), c d (1 → 0)",
        "fit       1.548 → 2.000 bytes per token on the counts (31 → 24 tokens, -22.6%)",
    ]
    said = json.loads(run("compare", "old.json", "new.json", "--json", cwd=tmp_path).stdout)
    assert said["gained"] == ["gh"]
    assert said["merges"]["lost"] == [["e", "f"]]
    assert said["merges"]["gained"] == [["g", "h"]]
    # A merge before others does not move them.
    trained({"xy": 20, "ab": 9, "cd": 8, "ef": 7}, 4).save(tmp_path / "more.json")
    assert "moved     0" in run("compare", "old.json", "more.json", cwd=tmp_path).stdout
    assert said["on_counts"] is None
    same = run("compare", "old.json", "same=old.json", cwd=tmp_path).stdout
    assert "nothing differs" in same
    trained({"ab": 1}, 1, pretokenizer="words").save(tmp_path / "words.json")
    assert "pretokenizer: " in run("compare", "old.json", "words.json", cwd=tmp_path).stdout
    compare_on = ("compare", "old.json", "new.json", "--counts", ".")
    refused("no finished job left its output here", *compare_on, cwd=tmp_path, status=(1,))
