"""XXH64 in plain Python: github.com/Cyan4973/xxHash, doc/xxhash_spec.md."""

from __future__ import annotations

_PRIME1 = 0x9E3779B185EBCA87
_PRIME2 = 0xC2B2AE3D27D4EB4F
_PRIME3 = 0x165667B19E3779F9
_PRIME4 = 0x85EBCA77C2B2AE63
_PRIME5 = 0x27D4EB2F165667C5
_MASK = (1 << 64) - 1


def xxh64(data: bytes) -> int:
    """XXH64 of a byte string, with the seed 0.

    >>> hex(xxh64(b"abc"))
    '0x44bc2cf5ad770999'
    """
    place, end = 0, len(data)
    if end < 32:
        result = _PRIME5
    else:
        lanes = [(_PRIME1 + _PRIME2) & _MASK, _PRIME2, 0, -_PRIME1 & _MASK]
        while end - place >= 32:
            lanes = [
                _round(lane, _word(data, place + 8 * number, 8))
                for number, lane in enumerate(lanes)
            ]
            place += 32
        result = sum(map(_rotated, lanes, (1, 7, 12, 18))) & _MASK
        for lane in lanes:
            result = ((result ^ _round(0, lane)) * _PRIME1 + _PRIME4) & _MASK
    result = (result + end) & _MASK
    while end - place >= 8:
        result ^= _round(0, _word(data, place, 8))
        result = (_rotated(result, 27) * _PRIME1 + _PRIME4) & _MASK
        place += 8
    if end - place >= 4:
        result ^= _word(data, place, 4) * _PRIME1 & _MASK
        result = (_rotated(result, 23) * _PRIME2 + _PRIME3) & _MASK
        place += 4
    for byte in data[place:]:
        result = _rotated(result ^ byte * _PRIME5 & _MASK, 11) * _PRIME1 & _MASK
    result = (result ^ result >> 33) * _PRIME2 & _MASK
    result = (result ^ result >> 29) * _PRIME3 & _MASK
    return result ^ result >> 32


def _word(data: bytes, place: int, size: int) -> int:
    return int.from_bytes(data[place : place + size], "little")


def _rotated(word: int, bits: int) -> int:
    return (word << bits | word >> (64 - bits)) & _MASK


def _round(lane: int, word: int) -> int:
    return _rotated((lane + word * _PRIME2) & _MASK, 31) * _PRIME1 & _MASK
