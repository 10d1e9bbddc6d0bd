"""Published vocabularies by name: found where other programs keep them, never downloaded."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest
import tiktoken

import bpe
from bpe.errors import TokenizerFileError
from bpe.formats.published import PUBLISHED, Published
from tests.cli.process import bpe as command
from tests.shared_data import shared_file

if TYPE_CHECKING:
    from pathlib import Path

HERE = [one for one in PUBLISHED if one.url]
TEXT = "The newest tokenizers don't cut 1234 so. 日本語 <|endoftext|>"


@pytest.fixture
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / "tiktoken"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.shared
@pytest.mark.parametrize("one", HERE, ids=lambda one: one.names[0])
@pytest.mark.parametrize("place", ["tiktoken", "hub", "folder"])
def test_a_published_vocabulary_is_found(caches: Path, one: Published, place: str) -> None:
    name = {
        "tiktoken": "tiktoken/" + hashlib.sha1(one.url.encode(), usedforsecurity=False).hexdigest(),
        "hub": f"hub/models--someone--model/blobs/{one.sha256}",
        "folder": f"folder/{one.file}",
    }[place]
    (caches / name).parent.mkdir(parents=True)
    (caches / name).symlink_to(shared_file(f"vocabs/{one.file}"))
    folder = caches / "folder" if place == "folder" else None
    tokenizer = bpe.Tokenizer.load(one.names[0], vocabulary_path=folder)
    assert tokenizer.decode(tokenizer.encode(TEXT)) == TEXT
    if place == "tiktoken":
        theirs = tiktoken.get_encoding(one.file.removesuffix(".tiktoken"))
        assert tokenizer.encode(TEXT) == theirs.encode_ordinary(TEXT)
        assert tokenizer.special_tokens == theirs._special_tokens
        assert tokenizer.max_id == theirs.max_token_value


def test_what_is_not_there_is_not_downloaded(caches: Path) -> None:
    (caches / "folder").mkdir()
    (caches / "folder" / "cl100k_base.tiktoken").write_text("YQ== 0\n")
    with pytest.raises(TokenizerFileError) as error:
        bpe.Tokenizer.load("cl100k", vocabulary_path=caches / "folder")
    said = str(error.value)
    assert "cl100k: cl100k_base.tiktoken, whose SHA-256 begins with 223921b76ee9" in said
    assert "(cl100k_base.tiktoken there is another file)" in said
    assert str(caches / "tiktoken") in said
    assert str(caches / "hub") in said
    with pytest.raises(FileNotFoundError):
        bpe.Tokenizer.load("gpt5")


def test_a_file_of_that_name_comes_first(caches: Path) -> None:
    (caches / "gpt2").mkdir()
    with pytest.raises(TokenizerFileError, match="the directory holds neither"):
        bpe.Tokenizer.load("gpt2")


@pytest.mark.shared
def test_a_job_by_name(caches: Path) -> None:
    (caches / "folder").mkdir()
    (caches / "folder" / "r50k_base.tiktoken").symlink_to(shared_file("vocabs/r50k_base.tiktoken"))
    (caches / "corpus.txt").write_text(TEXT)
    given = ("--tokenizer", "gpt2", "--append-token", "<|endoftext|>")
    encode = ("encode", "--input", "corpus.txt", *given, "--output", "ids")
    command(*encode, "--vocabulary-path", "folder", cwd=caches)
    command("verify", "ids", "--input", "corpus.txt", cwd=caches)
    shown = command("show", "gpt2", "--vocabulary-path", "folder", "newest", cwd=caches)
    assert "newest" in shown.stdout
    refused = command(*encode[:-1], "other", cwd=caches, status=1, TIKTOKEN_CACHE_DIR="none")
    assert "name the folder with --vocabulary-path" in refused.stderr
