from __future__ import annotations

import hashlib
import json
import re
from array import array
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import bpe
from bpe.errors import BpeError, EncodingError, TokenizerError
from tests.bpe.vocabularies import BYTES, byte_tokenizer, small_tokenizer

if TYPE_CHECKING:
    from pathlib import Path

TOKENS = [*BYTES, b"th", b"the", None, b"<s>"]
MERGES = [(116, 104, 256), (256, 101, 257)]


def make(**changes: Any) -> bpe.Tokenizer:
    settings: dict[str, Any] = {
        "tokens": TOKENS,
        "merges": MERGES,
        "pretokenizer": bpe.Pretokenizer("gpt2"),
        "special_tokens": {"<s>": 259},
    }
    return bpe.Tokenizer(**{**settings, **changes})


@pytest.mark.parametrize("wrong", [257, None, bytearray(b"the"), ["the"]])
def test_what_is_no_token_is_named(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"the token is .*, not a str or bytes"):
        make().token_id(wrong)


@pytest.mark.parametrize(
    "merges",
    [
        array("I", [116, 104, 256, 256, 101, 257]),
        array("I", [116, 104, 256, 256, 101, 257]).tobytes(),
        pa.array([116, 104, 256, 256, 101, 257], pa.uint32()).buffers()[1],
        [[116, 104, 256], [256, 101, 257]],
    ],
    ids=["array", "bytes", "arrow", "lists"],
)
def test_merges_of_all_forms(merges: Any) -> None:
    assert make(merges=merges) == make()


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"tokens": [*TOKENS, b""]}, r"token 260 is b'': .* at least one byte"),
        ({"tokens": [*TOKENS, b"th"]}, "ids 256 and 260 are the same byte string"),
        ({"tokens": [], "special_tokens": {}, "merges": []}, "no token is the single byte 0"),
        ({"tokens": [*TOKENS, "a"]}, "token 260 is 'a'"),
        ({"tokens": []}, "'<s>' should be token 259, which is None"),
        ({"merges": [(116, 104)]}, "merge 0 is not three ids"),
        ({"merges": [(116, 104, 2**32)]}, "merge 0 is not three ids"),
        ({"merges": 5}, "merge 0 is not three ids"),
        ({"merges": b"1234"}, "4 bytes of merges are not triples"),
        ({"merges": [(116, 258, 256)]}, r"merge 0 \(116, 258 -> 256\): no token has the id 258"),
        # However large its numbers.
        ({"merges": [*MERGES, [0, 0, 2**32 - 1]]}, "merge 2 .*: no token has the id"),
        ({"merges": [*MERGES, [2**31, 0, 0]]}, "merge 2 .*: no token has the id"),
        ({"merges": [*MERGES, (104, 116, 256)]}, "merge 2 .*: the result is not the bytes of left"),
        ({"merges": [*MERGES, MERGES[0]]}, "merge 2 .*: the pair is merged twice"),
        ({"special_tokens": {"the": 257}}, "merge 1 .*: id 257 is a special token"),
        ({"special_tokens": {"a": 97}}, "no token is the single byte 97"),
        ({"special_tokens": {"<s>": -1}}, "'<s>' should be token -1, which is None"),
        ({"special_tokens": {"<t>": 259}}, "'<t>' should be token 259, which is b'<s>'"),
        ({"special_tokens": {"": 259}}, "empty"),
        ({"special_tokens": {"\ud800": 259}}, "lone surrogate"),
        ({"added_tokens": {"<s>": 259}}, "'<s>' is both a special and an added token"),
    ],
)
def test_what_does_not_fit_together_is_refused(changes: dict[str, Any], named: str) -> None:
    with pytest.raises(BpeError, match=named) as caught:
        make(**changes)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    "changes",
    [
        {"tokens": [*TOKENS, b"xyz"]},
        {"merges": MERGES[:1]},
        {"merges": MERGES[::-1]},
        {"pretokenizer": bpe.Pretokenizer("cl100k")},
        {"special_tokens": {}},
        {"special_tokens": {}, "added_tokens": {"<s>": 259}},
        {"ignore_merges": True},
    ],
)
def test_tokenizers_that_differ(changes: dict[str, Any]) -> None:
    assert make(**changes) != make()
    assert make(**changes) == make(**changes)
    assert hash(make(**changes)) == hash(make(**changes))
    assert make(**changes).sha256 != make().sha256


