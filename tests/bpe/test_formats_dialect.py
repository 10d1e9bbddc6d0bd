"""Tokenizers that Hugging Face's libraries must refuse: written so, and read back here."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import tokenizers

import bpe
from bpe import formats
from bpe.errors import TokenizerError
from bpe.models import BYTE_TOKENS
from tests.bpe.huggingface import loaded, written
from tests.bpe.models import make
from tests.bpe.vocabularies import byte_tokenizer, small_tokenizer

if TYPE_CHECKING:
    from pathlib import Path


def marked(*normalizer: str, never_split: tuple[str, ...] = ()) -> bpe.Tokenizer:
    """As SentencePiece's."""
    cut = bpe.Pretokenizer("none", normalizer=normalizer, never_split=never_split)
    strings = [token.decode() for token in BYTE_TOKENS]
    model = bpe.CharacterLevel(end_of_word="", byte_fallback=True)
    return make(strings, model=model, pretokenizer=cut)


def cut_by(*patterns: str, **more: Any) -> bpe.Tokenizer:
    return byte_tokenizer(pretokenizer=bpe.Pretokenizer(pattern=patterns, **more))


NEVER_SPLIT = bpe.Pretokenizer("words", never_split=("url", r"\d+"))
AB_END = (["a", "b", "</w>", "b</w>", "ab</w>"], [("b", "</w>"), ("a", "b</w>")])
AMBIGUOUS = byte_tokenizer(" a", "Ġa", joins=[" |a"], special_tokens={"Ġa": 257})
SPACE = byte_tokenizer(" a", "b a", joins=[" |a", "b| a"], added_tokens={"b a": 257})
LOOKED_UP = byte_tokenizer("Ġx", special_tokens={"Ġx": 256}, ignore_merges=True)


@pytest.mark.parametrize(
    ("tokenizer", "named"),
    [
        (make(*AB_END, model=bpe.CharacterLevel()), "the end of word '</w>' is a symbol of its"),
        (make(["a", "b"], model=bpe.CharacterLevel(end_of_word="")), "dropped silently there"),
        (make(["[UNK]"], model=bpe.WordPiece(), pretokenizer=NEVER_SPLIT), "never_split 'url'"),
        (cut_by(r"\w+", "gpt2", normalizer=("nfkc", "lowercase")), r"'\\w+' at character 0"),
        (marked(never_split=("url",)), "never_split 'url'"),
        (marked("ensure-mark"), "ensure-mark is supported there at the end"),
        (marked("nfkc", "mark-spaces", "ensure-first-mark"), "ensure-first-mark after"),
        # Patterns that may mean something else there.
        (cut_by(r"\p{N}{1,3}+"), "'{1,3' at character 5"),
        (cut_by(r"(?m)^a"), r"'(?m)' at character 0"),
        (cut_by(r"(?i:\p{Lu})"), r"at character 4"),
        (cut_by(r"[a[b]]"), "at character 2"),
        (cut_by(r"\p{Script=Greek}+"), "at character 0"),
        (cut_by(r"a(?<=b)"), "at character 1"),
        (cut_by(r"a|(?=b)|c"), "can match the empty string"),
        (cut_by(r"(?:a?|b)c{0,2}"), "can match the empty string"),
        # Tokens that are spelled there like other bytes.
        (AMBIGUOUS, "both the tokens 256 and 257"),
        (SPACE, "'b a': it is spelled there like other bytes"),
        (LOOKED_UP, "'Ġx': it is spelled there like other bytes"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_others_cannot_express_is_refused_there_and_read_back_here(
    tokenizer: bpe.Tokenizer, named: str, tmp_path: Path
) -> None:
    path = tmp_path / "tokenizer.json"
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


def test_special_tokens_whose_letters_are_of_the_byte_alphabet() -> None:
    """Without ignore_merges, nothing looks for them among the bytes that they spell."""
    special = ("<é>", "¿por qué?", "Ġx")
    counts = bpe.count_pretokens(["qué <é> x ¿por qué?"])
    tokenizer = bpe.train(counts, vocab_size=280, special_tokens=special)
    text = "qué x<é> Ġx¿por qué? x"
    theirs = written(tokenizer)
    assert tokenizer.encode(text, allowed_special="all") == theirs.encode(text).ids
    assert loaded(theirs) == tokenizer


@pytest.mark.parametrize("name", ["tokenizer.json", ""])
def test_it_is_written_only_where_the_caller_chose_it(name: str, tmp_path: Path) -> None:
    tokenizer = make(["a", "</w>"], model=bpe.CharacterLevel())
    reason = r"cannot express this tokenizer: the end of word '</w>' .*; give `dialect` beam-bpe"
    with pytest.raises(TokenizerError, match=reason):
        tokenizer.save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []
    tokenizer.save(tmp_path / name, dialect="beam-bpe")
    assert bpe.Tokenizer.load(tmp_path) == tokenizer
    with pytest.raises(TokenizerError, match="unknown dialect 'hf': use one of huggingface, beam"):
        tokenizer.save(tmp_path / name, dialect="hf")  # type: ignore[arg-type]


def test_what_others_can_express_stays_theirs() -> None:
    tokenizer = small_tokenizer()
    assert tokenizer.to_json(dialect="beam-bpe") == tokenizer.to_json()
    assert json.loads(tokenizer.to_json())["version"] == "1.0"


def test_what_cannot_be_read_is_not_written_in_the_dialect_either() -> None:
    with pytest.raises(TokenizerError, match="repetitions written out"):
        cut_by("a{9999}").to_json(dialect="beam-bpe")
