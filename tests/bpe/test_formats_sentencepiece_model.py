"""``.model`` files of SentencePiece, compared with the package that makes and reads them."""

from __future__ import annotations

import functools
import io
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given

import bpe
from bpe.errors import TokenizerFileError
from bpe.formats.sentencepiece import _message
from bpe.roles import Roles
from tests.bpe.huggingface import loaded_file, marked_texts
from tests.bpe.texts import library_sources
from tests.examples import examples
from tests.shared_data import shared_rows

if TYPE_CHECKING:
    from pathlib import Path

sentencepiece = pytest.importorskip("sentencepiece", reason="no sentencepiece here")

KINDS: dict[str, dict[str, Any]] = {
    "llama2": {},
    "no prefix": {"add_dummy_prefix": False},
    "one unknown": {"byte_fallback": False},
    "whole texts": {"split_by_whitespace": False, "max_sentencepiece_length": 12},
    "digits": {"split_digits": True, "control_symbols": ["[INST]", "[/INST]"], "pad_id": 3},
}
MARK = "▁"


@functools.cache
def trained(kind: str) -> bytes:
    """A file that the package trains."""
    sources = [source.decode("utf-8", "replace") for source in library_sources(60_000)]
    lines = [line for source in sources for line in source.split("\n")]
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([*lines, *["Ünïcode, 日本語 и кириллица"] * 30]),
        model_writer=model,
        **{
            "model_type": "bpe",
            "vocab_size": 1200,
            "character_coverage": 0.999,
            "normalization_rule_name": "identity",
            "remove_extra_whitespaces": False,
            "byte_fallback": True,
            "minloglevel": 2,
            "num_threads": 1,
        }
        | KINDS[kind],
    )
    return model.getvalue()


def in_both(data: bytes) -> tuple[bpe.Tokenizer, Any]:
    theirs = sentencepiece.SentencePieceProcessor(model_proto=data)
    return loaded_file("tokenizer.model", data), theirs


@functools.cache
def of_kind(kind: str) -> tuple[bpe.Tokenizer, Any]:
    return in_both(trained(kind) if kind in KINDS else with_runs("llama2", RUNS[kind]))


def parsed(kind: str) -> Any:
    message = _message()()
    message.ParseFromString(trained(kind))
    return message


def with_runs(kind: str, sizes: list[int]) -> bytes:
    """A file with runs of spaces of equal score, as Mistral's has them."""
    message = parsed(kind)
    for size in sizes:
        message.pieces.add(piece=(MARK * size).encode(), score=-1e9, type=1)
    return bytes(message.SerializeToString())


RUNS = {
    "runs of Mistral": [2, 4, 8, 5, 16, 6, 12, 13, 10, 14, 3, 9, 7, 11],
    "doubled runs": [2, 4],
}


@pytest.mark.parametrize("kind", [*KINDS, *RUNS])
@given(text=marked_texts())
@examples(200)
def test_any_text(kind: str, text: str) -> None:
    ours, theirs = of_kind(kind)
    ids = theirs.encode(text)
    assert ours.encode(text) == ids
    if theirs.unk_id() not in ids:  # " ⁇ " there
        assert ours.decode(ids) == theirs.decode(ids) == text.replace(MARK, " ")


@pytest.mark.shared
@pytest.mark.parametrize("corpus", ["en", "multi"])
@pytest.mark.parametrize("kind", [*KINDS, "runs of Mistral"])
def test_the_corpora(kind: str, corpus: str) -> None:
    ours, theirs = of_kind(kind)
    texts = shared_rows(corpus, sample=150)["text"].to_pylist()
    assert ours.encode_arrow(pa.array(texts)).to_pylist() == theirs.encode(texts)


