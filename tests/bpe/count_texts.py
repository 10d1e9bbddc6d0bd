"""Texts with special tokens in them, whole and in parts, small enough that pieces repeat."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.bpe.texts import byte_strings

SPECIAL = ("<s>", "<sep>", "<|end|>", "s>", "é|", "<|end|><s>", "日本")

_PIECES = [
    *(b"a", b"b", b"the", b" the", b" ", b"\n", b"1", b"x" * 15, b"x" * 16, b"y" * 40),
    *(token.encode() for token in SPECIAL),
    *(b"<", b"<|", b"<|end", b"<se", b"|>", b"\xe6\x97"),
]

byte_texts = st.lists(st.sampled_from(_PIECES) | byte_strings(), max_size=10).map(b"".join)
special_tokens = st.lists(st.sampled_from(SPECIAL), unique=True, max_size=4).map(tuple)
