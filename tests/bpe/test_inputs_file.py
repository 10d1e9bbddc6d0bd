"""The inputs of a manifest, taken out into a file and put back."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from bpe._inputs_file import INPUTS, MOST_INPUTS, put_back, take_out
from bpe.files import CHECKSUM, with_checksum

NAMES = [f"ü/{number}" for number in range(MOST_INPUTS + 1)]


def manifest(pieces: list[list[dict[str, Any]]] | None) -> dict[str, Any]:
    parts = [
        {"file": f"part-{number}", **({} if pieces is None else {"inputs": pieces[number]})}
        for number in range(2 if pieces is None else len(pieces))
    ]
    inputs = [{"name": name, "size": 2**40} for name in NAMES]
    return with_checksum({"kind": "test", "inputs": inputs, "parts": parts})


@pytest.mark.parametrize(
    "pieces",
    [
        None,  # as counts have it
        [[], []],
        [[], [{"name": NAMES[7], "start": 0, "end": 5}], []],  # not of the first input
        [[{"name": name, "start": 0, "end": 3} for name in NAMES[:9]]],
        [[{"name": NAMES[0], "start": at, "end": at + 1}] for at in range(20)],
    ],
)
def test_what_is_taken_out_is_put_back(pieces: list[list[dict[str, Any]]] | None) -> None:
    whole = manifest(pieces)
    small, data = take_out(copy.deepcopy(whole))
    assert data is not None
    assert (small["inputs"]["file"], small["inputs"]["rows"]) == (INPUTS, len(NAMES))
    assert len(str(small)) < 3000
    again = put_back(copy.deepcopy(small), lambda: data)
    assert {**again, CHECKSUM: whole[CHECKSUM]} == whole
    with pytest.raises(ValueError, match=r"inputs\.parquet is not that of the manifest"):
        put_back(small, lambda: data[:-1])


def test_few_inputs_stay() -> None:
    few = {**manifest(None), "inputs": [{"name": "a", "size": 1}] * MOST_INPUTS}
    assert take_out(few) == (few, None)
    assert put_back(few, bytes) is few


def test_inputs_that_look_the_same_stay() -> None:
    same = manifest([[{"name": NAMES[0], "start": 0, "end": 3}] * 2])
    same["inputs"].append(same["inputs"][0])
    assert take_out(same) == (same, None)


@pytest.mark.parametrize("parts", [None, [], [{"file": "x"}], [1]])
def test_a_manifest_that_does_not_fit_its_file(parts: object) -> None:
    small, data = take_out(manifest([[{"name": NAMES[0], "start": 0, "end": 3}]]))
    assert data is not None
    with pytest.raises(ValueError, match=r"inputs\.parquet does not fit the manifest"):
        put_back({**small, "parts": parts}, lambda: data)
