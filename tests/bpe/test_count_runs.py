"""Counting runs of tokens: against the textbook, in any blocks, and what ends a run."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

import bpe
from bpe._native import merge_runs
from bpe.counts import CutRuns, PretokenCounts
from bpe.counts.files import run_table
from bpe.errors import CountsError, EncodingError
from bpe.parts import Merges
from bpe.reference.encode import encode as reference_encode
from bpe.reference.encode import runs as runs_in
from bpe.run_counting import RunCounter
from tests.bpe.superword_tokenizers import ADDED, SPECIAL, segments_of, superword_tokenizers, texts
from tests.bpe.vocabularies import BYTES
from tests.examples import examples

if TYPE_CHECKING:
    from pathlib import Path

    from bpe._native import CountRun

Runs = Counter[tuple[int, ...]]

word_tokenizers = superword_tokenizers().map(
    lambda tokenizer: bpe.Tokenizer(replace(tokenizer.parts, superwords=Merges()))
)
patterns = st.sampled_from([r"\p{L}", "a", "", r"^ ", "[^ab]"])


def runs_of(run: CountRun, id_bytes: int) -> Runs:
    table = run_table(run)
    keys, counts = table["pretoken"].to_pylist(), table["count"].to_pylist()
    return Counter(
        {
            tuple(
                int.from_bytes(key[at : at + id_bytes], "little")
                for at in range(0, len(key), id_bytes)
            ): count
            for key, count in zip(keys, counts, strict=True)
        }
    )


def reference(
    tokenizer: bpe.Tokenizer, rows: list[bytes], *, merge_pattern: str, max_run: int | None
) -> Runs:
    cut_out = {*tokenizer.special_tokens.values(), *tokenizer.added_tokens.values()}
    tokens = {
        id_: token
        for id_, token in enumerate(tokenizer.tokens)
        if token is not None and id_ not in cut_out
    }
    ids, ranks = (
        {token: id_ for id_, token in tokens.items()},
        tokenizer.parts.ranks(tokenizer.parts.merges),
    )
    is_never_split = tokenizer.pretokenizer.is_never_split

    def encode_word(pretoken: bytes) -> list[int]:
        return reference_encode(
            [pretoken],
            ids=ids,
            ranks=ranks,
            ignore_merges=tokenizer.ignore_merges,
            whole={pretoken} if is_never_split(pretoken) else (),
        )

    def encode(text: bytes) -> list[int]:
        segments, between = segments_of(tokenizer, text, special=False)
        if between:
            return []
        return [id_ for pretoken in segments[0] for id_ in encode_word(pretoken)]

    eligible = {
        id_
        for id_, token in tokens.items()
        if encode(token) == [id_]
        and regex.search(merge_pattern, token.decode("utf-8", "surrogateescape"))
    }
    counts = Runs()
    for segment in (part for row in rows for part in segments_of(tokenizer, row, special=True)[0]):
        words = [encode_word(pretoken) for pretoken in segment]
        for run in runs_in(words, of=eligible, never_split=[*map(is_never_split, segment)]):
            key = tuple(words[number][0] for number in run)
            size = max_run or len(key)
            pieces = (key[begin : begin + size] for begin in range(0, len(key), size))
            counts.update(piece for piece in pieces if len(piece) > 1)
    return counts


@given(word_tokenizers, st.lists(texts, max_size=4), patterns, st.none() | st.integers(2, 4))
@settings(deadline=None)
def test_equals_the_textbook(
    tokenizer: bpe.Tokenizer, rows: list[bytes], merge_pattern: str, max_run: int | None
) -> None:
    counts = bpe.count_runs(rows, tokenizer=tokenizer, merge_pattern=merge_pattern, max_run=max_run)
    expected = reference(tokenizer, rows, merge_pattern=merge_pattern, max_run=max_run)
    assert runs_of(counts.run, 2) == expected
    assert counts.totals.pretokens == expected.total()
    if max_run is None:
        assert counts.cut is None
    else:
        whole = reference(tokenizer, rows, merge_pattern=merge_pattern, max_run=None)
        pairs: Counter[tuple[int, int]] = Counter()
        for run, times in whole.items():
            for pair in pairwise(run) if len(run) > max_run else ():
                pairs[pair] += times
        most = max(pairs.values(), default=0)
        assert counts.cut == CutRuns(pairs=pairs.total(), max_pair=most)
    assert (counts.totals.documents, counts.totals.bytes) == (len(rows), sum(map(len, rows)))


@given(word_tokenizers, st.lists(texts, max_size=6), st.lists(st.integers(0, 6), max_size=3))
@examples(30)
def test_blocks_and_drains_change_nothing(
    tokenizer: bpe.Tokenizer, rows: list[bytes], cuts: list[int]
) -> None:
    whole = bpe.count_runs(rows, tokenizer=tokenizer)
    counter, drained, total = RunCounter(tokenizer), [], 0
    column = pa.array(rows, pa.binary())
    ends = sorted({0, len(rows), *(min(cut, len(rows)) for cut in cuts)})
    for begin, end in pairwise(ends):
        total += counter.add(column.slice(begin, end - begin))
        if end % 2:
            drained += counter.drain(3)
    drained += counter.drain(1)
    assert len(counter) == 0
    assert run_table(merge_runs(drained)).equals(run_table(whole.run))
    assert total == whole.totals.pretokens


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
