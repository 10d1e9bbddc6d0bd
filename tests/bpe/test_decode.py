from __future__ import annotations

import pyarrow as pa
import pytest

from bpe.errors import EncodingError
from tests.bpe.vocabularies import small_tokenizer


def test_bytes_that_are_no_text_are_replaced_in_text_only() -> None:
    tokenizer = small_tokenizer()
    ids = tokenizer.encode("é".encode()[:1] + b"\xffa")
    assert tokenizer.decode(ids) == "\ufffd\ufffda"
    assert tokenizer.decode_bytes(ids) == b"\xc3\xffa"


GAP = small_tokenizer().tokens.index(None)


@pytest.mark.parametrize("bad", [-1, 10**9, 2**40, GAP])
def test_an_id_that_no_token_has(bad: int) -> None:
    tokenizer = small_tokenizer()
    for call in (tokenizer.decode, tokenizer.decode_bytes):
        with pytest.raises(EncodingError, match=f"no token has the id {bad}"):
            call([0, bad])
    with pytest.raises(EncodingError, match=rf"{bad}"):
        tokenizer.decode_arrow(pa.array([[0], [1, bad]], pa.list_(pa.int64())))


@pytest.mark.parametrize("make", [pa.list_, pa.large_list])
@pytest.mark.parametrize("kind", [pa.uint16(), pa.uint32(), pa.int32(), pa.int64(), pa.uint64()])
def test_arrays_of_ids(make: type, kind: pa.DataType) -> None:
    tokenizer = small_tokenizer()
    texts = ["", "two words", None, "é🙂", None, "x" * 99]
    ids = [None if text is None else tokenizer.encode(text) for text in texts]
    rows = tokenizer.decode_arrow(pa.array(ids, make(kind)))
    rows.validate(full=True)
    assert rows.type == pa.large_binary()
    expected = [None if text is None else text.encode() for text in texts]
    assert rows.to_pylist() == expected
    sliced = pa.array([[1], *ids, [2]], make(kind))[1:-1]
    assert tokenizer.decode_arrow(sliced).to_pylist() == expected
    assert tokenizer.decode_arrow(sliced[2:3]).to_pylist() == [None]
    assert tokenizer.decode_arrow(sliced[:0]).to_pylist() == []


def test_hidden_ids_of_null_lists_are_not_decoded() -> None:
    lists = pa.ListArray.from_arrays(
        pa.array([0, 2, 4, 6], pa.int32()),
        pa.array([65, 66, 10**6, 67, 68, 69], pa.uint32()),
        mask=pa.array([False, True, False]),
    )
    tokenizer = small_tokenizer()
    a, b, c, d = (tokenizer.token_bytes(id_) for id_ in (65, 66, 68, 69))
    assert tokenizer.decode_arrow(lists).to_pylist() == [a + b, None, c + d]


def test_what_is_not_ids_is_refused() -> None:
    tokenizer = small_tokenizer()
    with pytest.raises(EncodingError, match="1 ids are null"):
        tokenizer.decode_arrow(pa.array([[0, None]]))
    for array in (pa.array(["a"]), pa.array([1]), pa.array([[1.0]])):
        with pytest.raises(TypeError, match="lists of integers"):
            tokenizer.decode_arrow(array)
