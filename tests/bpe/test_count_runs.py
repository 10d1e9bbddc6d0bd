"""Counting runs of tokens: what ends a run, and what is refused."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import bpe
from bpe.counts import PretokenCounts
from bpe.errors import CountsError, EncodingError
from bpe.run_counting import RunCounter
from tests.bpe.oracle import runs_of
from tests.bpe.vocabularies import BYTES

if TYPE_CHECKING:
    from pathlib import Path


SPECIAL = "<s>"
ADDED = "<+>"


def letters(**settings: object) -> bpe.Tokenizer:
    arguments = {
        "tokens": [*BYTES, b" a", b" b", SPECIAL.encode(), ADDED.encode()],
        "merges": [(32, 97, 256), (32, 98, 257)],
        "pretokenizer": bpe.Pretokenizer("gpt2"),
        "special_tokens": {SPECIAL: 258},
        "added_tokens": {ADDED: 259},
    }
    return bpe.Tokenizer(**arguments | settings)


def test_what_ends_a_run() -> None:
    counts = bpe.count_runs(
        ["a b a", f"a b{SPECIAL} b a{ADDED} a b", "a 1 b a", "", "a", " a b\n b b"],
        tokenizer=letters(),
    )
    assert runs_of(counts.run, 2) == {
        (97, 257, 256): 1,
        (97, 257): 1,
        (257, 256): 2,
        (256, 257): 2,
        (257, 257): 1,
    }
    assert counts.runs is not None
    assert counts.runs.tokenizer == letters().text_sha256
    assert counts.special_tokens == (SPECIAL,)


def test_long_runs_are_cut_into_pieces() -> None:
    for max_run, expected in (
        (None, {(97, *[257] * 6): 1}),
        (7, {(97, *[257] * 6): 1}),
        (4, {(97, 257, 257, 257): 1, (257, 257, 257): 1}),
        (3, {(97, 257, 257): 1, (257, 257, 257): 1}),  # the last token is left out
        (2, {(97, 257): 1, (257, 257): 2}),
    ):
        counts = bpe.count_runs(["a" + " b" * 6], tokenizer=letters(), max_run=max_run)
        assert runs_of(counts.run, 2) == expected
        assert counts.totals.pretokens == sum(expected.values())


def test_ids_of_large_vocabularies_take_four_bytes() -> None:
    more = [b"%06d" % number for number in range(1 << 16)]
    tokens = [*more, *BYTES, b" a", SPECIAL.encode()]
    first = len(more)
    tokenizer = bpe.Tokenizer(
        tokens=tokens,
        merges=[(first + 32, first + 97, first + 256)],
        pretokenizer=bpe.Pretokenizer("gpt2"),
        special_tokens={SPECIAL: first + 257},
    )
    counts = bpe.count_runs(["a a a"], tokenizer=tokenizer)
    assert counts.runs is not None
    assert counts.runs.id_bytes == 4
    assert runs_of(counts.run, 4) == {(first + 97, first + 256, first + 256): 1}


def test_they_are_saved(tmp_path: Path) -> None:
    counts = bpe.count_runs(["a b a b", " a b"], tokenizer=letters(), max_run=2)
    counts.save(tmp_path / "runs")
    assert PretokenCounts.load(tmp_path / "runs") == counts


def test_threads_share_a_counter() -> None:
    rows = pa.array(["a b" * 5, " b a b", "a"] * 50)
    counter = RunCounter(letters())
    with ThreadPoolExecutor(4) as pool:
        total = sum(pool.map(lambda _: counter.add(rows), range(8)))
    (run,) = counter.drain(1)
    once = bpe.count_runs(rows, tokenizer=letters())
    assert total == 8 * once.totals.pretokens
    assert runs_of(run, 2) == {ids: 8 * n for ids, n in runs_of(once.run, 2).items()}


def test_what_is_unsuitable_is_refused() -> None:
    words = bpe.Tokenizer(
        tokens=[b"[UNK]"], merges=[], pretokenizer=bpe.Pretokenizer("bert"), model=bpe.WordPiece()
    )
    with pytest.raises(CountsError, match="byte-level tokens, the tokenizer's are WordPiece"):
        bpe.count_runs(["a"], tokenizer=words)
    for pattern in ("(", None):
        with pytest.raises(CountsError, match=r"merge pattern .* does not compile"):
            bpe.count_runs(["a"], tokenizer=letters(), merge_pattern=pattern)  # type: ignore[arg-type]
    for max_run in (0, 1, -1, 2.0, True):
        with pytest.raises(CountsError, match="max_run"):
            bpe.count_runs(["a"], tokenizer=letters(), max_run=max_run)  # type: ignore[arg-type]
    with pytest.raises(CountsError, match="text 1 is null"):
        bpe.count_runs(pa.array(["a", None]), tokenizer=letters())
    with pytest.raises(EncodingError, match="surrogate"):
        bpe.count_runs(["\ud800"], tokenizer=letters())
    with pytest.raises(ValueError, match="null"):
        RunCounter(letters()).add(pa.array([None], pa.string()))
