"""Reasons of bad records, read from dead letters in bounded memory."""

from __future__ import annotations

import contextlib
import io
import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pipelines import storage
from pipelines.errors import InputError
from pipelines.output.names import dead_letters_in
from pipelines.storage import join

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_READ = 10_000  # bad records
_EXAMPLES = 3
# What differs between records of one reason: a byte, a position; not the 8 of UTF-8.
_HEX_BYTE = re.compile(r"\b0x[0-9a-f]+")
_NUMBER = re.compile(r"(?<![\w-])\d[\d,]*")


@dataclass
class Reason:
    """Records that were set aside for one reason.

    Attributes:
        records: the number of records.
        examples: (file, place, reason in full) of the first records.
    """

    records: int = 0
    examples: list[tuple[str, str, str]] = field(default_factory=list)


def read_reasons(directory: str) -> dict[str, Reason]:
    """Return the reasons of the first 10,000 bad records in a directory, most frequent first.

    Reasons that differ only in numbers count as one. Damaged lines are left out.
    """
    reasons: dict[str, Reason] = {}
    for _, record in zip(range(MOST_READ), _records(directory), strict=False):
        said = str(record.get("reason"))
        reason = reasons.setdefault(_NUMBER.sub("N", _HEX_BYTE.sub("0xNN", said)), Reason())
        reason.records += 1
        if len(reason.examples) < _EXAMPLES:
            place = f"{record.get('unit') or 'place'} {record.get('place')}"
            reason.examples.append((str(record.get("file")), place, said))
    return dict(sorted(reasons.items(), key=lambda item: (-item[1].records, item[0])))


def _records(directory: str) -> Iterator[dict[str, Any]]:
    """Yield the bad records in a directory; leave out lines that are no JSON object."""
    for name in dead_letters_in(directory):
        with (
            contextlib.suppress(OSError, InputError),
            storage.open_binary(join(directory, name)) as file,
        ):
            for line in io.BufferedReader(file):
                with contextlib.suppress(ValueError, RecursionError):
                    value = json.loads(line)
                    if isinstance(value, dict):
                        yield value
