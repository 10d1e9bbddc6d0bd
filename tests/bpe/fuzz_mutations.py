"""Mutants of inputs for ``tests.bpe.fuzz``: of bytes, and of the values of JSON files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.bpe.fuzz_files import WRONG
from tests.bpe.texts import CHARACTERS, MALFORMED

if TYPE_CHECKING:
    import random

LARGE = 40_000  # bytes of what is now and then made large; the reference does not see it

PIECES = [
    *(b"", b"\0", b"{", b'"', b"[[", b"1e999", b"\\ud800", b"-1", b"9" * 40),
    *(b" 256\n", b"IQ== 0\n", b"#version: 0.2\n", b'"type": "BPE", ', b"\xc4\xa0"),
    *(b"<|endoftext|>", b"<|end|>", b"<|end", b"[UNK]", b"<unk>", b"<s>", b"</w>", b"##", b"#"),
    *(b"a" * 70, b"ab" * 40, b" the" * 10, b"0" * 100, b"\n" * 65, b" " * 65, b"\xcc\x81" * 20),
    *(b"https://a.b/c?d. ", b"x@y.z", b"www.", b"user.name@example.org"),
    *(b"\x00\x01\x00\x00", b"\xff\xff\xff\xff"),
    *MALFORMED,
    *(character.encode() for character in CHARACTERS),
]


def mutated(data: bytes, other: bytes, dice: random.Random) -> bytes:
    """The data, changed a little; rarely many times as long."""
    if data.lstrip()[:1] == b"{" and dice.random() < 0.6:
        changed = with_other_values(data, dice)
        if changed is not None:
            return changed
    data = with_other_bytes(data, other, dice)
    if data and dice.random() < 0.01:
        data = (data * (LARGE // len(data) + 1))[: dice.choice((1000, LARGE // 4, LARGE))]
    return data


def with_other_bytes(data: bytes, other: bytes, dice: random.Random) -> bytes:
    """Some bytes replaced, left out, put in, repeated, or taken from ``other``."""
    for _ in range(dice.choice((1, 1, 2, 4, 8))):
        begin = dice.randint(0, len(data))
        end = min(len(data), begin + dice.choice((0, 0, 1, 2, 5, 20, 200)))
        cut = dice.randint(0, len(other))
        put = dice.choice(
            (
                dice.choice(PIECES),
                bytes([dice.randrange(256)]),
                data[begin:end] * dice.choice((0, 2, 3, 20)),
                other[cut : cut + dice.choice((1, 5, 50))],
                bytes(byte ^ 1 << dice.randrange(8) for byte in data[begin:end]),
            )
        )
        data = data[:begin] + put + data[end:]
    return data


def with_other_values(data: bytes, dice: random.Random) -> bytes | None:
    """A JSON file with values put, left out, moved or there twice; None where it is no JSON."""
    try:
        file = json.loads(data)
        for _ in range(dice.choice((1, 1, 2, 3))):
            change_value(file, dice)
        text = json.dumps(file, ensure_ascii=dice.random() < 0.5)
        return text.encode("utf-8", "surrogatepass")
    except (ValueError, RecursionError):
        return None


def change_value(file: Any, dice: random.Random) -> None:
    """Change one value somewhere in a file."""
    at, key = file, None
    while isinstance(at, (dict, list)) and at:
        keys = list(at) if isinstance(at, dict) else range(len(at))
        key = dice.choice([*keys[:5], *keys[-8:]])  # the ends of long lists are like their middles
        if not isinstance(at[key], (dict, list)) or not at[key] or dice.random() < 0.3:
            break
        at = at[key]
    if key is None or not isinstance(at, (dict, list)) or not at:
        return
    change = dice.choice(("put", "put", "put", "leave out", "move", "twice"))
    value = at[key] if change == "twice" else None
    if change == "put":
        at[key] = dice.choice(WRONG)
    elif change == "leave out":
        del at[key]
    elif isinstance(at, dict):
        at[str(dice.choice(WRONG))] = value if change == "twice" else at.pop(key)
    else:
        at.insert(dice.randint(0, len(at)), value if change == "twice" else at.pop(key))
