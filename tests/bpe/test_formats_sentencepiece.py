"""tokenizer.json of SentencePiece's BPE: marks for spaces, bytes of characters without a token.

Files are as those of Llama 2, Mistral and Gemma, with vocabularies that ``tokenizers`` trains.
"""

from __future__ import annotations

import functools
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

import bpe
from bpe.errors import TokenizerError, TokenizerFileError, UnknownCharacterError
from bpe.models import BYTE_TOKENS
from bpe.reference import pretokenize as reference
from bpe.reference.encode import decode as reference_decode
from bpe.reference.encode import encode as reference_encode
from tests.bpe.huggingface import edited, ids_of, loaded, written
from tests.bpe.texts import library_sources, strings
from tests.examples import examples
from tests.shared_data import shared_rows

if TYPE_CHECKING:
    from pathlib import Path

MARK = "▁"
SPECIAL = ["<unk>", "<s>", "</s>"]
PREPEND, REPLACE = normalizers.Prepend(MARK), normalizers.Replace(" ", MARK)


def metaspace(scheme: str, *, split: bool) -> pre_tokenizers.Metaspace:
    return pre_tokenizers.Metaspace(prepend_scheme=scheme, split=split)


@functools.cache
def trained() -> dict[str, Any]:
    """A file with a vocabulary of words and of runs of spaces."""
    theirs = tokenizers.Tokenizer(models.BPE(unk_token="<unk>"))
    theirs.pre_tokenizer = metaspace("always", split=True)
    trainer = trainers.BpeTrainer(
        vocab_size=1200,
        special_tokens=[*SPECIAL, *(token.decode() for token in BYTE_TOKENS)],
        limit_alphabet=90,
        show_progress=False,
    )
    texts = [source.decode("utf-8", "replace") for source in library_sources(60_000)]
    theirs.train_from_iterator([*texts, "Ünïcode, 日本語 и кириллица " * 30], trainer)
    # Runs of spaces, which cross the cuts of the trainer.
    file: dict[str, Any] = json.loads(theirs.to_str())
    vocab, merges = file["model"]["vocab"], file["model"]["merges"]
    for size in (2, 4, 8):
        vocab[MARK * size] = len(vocab)
        merges.append([MARK * (size // 2)] * 2)
    file["added_tokens"] = [a for a in file["added_tokens"] if a["content"] in SPECIAL]
    return file


def made(
    *,
    normalizer: normalizers.Normalizer | None = None,
    pre_tokenizer: pre_tokenizers.PreTokenizer | None = None,
    strips: bool = True,
    decoder: decoders.Decoder | None = None,
    **model: Any,
) -> tokenizers.Tokenizer:
    """Theirs with other settings."""
    file = trained()
    model = {"byte_fallback": True, "fuse_unk": True} | model
    file = {**file, "pre_tokenizer": None, "model": {**file["model"], **model}}
    theirs = tokenizers.Tokenizer.from_str(json.dumps(file))
    if normalizer is not None:
        theirs.normalizer = normalizer
    if pre_tokenizer is not None:
        theirs.pre_tokenizer = pre_tokenizer
    steps = [decoders.Replace(MARK, " "), decoders.Fuse()]
    if model["byte_fallback"]:
        steps.insert(1, decoders.ByteFallback())
    if strips:
        steps.append(decoders.Strip(" ", 1, 0))
    theirs.decoder = decoder or decoders.Sequence(steps)
    return theirs


NFKC = normalizers.NFKC()
KINDS = {
    "llama2": lambda: made(normalizer=normalizers.Sequence([PREPEND, REPLACE])),
    "yi": lambda: made(normalizer=REPLACE, strips=False),
    "gemma": lambda: made(
        normalizer=REPLACE,
        pre_tokenizer=pre_tokenizers.Split(" ", "merged_with_previous"),
        strips=False,
    ),
    "first": lambda: made(pre_tokenizer=metaspace("first", split=False)),
    "first, split": lambda: made(pre_tokenizer=metaspace("first", split=True)),
    "always": lambda: made(pre_tokenizer=metaspace("always", split=False)),
    "always, split": lambda: made(
        normalizer=NFKC, pre_tokenizer=metaspace("always", split=True), ignore_merges=True
    ),
    "never": lambda: made(pre_tokenizer=metaspace("never", split=False), strips=False),
    "never, split": lambda: made(pre_tokenizer=metaspace("never", split=True), strips=False),
    "digits": lambda: made(
        pre_tokenizer=pre_tokenizers.Sequence(
            [metaspace("first", split=True), pre_tokenizers.Digits(individual_digits=True)]
        )
    ),
    "one unknown": lambda: made(
        normalizer=normalizers.Sequence([PREPEND, REPLACE]), byte_fallback=False
    ),
    "each unknown": lambda: made(
        pre_tokenizer=metaspace("always", split=True), byte_fallback=False, fuse_unk=False
    ),
}


@functools.cache
def of_kind(kind: str) -> tuple[bpe.Tokenizer, tokenizers.Tokenizer, tokenizers.Tokenizer]:
    """Ours, theirs, and theirs of the file that ours writes."""
    theirs = KINDS[kind]()
    ours = loaded(theirs)
    return ours, theirs, written(ours)


ATOMS = [
    *(" ", "  ", " " * 5, MARK, MARK * 3, "\t", "\n", "\u00a0", "\u3000"),
    *("a", "the", " the", "def ", "é", "e\u0301", "\u0301", "ß", "ﬁ", "日本", "漢", "и"),
    *("😀", "👩\u200d👩\u200d👧", "\ufe0f", "\u0000", "\x7f", "\ufffd", "\U0010ffff"),
    *(*SPECIAL, "<s", "<0x0A>", "<0xE2>", "7", "42"),
]


@pytest.mark.parametrize("kind", KINDS)
@given(text=st.lists(st.sampled_from(ATOMS), max_size=16).map("".join) | strings())
@examples(150)
def test_any_text(kind: str, text: str) -> None:
    ours, theirs, again = of_kind(kind)
    ids = ids_of(theirs, text)
    assert ours.encode(text, allowed_special="all") == ids
    assert ids_of(again, text) == ids
    for skip in (False, True):
        expected = theirs.decode(ids, skip_special_tokens=skip)
        assert ours.decode(ids, skip_special_tokens=skip) == expected
        assert again.decode(ids, skip_special_tokens=skip) == expected


@pytest.mark.parametrize("kind", KINDS)
@given(text=st.lists(st.sampled_from(ATOMS), max_size=12).map("".join), malformed=st.binary())
@examples(30)
def test_any_bytes_as_by_the_readable_twin(kind: str, text: str, malformed: bytes) -> None:
    ours, *_ = of_kind(kind)
    data = text.encode() + malformed
    ids = ours.encode(data)
    token = ours.token_bytes
    ordinary = set(range(len(ours))) - set(ours.special_tokens.values())
    pieces = reference.split(ours.pretokenizer, data)
    assert ids == reference_encode(
        pieces,
        ids={token(id_): id_ for id_ in (*ordinary, 0)},
        ranks={(token(a), token(b)): rank for rank, (a, b, _) in enumerate(ours.merges)},
        model=ours.model,
        ignore_merges=ours.ignore_merges,
    )
    decoded = reference_decode([token(id_) for id_ in ids], model=ours.model)
    spaced = decoded.replace(MARK.encode(), b" ")
    is_prepended = ours.pretokenizer.normalizer[-1] != "mark-spaces" or kind == "llama2"
    if kind != "one unknown":
        assert ours.decode_bytes(ids) == (spaced.removeprefix(b" ") if is_prepended else spaced)
    if "unknown" not in kind and "nfkc" not in ours.pretokenizer.normalizer:
        assert decoded == b"".join(pieces)
    steps = [symbol for piece in pieces for symbol in ours.explain(piece)[-1].symbols]
    assert [ours.token_id(symbol) for symbol in steps] == ids


@pytest.mark.parametrize("kind", KINDS)
def test_columns_and_files(kind: str, tmp_path: Path) -> None:
    ours, theirs, _ = of_kind(kind)
    texts = ["", " ", "a b", "<s> a  b", "</s>", "日本語 😀"]
    expected = [ids_of(theirs, text) for text in texts]
    rows = ours.encode_arrow(pa.array(texts), allowed_special="all")
    assert rows.to_pylist() == expected
    assert ours.decode_arrow(rows).to_pylist() == [ours.decode(ids).encode() for ids in expected]
    ours.save(tmp_path / "ours.json")
    assert json.loads((tmp_path / "ours.json").read_text())["version"] == "1.0"
    assert bpe.Tokenizer.load(tmp_path / "ours.json") == ours
    # In the dialect.
    cut = replace(ours.pretokenizer, never_split=("url",))
    other = bpe.Tokenizer(replace(ours.parts, pretokenizer=cut))
    with pytest.raises(TokenizerError, match="never_split 'url'"):
        other.save(tmp_path / "other.json")
    other.save(tmp_path / "other.json", dialect="beam-bpe")
    assert bpe.Tokenizer.load(tmp_path / "other.json") == other


@pytest.mark.shared
@pytest.mark.parametrize("corpus", ["en", "multi"])
@pytest.mark.parametrize("kind", ["llama2", "gemma", "first", "one unknown"])
def test_the_corpora(kind: str, corpus: str) -> None:
    ours, theirs, _ = of_kind(kind)
    texts = shared_rows(corpus, sample=150)["text"].to_pylist()
    rows = ours.encode_arrow(pa.array(texts)).to_pylist()
    for text, ids in zip(texts, rows, strict=True):
        if not any(token in text for token in SPECIAL):
            assert ids == ids_of(theirs, text)
            assert ours.decode(ids) == theirs.decode(ids, skip_special_tokens=False)


def test_added_tokens_in_marked_text() -> None:
    theirs = made(normalizer=REPLACE, strips=False)
    theirs.add_tokens(["<b>", "wörd"])  # normalized, as they are by default
    ours = loaded(theirs)
    for text in ("a <b> c", "<b><b>  wörd wö rd", "▁<b>▁"):
        assert ours.encode(text) == theirs.encode(text).ids
    theirs.add_tokens(["a b"])
    ours = loaded(theirs)
    for text in ("a b", "a▁b", "a  b a b", "<b>a b▁wörd"):
        assert ours.encode(text) == theirs.encode(text).ids


def test_added_tokens_behind_marks_that_a_pre_tokenizer_makes() -> None:
    theirs = made(pre_tokenizer=metaspace("never", split=False), strips=False)
    stripping = tokenizers.AddedToken("<m>", lstrip=True, normalized=True)
    theirs.add_tokens(["a b", stripping])
    ours = loaded(theirs)
    for text in ("a b", "a▁b", "a  b a b", "x  <m> <m>", "▁<m>"):
        assert ours.encode(text) == theirs.encode(text).ids
    theirs.add_special_tokens(["b>"])  # which "a b>" may hold instead
    with pytest.raises(TokenizerFileError, match="a Metaspace that puts no mark before texts, and"):
        loaded(theirs)


def test_words_are_cut_only_where_no_merge_crosses() -> None:
    assert of_kind("llama2")[0].pretokenizer.patterns == (f"{MARK}+[^{MARK}]*",)
    file = json.loads(KINDS["llama2"]().to_str())
    file["model"]["vocab"][f"e{MARK}"] = len(file["model"]["vocab"])
    file["model"]["merges"].insert(0, ["e", MARK])
    theirs = tokenizers.Tokenizer.from_str(json.dumps(file))
    ours = loaded(theirs)
    assert ours.pretokenizer.name == "none"
    for text in ("the tree", " e  e e", "e"):
        assert ours.encode(text) == ids_of(theirs, text)


def test_a_decoder_of_metaspace() -> None:
    theirs = made(
        pre_tokenizer=metaspace("always", split=True),
        decoder=decoders.Metaspace(prepend_scheme="always"),
    )
    ours = loaded(theirs)
    ids = theirs.encode("the tree").ids
    assert ours.encode("the tree") == ids
    assert ours.decode(ids) == theirs.decode(ids) == "the tree"


def test_tokens_that_no_text_needs() -> None:
    ours, *_ = of_kind("llama2")
    texts = {ours.token_text(id_) for id_ in ours.unreachable()}
    assert "<0x41>" in texts  # there is an A
    assert texts.isdisjoint({"<0x00>", "<0xE2>", "<0xFF>", "A", "the"})
    known = {text for text in texts if text.encode() not in BYTE_TOKENS}
    assert not known, known


def test_less_merges() -> None:
    ours, *_ = of_kind("llama2")
    symbols = len(ours) - len(ours.merges)
    smaller = ours.truncated(symbols + 100)
    assert len(smaller.merges) == 100
    assert smaller.decode(smaller.encode("the 😀")) == "the 😀"
    with pytest.raises(TokenizerError, match="does not hold the symbol"):
        ours.truncated(100)


def test_merges_are_dropped_at_random() -> None:
    ours, *_ = of_kind("llama2")
    ids = ours.encode("the 😀", dropout=1)
    assert ours.decode(ids) == "the 😀"
    assert [ours.token_text(id_) for id_ in ids][:4] == [MARK, "t", "h", "e"]


def test_never_split_falls_back_to_bytes() -> None:
    ours, *_ = of_kind("llama2")
    cut = bpe.Pretokenizer("none", never_split=("😀",))
    other = bpe.Tokenizer(replace(ours.parts, pretokenizer=cut))
    assert other.decode(other.encode("a😀")) == "a😀"


@given(st.lists(st.lists(st.sampled_from(["<s>", " ", "a", MARK, "b"]), max_size=8).map("".join)))
@settings(deadline=None)
def test_words_are_counted_with_marks(texts: list[str]) -> None:
    for last in ("prepend-mark", "ensure-mark"):
        cut = bpe.Pretokenizer(pattern=f"{MARK}[^{MARK}]*", normalizer=("mark-spaces", last))
        counts = bpe.count_pretokens(texts, pretokenizer=cut, special_tokens=["<s>"])
        expected = reference.count(
            [text.encode() for text in texts], pretokenizer=cut, special_tokens=[b"<s>"]
        )
        assert dict(counts.items()) == dict(expected)


def test_words_behind_a_special_token_are_counted_without_a_mark() -> None:
    cut = bpe.Pretokenizer("none", normalizer=("mark-spaces", "ensure-first-mark"))
    counts = bpe.count_pretokens(
        ["a b", "<s>a b", "a b<s>a b", " a b", ""], pretokenizer=cut, special_tokens=["<s>"]
    )
    assert dict(counts.items()) == {"▁a▁b".encode(): 3, "a▁b".encode(): 2}
    again = bpe.count_pretokens(["a b", " a b"], pretokenizer=cut)
    assert dict(again.items()) == {"▁a▁b".encode(): 2}


@pytest.mark.parametrize(
    ("place", "value", "named"),
    [
        ("normalizer", {"type": "Prepend", "prepend": "_"}, "Prepend is supported of ▁ alone"),
        (
            "normalizer",
            {"type": "Replace", "pattern": {"String": " "}, "content": "_"},
            "the normalizer 'Replace' is not supported",
        ),
        (
            "pre_tokenizer",
            {"type": "Metaspace", "replacement": "_", "prepend_scheme": "first", "split": True},
            "pre_tokenizer.replacement: '_' is not supported",
        ),
        (
            "pre_tokenizer",
            {"type": "Metaspace", "replacement": MARK, "prepend_scheme": "first", "split": True},
            "prepend_scheme: first is not supported with a normalizer",
        ),
        ("decoder", {"type": "Fuse"}, "decoder: decodes in another way .*ByteFallback"),
        ("decoder", None, None),
    ],
)
def test_what_is_refused(place: str, value: Any, named: str | None) -> None:
    theirs = tokenizers.Tokenizer.from_str(edited(KINDS["llama2"]().to_str(), place, value))
    if named is None:
        assert loaded(theirs) == of_kind("llama2")[0]
        return
    with pytest.raises(TokenizerFileError, match=named):
        loaded(theirs)


def test_bytes_without_a_token_are_refused() -> None:
    file = json.loads(KINDS["llama2"]().to_str())
    vocab = file["model"]["vocab"]
    vocab["other"] = vocab.pop("<0x0A>")
    with pytest.raises(TokenizerFileError, match="no token is <0x0A>; byte fallback needs one"):
        loaded(tokenizers.Tokenizer.from_str(json.dumps(file)))


def test_models_by_hand() -> None:
    with pytest.raises(TokenizerError, match="byte_fallback 1 is not True or False"):
        bpe.CharacterLevel(byte_fallback=1)  # type: ignore[arg-type]
    model = bpe.CharacterLevel(end_of_word="", byte_fallback=True)
    tokens = [*BYTE_TOKENS, b"a"]
    tokenizer = bpe.Tokenizer(
        tokens=tokens, merges=[], pretokenizer=bpe.Pretokenizer("none"), model=model
    )
    assert tokenizer.encode("ab\n") == [256, ord("b"), ord("\n")]
    assert tokenizer.decode_bytes([256, 0xC3, 0x28]) == b"a\xc3("
    without = bpe.CharacterLevel(end_of_word="", fuse_unknown=True)
    with pytest.raises(UnknownCharacterError, match="'b'"):
        bpe.Tokenizer(
            tokens=tokens, merges=[], pretokenizer=bpe.Pretokenizer("none"), model=without
        ).encode("ab")


def test_steps_that_theirs_cannot_express() -> None:
    ours, *_ = of_kind("llama2")
    for normalizer in (("ensure-mark",), ("nfkc", "mark-spaces", "ensure-first-mark")):
        cut = bpe.Pretokenizer("none", normalizer=normalizer)
        other = bpe.Tokenizer(replace(ours.parts, pretokenizer=cut))
        with pytest.raises(TokenizerError, match="ensure-"):
            other.to_json()
        assert json.loads(other.to_json(dialect="beam-bpe"))["normalizer"] == list(normalizer)
