"""The public surface: names, what users of other tokenizers expect, and that nothing changes it."""

from __future__ import annotations

import dataclasses
import html
import pickle
from html.parser import HTMLParser
from importlib.metadata import version

import pyarrow as pa
import pytest
import tiktoken

import bpe
from bpe.errors import EncodingError, UnknownCharacterError
from bpe.pretokenizer import PATTERNS
from tests.bpe.huggingface import written
from tests.bpe.oracle import known, training_of
from tests.bpe.vocabularies import small_tokenizer

TEXTS = ["the tooth", "", "été <|end|>\n"]


def trained(**settings: object) -> bpe.Tokenizer:
    counts = bpe.count_pretokens(TEXTS * 3, special_tokens=("<|end|>",))
    return bpe.train(counts, vocab_size=265, **settings)  # type: ignore[arg-type]


def test_the_package_exports_what_it_lists() -> None:
    assert len(bpe.__all__) == 15
    assert sorted(bpe.__all__) == sorted(set(bpe.__all__))
    for name in bpe.__all__:
        assert getattr(bpe, name) is not None


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
    for call in (tokenizer.token_to_id, tokenizer.id_to_token):
        with pytest.raises(TypeError):
            call(None)  # type: ignore[arg-type]


def test_gaps_are_no_tokens() -> None:
    tokenizer = small_tokenizer()
    gapped = bpe.Tokenizer(
        tokens=[*tokenizer.tokens[:256], None, b"<|x|>"],
        merges=[],
        pretokenizer=bpe.Pretokenizer("gpt2"),
        special_tokens={"<|x|>": 257},
    )
    assert gapped.vocab_size == 257
    assert gapped.max_id == 257
    assert gapped.id_to_token(256) is None
    assert gapped.get_vocab()["<|x|>"] == 257


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
        "ours",
        pat_str=PATTERNS["gpt2"],
        mergeable_ranks=ranks,
        special_tokens=special,
    )
    for allowed in ((), ("<|end|>",)):
        expected = theirs.encode_batch(TEXTS, allowed_special=set(allowed), disallowed_special=())
        assert ours.encode_batch(TEXTS, allowed_special=allowed) == expected
        assert ours.decode_batch(expected) == theirs.decode_batch(expected) == TEXTS


def test_a_batch_takes_what_a_column_takes() -> None:
    tokenizer = trained()
    rows = [tokenizer.encode(text) for text in TEXTS]
    for texts in (TEXTS, iter(TEXTS), pa.array(TEXTS), [text.encode() for text in TEXTS]):
        assert tokenizer.encode_batch(texts) == rows
    assert tokenizer.decode_batch(tokenizer.encode_arrow(TEXTS).to_pylist()) == TEXTS
    assert tokenizer.encode_batch([]) == []
    assert tokenizer.decode_batch([]) == []
    with pytest.raises(TypeError, match="text 1 is None"):
        tokenizer.encode_batch(["a", None])
    with pytest.raises(TypeError, match="a single text"):
        tokenizer.encode_batch("the tooth")
    with pytest.raises(EncodingError, match="text 1 has a lone surrogate"):
        tokenizer.encode_batch(["a", "\ud800"])
    characters = bpe.train(
        bpe.count_pretokens(["ab"], pretokenizer="words"),
        max_merges=0,
        model=bpe.CharacterLevel(),
    )
    with pytest.raises(UnknownCharacterError, match="row 1") as caught:
        characters.encode_batch(["a", "x"])
    assert caught.value.rows == (1,)


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
        with pytest.raises(AttributeError, match=f"cannot assign '{name}': .* immutable"):
            setattr(tokenizer, name, None)
        with pytest.raises(AttributeError, match=f"cannot delete '{name}': .* immutable"):
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
    assert pickle.loads(pickle.dumps(training)) == training  # noqa: S301 - our own

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


class Cells(HTMLParser):
    """The cells of a table, row by row; refuses any tag that a table does not need."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        assert tag in ("table", "caption", "tr", "th", "td")
        if tag == "tr":
            self.rows.append([])

    def handle_data(self, data: str) -> None:
        if self.rows:
            self.rows[-1].append(data)


def table(tokenizer: bpe.Tokenizer) -> dict[str, str]:
    parser = Cells()
    parser.feed(tokenizer._repr_html_())
    return {name: "".join(rest) for name, *rest in parser.rows}


def test_a_notebook_shows_a_table() -> None:
    rows = table(trained())
    assert rows["vocabulary"] == "265 tokens"
    assert rows["pre-tokenizer"] == "gpt2"
    assert rows["special tokens"] == "<|end|> (0)"
    assert rows["merges"] == "8"
    assert rows["first merges"].startswith("t + ")
    empty = bpe.train(bpe.count_pretokens([]), vocab_size=256)
    assert "first merges" not in table(empty)
    assert table(empty)["special tokens"] == "none"


def test_the_table_escapes_everything() -> None:
    hostile = "<script>alert(1)</script>&"
    counts = bpe.count_pretokens([hostile], pretokenizer=bpe.Pretokenizer(pattern="<b>|.+"))
    tokenizer = bpe.train(
        counts, vocab_size=290, special_tokens=[hostile, *(f"<i>{n}" for n in range(9))]
    )
    rows = table(tokenizer)
    assert rows["special tokens"].startswith(f"{hostile} (0), <i>0 (1)")
    assert rows["special tokens"].endswith(" and 2 more")
    assert html.escape(hostile) in tokenizer._repr_html_()
    assert "last merges" in rows
