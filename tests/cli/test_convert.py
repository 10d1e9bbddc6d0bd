"""``bpe convert`` and ``bpe verify`` of tokenizer files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import bpe as library
from tests.bpe.vocabularies import BYTES
from tests.cli.process import bpe, refused

if TYPE_CHECKING:
    from pathlib import Path

TEXT = "the thorn, the other 123 <s>"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A trained tokenizer.json with a special token, cut as cl100k cuts."""
    counts = library.count_pretokens([TEXT] * 3, pretokenizer="cl100k")
    tokenizer = library.train(counts, vocab_size=270, special_tokens=["<s>"])
    path = tmp_path / "model" / "tokenizer.json"
    tokenizer.save(path)
    return path


@pytest.mark.parametrize("target", ["x.tiktoken", "vocab.json", "deep/x_merges.txt"])
def test_there_and_back_with_what_is_printed(target: str, model: Path, tmp_path: Path) -> None:
    given = ("--leave-out", "special-tokens", "--leave-out", "pretokenizer")
    done = bpe("convert", model, tmp_path / target, *given, "--json")
    summary = json.loads(done.stdout)
    assert summary["tokens"] == 270
    assert all((tmp_path / path).is_file() for path in summary["to"])
    assert set(summary["lacks"]) == {"pretokenizer", "special-tokens"}
    assert summary["give"] == ["--pretokenizer", "cl100k", "--special-token", "<s>=0"]
    back = tmp_path / "back.json"
    shown = bpe("convert", tmp_path / target, back, *summary["give"]).stdout
    assert shown.startswith("converted ")
    loaded, first = library.Tokenizer.load(back), library.Tokenizer.load(model)
    assert loaded.encode(TEXT, allowed_special="all") == first.encode(TEXT, allowed_special="all")
    assert loaded.tokens == first.tokens


def test_what_is_not_in_the_file_is_said(model: Path, tmp_path: Path) -> None:
    target = tmp_path / "x.tiktoken"
    done = bpe("convert", model, target, status=1)
    assert "a .tiktoken file cannot hold the special tokens '<s>' (0)" in done.stderr
    assert "give --leave-out special-tokens;" in done.stderr
    assert not target.exists()
    done = bpe("convert", model, target, "--leave-out", "special-tokens")
    assert "does not hold the pre-tokenizer" in done.stdout
    assert "does not hold the special tokens '<s>' (0)" in done.stdout
    assert "to load it, pass" in done.stdout
    assert "--pretokenizer cl100k --special-token '<s>=0'" in done.stdout


def test_a_pattern_is_said_too(model: Path, tmp_path: Path) -> None:
    pattern = "[a-z]+|[^a-z]"
    pair = tmp_path / "vocab.json"
    bpe("convert", model, pair, "--leave-out", "pretokenizer")
    done = bpe("convert", pair, tmp_path / "x.json", "--pattern", pattern)
    assert "does not hold" not in done.stdout
    leave_out = ("convert", tmp_path / "x.json", pair, "--leave-out=pretokenizer")
    assert " is there already: give --overwrite" in bpe(*leave_out, status=1).stderr
    assert f"--pattern '{pattern}'" in bpe(*leave_out, "--overwrite").stdout


