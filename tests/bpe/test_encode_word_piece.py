"""WordPiece: the longest token first, against the textbook and Hugging Face's tokenizers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import models, normalizers, pre_tokenizers

import bpe
from bpe.errors import TokenizerError
from tests.bpe.fuzz_tokenizers import of_pieces
from tests.bpe.huggingface import ids_of, written
from tests.bpe.models import make
from tests.bpe.oracle import ByReference
from tests.examples import examples

if TYPE_CHECKING:
    import random
    from pathlib import Path

STRINGS = ["[UNK]", "[CLS]", "[SEP]", "un", "##aff", "##able", "##a", "aff", "u", "##n", "want"]


def bert(**changes: Any) -> bpe.Tokenizer:
    settings: dict[str, Any] = {"special": STRINGS[:3], "model": bpe.WordPiece()}
    return make(STRINGS, **{**settings, **changes})


def test_explain_takes_tokens_from_the_front() -> None:
    assert [symbols for symbols, _ in bert().explain("unaffable")] == [
        (b"unaffable",),
        (b"un", b"##affable"),
        (b"un", b"##aff", b"##able"),
    ]
    assert [symbols for symbols, _ in bert().explain("unwanted")] == [(b"unwanted",), (b"[UNK]",)]
    assert bert().explain("") == [((), None)]


LETTERS = "ab<é漢\N{SLIGHTLY SMILING FACE}"  # of one to four bytes
WORDS = st.lists(st.text(f"{LETTERS}x/", min_size=1, max_size=20), max_size=6).map(" ".join)


@given(dice=st.randoms(use_true_random=False), samples=st.lists(WORDS, max_size=4))
@examples(200)
def test_equals_the_textbook_and_hugging_face(dice: random.Random, samples: list[str]) -> None:
    tokenizer = of_pieces(LETTERS, dice, bpe.Pretokenizer("words"))
    theirs = written(tokenizer)
    expected = [ids_of(theirs, text) for text in samples]
    assert [ByReference(tokenizer).ids(text.encode()) for text in samples] == expected
    for _ in range(2):
        assert tokenizer.encode_arrow(pa.array(samples, pa.string())).to_pylist() == expected
        assert [tokenizer.encode(text) for text in samples] == expected
    for ids in expected:
        assert tokenizer.decode(ids) == theirs.decode(ids, skip_special_tokens=False)


def test_a_megabyte() -> None:
    tokenizer = make(
        ["[UNK]", "a", "##a"],
        special=["[UNK]"],
        model=bpe.WordPiece(max_characters=2**32 - 1),
    )
    assert tokenizer.encode("a" * 2**20) == [1] + [2] * (2**20 - 1)
    assert tokenizer.encode("a" * 2**20 + "b") == [0]
    assert bert().encode("a" * 2**20) == [0]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"model": bpe.WordPiece(unknown="9" * 5000)}, "the unknown token '9{59} of the model"),
        ({"pairs": [("un", "##aff")]}, "has no merges|result is not"),
        ({"ignore_merges": True}, "a WordPiece model has no merges"),
    ],
)
def test_what_does_not_fit_the_model_is_refused(changes: dict[str, Any], named: str) -> None:
    strings = [*STRINGS, "un##aff"]
    with pytest.raises(TokenizerError, match=named):
        make(strings, changes.pop("pairs", ()), **{"model": bpe.WordPiece(), **changes})


def test_unreachable_tokens() -> None:
    strings = ["[UNK]", "[SEP]", "un", "##aff", "abcd", "##bcdef"]
    tokenizer = make(strings, special=["[SEP]"], model=bpe.WordPiece(max_characters=6))
    assert [tokenizer.token_text(id_) for id_ in tokenizer.unreachable()] == ["##bcdef"]


@pytest.mark.parametrize(
    ("content", "normalizer", "text"),
    [("##able", None, "unable"), ("covid", normalizers.Lowercase(), "unCOVID COVID covid")],
)
def test_an_added_token_is_a_piece_too(
    content: str, normalizer: normalizers.Normalizer | None, text: str, tmp_path: Path
) -> None:
    vocab = {"[UNK]": 0, "un": 1, content: 2, "##covid": 3}
    theirs = tokenizers.Tokenizer(models.WordPiece(vocab, unk_token="[UNK]"))
    theirs.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    if normalizer is not None:
        theirs.normalizer = normalizer
    theirs.add_tokens([tokenizers.AddedToken(content, normalized=False)])
    theirs.save(str(tmp_path / "theirs.json"))
    ours = bpe.Tokenizer.load(tmp_path / "theirs.json")
    assert 2 in ours.encode(text)
    assert ours.encode(text) == theirs.encode(text).ids
    ours.save(tmp_path / "ours.json")
    assert bpe.Tokenizer.load(tmp_path / "ours.json") == ours
    # Outside the vocabulary of the model it is no piece there, which cannot be said here.
    file = json.loads((tmp_path / "theirs.json").read_text("utf-8"))
    del file["model"]["vocab"]["##covid"], file["model"]["vocab"][content]
    (tmp_path / "outside.json").write_text(json.dumps(file), "utf-8")
    with pytest.raises(TokenizerError, match=f"'{content}' is not in the vocabulary of the model"):
        bpe.Tokenizer.load(tmp_path / "outside.json")
