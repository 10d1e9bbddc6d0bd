"""No entry point of the core keeps an object of Python for each call. Its C++: ``make fuzz``."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import sys
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import bpe
from bpe import _native
from bpe.errors import BpeError
from bpe.ties import TIES
from tests.bpe.fuzz_files import FORMATS, cut_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(
    sys.getallocatedblocks() == 0, reason="PYTHONMALLOC=malloc: Python does not count its objects"
)

TEXTS = pa.array(["the <s> low, lower lowest", "naïve 漢字 🙂", "", "the http://a.b c@d.e"])


@pytest.fixture(scope="module", autouse=True)
def few_objects() -> Iterator[None]:
    """Objects of other tests are not looked through at each collection."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def kept(call: Callable[[], object], calls: int) -> float:
    """Objects of Python that a call leaves allocated, in the round that leaves the fewest.

    What is kept once, such as a cache that fills, is allocated in the first rounds.
    """
    found = []
    for _ in range(5):
        gc.collect()
        before = sys.getallocatedblocks()
        for _ in range(calls):
            call()
        gc.collect()
        found.append(sys.getallocatedblocks() - before)
    return min(found) / calls


def scan() -> None:
    for name in bpe.PRETOKENIZERS:
        _native.scan([name], b"the low'll 12\xff")


def count() -> None:
    counts = bpe.count_pretokens(TEXTS, special_tokens=("<s>", "the"), track_order=True)
    for run in (counts + counts).sorted_counts.split(3):
        run.misplaced(0, 3)
    bpe.count_pretokens(
        TEXTS, never_split=("url",), normalizer=("nfkc", "lowercase", "strip-accents")
    )
    with contextlib.suppress(ValueError):
        _native.SortedCounts(b"ab", bytes(24), 8, bytes(16))


WORDS = bpe.count_pretokens(TEXTS, pretokenizer="words", never_split=("url",), track_order=True)


def train() -> None:
    for ties in TIES:
        bpe.train(WORDS, max_merges=10, ties=ties)
    for model in (bpe.CharacterLevel(), bpe.WordPiece()):
        bpe.train(WORDS, max_merges=10, model=model)


@pytest.mark.parametrize("call", [scan, count, train])
def test_calls_keep_nothing(call: Callable[[], object]) -> None:
    # Python's cache of attributes fills with 20 to 30 names, whatever the number of calls.
    assert kept(call, 50) < 1


@pytest.mark.parametrize("name", FORMATS)
def test_tokenizers_keep_nothing(name: str, tmp_path: Path) -> None:
    """The contents of a file, for the core; reading it is Python's, and its caches grow long."""
    for file, content in FORMATS[name].items():
        path = tmp_path / file
        path.write_bytes(content)
    parts = bpe.Tokenizer.load(path, pretokenizer=cut_of(path)).parts
    dropout = 0.0 if isinstance(parts.model, bpe.WordPiece) else 0.3

    def use() -> None:
        tokenizer = bpe.Tokenizer(parts)
        tokenizer.unreachable()
        for texts in (pa.array(["the"]), TEXTS):
            with contextlib.suppress(BpeError):  # a character has no token
                rows = tokenizer.encode_arrow(texts, allowed_special="all", dropout=dropout)
                tokenizer.decode_arrow(rows, skip_special_tokens=True)
        with contextlib.suppress(BpeError):
            tokenizer.decode_arrow(pa.array([[0, 10**6]]))

    assert kept(use, 50) < 1


def test_a_kept_object_would_be_seen() -> None:
    def keep() -> None:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(object()))

    # Something else may let go of an object meanwhile.
    assert kept(keep, 50) > 0.5
