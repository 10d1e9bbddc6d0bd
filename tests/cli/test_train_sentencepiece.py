"""``bpe train --model sentencepiece-bpe``, from a corpus or from counts, to both files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from transformers import AutoTokenizer

import bpe as library
from bpe.roles import Roles
from tests.cli.process import bpe, refused
from tests.pipelines.corpora import write_jsonl

if TYPE_CHECKING:
    from pathlib import Path

sentencepiece = pytest.importorskip("sentencepiece", reason="no sentencepiece here")

TEXTS = ["the cat sat on the mat", "the  hat of <s> the cat: 日", "a rat sat on the hat\tthe"]
MODEL = ("--model", "sentencepiece-bpe", "--max-merges", "12")
COUNT = ("--pattern", "▁+[^▁]*", "--normalizer", "prepend-mark", "--normalizer", "mark-spaces")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "corpus.jsonl", TEXTS).folder


def test_from_a_corpus_and_from_counts(folder: Path) -> None:
    bpe("train", "--input", "corpus.jsonl", *MODEL, "--output", "model", cwd=folder)
    ours = library.Tokenizer.load(folder / "model")
    assert ours.special_tokens == {"<unk>": 0, "<s>": 1, "</s>": 2}
    assert ours.roles == Roles(bos="<s>", eos="</s>", unk="<unk>")
    training = json.loads((folder / "model" / "training.json").read_text("utf-8"))
    assert training["character_coverage"] == "1999/2000"
    theirs = AutoTokenizer.from_pretrained(folder / "model")
    bpe("convert", "model/tokenizer.json", "tokenizer.model", cwd=folder)
    model = sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer.model"))
    assert (model.unk_id(), model.bos_id(), model.eos_id(), model.pad_id()) == (0, 1, 2, -1)
    for text in [*TEXTS, "  the 😀\n"]:
        assert model.encode(text) == ours.encode(text)
        plain = text.replace("<s>", "s")
        assert theirs.encode(plain, add_special_tokens=False) == ours.encode(plain)
    bpe("convert", "tokenizer.model", "again.json", cwd=folder)
    again = library.Tokenizer.load(folder / "again.json")
    assert (again.tokens, again.merges) == (ours.tokens, ours.merges)

    specials = ("--special-token", "<unk>", "--special-token", "<s>", "--special-token", "</s>")
    bpe("count", "--input", "corpus.jsonl", *COUNT, *specials, "--output", "counts", cwd=folder)
    bpe("train", "--counts", "counts", *MODEL, "--output", "of-counts", cwd=folder)
    assert library.Tokenizer.load(folder / "of-counts") == ours


@pytest.mark.long
def test_other_names_and_cuts(folder: Path) -> None:
    named = ("--bos", "<bos>", "--unknown-token", "<?>", "--special-token", "<sep>")
    arguments = ("--pattern", r"\d", "--normalizer", "mark-spaces", "--character-coverage", "1")
    train = ("train", "--input", "corpus.jsonl", *MODEL, *named)
    bpe(*train, *arguments, "--output", "model", cwd=folder)
    ours = library.Tokenizer.load(folder / "model")
    assert list(ours.special_tokens) == ["<?>", "<bos>", "</s>", "<sep>"]
    assert ours.token_id("日") is not None
    bpe(*train[:-6], "--unk", "<?>", *arguments, "--output", "role", cwd=folder)
    assert library.Tokenizer.load(folder / "role").roles.unk == "<?>"
    done = bpe("convert", "model/tokenizer.json", "x.model", cwd=folder, status=1)
    assert "cannot hold a pre-tokenizer, and here it is pattern" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ("--end-of-word </w>", "--end-of-word </w> needs --model bpe"),
        ("--unk <a> --unknown-token <b>", "differ: leave one out"),
        ("--character-coverage 2", "2.0 is not a share above 0"),
        ("--pretokenizer gpt2 --normalizer nfc", "needs spaces as marks"),
        ("--ties huggingface", "is for byte-level models"),
        ("--counts counts", "needs spaces as marks, and text is split with gpt2"),
    ],
)
def test_what_does_not_go_together(folder: Path, arguments: str, named: str) -> None:
    library.count_pretokens(TEXTS).save(folder / "counts")
    train = ("train", *MODEL, "--output", "model", *arguments.split())
    text = () if "--counts" in train else ("--input", "corpus.jsonl")
    refused(named, *train, *text, cwd=folder)
