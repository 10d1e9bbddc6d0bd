"""Encoding with superwords: against the textbook, and in every way of encoding."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import bpe
from bpe.diff import compare, fit
from bpe.errors import CountsError, TokenizerError, TokenizerFileError, TrainingError
from bpe.parts import Merges
from tests.bpe.huggingface import loaded
from tests.bpe.models import make
from tests.bpe.oracle import ByReference
from tests.bpe.steps import assert_linear, counts_steps
from tests.bpe.vocabularies import byte_tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable

SPECIAL = "<s>"


def with_superwords(*pairs: tuple[str, str], **settings: Any) -> bpe.Tokenizer:
    """Of the words `` a`` to `` f`` and ``a`` to ``f``, and a superword for each pair."""
    words = [f" {letter}" for letter in "abcdef"]
    tokens = [*dict.fromkeys([*words, *map("".join, pairs)]), SPECIAL]
    settings.setdefault("special_tokens", {SPECIAL: 255 + len(tokens)})
    joins = [f" |{word[1]}" for word in words]
    return byte_tokenizer(*tokens, joins=joins, superwords=[*map("|".join, pairs)], **settings)


# Long runs.


@pytest.mark.parametrize("size", [10, 63, 64, 65, 127, 128, 129, 1000])
def test_runs_of_any_length_cross_every_block(size: int) -> None:
    tokenizer = with_superwords((" a", " b"), (" a b", " a b"), (" a b a b", " a b a b"))
    generator = random.Random(size)
    for letters in ("ab", "abc", "a"):
        text = "".join(" " + letter for letter in generator.choices(letters, k=size))
        assert tokenizer.encode(text) == ByReference(tokenizer).ids(text.encode())
    text = " a b" * size
    assert tokenizer.encode(text) == ByReference(tokenizer).ids(text.encode())


@counts_steps
@pytest.mark.parametrize("run", [" a", " a b", " a b c d"])
def test_a_long_run_takes_linear_work(run: str) -> None:
    tokenizer = with_superwords((" a", " a"), (" a a", " a a"), (" a", " b"), (" a b", " a b"))
    assert_linear(lambda size: tokenizer.encode((run * size)[:size]), 50_000)


# What a tokenizer says and refuses.


def test_wrong_superwords_are_refused_by_number() -> None:
    right = with_superwords((" a", " b"))
    made = right.token_id(" a b")
    parts = right.parts.__getstate__()
    for superwords, message in (
        ([(256, 257, 258)], r"superword merge 0 \(256, 257 -> 258\): the result is not the bytes"),
        ([(256, 257, made), (256, 257, made)], "superword merge 1 .* merged twice"),
        ([(256, 263, made)], "superword merge 0 .* id 263 is a special token"),
        ([(256, 257)], "superword merge 0 is not three ids"),
        (b"1234", "4 bytes of superword merges are not triples"),
    ):
        with pytest.raises(TokenizerError, match=message):
            bpe.Tokenizer(**parts | {"superwords": superwords})
    merges = [*right.merges, (made, 97, right.max_id + 1)]
    tokens = [*right.tokens, b" a ba"]
    with pytest.raises(TokenizerError, match="merge 6 takes token 262, which superword merges alo"):
        bpe.Tokenizer(**parts | {"merges": merges, "tokens": tokens})


def test_only_byte_level_models_have_them() -> None:
    for model in (bpe.CharacterLevel(end_of_word="", unknown="[UNK]"), bpe.WordPiece()):
        with pytest.raises(TokenizerError, match=f"superwords need .* not {type(model).__name__}"):
            make(["[UNK]", "a", "b", "ab"], superwords=[(1, 2, 3)], model=model)


def test_unknown_fields_and_tokens_of_the_dialect_are_refused() -> None:
    text = with_superwords((" a", " b"), ignore_merges=True).to_json(dialect="beam-bpe")
    # Releases before superwords refuse them as a field that they do not know.
    for good, wrong in (('"superwords":', '"superwodrs":'), ('"Ġa",', '"zz",')):
        with pytest.raises(TokenizerFileError, match=wrong.split('"')[1]):
            loaded(text.replace(good, wrong))
    assert '"superwords"' not in with_superwords().to_json(dialect="beam-bpe")


def test_they_are_part_of_what_a_tokenizer_is() -> None:
    tokenizer, words = with_superwords((" a", " b")), with_superwords()
    same_tokens = bpe.Tokenizer(replace(tokenizer.parts, superwords=Merges()))
    assert tokenizer != same_tokens
    assert {tokenizer.sha256, tokenizer.text_sha256}.isdisjoint(
        {same_tokens.sha256, same_tokens.text_sha256}
    )
    assert "1 superwords" in repr(tokenizer)
    assert "superwords" in tokenizer._repr_html_()
    assert "superwords" not in repr(words) + words._repr_html_()
    change = compare(words, tokenizer)
    assert change.gained_merges == ((b" a", b" b"),)
    assert change.settings["superwords"] == ("0", "1")


def test_unreachable_superwords_are_found() -> None:
    assert with_superwords((" a", " b"), (" a b", " c")).unreachable() == []
    # " b c" is made first, so " a b" never meets " c".
    tokenizer = with_superwords((" b", " c"), (" a", " b"), (" a b", " c"))
    assert tokenizer.unreachable() == [tokenizer.token_id(" a b c")]


def test_the_steps_of_a_run_are_explained() -> None:
    tokenizer = with_superwords((" a", " b"), (" a b", " c"))
    steps = tokenizer.explain_superwords([b" a", b" b", b" c", b" a"])
    assert [step.merge for step in steps] == [None, (b" a", b" b"), (b" a b", b" c")]
    assert steps[-1].symbols == (b" a b c", b" a")
    with pytest.raises(bpe.BpeError, match="is not a token"):
        tokenizer.explain_superwords([b" zz"])


def test_what_cannot_know_them_refuses_them() -> None:
    tokenizer = with_superwords((" a", " b"))
    counts = bpe.count_pretokens([" a b"])
    calls: dict[str, Callable[[], object]] = {
        "superwords cannot be extended": lambda: bpe.train(counts, max_merges=1, extend=tokenizer),
        "how often superwords occur": lambda: fit(tokenizer, counts),
        "has superwords already": lambda: bpe.count_runs([" a b"], tokenizer=tokenizer),
    }
    for message, call in calls.items():
        with pytest.raises((TrainingError, CountsError), match=message):
            call()


def test_truncated_drops_the_last_ids_first() -> None:
    pairs = [(" a", " b"), (" a b", " c"), (" c", " d")]
    parts = with_superwords(*pairs).parts.__getstate__()
    # Special tokens come first where anything is to be dropped.
    arguments = parts | {"special_tokens": {}, "tokens": list(parts["tokens"])[:-1]}
    tokenizer = bpe.Tokenizer(**arguments)
    words = tokenizer.truncated(258)
    assert (len(words.merges), words.superwords) == (2, [])
    swapped = [tokenizer.superwords[2], *tokenizer.superwords[:2]]
    with pytest.raises(TokenizerError, match="a merge makes token 262 after one that"):
        bpe.Tokenizer(**arguments | {"superwords": swapped}).truncated(264)
