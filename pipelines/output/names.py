"""What a job leaves in its directory: the names of its files, and the plan that says what it is."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from bpe._checksum import is_intact, with_checksum
from pipelines.errors import InputError
from pipelines.files import storage
from pipelines.files.storage import join
from pipelines.files.versions import Version

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Kind = Literal["counts", "tokenizer", "encoded"]

PLAN = ".plan.json"
MANIFEST = "manifest.json"
TOKENIZER = "tokenizer.json"
TRAINING = "training.json"
TIMINGS = ".timings.json"
REPORT = "report.html"
REPORT_MARK = "<!-- made by bpe report -->"  # near the beginning of a report
DEAD_LETTERS = "dead-letters"
COUNTS = "counts"
ENCODED = "encoded"  # where bpe run puts it
PROGRAM = "beam-bpe"
THEN = "then"  # of a plan
STEM = "part"


def part_name(part: int, parts: int, suffix: str = "parquet", *, stem: str = STEM) -> str:
    """The name of a part's file.

    >>> part_name(3, 42)
    'part-00003-of-00042.parquet'
    """
    return f"{stem}-{part:05d}-of-{parts:05d}.{suffix}"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What makes two runs the same job.

    Attributes:
        kind: what the job makes.
        parts: the numbers after ``-of-`` in the names of the files it writes.
        settings: everything that decides the bytes it writes; JSON values.
        inputs: number of input files, their bytes, and the SHA-256 of their names and sizes.
        versions: of the input files, in their order. Those of the same job may differ: parts that
            were made of other versions are made again.
        then: what the same command makes next, in a folder of the directory, which is not complete
            before; it makes no other job of this one.
    """

    kind: Kind
    parts: tuple[int, ...]
    settings: Mapping[str, Any]
    inputs: Mapping[str, Any]
    versions: Sequence[Version | None] = ()
    then: Kind | None = None

    def to_json(self) -> dict[str, Any]:
        """The plan as it stands in `PLAN`."""
        then = {} if self.then is None else {THEN: self.then}
        return {
            "program": PROGRAM,
            "version": 1,
            "kind": self.kind,
            "parts": list(self.parts),
            "inputs": dict(self.inputs),
            "settings": dict(self.settings),
            "versions": [version and list(version) for version in self.versions],
            **then,
        }

    def changed(self, other: Mapping[str, Any]) -> list[int]:
        """The numbers of the inputs that have other versions in a plan of the same job.

        Args:
            other: read from a file.
        """
        then, now = other.get("versions"), self.versions
        if not isinstance(then, list) or len(then) != len(now):
            return list(range(len(now)))
        return [i for i, version in enumerate(now) if not _may_be(version, then[i])]

    def differences(self, other: Mapping[str, Any]) -> list[str]:
        """What makes a plan that was read from a file another job, one phrase for each value."""
        mine = self.to_json()
        found = [
            f"{key} was {_short(other.get(key))}, is {_short(mine[key])}"
            for key in ("program", "version", "kind")
            if other.get(key) != mine[key]
        ]
        for group in ("settings", "inputs"):
            old, new = other.get(group), mine[group]
            if not isinstance(old, dict):
                found.append(f"{group} cannot be read")
                continue
            found += [
                f"{group} {key} was {_short(old.get(key))}, is {_short(new.get(key))}"
                for key in sorted(old.keys() | new.keys())
                if old.get(key) != new.get(key)
            ]
        if not found and other.get("parts") != mine["parts"]:
            found.append(f"parts were {_short(other.get('parts'))}, are {_short(mine['parts'])}")
        return found


def _may_be(version: Version | None, then: Any) -> bool:
    try:
        return version is not None and version.may_be(Version(int(then[0]), str(then[1])))
    except (TypeError, ValueError, IndexError, KeyError):
        return False


def is_ours(directory: str) -> bool:
    """Whether a job of this package writes, or wrote, to ``directory``."""
    return (read_json_object(join(directory, PLAN)) or {}).get("program") == PROGRAM


def fingerprint(value: Any) -> str:
    """SHA-256 (hex) of a JSON value, independent of the order of keys."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def json_bytes(value: Any) -> bytes:
    """A JSON file: UTF-8, indented, a newline at the end; the same bytes for the same value."""
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode("utf-8")


def manifest_bytes(value: Mapping[str, Any]) -> bytes:
    """The file of a manifest: with a checksum of its own."""
    return json_bytes(with_checksum(value))


def read_manifest_object(path: str) -> dict[str, Any]:
    """The JSON object in the file of a manifest.

    Raises:
        InputError: it cannot be read, is no JSON object, or was changed after it was written.
    """
    try:
        value = json.loads(storage.read(path))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON: {error}") from error
    if not isinstance(value, dict):
        raise InputError(f"{path}: not a manifest: it holds no JSON object")
    if not is_intact(value):
        raise InputError(
            f"{path}: damaged: its checksum says that it was changed: make it again by running its "
            "job with `resume` (a watch with `overwrite`)"
        )
    return value


def read_json_object(path: str) -> dict[str, Any] | None:
    """The JSON object in a file; None where there is no file, or something else in it."""
    try:
        value = json.loads(storage.read(path))
    except (InputError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _short(value: Any) -> str:
    if isinstance(value, str) and len(value) > 58:  # a digest, most often
        value = value[:12] + "…"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."
