"""Counting runs of tokens: what ends a run, and what is refused."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

import bpe
from bpe.errors import CountsError, EncodingError
from bpe.run_counting import RunCounter
from tests.bpe.oracle import known, runs_of
from tests.bpe.vocabularies import BYTES

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
    assert known(counts.runs).id_bytes == 4
    assert runs_of(counts.sorted_counts, 4) == {(first + 97, first + 256, first + 256): 1}


def test_threads_share_a_counter() -> None:
    rows = pa.array(["a b" * 5, " b a b", "a"] * 50)
    counter = RunCounter(letters())
    with ThreadPoolExecutor(4) as pool:
        total = sum(pool.map(lambda _: counter.add(rows), range(8)))
    (run,) = counter.drain(1)
    once = bpe.count_runs(rows, tokenizer=letters())
    assert total == 8 * once.totals.pretokens
    assert runs_of(run, 2) == {ids: 8 * n for ids, n in runs_of(once.sorted_counts, 2).items()}


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
