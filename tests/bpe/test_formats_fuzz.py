"""Mutations of good tokenizer files: read as a tokenizer, or refused in one sentence of ours.

``make fuzz`` tries many more of them (BPE_FUZZ is the number for each format).
"""

from __future__ import annotations

import base64
import copy
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import bpe
from bpe import formats
from bpe.errors import TokenizerFileError, UnknownCharacterError
from bpe.formats.sentencepiece import _message
from bpe.roles import Roles
from tests.bpe.models import make
from tests.bpe.vocabularies import BYTES

EXAMPLES = int(os.environ.get("BPE_FUZZ", "60"))
TEXT = "the <s> xyz é 12"

SPECIAL = ["<s>", "</s>"]
TOKENS = [*BYTES, b"th", b"the", b" th", b"<s>", b"</s>"]
MERGES = [(116, 104, 256), (256, 101, 257), (32, 256, 258)]


def byte_level(*, special: bool = True, **cut: Any) -> bpe.Tokenizer:
    return bpe.Tokenizer(
        tokens=TOKENS if special else TOKENS[:259],
        merges=MERGES,
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
    "ranks": {
        "x.tiktoken": b"".join(
            base64.b64encode(token) + b" %d\n" % rank for rank, token in enumerate(TOKENS[:259])
        )
    },
    "pair": pair(),
}


def cut_of(path: Path) -> str | None:
    """The pre-tokenizer with which a file of any format is read."""
    format_ = next(format_ for format_ in formats.FORMATS if format_.reads(path))
    return None if format_.self_contained else "gpt2"


WRONG: list[Any] = [
    *(None, True, False, -1, 0, 1, 97, 255, 256, 257, 10**9, 2**31, 2**32, 2**64, 0.5, 1e308),
    *("", "a", "th", "<s>", "é", "Ġ", "\0", "\ud800", "▁", " ", "BPE", "WordPiece", "Unigram"),
    *("ByteLevel", "Split", "Sequence", "NFC", "Regex", "beam-bpe-1", "1.0", "(", "a*", "[UNK]"),
    *([], {}, [[]], [{}], {"type": "Sequence"}, [["t", "h"]], ["t h"], {"type": "Metaspace"}),
    *({"type": "BertNormalizer"}, {"type": "Digits"}, {"type": "Replace"}, {"Regex": "("}),
]
BYTES_TO_PUT = [
    b"",
    b"\x00",
    b"\xff",
    b"\n",
    b" ",
    b"{",
    b"}",
    b"[",
    b"]",
    b'"',
    b",",
    b"NaN",
    b"-",
]
BYTES_TO_PUT += [b"1e999", b"9" * 5000, b"1000000000", b"[" * 2000, b'"\\ud800"', b"\xef\xbb\xbf"]


@st.composite
def other_json(draw: st.DrawFn, data: bytes) -> bytes:
    """A file with a value put, left out, moved or named otherwise, once or a few times."""
    file = json.loads(data)
    for _ in range(draw(st.integers(1, 3))):
        at, key = file, None
        while isinstance(at, (dict, list)) and len(at):
            keys = list(at) if isinstance(at, dict) else range(len(at))
            # The ends of long lists are as good as their middles.
            key = draw(st.sampled_from([*keys[:5], *keys[-8:]]))
            if not isinstance(at[key], (dict, list)) or not at[key] or draw(st.booleans()):
                break
            at = at[key]
        if key is None or not isinstance(at, (dict, list)) or not at:
            continue
        change = draw(st.sampled_from(["put", "put", "put", "leave out", "move", "twice"]))
        if change == "put":
            at[key] = copy.deepcopy(draw(st.sampled_from(WRONG)))
        elif change == "leave out":
            del at[key]
        elif isinstance(at, dict):
            at[str(draw(st.sampled_from(WRONG)))] = at[key] if change == "twice" else at.pop(key)
        else:
            at.insert(draw(st.integers(0, len(at))), at[key] if change == "twice" else at.pop(key))
    return json.dumps(file).encode()


@st.composite
def other_bytes(draw: st.DrawFn, data: bytes) -> bytes:
    """A file with some of its bytes replaced, left out, or there twice."""
    for _ in range(draw(st.integers(1, 4))):
        begin = draw(st.integers(0, len(data)))
        end = min(len(data), begin + draw(st.sampled_from([0, 1, 2, 5, 20, 1 << 30])))
        put = draw(st.sampled_from([*BYTES_TO_PUT, data[begin:end] * 2]) | st.binary(max_size=4))
        data = data[:begin] + put + data[end:]
    return data


@pytest.mark.parametrize("name", FORMATS)
@given(data=st.data())
@settings(
    deadline=None,
    max_examples=EXAMPLES,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_a_file_that_is_not_as_it_should_be(name: str, data: st.DataObject, tmp_path: Path) -> None:
    files = FORMATS[name]
    changed = data.draw(st.sampled_from(sorted(files)))
    for file, content in files.items():
        if file == changed:
            kinds = [other_bytes(content)]
            if file.endswith(".json"):
                kinds.append(other_json(content))
            content = data.draw(st.one_of(kinds))  # noqa: PLW2901
        (tmp_path / file).write_bytes(content)
    path = tmp_path / changed
    try:
        tokenizer = bpe.Tokenizer.load(path, pretokenizer=cut_of(path))
    except TokenizerFileError as error:
        message = str(error)
    else:
        check(tokenizer, tmp_path / "again.json")
        return
    assert str(tmp_path) in message
    assert len(message) < 1000


def check(tokenizer: bpe.Tokenizer, path: Path) -> None:
    """It can be used, and written and read back as the same."""
    try:
        ids = tokenizer.encode(TEXT, allowed_special="all")
    except UnknownCharacterError:
        return
    assert tokenizer.decode_bytes(ids) is not None
    assert len(tokenizer.unreachable()) <= len(tokenizer)
    tokenizer.save(path, dialect="beam-bpe")
    # Roles are beside a file called tokenizer.json alone.
    assert bpe.Tokenizer.load(path) == tokenizer.with_roles(Roles())


@pytest.mark.parametrize("name", FORMATS)
def test_the_good_files_load(name: str, tmp_path: Path) -> None:
    for file, content in FORMATS[name].items():
        (tmp_path / file).write_bytes(content)
        path = tmp_path / file
    assert bpe.Tokenizer.load(path, pretokenizer=cut_of(path)).encode("the")


def test_every_format_is_here() -> None:
    names = [Path(name) for files in FORMATS.values() for name in files]
    for format_ in formats.FORMATS:
        assert any(format_.reads(name) for name in names), format_.files
