"""The inputs of a manifest, taken out into a file and put back."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from bpe._inputs_file import INPUTS, MOST_INPUTS, put_back, take_out
from bpe.files import CHECKSUM, with_checksum

NAMES = [f"ü/{number}" for number in range(MOST_INPUTS + 1)]


def manifest() -> dict[str, Any]:
    inputs = [{"name": name, "size": 2**40} for name in [*NAMES, NAMES[0]]]
    return with_checksum({"kind": "test", "inputs": inputs})


def test_what_is_taken_out_is_put_back() -> None:
    whole = manifest()
    small, data = take_out(copy.deepcopy(whole))
    assert data is not None
    assert (small["inputs"]["file"], small["inputs"]["rows"]) == (INPUTS, len(NAMES) + 1)
    assert len(str(small)) < 3000
    again = put_back(copy.deepcopy(small), lambda: data)
    assert {**again, CHECKSUM: whole[CHECKSUM]} == whole
    with pytest.raises(ValueError, match=r"inputs\.parquet is not that of the manifest"):
        put_back(small, lambda: data[:-1])


def test_few_inputs_stay() -> None:
    few = {**manifest(), "inputs": [{"name": "a", "size": 1}] * MOST_INPUTS}
    assert take_out(few) == (few, None)
    assert put_back(few, bytes) is few
