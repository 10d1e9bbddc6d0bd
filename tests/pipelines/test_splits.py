from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.corpus.files import InputFile
from pipelines.corpus.splits import MAX_SPLIT, default_split_size, plan_splits
from pipelines.errors import ConfigError
from pipelines.formats import FILE_FORMATS
from pipelines.output.names import MAX_PARTS
from tests.shared_data import LONG, long_but

MIB = 1 << 20


def file(size: int, name: str = "f", **changes: Any) -> InputFile:
    values = {"format": "lines", "compression": "none", **changes}
    return InputFile(path=f"/{name}", name=name, file_size=size, **values)


corpora = st.lists(
    st.builds(
        file,
        st.integers(0, 100),
        format=st.sampled_from(list(FILE_FORMATS)),
        compression=st.sampled_from(["none", "gz"]),
    ),
    max_size=30,
)


@given(files=corpora, split_size=st.integers(1, 200))
def test_every_byte_is_in_one_split_and_splits_are_even(
    files: list[InputFile], split_size: int
) -> None:
    splits = plan_splits(files, split_size)
    assert [split.part for split in splits] == list(range(len(splits)))
    assert {split.parts for split in splits} <= {len(splits)}
    pieces = [piece for split in splits for piece in split.pieces]
    assert [piece.file_index for piece in pieces] == sorted(piece.file_index for piece in pieces)
    for index, one in enumerate(files):
        ranges = [(piece.start, piece.end) for piece in pieces if piece.file_index == index]
        assert ranges[0][0] == 0
        assert ranges[-1][1] == one.size
        assert all(left[1] == right[0] for left, right in pairwise(ranges))
        assert one.can_be_cut or len(ranges) == 1
        if one.can_be_cut and one.size > split_size:
            sizes = [split.size for split in splits if split.pieces[0].file_index == index]
            assert max(sizes) - min(sizes) <= 1
    for split in splits:
        uncut = len(split.pieces) == 1 and not files[split.pieces[0].file_index].can_be_cut
        assert split.size <= split_size or uncut
        assert len({piece.format for piece in split.pieces}) == 1  # formats share no split
    # Files that are packed leave no split that the first file of the next would have fitted into.
    for left, right in pairwise(splits):
        first = right.pieces[0]
        if right.pieces[0].size == first.file_size and left.pieces[0].start == 0:
            whole = all(piece.size == piece.file_size for piece in left.pieces)
            full = left.size + first.size > split_size
            assert not whole or full or left.pieces[-1].format != first.format
    # No more than twice as many splits as needed.
    large = sum(one.size > split_size for one in files)
    formats = 1 + sum(left.format != right.format for left, right in pairwise(files))
    assert len(splits) <= 2 * sum(one.size for one in files) // split_size + 2 * large + formats


def test_very_many_small_files_are_few_splits() -> None:
    files = 1_000_000 if LONG else 30_000
    splits = plan_splits([file(1000, compression="gz")] * files)
    assert len(splits) == -(-files // (default_split_size(1000 * files) // 1000)) <= 64
    sizes = [split.size for split in splits[:-1]]
    assert max(sizes) - min(sizes) < 1000


@pytest.mark.parametrize(
    ("total", "expected"),
    [(0, 8 * MIB), (100 * MIB, 8 * MIB), (1024 * MIB, 16 * MIB), (10**12, 256 * MIB)],
)
def test_the_default_size_follows_the_corpus(total: int, expected: int) -> None:
    assert default_split_size(total) == expected


def test_more_splits_than_five_digits_tell_are_refused_with_a_size_that_fits() -> None:
    files = [file(10**12), file(7, compression="gz")]
    with pytest.raises(ConfigError, match=r"more than 99,999 splits .*: use 16777216 bytes"):
        plan_splits(files, 1)
    assert 50_000 < len(plan_splits(files, 16777216)) <= MAX_PARTS
    with pytest.raises(ConfigError, match="use 20 bytes or more"):
        plan_splits([file(10)] * (MAX_PARTS + 1), 10)
    formats = [file(10), file(10, format="jsonl")] * (MAX_PARTS // 2 + 1)
    with pytest.raises(ConfigError, match=r"more than 99,999 splits, .* give the files of each"):
        plan_splits(formats)


@pytest.mark.parametrize("compression", long_but(["none", "gz"], "gz"))
def test_the_default_size_of_a_split_grows_until_the_splits_fit(compression: str) -> None:
    files = [file(MAX_SPLIT, compression=compression)] * (MAX_PARTS + 1)
    splits = plan_splits(files)
    assert len(splits) == (MAX_PARTS + 1) // 2
    assert {split.size for split in splits} == {2 * MAX_SPLIT}
