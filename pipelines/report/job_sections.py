"""Sections of the report about jobs: bad records, times and manifests."""

from __future__ import annotations

import contextlib
import io
import re
from itertools import islice
from typing import TYPE_CHECKING, Any

from bpe._codec import to_jsonable
from bpe.files import CHECKSUM
from pipelines import storage
from pipelines.errors import InputError
from pipelines.output.names import dead_letters_in, json_object
from pipelines.storage import join
from pipelines.timings import read_timing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bpe.training_report import Training
    from pipelines.export.manifest import ExportManifest
    from pipelines.report.counted_facts import CountedFacts
    from pipelines.report.encoded_facts import EncodedFacts
    from pipelines.report.page import Facts

_MOST_READ = 10_000  # bad records
# What differs between records of one reason: a byte, a position; not the 8 of UTF-8.
_HEX_BYTE = re.compile(r"\b0x[0-9a-f]+")
_NUMBER = re.compile(r"(?<![\w-])\d[\d,]*")


def dead_letters(
    counts: CountedFacts | None = None, encoded: EncodedFacts | None = None
) -> Facts | None:
    """Return the reasons of the bad records; None if there are no bad records."""
    jobs = [
        (stage, failures, _reasons(job.directory))
        for stage, job in (("count", counts), ("encode", encoded))
        if job is not None and (failures := job.manifest.totals.failures)
    ]
    return {"jobs": jobs, "most_read": _MOST_READ} if jobs else None


def throughput(
    directory: str,
    counts: CountedFacts | None = None,
    encoded: EncodedFacts | None = None,
    training: Training | None = None,
) -> Facts | None:
    """Return the timings of the steps; None if no step is known."""
    appended = [
        *(["count"] if counts and counts.is_appended else []),
        *(["encode"] if encoded and encoded.manifest.generation else []),
    ]
    places = {
        "count": counts and counts.directory,
        "train": training and directory,
        "encode": encoded and encoded.directory,
    }
    timings = {stage: read_timing(place) for stage, place in places.items() if place}
    if not timings:
        return None
    return {
        "timings": [one for one in timings.values() if one is not None],
        "unknown": [one for one in timings if timings[one] is None and one not in appended],
        "appended": appended,
    }


def counts_manifest(counts: CountedFacts) -> Facts:
    """Return the manifest of the counts."""
    value = counts.manifest.to_json()
    if counts.are_many:
        del value[CHECKSUM]  # no file holds all of it
        value["totals"]["distinct_pretokens"] = counts.distinct
    return _manifest("counts", value, is_appended=counts.is_appended)


def encoded_manifest(encoded: EncodedFacts) -> Facts:
    """Return the manifest of the encoded corpus."""
    manifest = encoded.manifest
    value = {**manifest.to_json(), "parts": to_jsonable(manifest.parts)}
    return _manifest("encoded corpus", value, is_appended=manifest.generation > 0)


def export_manifest(export: ExportManifest) -> Facts:
    """Return the manifest of the export."""
    return _manifest("export", export.to_json(), is_appended=False)


def _manifest(of: str, value: Mapping[str, Any], *, is_appended: bool) -> Facts:
    lists = {
        name: items
        for name, items in value.items()
        if isinstance(items, list) and items and name != "special_tokens"
    }
    return {
        "name": of,
        "is_appended": is_appended,
        "simple": {name: one for name, one in value.items() if name not in lists},
        "lists": lists,
    }


def _reasons(directory: str) -> dict[str, list[tuple[str, str, str]]]:
    """Return file, place and reason of the first 10,000 bad records, the most frequent first.

    Reasons that differ only in numbers are one. Damaged lines are left out.
    """
    reasons: dict[str, list[tuple[str, str, str]]] = {}
    for record in islice(_records(directory), _MOST_READ):
        reason = str(record.get("reason"))
        place = f"{record.get('unit') or 'place'} {record.get('place')}"
        alike = reasons.setdefault(_NUMBER.sub("N", _HEX_BYTE.sub("0xNN", reason)), [])
        alike.append((str(record.get("file")), place, reason))
    return dict(sorted(reasons.items(), key=lambda item: (-len(item[1]), item[0])))


def _records(directory: str) -> Iterator[dict[str, Any]]:
    """Yield the bad records in a directory; leave out lines that are no JSON object."""
    for name in dead_letters_in(directory):
        with (
            contextlib.suppress(OSError, InputError),
            storage.open_binary(join(directory, name)) as file,
        ):
            for line in io.BufferedReader(file):
                if (value := json_object(line)) is not None:
                    yield value
