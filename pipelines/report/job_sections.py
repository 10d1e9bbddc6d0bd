"""What the report says of the jobs: bad records, times and manifests."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from bpe.files import CHECKSUM
from pipelines.output.timings import read_timing
from pipelines.report.bad_records import MOST_READ, read_reasons
from pipelines.report.page import Section, section

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipelines.report.material import Material

_LISTED = 50  # files of a manifest


def dead_letters(material: Material) -> Section | None:
    """Why records were set aside."""
    jobs = [
        (stage, failures, read_reasons(job.directory))
        for stage, job in (("count", material.counts), ("encode", material.encoded))
        if job is not None and (failures := job.manifest.totals.failures)
    ]
    return section("dead-letters", "Dead letters", jobs=jobs, most_read=MOST_READ) if jobs else None


def throughput(material: Material) -> Section | None:
    """How fast each step was."""
    counts, encoded = material.counts, material.encoded
    appended = [
        *(["count"] if counts and counts.is_appended else []),
        *(["encode"] if encoded and encoded.manifest.generation else []),
    ]
    places = {
        "count": counts and counts.directory,
        "train": material.training and material.directory,
        "encode": encoded and encoded.directory,
    }
    timings = {stage: read_timing(place) for stage, place in places.items() if place}
    if not timings:
        return None
    return section(
        "throughput",
        "Throughput",
        timings=[one for one in timings.values() if one is not None],
        unknown=[one for one in timings if timings[one] is None and one not in appended],
        appended=appended,
    )


def counts_manifest(material: Material) -> Section | None:
    """What the manifest of the counts says."""
    if (counts := material.counts) is None:
        return None
    value = json.loads(counts.manifest.to_json())
    if counts.are_many:
        del value[CHECKSUM]  # no file holds all of it
        value["totals"]["distinct_pretokens"] = counts.facts.distinct
    return _manifest("counts", "the counts", value, appended=counts.is_appended)


def corpus_manifest(material: Material) -> Section | None:
    """What the manifest of the encoded corpus says."""
    if (encoded := material.encoded) is None:
        return None
    appended = encoded.manifest.generation > 0
    return _manifest("corpus", "the encoded corpus", encoded.manifest.to_json(), appended=appended)


def export_manifest(material: Material) -> Section | None:
    """What the manifest of the export says."""
    if material.export is None:
        return None
    return _manifest("export", "the export", material.export.to_json(), appended=False)


def _manifest(key: str, of: str, value: Mapping[str, Any], *, appended: bool) -> Section:
    lists = {
        name: items
        for name, items in value.items()
        if isinstance(items, list) and items and name != "special_tokens"
    }
    return section(
        "manifest",
        f"Manifest of {of}",
        key=f"manifest-{key}",
        appended=appended,
        simple=_flat({name: one for name, one in value.items() if name not in lists}),
        lists=[(name, len(items), *_table(items[:_LISTED])) for name, items in lists.items()],
    )


def _flat(value: Mapping[str, Any], before: str = "") -> dict[str, object]:
    """Names with dots, and what is there in words."""
    rows: dict[str, object] = {}
    for name, one in value.items():
        if isinstance(one, dict):
            rows |= _flat(one, f"{before}{name}.")
        else:
            rows[f"{before}{name}".replace("_", " ")] = _in_words(one)
    return rows


def _in_words(value: Any) -> object:
    """A value that is no dict as a number or a text."""
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    if isinstance(value, list):
        return ", ".join(map(_item, value)) or "none"
    return value if isinstance(value, int) else str(value)


def _item(value: Any) -> str:
    if not isinstance(value, dict):
        return str(_in_words(value))
    return ", ".join(
        f"{name} {one:,}" if isinstance(one, int) else f"{name} {one}"
        for name, one in _flat(value).items()
    )


def _table(items: Sequence[Any]) -> tuple[list[str], list[list[object]]]:
    """A list as a table: its heads and its rows."""
    if not all(isinstance(one, dict) for one in items):
        return [""], [[_item(one)] for one in items]
    rows = [_flat(one) for one in items]
    heads = list(dict.fromkeys(name for one in rows for name in one))
    return heads, [[one.get(name, "") for name in heads] for one in rows]