@pytest.mark.parametrize("kind", KINDS)
def test_tokens_roles_and_files(kind: str, tmp_path: Path) -> None:
    ours, theirs = of_kind(kind)
    assert [ours.token_text(id_) for id_ in range(len(ours))] == [
        theirs.id_to_piece(id_) for id_ in range(theirs.vocab_size())
    ]
    controls = {theirs.id_to_piece(i): i for i in range(len(ours)) if theirs.is_control(i)}
    assert ours.special_tokens == controls | {"<unk>": 0}
    pad = "<pad>" if kind == "digits" else None
    assert ours.roles == Roles(bos="<s>", eos="</s>", unk="<unk>", pad=pad)
    ours.save(tmp_path)
    assert bpe.Tokenizer.load(tmp_path / "tokenizer.json") == ours
    ours.save(tmp_path / "tokenizer.model")
    assert bpe.Tokenizer.load(tmp_path / "tokenizer.model") == ours
    written = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "tokenizer.model"))
    text = "the def self.  日本 и\n\t <s> 😀 "
    assert written.encode(text) == theirs.encode(text)
    for role in ("bos_id", "eos_id", "pad_id", "unk_id"):
        assert getattr(written, role)() == getattr(theirs, role)()


def refused(data: bytes, named: str) -> None:
    with pytest.raises(TokenizerFileError, match=rf"tokenizer\.model: .*{named}"):
        loaded_file("tokenizer.model", data)


@pytest.mark.parametrize(
    ("place", "value", "named"),
    [
        ("trainer_spec.model_type", 1, "type Unigram: only BPE is supported"),
        ("trainer_spec.treat_whitespace_as_suffix", True, "treat_whitespace_as_suffix is not"),
        ("trainer_spec.byte_fallback", False, "pieces of bytes are not those that byte_fallback"),
        ("normalizer_spec.remove_extra_whitespaces", True, "remove_extra_whitespaces is not"),
        ("normalizer_spec.escape_whitespaces", False, "escape_whitespaces false is not"),
        ("normalizer_spec.precompiled_charsmap", b"x", "the normalizer 'identity' is not supp"),
        ("denormalizer_spec.precompiled_charsmap", b"x", "the denormalizer '' is not supported"),
        ("pieces.300.type", 4, "the piece '.*' of type user-defined is not"),
        ("pieces.300.type", 2, "2 unknown pieces: expected one"),
        ("pieces.300.type", 9, "the piece '.*' of type 9 is not supported"),
        ("pieces.300.score", float("nan"), "the piece '.*' has the score nan"),
        ("pieces.300.piece", b"\xff", r"the piece b'\\xff' is not UTF-8"),
        ("pieces.300.piece", b"", "a piece is empty or a duplicate"),
        ("pieces.300.piece", "a\ue000".encode(), r"holds '\\ue000', which is no piece"),
        ("pieces.300.score", -1.0, "have the same score"),
    ],
)
def test_what_is_refused(place: str, value: Any, named: str) -> None:
    message = parsed("llama2")
    *parents, key = place.split(".")
    entry = message
    for parent in parents:
        entry = entry[int(parent)] if parent.isdigit() else getattr(entry, parent)
    setattr(entry, key, value)
    refused(message.SerializeToString(), named)


@pytest.mark.parametrize("sizes", [[4, 2], [2, 3], [2, 12, 4, 8, 16], [2, 4, 128], [3, 2, 4]])
def test_runs_whose_order_depends_on_the_text_are_refused(sizes: list[int]) -> None:
    refused(with_runs("llama2", sizes), "have the same score")


@pytest.mark.parametrize("sizes", [*RUNS.values(), [2, 4, 3], [2, 4, 8, 3, 7, 5, 6]])
def test_runs_of_any_length(sizes: list[int]) -> None:
    ours, theirs = in_both(with_runs("no prefix", sizes))
    for size in [*range(200), 1000, 1001]:
        for text in (" " * size, " " * size + "the"):
            assert ours.encode(text) == theirs.encode(text)


def test_broken_and_truncated_files_are_refused() -> None:
    for data in (b"", b"\x00", b"x" * 100, b"\n\x05ab"):
        refused(data, "is no .model file of SentencePiece")
    data = trained("llama2")
    for size in range(0, len(data), 997):
        refused(data[:size], "")
