"""The vocabulary and the merges of a tokenizer.json, and a .tiktoken file, as the core reads them.

Its readable twins read what the core leaves: `bpe.formats.token_text`, and the lines one by one.
"""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import bpe
from bpe._native import read_tokenizer_json
from bpe.formats import huggingface
from bpe.token_table import TokenTable
from tests.bpe.fuzz_files import FORMATS, byte_level, cut_of
from tests.bpe.fuzz_mutations import mutated
from tests.examples import examples

if TYPE_CHECKING:
    from pathlib import Path

CORE = {"tokenizer.json": read_tokenizer_json, "x.tiktoken": TokenTable.of_ranks}
GOOD = {
    "tokenizer.json": byte_level().to_json(),
    "x.tiktoken": FORMATS["ranks"]["x.tiktoken"].decode(),
}
SEEDS = [
    (file, content)
    for name, files in FORMATS.items()
    for file, content in files.items()
    if file in CORE and "dialect" not in name
]


def outcome(path: Path) -> object:
    """The tokenizer that a file holds, or why it holds none."""
    try:
        return bpe.Tokenizer.load(path, pretokenizer=cut_of(path))
    except bpe.BpeError as error:
        return str(error)


def same_without_the_core(path: Path, data: bytes) -> object:
    """The outcome of a file, which is that of the reader in Python."""
    path.write_bytes(data)
    by_core = outcome(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(huggingface, "read_tokenizer_json", lambda _: None)
        patch.setattr(TokenTable, "of_ranks", lambda _: None)
        assert outcome(path) == by_core
    return by_core


@given(file=st.sampled_from(SEEDS), seed=st.integers(0, 2**32 - 1))
@settings(parent=examples(200), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_changed_files_are_read_alike(file: tuple[str, bytes], seed: int, tmp_path: Path) -> None:
    name, data = file
    same_without_the_core(tmp_path / name, mutated(data, b"", random.Random(seed)))


PAIR = '"t",\n        "h"'
LIST = f"[\n        {PAIR}\n      ]"
UNUSUAL = [
    (PAIR, '"\\u0074",\n  "h"'),  # an escaped name
    ('"Ġth": 258', '"\\u0120th" : 258'),
    (LIST, '"t h"'),  # merges of older files
    ('"Ġth": 258', '"Ġth": 300'),  # ids with a gap
    ('"!": 33,\n      "\\"": 34', '"\\"": 34, "!": 33'),  # in another order
    ('"<s>"', '"<｜begin▁of▁text｜>"'),  # an added token of characters that spell no byte
    ('"<s>"', r'"\ud83d\ude00\/\b\f\n\r\t\"\\\u00e9"'),
    ('"<s>"', '"😀é\u2028\x7f\x80"'),
]
BROKEN = [
    *(
        ('"!": 33', f'"!": {value}')
        for value in ('33, "!": 33', "34", "033", "-33", "33.0", "4000000000")
    ),
    *(('"!"', name) for name in ('""', '"\\ud800"', '"\t"', r'"\ude00"', r'"\ud83dx"')),
    *(('"!"', name) for name in (r'"\u12"', r'"\u00g0"', r'"\x21"', '"!', '!"')),
    *((PAIR, pair) for pair in ('"t", "h", "e"', '"t"', '"h", "t"')),
    (LIST, '"t  h"'),
    ('"model": {', '"model": {"vocab": {}, '),
    ('"model": {', '"model": {}, "model": {'),
    ('"version": "1.0"', '"version": NaN'),
    ('{\n  "version"', '\ufeff{"version"'),
]


NO_LINES = ["QQ==QQ== 65", "QQ== +65", "QQ== 065", "==== 65", "QQ= 65", "Q 65", "QQ== 65 ", "  65"]


@pytest.mark.parametrize(
    ("name", "old", "new", "by_core"),
    [
        *(("tokenizer.json", *change, True) for change in UNUSUAL),
        *(("tokenizer.json", *change, False) for change in BROKEN),
        *(("x.tiktoken", "QQ== 65", line, line == "QQ== 65") for line in ["QQ== 65", *NO_LINES]),
    ],
)
def test_unusual_files_are_read_by_the_core_and_broken_ones_left(
    name: str, old: str, new: str, by_core: bool, tmp_path: Path
) -> None:
    assert old in GOOD[name]
    data = GOOD[name].replace(old, new).encode()
    assert (CORE[name](data) is not None) == by_core
    read = same_without_the_core(tmp_path / name, data)
    assert not by_core or isinstance(read, bpe.Tokenizer)
    if name == "x.tiktoken":
        assert ("line 66: " in str(read)) == (new.strip() not in ("QQ== 65", "QQ== 065"))


def test_a_file_is_written_as_json_does() -> None:
    text = GOOD["tokenizer.json"]
    assert json.dumps(json.loads(text), ensure_ascii=False, indent=2) == text
