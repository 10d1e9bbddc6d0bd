"""The checksum that a JSON file carries of itself, so that a flipped digit in it is found."""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

CHECKSUM = "checksum"
_SHA256 = re.compile("[0-9a-f]{64}")


def checksum_of(document: Mapping[str, Any]) -> str:
    """SHA-256 (hex) of a JSON object without its field ``checksum``.

    It is taken of the object as ASCII text with sorted keys and no white space: how a file is laid
    out does not matter.
    """
    content = {name: value for name, value in document.items() if name != CHECKSUM}
    text = json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def with_checksum(document: Mapping[str, Any]) -> dict[str, Any]:
    """The same object with its checksum as the last field, in place of any that it had."""
    content = {name: value for name, value in document.items() if name != CHECKSUM}
    return {**content, CHECKSUM: checksum_of(content)}


def is_intact(document: Mapping[str, Any]) -> bool:
    """Whether the object is what its checksum was taken of.

    Files of earlier releases have none and cannot be told: they pass. One whose name is damaged
    is known by its value.
    """
    if CHECKSUM in document:
        try:
            return bool(document[CHECKSUM] == checksum_of(document))
        except RecursionError:  # nested deeper than we ever write
            return False
    return not any(
        isinstance(value, str) and _SHA256.fullmatch(value) for value in document.values()
    )
