"""One pre-token of a megabyte: train 1,000 tokens on it, or encode it with GPT-2's vocabulary.

What is quadratic anywhere shows here. The texts are one letter again and again, random letters,
and random bytes; GPT-2's pre-tokenizer leaves the first two whole, and for the third there is none.
(On one letter, gigatoken goes on merging after the last pair that occurs, where Hugging Face's
trainer stops as ours does: there its training is not comparable.)
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pyarrow as pa

import bpe
from benchmarks import vocabularies
from benchmarks.contenders.merges import parts_of
from benchmarks.contenders.report import Report, rows_digest, strings_digest, timed
from bpe.pretokenizer import PATTERNS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.contenders.merges import Merges

TEXTS: dict[str, Callable[[random.Random, int], bytes]] = {
    "one letter": lambda _, size: b"a" * size,
    "random letters": lambda some, size: bytes(some.choices(range(97, 123), k=size)),
    "random bytes": lambda some, size: some.randbytes(size),
}
VOCABULARY, TRAINED = "r50k_base", 1000


def run(name: str, arguments: Sequence[str], *, check: bool) -> Report:
    """Train or encode once; the arguments are the name of the text, its bytes, and the job."""
    kind, size, job = arguments
    text = TEXTS[kind](random.Random(1), int(size))  # noqa: S311 - no secret
    cut = "none" if kind == "random bytes" else "gpt2"
    if job == "train":
        seconds, merged = timed(TRAIN[name](text, cut))
        digest = strings_digest(merged())
    else:
        seconds, ids = timed(ENCODE[name](text, cut))
        digest = rows_digest([ids()])
    return Report(digest=digest, measures={} if check else {job: seconds}, text_bytes=len(text))


def prepare(arguments: Sequence[str]) -> None:
    """Make the files of the vocabulary."""
    if arguments[2] == "encode":
        vocabularies.ranks(VOCABULARY)


def train_beam_bpe(text: bytes, cut: str) -> Callable[[], Callable[[], Merges]]:
    """Count and train."""

    def train() -> Callable[[], Merges]:
        counts = bpe.count_pretokens([text], pretokenizer=cut)
        tokenizer = bpe.train(counts, vocab_size=TRAINED, ties="huggingface")
        return lambda: list(parts_of(tokenizer, joined=False))

    return train


def train_gigatoken(text: bytes, _: str) -> Callable[[], Callable[[], Merges]]:
    """``train_bpe`` over one buffer."""
    import gigatoken

    def train() -> Callable[[], Merges]:
        _, merges = gigatoken.train_bpe(text, TRAINED, [])
        return lambda: [(bytes(left), bytes(right)) for left, right in merges]

    return train


def encode_beam_bpe(text: bytes, cut: str) -> Callable[[], Callable[[], list[int]]]:
    """``encode_arrow`` of one row."""
    tokenizer = bpe.Tokenizer.load(
        vocabularies.ranks(VOCABULARY), pretokenizer=cut, special_tokens=()
    )
    column = pa.array([text], pa.large_binary())

    def encode() -> Callable[[], list[int]]:
        row = tokenizer.encode_arrow(column)[0]
        return lambda: [int(id_) for id_ in row.values.to_numpy()]

    return encode


def encode_tiktoken(text: bytes, _: str) -> Callable[[], Callable[[], list[int]]]:
    """Its core, without the regular expression, which is what takes the pre-token whole."""
    import tiktoken
    from tiktoken.load import load_tiktoken_bpe

    encoding = tiktoken.Encoding(
        VOCABULARY,
        pat_str=PATTERNS["gpt2"],
        mergeable_ranks=load_tiktoken_bpe(str(vocabularies.ranks(VOCABULARY))),
        special_tokens={},
    )

    def encode() -> Callable[[], list[int]]:
        ids = encoding._encode_single_piece(text)  # noqa: SLF001 - there is no other way to it
        return lambda: ids

    return encode


def encode_gigatoken(text: bytes, _: str) -> Callable[[], Callable[[], list[int]]]:
    """Its batch API with a list of one."""
    import gigatoken

    tokenizer = gigatoken.Tokenizer.from_tiktoken(
        vocabularies.ranks(VOCABULARY), vocabularies.PUBLISHED[VOCABULARY].pretokenizer
    )

    def encode() -> Callable[[], list[int]]:
        rows = tokenizer.encode_batch([text], parallel=False)
        return lambda: [int(id_) for id_ in rows[0]]

    return encode


TRAIN = {
    "beam-bpe": train_beam_bpe,
    "gigatoken": train_gigatoken,
}
ENCODE = {
    "beam-bpe": encode_beam_bpe,
    "tiktoken": encode_tiktoken,
    "gigatoken": encode_gigatoken,
}
