"""Tokenizers that Hugging Face's libraries must refuse: written so, and read back here."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import tokenizers

import bpe
from bpe import formats
from bpe.errors import TokenizerError
from tests.bpe.huggingface import edited
from tests.bpe.models import make
from tests.bpe.vocabularies import BYTES, small_tokenizer

if TYPE_CHECKING:
    from pathlib import Path

GPT2 = bpe.Pretokenizer("gpt2")


def check(tokenizer: bpe.Tokenizer, path: Path, named: str = "") -> None:
    """It is written in the dialect for that reason, refused by others, and reads back the same."""
    tokenizer.save(path, dialect="beam-bpe")
    assert json.loads(path.read_text("utf-8"))["version"] == "beam-bpe-1"
    reason = formats.write(tokenizer.parts, path, dialect="beam-bpe").dialect
    assert reason is not None
    assert named in reason
    with pytest.raises(Exception, match="Unknown tokenizer version 'beam-bpe-1'"):
        tokenizers.Tokenizer.from_file(str(path))
    back = bpe.Tokenizer.load(path)
    assert back == tokenizer
    assert back.sha256 == tokenizer.sha256


@pytest.mark.parametrize(
    ("tokenizer", "named"),
    [
        (
            make(["a", "b", "</w>", "b</w>", "ab</w>"], [("b", "</w>"), ("a", "b</w>")],
                 model=bpe.CharacterLevel()),
            "the end of word '</w>' is a symbol of its own",
        ),
        (
            make(["<unk>", "a", "b", "</w>"], special=["<unk>"],
                 model=bpe.CharacterLevel(unknown="<unk>")),
            "the end of word",
        ),
        (
            make(["a", "b", "ab"], [("a", "b")], model=bpe.CharacterLevel(end_of_word="")),
            "dropped silently there",
        ),
        (
            make(["[UNK]", "a", "##b"], model=bpe.WordPiece(), special=["[UNK]"],
                 pretokenizer=bpe.Pretokenizer("words", never_split=("url", r"\d+"))),
            "never_split 'url'",
        ),
        (
            bpe.Tokenizer(tokens=BYTES, merges=(), pretokenizer=bpe.Pretokenizer(
                pattern=(r"\w+", "gpt2"), normalizer=("nfkc", "lowercase"))),
            r"'\\w+' at character 0",
        ),
    ],
    ids=["end of word", "unknown", "no unknown", "never split", "normalizer"],
)  # fmt: skip
def test_models_and_cuts_of_ours(tokenizer: bpe.Tokenizer, named: str, tmp_path: Path) -> None:
    check(tokenizer, tmp_path / "tokenizer.json", named)


@pytest.mark.parametrize("named", ["tokenizer.json", ""])
def test_it_is_written_only_where_the_caller_chose_it(named: str, tmp_path: Path) -> None:
    tokenizer = make(["a", "</w>"], model=bpe.CharacterLevel())
    reason = r"cannot express this tokenizer: the end of word '</w>' .*; give `dialect` beam-bpe"
    with pytest.raises(TokenizerError, match=reason):
        tokenizer.save(tmp_path / named)
    with pytest.raises(TokenizerError, match=reason):
        tokenizer.to_json()
    assert list(tmp_path.iterdir()) == []
    tokenizer.save(tmp_path / named, dialect="beam-bpe")
    assert bpe.Tokenizer.load(tmp_path) == tokenizer
    with pytest.raises(TokenizerError, match="unknown dialect 'hf': use one of huggingface, beam"):
        tokenizer.save(tmp_path / named, dialect="hf")  # type: ignore[arg-type]


def test_what_others_can_express_stays_theirs(tmp_path: Path) -> None:
    tokenizer = small_tokenizer()
    assert tokenizer.to_json(dialect="beam-bpe") == tokenizer.to_json()
    assert json.loads(tokenizer.to_json())["version"] == "1.0"


def test_no_other_error_makes_it_the_dialect() -> None:
    cut = bpe.Pretokenizer(pattern="a{9999}")  # too large for any file
    tokenizer = bpe.Tokenizer(tokens=BYTES, merges=(), pretokenizer=cut)
    with pytest.raises(TokenizerError, match="repetitions written out"):
        tokenizer.to_json(dialect="beam-bpe")


@pytest.mark.parametrize(
    ("pattern", "named"),
    [
        (r"a\w+", r"'\\w+' at character 1"),
        (r"\p{N}{1,3}+", "'{1,3' at character 5"),
        (r"(?m)^a", r"'(?m)' at character 0"),
        (r"(?i:\p{Lu})", r"at character 4"),
        (r"[a[b]]", "at character 2"),
        (r"\p{Script=Greek}+", "at character 0"),
        (r"a(?<=b)", "at character 1"),
        (r"a*", "can match the empty string"),
        (r"a|(?=b)|c", "can match the empty string"),
        (r"(?:a?|b)c{0,2}", "can match the empty string"),
    ],
)
def test_patterns_that_may_mean_something_else_there(
    pattern: str, named: str, tmp_path: Path
) -> None:
    cut = bpe.Pretokenizer(pattern=pattern)
    tokenizer = bpe.Tokenizer(tokens=BYTES, merges=(), pretokenizer=cut)
    check(tokenizer, tmp_path / "tokenizer.json", named)


def test_a_special_token_spelled_like_other_bytes(tmp_path: Path) -> None:
    tokenizer = bpe.Tokenizer(
        tokens=[*BYTES, b" a", "Ġa".encode()],
        merges=[(32, 97, 256)],
        pretokenizer=GPT2,
        special_tokens={"Ġa": 257},
    )
    check(tokenizer, tmp_path / "tokenizer.json", "both the tokens 256 and 257")


@pytest.mark.parametrize("ignore_merges", [False, True])
def test_special_tokens_whose_letters_are_of_the_byte_alphabet(
    ignore_merges: bool, tmp_path: Path
) -> None:
    special = ("<é>", "¿por qué?", "Ġx")
    trained = bpe.train(
        bpe.count_pretokens(["qué <é> x ¿por qué?"]), vocab_size=280, special_tokens=special
    )
    tokenizer = bpe.Tokenizer(
        tokens=trained.tokens,
        merges=trained.merges,
        pretokenizer=trained.pretokenizer,
        special_tokens=trained.special_tokens,
        ignore_merges=ignore_merges,
    )
    path = tmp_path / "tokenizer.json"
    if ignore_merges:  # "Ġx" would be found in the vocabulary for " x"
        check(tokenizer, path, "'Ġx': it is spelled there like other bytes")
        return
    tokenizer.save(path, dialect="beam-bpe")
    assert bpe.Tokenizer.load(path) == tokenizer
    text = "qué x<é> Ġx¿por qué? x"
    theirs = tokenizers.Tokenizer.from_file(str(path))
    assert tokenizer.encode(text, allowed_special="all") == theirs.encode(text).ids


@pytest.mark.parametrize(
    ("content", "merges"),
    [("bé", [(0xC3, 0xA9, 256), (98, 256, 257)]), ("b a", [(32, 97, 256), (98, 256, 257)])],
)
def test_a_token_that_is_added_and_merges(
    content: str, merges: list[tuple[int, int, int]], tmp_path: Path
) -> None:
    data = content.encode()
    tokenizer = bpe.Tokenizer(
        tokens=[*BYTES, data[1:], data],
        merges=merges,
        pretokenizer=GPT2,
        added_tokens={content: 257},
    )
    check(tokenizer, tmp_path / "t.json", f"'{content}': it is spelled there like other bytes")


def test_it_converts_to_nothing_that_would_lose_it(tmp_path: Path) -> None:
    tokenizer = make(["a", "</w>"], model=bpe.CharacterLevel())
    for name in ("x.tiktoken", "vocab.json"):
        with pytest.raises(TokenizerError, match=r"byte-level tokenizers only.*CharacterLevel"):
            tokenizer.save(tmp_path / name)
    cut = bpe.Pretokenizer("gpt2", normalizer=("nfc",), never_split=("url",))
    other = bpe.Tokenizer(tokens=BYTES, merges=(), pretokenizer=cut)
    for name in ("x.tiktoken", "vocab.json"):
        with pytest.raises(TokenizerError, match="the normalizer nfc; what is never split: url"):
            other.save(tmp_path / name)
        other.save(tmp_path / name, leave_out=["normalizer", "never-split"])


# What is refused.


GOOD = make(
    ["<unk>", "a", "</w>", "a</w>"],
    [("a", "</w>")],
    special=["<unk>"],
    model=bpe.CharacterLevel(unknown="<unk>"),
).to_json(dialect="beam-bpe")


@pytest.mark.parametrize(
    ("place", "value", "named"),
    [
        ("normalizer", "nfc", "normalizer: expected a list"),
        ("normalizer", ["nfx"], "pre_tokenizer: unknown normalizer 'nfx'"),
        ("pre_tokenizer", None, "pre_tokenizer: expected an object"),
        ("pre_tokenizer.name", "gpt9", "unknown pre-tokenizer 'gpt9'"),
        ("pre_tokenizer.pattern", "a", "either a name or a pattern"),
        ("pre_tokenizer.pattern", ["(", "b"], "pre_tokenizer"),
        ("pre_tokenizer.never_split", ["("], r"the pattern '\(' does not compile"),
        ("pre_tokenizer.never_split", [7], r"never_split\[0\]: expected a string, found 7"),
        ("pre_tokenizer.shiny", 1, "'shiny' is not supported"),
        ("decoder", {"type": "Fuse"}, "decoder: 'Fuse' is not supported"),
        ("model.type", "BPE", "model.type: 'BPE' is not supported: use ByteLevel, Char"),
        ("model.end_of_word", 1, "model: end_of_word 1 is not a string"),
        ("model.unknown", "a</w", "the unknown token .* of the model is not in the vocabulary"),
        ("model.prefix", "##", "model: 'prefix' is not supported"),
        ("model.ignore_merges", "no", "ignore_merges: expected true or false"),
        ("model.vocab.a", 10**9, "model.vocab.a: 1000000000 is not an id"),
        ("model.vocab.a", 0, "'<unk>' is added under the id 0 of another token"),
        ("model.vocab.\ud800", 9, "lone surrogate"),
        ("model.vocab.", 9, "the token with the id 9 is empty"),
        ("model.merges", [["a", "b"]], r"merges\[0\]: 'b' is not in the vocabulary"),
        ("added_tokens.0.id", 10**9, r"added_tokens\[0\].id: 1000000000 is not an id"),
        ("added_tokens.0.id", True, r"added_tokens\[0\].id: True is not an id"),
        ("version", "beam-bpe-2", "version: 'beam-bpe-2' is not supported"),
    ],
)
def test_broken_files(place: str, value: Any, named: str, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(edited(GOOD, place, value))
    with pytest.raises(TokenizerError, match=named) as caught:
        bpe.Tokenizer.load(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("key", ["pattern", "never_split"])
def test_patterns_that_grow_when_they_are_compiled(key: str, tmp_path: Path) -> None:
    cut = {"name": None, "pattern": "a", key: [r"(?:\p{L}{9999}){9999}"]}
    path = tmp_path / "tokenizer.json"
    path.write_text(edited(GOOD, "pre_tokenizer", cut))
    with pytest.raises(TokenizerError, match=r"pre_tokenizer: .* repetitions written out"):
        bpe.Tokenizer.load(path)
    large = bpe.Pretokenizer(pattern="a{9999}")  # what cannot be read is not written
    with pytest.raises(TokenizerError, match="repetitions written out"):
        bpe.Tokenizer(tokens=BYTES, merges=(), pretokenizer=large).save(path)
