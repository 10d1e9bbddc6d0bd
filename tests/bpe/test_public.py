"""The public surface: names, what users of other tokenizers expect, and that nothing changes it."""

from __future__ import annotations

import copy
import copyreg
import dataclasses
import html
import pickle
import re
from importlib.metadata import version
from itertools import pairwise
from types import MappingProxyType

import pytest
import tiktoken

import bpe
from bpe.errors import UnknownCharacterError
from bpe.pretokenizer import PATTERNS
from tests.bpe.huggingface import written
from tests.bpe.models import make
from tests.bpe.oracle import known, training_of
from tests.bpe.vocabularies import small_tokenizer

TEXTS = ["the tooth", "", "été <|end|>\n"]


def trained(**settings: object) -> bpe.Tokenizer:
    counts = bpe.count_pretokens(TEXTS * 3, special_tokens=("<|end|>",))
    return bpe.train(counts, vocab_size=265, **settings)  # type: ignore[arg-type]


def test_the_package_exports_what_it_lists() -> None:
    assert len(bpe.__all__) == 15
    assert sorted(bpe.__all__) == sorted(set(bpe.__all__))


def test_the_version_is_that_of_the_distribution() -> None:
    assert bpe.__version__ == version("beam-bpe")


def test_a_vocabulary_maps_text_to_ids_and_back() -> None:
    tokenizer = trained()
    vocab = tokenizer.get_vocab()
    assert len(vocab) == tokenizer.vocab_size == len(tokenizer) == 265
    assert list(vocab.values()) == sorted(vocab.values())
    for text, id_ in vocab.items():
        assert tokenizer.token_to_id(text) == id_
        assert tokenizer.id_to_token(id_) == text
        assert tokenizer.token_to_id(tokenizer.token_bytes(id_)) == id_
    assert vocab["Ġtooth"] == tokenizer.token_to_id(b" tooth") == tokenizer.token_id(" tooth")
    assert tokenizer.token_to_id("<|end|>") == 0
    assert tokenizer.token_to_id(" tooth") is None
    assert tokenizer.token_to_id(b"no such token") is None
    assert tokenizer.id_to_token(265) is tokenizer.id_to_token(-1) is None
    gapped = small_tokenizer()
    gap = gapped.tokens.index(None)
    assert gapped.id_to_token(gap) is None
    assert gap not in gapped.get_vocab().values()
    assert len(gapped.get_vocab()) == gapped.vocab_size == gapped.max_id + 1 - 2
    for call in (tokenizer.token_to_id, tokenizer.id_to_token):
        with pytest.raises(TypeError):
            call(None)  # type: ignore[arg-type]


def test_the_names_of_hugging_face_mean_the_same() -> None:
    ours = trained()
    theirs = written(ours)
    assert theirs.get_vocab() == ours.get_vocab()
    assert theirs.get_vocab_size() == ours.vocab_size
    for id_ in (0, 5, 264, 265):
        assert theirs.id_to_token(id_) == ours.id_to_token(id_)
    for token in ("Ġtooth", "<|end|>", "Ġ", " tooth", "no"):
        assert theirs.token_to_id(token) == ours.token_to_id(token)
    batch = theirs.encode_batch(TEXTS, add_special_tokens=False)
    assert [row.ids for row in batch] == ours.encode_batch(TEXTS, allowed_special="all")
    ids = [row.ids for row in batch]
    assert theirs.decode_batch(ids, skip_special_tokens=True) == ours.decode_batch(
        ids, skip_special_tokens=True
    )


def test_batches_are_as_tiktoken_has_them() -> None:
    ours = trained(ties="id-min")
    special = dict(ours.special_tokens)
    ranks = {token: id_ for id_, token in enumerate(ours.tokens) if token and id_}
    theirs = tiktoken.Encoding(
        "ours", pat_str=PATTERNS["gpt2"], mergeable_ranks=ranks, special_tokens=special
    )
    for allowed in ((), ("<|end|>",)):
        expected = theirs.encode_batch(TEXTS, allowed_special=set(allowed), disallowed_special=())
        assert ours.encode_batch(TEXTS, allowed_special=allowed) == expected
        assert ours.decode_batch(expected) == theirs.decode_batch(expected) == TEXTS


