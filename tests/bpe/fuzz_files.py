"""A small tokenizer file of every format, and values that no file should have."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import bpe
from bpe import formats
from bpe.formats.sentencepiece import _message
from tests.bpe.models import make
from tests.bpe.vocabularies import BYTES, byte_tokenizer, rank_lines

if TYPE_CHECKING:
    from pathlib import Path

TOKENS = ["th", "the", " th"]


def byte_level(*, special: bool = True, **cut: Any) -> bpe.Tokenizer:
    return byte_tokenizer(
        *(TOKENS + ["<s>", "</s>"] * special),
        joins=["t|h", "th|e", " |th"],
        pretokenizer=bpe.Pretokenizer(**({"name": "gpt2"} | cut)),
        special_tokens={"<s>": 259} if special else {},
        added_tokens={"</s>": 260} if special else {},
    )


def strings(model: bpe.models.Model, *, unknown: str = "[UNK]", **more: Any) -> bpe.Tokenizer:
    end = ["</w>", "e</w>"] if isinstance(model, bpe.CharacterLevel) and model.end_of_word else []
    pairs = [] if isinstance(model, bpe.WordPiece) else [("t", "h"), ("th", "e")]
    vocabulary = [unknown, *"ethxyz <s>é", "##h", "##e", "th", "the", *end]
    return make(dict.fromkeys(vocabulary), pairs, special=[unknown], model=model, **more)


def written(tokenizer: bpe.Tokenizer) -> dict[str, bytes]:
    return {"tokenizer.json": tokenizer.to_json(dialect="beam-bpe").encode()}


def pair() -> dict[str, bytes]:
    vocab = {
        name: id_ for id_, name in enumerate(json.loads(byte_level().to_json())["model"]["vocab"])
    }
    del vocab["</s>"]
    return {
        "vocab.json": json.dumps(vocab).encode(),
        "merges.txt": "#version: 0.2\nt h\nth e\nĠ th\n".encode(),
    }


def sentencepiece() -> dict[str, bytes]:
    message = _message()()
    message.trainer_spec.model_type = 2
    message.normalizer_spec.remove_extra_whitespaces = False
    for number, piece in enumerate(("<unk>", "<s>", "the", "th", "t", "h", "e", "\u2581")):
        kind = {"<unk>": 2, "<s>": 3}.get(piece, 1)
        message.pieces.add(piece=piece.encode(), score=-number, type=kind)
    return {"x.model": message.SerializeToString()}


FORMATS: dict[str, dict[str, bytes]] = {
    "sentencepiece": sentencepiece(),
    "bytes": written(byte_level()),
    "normalized": written(
        byte_level(special=False, name=None, pattern=(r"\p{N}", "llama3"), normalizer=("nfc",))
    ),
    "characters": written(strings(bpe.CharacterLevel(end_of_word="", unknown="[UNK]"))),
    "word pieces": written(strings(bpe.WordPiece())),
    "dialect": written(strings(bpe.CharacterLevel(unknown="[UNK]"))),
    "dialect of bytes": written(
        byte_level(name=None, pattern=r"\w+", never_split=("url",), normalizer=("nfkc",))
    ),
    "ranks": {"x.tiktoken": rank_lines([*BYTES, *map(str.encode, TOKENS)])},
    "pair": pair(),
}


def cut_of(path: Path) -> str | None:
    """The pre-tokenizer with which a file of any format is read."""
    format_ = next(format_ for format_ in formats.FORMATS if format_.is_named(path))
    return None if format_.self_contained else "gpt2"


WRONG: list[Any] = [
    *(None, True, False, -1, 0, 1, 97, 255, 256, 257, 10**9, 2**31, 2**32, 2**64, 0.5, 1e308),
    *("", "a", "th", "<s>", "é", "Ġ", "\0", "\ud800", "▁", " ", "BPE", "WordPiece", "Unigram"),
    *('"', "\\", "\u2028", "😀", "\x1f", "aĠ", "\ude00", "t h", "/"),
    *("ByteLevel", "Split", "Sequence", "NFC", "Regex", "beam-bpe-1", "1.0", "(", "a*", "[UNK]"),
    *([], {}, [[]], [{}], {"type": "Sequence"}, [["t", "h"]], ["t h"], {"type": "Metaspace"}),
    *({"type": "BertNormalizer"}, {"type": "Digits"}, {"type": "Replace"}, {"Regex": "("}),
]