def test_the_hash_is_that_of_the_file(tmp_path: Path) -> None:
    tokenizer = make()
    tokenizer.save(tmp_path / "a.json")
    data = (tmp_path / "a.json").read_bytes()
    assert tokenizer.sha256 == hashlib.sha256(data).hexdigest()
    bpe.Tokenizer.load(tmp_path / "a.json").save(tmp_path / "b.json")
    assert (tmp_path / "b.json").read_bytes() == data
    assert json.loads(data)["model"]["vocab"]["the"] == 257


def test_saving_replaces_a_file_whole_or_leaves_it(tmp_path: Path) -> None:
    path = tmp_path / "deeper" / "x.tiktoken"
    byte_tokenizer("ab", joins=["a|b"]).save(path)
    before = path.read_bytes()
    with pytest.raises(TokenizerError, match="the normalizer nfc"):
        byte_tokenizer(pretokenizer=bpe.Pretokenizer("gpt2", normalizer=("nfc",))).save(path)
    assert path.read_bytes() == before
    byte_tokenizer().save(path)
    assert path.read_bytes() != before
    assert [file.name for file in path.parent.iterdir()] == ["x.tiktoken"]


def test_explain() -> None:
    tokenizer = make()
    assert tokenizer.explain("then") == [
        ((b"t", b"h", b"e", b"n"), None),
        ((b"th", b"e", b"n"), (b"t", b"h")),
        ((b"the", b"n"), (b"th", b"e")),
    ]
    assert tokenizer.explain("") == [((), None)]
    assert tokenizer.explain("<s>") == [((b"<", b"s", b">"), None)]
    whole = make(ignore_merges=True)
    assert whole.explain("the") == [((b"t", b"h", b"e"), None), ((b"the",), None)]
    assert whole.explain("<s>") == [((b"<", b"s", b">"), None)]


def test_unreachable_tokens() -> None:
    assert make().unreachable() == []
    # "the" is merged from "t" and "he" only, and "th" always comes first; "xyz" from nothing.
    tokens, joins = ("th", "he", "the", "xyz"), ["t|h", "h|e", "t|he"]
    assert byte_tokenizer(*tokens, joins=joins).unreachable() == [258, 259]
    assert byte_tokenizer(*tokens, joins=joins, ignore_merges=True).unreachable() == []


def test_tokens_are_spelled_as_in_the_file() -> None:
    tokenizer = small_tokenizer(added_tokens=("<tool>",))
    text = "the é\n<tool><|end|>"
    tokens = tokenizer.tokenize(text, allowed_special="all")
    assert tokens[-3:] == ["Ċ", "<tool>", "<|end|>"]
    assert tokens[:2] == ["the", "Ġ"]
    vocab = json.loads(tokenizer.to_json())["model"]["vocab"]
    ids = tokenizer.encode(text, allowed_special="all")
    assert [vocab[token] for token in tokens if token in vocab] == ids[: len(tokens)]
    assert tokenizer.tokenize("") == []
    with pytest.raises(EncodingError, match="no token has the id 99999"):
        tokenizer.token_text(99999)


@pytest.mark.parametrize("wrong", ["a", b"a", None, 1.5, [1]])
def test_what_is_no_id_is_named(wrong: Any) -> None:
    tokenizer = make()
    named = re.escape(f"{wrong!r} is not a token id: ids are integers")
    for call in (tokenizer.token_bytes, tokenizer.token_text):
        with pytest.raises(TypeError, match=named):
            call(wrong)
    for decode in (tokenizer.decode, tokenizer.decode_bytes):
        with pytest.raises(TypeError, match=named):
            decode([0, wrong])


@pytest.mark.parametrize("ids", ["ab", b"ab", 5])
def test_what_is_no_list_of_ids_is_named(ids: Any) -> None:
    with pytest.raises(TypeError, match=f"ids is {ids!r}: give a list of ids"):
        make().decode(ids)


def test_ids_come_from_arrays() -> None:
    ids = [257, 32, 116]
    arrays = [pa.array(ids), pa.chunked_array([ids[:1], ids[1:]]), np.array(ids, np.uint32)]
    assert [make().decode(array) for array in arrays] == ["the t"] * 3