@pytest.mark.parametrize(
    ("command", "status", "named"),
    [
        ("convert absent.json x.json", 1, "absent.json: cannot read the tokenizer: No such"),
        ("convert model/tokenizer.json x.bin", 1, "not known as a tokenizer file by its name"),
        ("convert model/tokenizer.json", 2, "Missing argument 'TO'"),
        ("convert model s3://a/x.json", 2, "TO must be a local file, not s3://a/x.json"),
        ("convert model x.json --leave-out merges", 2, "'merges' is unknown"),
        ("convert model/tokenizer.json x.json --pretokenizer gpt2", 1, "defines its own pre"),
        ("convert model x.json --special-token a=1", 1, "defines its own pre"),
        ("convert model x.json --special-token a --special-token a", 2, "given twice"),
        ("verify vocab.json", 1, "merges.txt: cannot read the tokenizer: No such"),
        ("verify half.json", 1, "half.json: is not JSON"),
        ("decode model", 1, "holds a tokenizer"),
        ("verify model --input x", 2, "--input goes with encoded output or counts"),
        # Options are named, not arguments.
        ("show bare.tiktoken word", 1, "(for example --pretokenizer cl100k)"),
        ("verify bare.tiktoken", 1, "does not contain the pre-tokenizer"),
        ("train --counts counts --output x --vocab-size 10", 2, "error: --vocab-size 10 is too"),
    ],
)
def test_what_is_wrong_is_one_sentence(
    command: str, status: int, named: str, model: Path, tmp_path: Path
) -> None:
    text = model.read_text("utf-8")
    (tmp_path / "half.json").write_text(text[: len(text) // 2], "utf-8")
    (tmp_path / "vocab.json").write_text("{}", "utf-8")
    library.Tokenizer.load(model).save(
        tmp_path / "bare.tiktoken", leave_out=library.formats.LEAVE_OUT
    )
    library.count_pretokens([TEXT]).save(tmp_path / "counts")
    refused(named, *command.split(), cwd=tmp_path, status=(status,))


def test_all_that_cuts_text_is_said(tmp_path: Path) -> None:
    cut = library.Pretokenizer(
        pattern=("[0-9]", "gpt2"), normalizer=("nfkc", "lowercase"), never_split=("url",)
    )
    library.Tokenizer(tokens=BYTES, merges=(), pretokenizer=cut).save(
        tmp_path / "a.json", dialect="beam-bpe"
    )
    target = tmp_path / "x.tiktoken"
    done = bpe("convert", tmp_path / "a.json", target, status=1)
    assert "the normalizer nfkc, lowercase; what is never split: url" in done.stderr
    leave_out = ("--leave-out=normalizer", "--leave-out=never-split")
    give = json.loads(bpe("convert", tmp_path / "a.json", target, *leave_out, "--json").stdout)[
        "give"
    ]
    refused = bpe("convert", target, tmp_path / "b.json", *give, status=1).stderr
    assert "never_split 'url' has no equivalent there; give --dialect beam-bpe to write" in refused
    assert not (tmp_path / "b.json").exists()
    shown = bpe("convert", target, tmp_path / "b.json", *give, "--dialect", "beam-bpe").stdout
    assert library.Tokenizer.load(tmp_path / "b.json").pretokenizer == cut
    assert "only bpe reads it: never_split 'url' has no equivalent there" in shown


# bpe verify FILE


def test_a_token_that_cannot_be_encoded_is_named(tmp_path: Path) -> None:
    broken = library.Tokenizer(
        tokens=[*BYTES, b"ab", b"abc", b"a b"],
        merges=[(97, 98, 256)],
        pretokenizer=library.Pretokenizer("gpt2"),
        special_tokens={"a b": 258},
    )
    broken.save(tmp_path / "tokenizer.json")
    for place in (tmp_path, tmp_path / "tokenizer.json"):
        done = bpe("verify", place, status=1)
        assert "token 257 'abc' cannot be encoded to itself" in done.stdout
        assert done.stdout.count("cannot be encoded") == 1
    done = bpe("verify", tmp_path, "--json", status=1)
    assert json.loads(done.stdout)["unreachable"] == [{"id": 257, "token": "abc"}]


def test_all_formats_can_be_verified(model: Path, tmp_path: Path) -> None:
    for name in ("vocab.json", "x.tiktoken"):
        library.Tokenizer.load(model).save(tmp_path / name, leave_out=library.formats.LEAVE_OUT)
    for path in (model, tmp_path / "vocab.json", tmp_path / "merges.txt"):
        assert "each token is what its own bytes merge to" in bpe("verify", path).stdout
    done = bpe("verify", tmp_path / "x.tiktoken", "--pretokenizer", "cl100k", "--json")
    assert json.loads(done.stdout)["unreachable"] == []


def test_text_that_is_cut_is_told_apart(tmp_path: Path) -> None:
    tokenizer = library.Tokenizer(
        tokens=[*BYTES, b"a ", b"a b"],
        merges=[(97, 32, 256), (256, 98, 257)],
        pretokenizer=library.Pretokenizer("gpt2"),
    )
    tokenizer.save(tmp_path / "t.json")
    done = bpe("verify", tmp_path / "t.json", "--json")
    assert [one["id"] for one in json.loads(done.stdout)["cut"]] == [256, 257]
    assert "token 257 'a b' is text that is cut" in bpe("verify", tmp_path / "t.json").stdout