def test_a_batch_takes_what_a_column_takes() -> None:
    tokenizer = trained()
    rows = [tokenizer.encode(text) for text in TEXTS]
    assert tokenizer.encode_batch(iter(TEXTS)) == rows
    assert tokenizer.decode_batch(tokenizer.encode_arrow(TEXTS).to_pylist()) == TEXTS
    with pytest.raises(TypeError, match="text 1 is None"):
        tokenizer.encode_batch(["a", None])
    characters = make(["a", "</w>"], model=bpe.CharacterLevel())
    with pytest.raises(UnknownCharacterError, match="row 1"):
        characters.encode_batch(["a", "x"])


def test_a_tokenizer_is_immutable() -> None:
    processor = {"type": "ByteLevel", "deep": {"list": [1]}}
    tokens: list[bytes | None] = list(small_tokenizer().tokens[:256])
    special: dict[str, int] = {}
    tokenizer = bpe.Tokenizer(
        tokens=tokens,
        merges=[],
        pretokenizer=bpe.Pretokenizer("gpt2"),
        special_tokens=special,
        post_processor=processor,
    )
    before = pickle.dumps(tokenizer)
    for name in ("training", "tokens", "_tokens", "merges", "anything"):
        with pytest.raises(AttributeError, match=f"cannot assign to field '{name}'"):
            setattr(tokenizer, name, None)
        with pytest.raises(AttributeError, match=f"cannot delete field '{name}'"):
            delattr(tokenizer, name)
    tokens.append(b"ab")
    special["x"] = 1
    processor["deep"]["list"].append(2)  # type: ignore[index]
    tokenizer.get_vocab().clear()
    tokenizer.merges.append((1, 2, 3))
    tokenizer.encode("ab").append(5)
    post_processor = tokenizer.post_processor
    assert post_processor is not None
    post_processor["deep"]["list"].append(3)
    for mapping in (tokenizer.special_tokens, tokenizer.added_tokens):
        with pytest.raises(TypeError):
            mapping["x"] = 1  # type: ignore[index]
    for part in (tokenizer.pretokenizer, tokenizer.model):
        with pytest.raises(dataclasses.FrozenInstanceError):
            part.name = "words"  # type: ignore[misc,union-attr]
    assert pickle.dumps(tokenizer) == before


def test_training_is_immutable_and_goes_with_a_tokenizer_unchanged() -> None:
    tokenizer = trained(prune_below=2)
    training = training_of(tokenizer)
    with pytest.raises(dataclasses.FrozenInstanceError):
        training.ties = "id-min"  # type: ignore[misc]
    for mapping in (training.counts, known(training.pruned)):
        with pytest.raises(TypeError):
            mapping["documents"] = 0  # type: ignore[index]
    assert isinstance(training.counts["special_tokens"], tuple)
    for copied in (pickle.loads(pickle.dumps(training)), copy.deepcopy(training)):  # noqa: S301
        assert copied == training
        assert isinstance(copied.counts, MappingProxyType)
    assert MappingProxyType not in copyreg.dispatch_table  # how others copy theirs is not ours

    bare = tokenizer.with_training(None)
    assert bare.training is None
    assert tokenizer.training == training
    assert bare == tokenizer
    assert bare.with_training(training).training == training
    assert bare.encode("the tooth") == tokenizer.encode("the tooth")


def test_repr_names_what_matters() -> None:
    assert repr(trained()) == (
        "<bpe.Tokenizer: 265 tokens, 8 merges, pre-tokenizer 'gpt2', 1 special token>"
    )


def cells(tokenizer: bpe.Tokenizer) -> list[str]:
    """The cells of a tokenizer's table in a notebook, which has no tags but those of a table."""
    table = tokenizer._repr_html_()
    assert set(re.findall(r"</?(\w+)", table)) == {"table", "caption", "tr", "th", "td"}
    return [html.unescape(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", table)]


def test_a_notebook_shows_a_table() -> None:
    names_and_values = [("vocabulary", "265 tokens"), ("pre-tokenizer", "gpt2"), ("merges", "8")]
    assert {*names_and_values} <= {*pairwise(cells(trained()))}
    assert "first merges" not in cells(bpe.train(bpe.count_pretokens([]), vocab_size=256))


def test_the_table_escapes_everything() -> None:
    hostile = "<script>alert(1)</script>&"
    counts = bpe.count_pretokens([hostile], pretokenizer=bpe.Pretokenizer(pattern="<b>|.+"))
    special = [hostile, *(f"<i>{n}" for n in range(9))]
    shown = cells(bpe.train(counts, vocab_size=290, special_tokens=special))
    tokens = shown[shown.index("special tokens") + 1]
    assert tokens.startswith(f"{hostile} (0), <i>0 (1)")
    assert tokens.endswith(" and 2 more")
    assert "last merges" in shown
