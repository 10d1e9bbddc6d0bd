"""No entry point of the core keeps an object of Python for each call. Its C++: ``make fuzz``."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import sys
from array import array
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import bpe
from bpe import _native
from bpe.errors import BpeError
from bpe.normalizer import normalize_column
from bpe.ties import TIES
from tests.bpe.fuzz_files import FORMATS, cut_of
from tests.bpe.models import make
from tests.bpe.vocabularies import BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(
    sys.getallocatedblocks() == 0, reason="PYTHONMALLOC=malloc: Python does not count its objects"
)

TEXTS = pa.array(["the <s> low, lower lowest", "naïve 漢字 🙂", "", "the http://a.b c@d.e"])
END = "<s>"


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


def refused(call: Callable[[], object]) -> Callable[[], None]:
    """The call, whose error of ours is dropped."""

    def run() -> None:
        with contextlib.suppress(BpeError, ValueError):
            call()
            raise AssertionError("it was not refused")

    return run


@functools.cache
def tokenizers() -> list[bpe.Tokenizer]:
    counts = bpe.count_pretokens(TEXTS)
    words = bpe.count_pretokens(TEXTS, pretokenizer="words")
    return [
        bpe.train(counts, max_merges=20, special_tokens=(END,)),
        bpe.train(words, max_merges=20, model=bpe.CharacterLevel(unknown="<unk>")),
        bpe.train(words, max_merges=20, model=bpe.WordPiece()),
    ]


def encoding() -> dict[str, Callable[[], object]]:
    of_bytes, of_characters, of_pieces = tokenizers()
    known = make(["a", "b", "</w>"], model=bpe.CharacterLevel())
    rows = of_bytes.encode_arrow(TEXTS)
    ids = rows[0].as_py()
    stranger = TEXTS.take(pa.array([1]))
    return {
        "encode": lambda: of_bytes.encode("the lowest", allowed_special="all"),
        "encode_arrow": lambda: of_bytes.encode_arrow(TEXTS, allowed_special="all"),
        "encode with dropout": lambda: of_bytes.encode_arrow(TEXTS, dropout=0.3, seed=7),
        "encode characters": lambda: of_characters.encode_arrow(TEXTS),
        "encode word pieces": lambda: of_pieces.encode_arrow(TEXTS),
        "encode what has no token": refused(lambda: known.encode_arrow(stranger)),
        "decode": lambda: of_characters.decode(of_characters.encode("low")),
        "decode_arrow": lambda: of_bytes.decode_arrow(rows, skip_special_tokens=True),
        "decode no id": refused(lambda: of_bytes.decode_arrow(pa.array([[*ids, 10**6]]))),
    }


def counting() -> dict[str, Callable[[], object]]:
    special = (END, "the")
    counts = bpe.count_pretokens(TEXTS, track_order=True)
    steps = ("nfkc", "lowercase", "strip-accents")
    return {
        "scan": lambda: [_native.scan([name], b"the low'll 12\xff") for name in bpe.PRETOKENIZERS],
        "normalize": lambda: normalize_column(TEXTS, steps),
        "count": lambda: bpe.count_pretokens(TEXTS, special_tokens=special),
        "count in order": lambda: bpe.count_pretokens(TEXTS, track_order=True) + counts,
        "count what is whole": lambda: bpe.count_pretokens(TEXTS, never_split=("url", "email")),
        "count shards": lambda: [run.misplaced(0, 3) for run in counts.sorted_counts.split(3)],
        "count what is no run": refused(
            lambda: _native.SortedCounts(b"ab", bytes(24), 8, bytes(16))
        ),
    }


def training() -> dict[str, Callable[[], object]]:
    counts = bpe.count_pretokens(
        TEXTS, pretokenizer="words", never_split=("url",), track_order=True
    )
    settings: list[dict[str, Any]] = [{"ties": ties} for ties in TIES]
    settings += [{"model": bpe.CharacterLevel()}, {"model": bpe.WordPiece()}]
    return {
        f"train {one}": functools.partial(bpe.train, counts, max_merges=10, **one)
        for one in settings
    }


def vocabularies() -> dict[str, Callable[[], object]]:
    tokens = [*BYTES, b"ab", b"abab"]
    data = b"".join(tokens)
    offsets = array("q", [0, *accumulate(map(len, tokens))])
    merges = bytes(memoryview(_native.merges_of_ranks(data, offsets)))
    unfit = {"tokens": [*BYTES, b"ab"], "merges": [(97, 98, 99)]}
    return {
        "merges of ranks": lambda: _native.merges_of_ranks(data, offsets),
        "merges that happen": lambda: _native.merges_that_happen(data, offsets, merges),
        "a vocabulary that does not fit": refused(
            lambda: bpe.Tokenizer(**unfit, pretokenizer=bpe.Pretokenizer("gpt2"))
        ),
    }


CALLS = {**counting(), **encoding(), **training(), **vocabularies()}


@pytest.mark.parametrize("name", CALLS)
def test_calls_keep_nothing(name: str) -> None:
    # Python's cache of attributes fills with 20 to 30 names, whatever the number of calls.
    assert kept(CALLS[name], 100) < 0.5


@pytest.mark.parametrize("name", FORMATS)
def test_vocabularies_keep_nothing(name: str, tmp_path: Path) -> None:
    """The contents of a file, for the core; reading it is Python's, and its caches grow long."""
    for file, content in FORMATS[name].items():
        path = tmp_path / file
        path.write_bytes(content)
    parts = bpe.Tokenizer.load(path, pretokenizer=cut_of(path)).parts
    assert kept(lambda: bpe.Tokenizer(parts), 20) < 0.5


def test_a_kept_object_would_be_seen() -> None:
    def keep() -> None:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(object()))

    # Something else may let go of an object meanwhile.
    assert kept(keep, 100) > 0.5
