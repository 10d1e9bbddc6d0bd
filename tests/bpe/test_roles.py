"""Roles of special tokens: files that transformers reads, and files that it writes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from transformers import AutoTokenizer

import bpe
from bpe import formats
from bpe.errors import TokenizerError, TokenizerFileError
from bpe.roles import Roles

if TYPE_CHECKING:
    from pathlib import Path

SPECIAL = ("<s>", "</s>", "<pad>", "<unk>", "<|im_start|>", "<|im_end|>")
CONFIG = "tokenizer_config.json"
TEMPLATE = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}"
TEXTS = ["low lower lowest", "the newest </s> <s>", "", "日本 é\n"]


@pytest.fixture(scope="module")
def plain() -> bpe.Tokenizer:
    counts = bpe.count_pretokens(TEXTS * 3, pretokenizer="gpt2", special_tokens=SPECIAL)
    return bpe.train(counts, vocab_size=280, special_tokens=SPECIAL)


@pytest.fixture(scope="module")
def tokenizer(plain: bpe.Tokenizer) -> bpe.Tokenizer:
    return plain.with_roles(
        Roles(bos="<s>", eos="</s>", pad="<pad>", unk="<unk>", chat_template=TEMPLATE)
    )


def test_transformers_reads_and_writes_roles_and_template(
    tokenizer: bpe.Tokenizer, tmp_path: Path
) -> None:
    tokenizer.save(tmp_path)
    files = {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"}
    assert {path.name for path in tmp_path.iterdir()} == files
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    roles = (theirs.bos_token, theirs.eos_token, theirs.pad_token, theirs.unk_token)
    assert roles == ("<s>", "</s>", "<pad>", "<unk>")
    for text in TEXTS:
        ours = tokenizer.encode(text, allowed_special="all")
        assert theirs.encode(text) == ours
        assert theirs.decode(ours) == text
    chat = [{"role": "user", "content": "low"}]
    assert theirs.apply_chat_template(chat, tokenize=False) == "user: low\n"
    assert bpe.Tokenizer.load(tmp_path) == tokenizer
    assert bpe.Tokenizer.load(tmp_path / "tokenizer.json").roles == tokenizer.roles
    theirs.save_pretrained(tmp_path / "again")
    loaded = bpe.Tokenizer.load(tmp_path / "again")
    assert loaded.roles.tokens == tokenizer.roles.tokens
    assert loaded.roles.chat_template == TEMPLATE
    for text in TEXTS:
        assert loaded.encode(text, allowed_special="all") == theirs.encode(text)


@pytest.mark.parametrize("ends", [("bos",), ("eos",), ("bos", "eos")])
def test_tokens_that_transformers_adds(
    plain: bpe.Tokenizer, tmp_path: Path, ends: tuple[str, ...]
) -> None:
    adds = {f"add_{role}": True for role in ends}
    roles = Roles(bos="<s>", eos="</s>", **adds)  # type: ignore[arg-type]
    tokenizer = plain.with_roles(roles)
    tokenizer.save(tmp_path)
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    before = [0] if "bos" in ends else []
    after = [1] if "eos" in ends else []
    for text in TEXTS:
        ours = tokenizer.encode(text, allowed_special="all")
        assert theirs.encode(text) == [*before, *ours, *after]
        assert theirs.encode(text, add_special_tokens=False) == ours
    (said,) = tokenizer.not_applied
    assert "the post-processor TemplateProcessing, which adds " in said
    loaded = bpe.Tokenizer.load(tmp_path)
    assert loaded == tokenizer
    assert loaded.sha256 != plain.sha256
    assert tokenizer.with_roles(Roles()) == plain
    assert loaded.not_applied == (said,)


def test_no_file_of_another_name_takes_roles(tokenizer: bpe.Tokenizer, tmp_path: Path) -> None:
    for name in ("mine.json", "mine.tiktoken", "vocab.json"):
        files = formats.write(tokenizer.parts, tmp_path / name, leave_out=["special-tokens"])
        assert files.losses["roles"].what == (
            "the roles of special tokens (bos '<s>', eos '</s>', pad '<pad>', unk '<unk>', "
            "a chat template)"
        )
        assert not any("config" in path.name for path in files.contents)
    tokenizer.save(tmp_path / "mine.json")
    assert not bpe.Tokenizer.load(tmp_path / "mine.json").roles
    # What is next to another file is not its own.
    tokenizer.save(tmp_path)
    assert not bpe.Tokenizer.load(tmp_path / "mine.json").roles


def test_forms_of_other_writers(plain: bpe.Tokenizer, tmp_path: Path) -> None:
    plain.save(tmp_path)
    (tmp_path / "special_tokens_map.json").write_text(
        json.dumps({"bos_token": {"content": "<s>", "lstrip": False}, "pad_token": "<none>"})
    )
    loaded = bpe.Tokenizer.load(tmp_path)
    assert loaded.roles.tokens == {"bos": "<s>"}
    assert loaded.not_applied == (
        "the role pad of tokenizer_config.json: its token '<none>' is not in the vocabulary",
    )
    templates = [{"name": "tools", "template": "x"}, {"name": "default", "template": "y"}]
    config: dict[str, Any] = {"bos_token": None, "eos_token": "</s>", "chat_template": templates}
    config |= {"add_eos_token": True, "add_prefix_space": True}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    loaded = bpe.Tokenizer.load(tmp_path)
    assert loaded.roles.tokens == {"bos": "<s>", "eos": "</s>"}
    assert loaded.roles.chat_template == "y"
    names = [what.split()[0] for what in loaded.not_applied]
    assert names == ["the", "add_eos_token", "add_prefix_space"]
    (tmp_path / "chat_template.jinja").write_text("z")
    assert bpe.Tokenizer.load(tmp_path).roles.chat_template == "z"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (CONFIG, "[]", "expected an object"),
        ("special_tokens_map.json", '{"eos_token": {}}', "eos_token.content: expected a string"),
        (CONFIG, '{"chat_template": [1]}', "chat_template[0]: expected an object"),
        (CONFIG, '{"bos_token": "<s>", "add_bos_token": 1}', "add_bos_token: expected true or"),
    ],
)
def test_broken_files_are_named(
    plain: bpe.Tokenizer, tmp_path: Path, name: str, content: str, message: str
) -> None:
    plain.save(tmp_path)
    (tmp_path / name).write_text(content)
    with pytest.raises(TokenizerFileError) as error:
        bpe.Tokenizer.load(tmp_path)
    assert str(tmp_path / name) in str(error.value)
    assert message in str(error.value)


def test_roles_that_cannot_be(plain: bpe.Tokenizer) -> None:
    with pytest.raises(TokenizerError, match="`pad`: the tokenizer has no token '<none>'"):
        plain.with_roles(Roles(pad="<none>"))
    with pytest.raises(TokenizerError, match="`add_bos` needs `bos`"):
        Roles(add_bos=True)
    with pytest.raises(TokenizerError, match="`add_eos`: 'a' is not a special token"):
        plain.with_roles(Roles(eos="a", add_eos=True))
