"""Roles of special tokens, from training to the rows of token ids."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from transformers import AutoTokenizer

import bpe as library
from bpe.roles import Roles
from tests.bpe.vocabularies import BYTES
from tests.cli.process import bpe, refused
from tests.pipelines.corpora import write_jsonl

if TYPE_CHECKING:
    from pathlib import Path

TRAIN = ("train", "--input", "corpus.jsonl", "--vocab-size", "280")
ROLES = ("--bos", "<s>", "--eos", "</s>", "--special-token", "<sep>")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "corpus.jsonl", ["low lower lowest </s>"] * 5).folder


def rows(folder: Path, name: str) -> list[list[int]]:
    column = pq.read_table(folder / name / "data").column("input_ids")
    return list(column.to_pylist())


def test_roles_from_training_to_rows(folder: Path) -> None:
    template = ("--chat-template", "chatml", "--add-bos")
    bpe(*TRAIN, *ROLES, *template, "--output", "model", cwd=folder)
    theirs = AutoTokenizer.from_pretrained(folder / "model")
    special = ("<sep>", "<s>", "</s>", "<|im_start|>", "<|im_end|>")
    assert [theirs.convert_tokens_to_ids(token) for token in special] == [0, 1, 2, 3, 4]
    assert (theirs.bos_token, theirs.eos_token) == ("<s>", "</s>")
    chat = [{"role": "user", "content": "low"}]
    assert theirs.apply_chat_template(chat, tokenize=False, add_generation_prompt=True) == (
        "<|im_start|>user\nlow<|im_end|>\n<|im_start|>assistant\n"
    )
    encode = ("encode", "--input", "corpus.jsonl", "--tokenizer", "model/tokenizer.json")
    ends = ("--prepend-token", "bos", "--append-token", "eos", "--output", "ids")
    bpe(*encode, *ends, cwd=folder)
    plain = library.Tokenizer.load(folder / "model").encode("low lower lowest </s>")
    assert rows(folder, "ids") == [[1, *plain, 2]] * 5
    made = json.loads((folder / "ids" / "manifest.json").read_text("utf-8"))["rows"]
    assert (made["prepend_token"], made["append_token"]) == ("<s>", "</s>")
    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        assert (folder / "ids" / name).read_bytes() == (folder / "model" / name).read_bytes()
        # What an earlier tokenizer recorded does not remain, though the ids are the same.
        (folder / "model" / name).unlink()
    named = ("--prepend-token", "<s>", "--append-token", "</s>", "--output", "ids")
    bpe(*encode, *named, "--resume", cwd=folder)
    assert library.Tokenizer.load(folder / "ids").roles == Roles()


def test_a_job_with_roles_pads_packed_rows(folder: Path) -> None:
    (folder / "template.jinja").write_text("{{ messages[0]['content'] }}", "utf-8")
    (folder / "job.yaml").write_text(
        "input: corpus.jsonl\noutput: out\nappend_token: eos\nchat_template: template.jinja\n"
        "train: {vocab_size: 280, bos: <s>, eos: </s>, pad: <pad>}\n"
        "export: {to: parquet, pack: 64, pack_remainder: pad}\n",
        "utf-8",
    )
    done = bpe("run", "job.yaml", cwd=folder)
    theirs = AutoTokenizer.from_pretrained(folder / "out")
    assert theirs.chat_template == "{{ messages[0]['content'] }}"
    assert all(row[-1] == theirs.eos_token_id for row in rows(folder, "out/encoded"))
    (row,) = rows(folder, "out/export")
    padding = row.count(theirs.pad_token_id)
    assert (len(row), row[-padding:]) == (64, [theirs.pad_token_id] * padding)
    assert f"{padding} tokens of padding" in done.stdout
    # What an earlier job recorded does not remain.
    bpe(*TRAIN, "--output", "out", "--overwrite", cwd=folder)
    assert not (folder / "out" / "tokenizer_config.json").exists()


ENCODE = ("encode", "--input", "corpus.jsonl", "--tokenizer", "tokenizer.json")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*TRAIN, "--add-bos"), "--add-bos needs --bos"),
        ((*TRAIN, "--eos", ""), "--eos is empty: give TOKEN"),
        ((*TRAIN, "--chat-template", "missing.jinja"), "(or name a chat template: chatml)"),
        ((*ENCODE, "--append-token", "eos"), "--append-token eos: the tokenizer has no token for"),
        ((*ENCODE, "--append-token", "eos"), "train it with --eos TOKEN"),
    ],
)
def test_roles_that_cannot_be(folder: Path, arguments: tuple[str, ...], message: str) -> None:
    plain = library.Tokenizer(tokens=BYTES, merges=(), pretokenizer=library.Pretokenizer("gpt2"))
    plain.save(folder / "tokenizer.json")
    refused(message, *arguments, "--output", "out", cwd=folder)
