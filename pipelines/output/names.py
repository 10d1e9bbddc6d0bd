"""Files of an output directory: their names, and the plan of the job.

An encoded directory is laid out as a dataset repository of the Hugging Face hub: readers such as
``datasets.load_dataset`` take ``data/train-*`` and no other file. They read numbers of exactly five
digits, which limits the parts of one split name to `MAX_PARTS`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar
from urllib.parse import quote

from bpe._codec import from_jsonable
from bpe._inputs_file import INPUTS, put_back
from bpe.counts import manifest as counts_manifest
from bpe.counts.manifest import generation_suffix
from bpe.files import is_intact, with_checksum
from pipelines import storage
from pipelines.errors import InputError
from pipelines.storage import join

_Manifest = TypeVar("_Manifest")
Kind = Literal["counts", "tokenizer", "encoded", "comparison", "export"]

PLAN = ".plan.json"
SPLITS = ".splits.arrow"  # of the job that the plan is of
RUN = "run"  # of a plan: the id of the run that wrote it
MANIFEST = "manifest.json"
TOKENIZER = "tokenizer.json"
TRAINING = "training.json"
ROLES_FILES = ("tokenizer_config.json", "special_tokens_map.json")  # in the folder of `TOKENIZER`
TIMINGS = ".timings.json"
PINS = "sources.parquet"  # of an export: the parts that it is made of
EXPORT_INDEX = "index.json"  # of an export whose format has one
RECORDS = "records"  # the folder of what says that units of work are finished
RECORDS_FILE = "records.parquet"  # all of it, when a job is complete
WORK = ".work"  # what stages leave for later ones, until all is done
REPORT = "report.html"
DEAD_LETTERS = "dead-letters"
DRIFT = "drift"  # the folder of how well the tokenizer fits what was appended
DATA = counts_manifest.DATA  # where the parts are, of token ids as of counts
COUNTS = "counts"
ENCODED = "encoded"  # where bpe run puts it
EXPORTED = "export"  # likewise
SOURCE = "source"  # what counts by the sources of a mix are named by, where others have a field
RUNS = "runs"  # counts of runs, and the setting that says how these are found
OF_WORDS = "words"  # the tokenizer that superwords are added to
PROGRAM = "beam-bpe"
THEN = "then"  # of a plan
BASE = "base"  # likewise
GROUPED_KIND = "grouped-counts"  # of the manifest above counts by group
APPENDED_KIND = "appended-counts"  # of the manifest above counts of several generations
FOLDERS_OF: dict[str, tuple[str, ...]] = {  # by `THEN`: what the command makes as well
    "encoded": (ENCODED,),
    "export": (ENCODED, EXPORTED),
}
TRAIN = "train"  # the split name of encoded rows
VALIDATION = "validation"  # that of rows held out
_DEFAULT = object()  # the value of a setting that a plan leaves out
MAX_PARTS = counts_manifest.MAX_SHARDS  # of one split name
_NUMBERS = r"(?P<part>[0-9]{5})-of-(?P<parts>[0-9]{5})(?:-g(?P<generation>[0-9]{4,}))?"
_DATA_FILE = re.compile(rf"{DATA}/(?:train|validation|part)-{_NUMBERS}\.parquet")
_SERIES = re.compile(rf"{DRIFT}/[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}\.jsonl")
_OF_GENERATION = re.compile(r"(records|inputs|manifest)-g(?P<generation>[0-9]{4,})\.(parquet|json)")
_DEAD_FILE = re.compile(rf"{DEAD_LETTERS}/part-{_NUMBERS}\.jsonl")
_EXPORTED = re.compile(
    rf"(({DATA}|{VALIDATION})/)?(train|{VALIDATION})-[0-9]{{5}}-of-[0-9]{{5}}(\.[0-9]{{5}})?"
    r"\.(parquet|bin|idx|mds)"
)


def part_file(part: int, parts: int, generation: int = 0) -> str:
    """Return the name of a part of an encoded corpus, below the output directory.

    Args:
        part: the number of the part.
        parts: the number of all parts.
        generation: the number of the appending job, from 1; 0 for the first job. The generation
            comes last, because readers of datasets take only names that begin
            ``train-00000-of-00042``.

    >>> part_file(3, 42), part_file(0, 3, 1)
    ('data/train-00003-of-00042.parquet', 'data/train-00000-of-00003-g0001.parquet')
    """
    return f"{DATA}/{TRAIN}-{_numbers(part, parts, generation)}.parquet"


def dead_letters_file(part: int, parts: int, generation: int = 0) -> str:
    """Return the name of the file of a split's bad records, below the output directory.

    >>> dead_letters_file(3, 42)
    'dead-letters/part-00003-of-00042.jsonl'
    """
    return f"{DEAD_LETTERS}/part-{_numbers(part, parts, generation)}.jsonl"


def of_generation(name: str, generation: int) -> str:
    """Return the name of a generation's own file of some kind.

    >>> of_generation("records.parquet", 2)
    'records-g0002.parquet'
    """
    stem, dot, suffix = name.partition(".")
    return f"{stem}{generation_suffix(generation)}{dot}{suffix}"


def is_series(file: str) -> bool:
    """Return whether a file below the output directory holds rows of a series of drift."""
    return _SERIES.fullmatch(file) is not None


def generation_of(name: str, default: int = 0) -> int:
    """Return the generation in a name from `of_generation`; ``default`` if there is none."""
    match = _OF_GENERATION.fullmatch(name)
    return int(match["generation"]) if match else default


def group_folder(field: str, value: str) -> str:
    """Return the folder of a group, such as ``language=en``.

    Characters other than letters, digits and ``_.-~`` are percent-encoded, as in ``%2F``.
    """
    return f"{quote(field, safe='')}={quote(value, safe='')}"


def _numbers(part: int, parts: int, generation: int) -> str:
    return f"{part:05d}-of-{parts:05d}{generation_suffix(generation)}"


@dataclass(frozen=True)
class PartName:
    """The numbers in the name of a part or a file of bad records, as `part_file` takes them."""

    part: int
    parts: int
    generation: int


def parse_part(file: str) -> PartName | None:
    """Parse the name of a file below the output directory; None if no job gives such a name.

    >>> parse_part("data/train-00003-of-00042.parquet")
    PartName(part=3, parts=42, generation=0)
    """
    match = _DATA_FILE.fullmatch(file) or _DEAD_FILE.fullmatch(file)
    if match is None:
        return None
    return PartName(int(match["part"]), int(match["parts"]), int(match["generation"] or 0))


def is_rows(name: str) -> bool:
    """Return whether an export gives this name to a file of rows."""
    return _EXPORTED.fullmatch(name) is not None


def _is_part(name: str) -> bool:
    """Return whether a job gives this name to a part, bad records or a file of a generation."""
    return is_series(name) or generation_of(name, -1) >= 0 or parse_part(name) is not None


@dataclass(frozen=True)
class Layout:
    """The directory of a kind of output.

    Attributes:
        command: the command that makes such a directory.
        holds: the contents in words.
        version: the version of `PLAN`: 3 where stages make the output; 1 had its parts next to the
            manifest.
        files: names of single files, besides those that every job writes.
        folders: folders of files whose names `is_part` accepts or ``files`` has.
        is_part: returns whether a name is one that the job gives to a numbered file.
        trees: folders that are the job's with their whole content.
        jobs: folders that are directories of other jobs.
        last: the file that makes the output complete.
    """

    command: str
    holds: str
    version: int
    files: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    is_part: Callable[[str], object] = lambda _: False
    trees: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()
    last: str = MANIFEST


_TOKENIZER_FILES = (*ROLES_FILES, TOKENIZER)
_FOLDERS = (DRIFT, DATA, DEAD_LETTERS)
LAYOUTS: dict[Kind, Layout] = {
    "counts": Layout(
        *("bpe count", "counts", 2, (SPLITS, INPUTS, TOKENIZER)), folders=_FOLDERS, is_part=_is_part
    ),
    "tokenizer": Layout(
        *("bpe train", "a tokenizer", 2, (TRAINING, *_TOKENIZER_FILES)),
        jobs=(COUNTS, OF_WORDS, RUNS, ENCODED, EXPORTED),
        last=TOKENIZER,
    ),
    "encoded": Layout(
        *("bpe encode", "token ids", 3, (SPLITS, *_TOKENIZER_FILES, INPUTS, RECORDS_FILE)),
        folders=_FOLDERS,
        is_part=_is_part,
        trees=(RECORDS,),
    ),
    "export": Layout(
        *("bpe export", "an export", 3),
        (*_TOKENIZER_FILES, PINS, RECORDS_FILE, EXPORT_INDEX, f"{VALIDATION}/{EXPORT_INDEX}"),
        folders=(DATA, VALIDATION),
        is_part=is_rows,
        trees=(RECORDS, WORK),
    ),
    "comparison": Layout("bpe compare", "a comparison", 2),
}


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The plan of a job: equal plans are the same job.

    Attributes:
        kind: the kind of output that the job makes.
        parts: the numbers after ``-of-`` in the names of the files that the job writes.
        settings: all settings that decide the bytes that the job writes; JSON values.
        inputs: number of input files, their bytes, and the SHA-256 of their names and sizes.
        run: the id of one run of the job, which all its steps know; empty if only one process
            plans.
        base: the folder below which the files of an appending job are named; else None.
        generation: the generation of an appending job; 0 for the first job in the directory.
        then: the kind of output that the same command makes next in folders of the directory of a
            tokenizer: an encoded corpus, or an export after that. Plans that differ only in this
            are the same job.
        keep: folders in the directory that the job reads or manages itself, such as ``counts``; not
            in the file.
    """

    kind: Kind
    parts: tuple[int, ...] = ()
    settings: Mapping[str, Any]
    inputs: Mapping[str, Any] = field(default_factory=dict)
    run: str = ""
    base: str | None = None
    generation: int = 0
    then: Kind | None = None
    keep: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the plan as the JSON object of the file `PLAN`."""
        then = {} if self.then is None else {THEN: self.then}
        return {
            "program": PROGRAM,
            "version": LAYOUTS[self.kind].version,
            "kind": self.kind,
            "parts": list(self.parts),
            "inputs": dict(self.inputs),
            "settings": dict(self.settings),
            **({RUN: self.run} if self.run else {}),
            **({} if self.base is None else {BASE: self.base, "generation": self.generation}),
            **then,
        }

    def differences(self, other: Mapping[str, Any]) -> list[str]:
        """Return the values in which a plan from a file differs, one phrase for each."""
        mine = self.to_json()
        names = ("program", "version", "kind", "settings", *(("inputs",) * (self.base is None)))
        found = [one for name in names for one in _differences(other.get(name), mine[name], name)]
        if not found and self.base is None:
            found = _differences(other.get("parts"), mine["parts"], "parts")
        return found


def dead_letters_in(directory: str) -> list[str]:
    """Return the files of bad records below an output directory, of any kind of job."""
    listed = storage.entries(join(directory, DEAD_LETTERS))
    names = (f"{DEAD_LETTERS}/{entry.name}" for entry in listed)
    return [name for name in names if parse_part(name)]


def read_plan(directory: str) -> dict[str, Any]:
    """Return the plan in ``directory``, as JSON values; empty if there is no plan of ours.

    Only the name of the program is checked.
    """
    plan = read_json_object(join(directory, PLAN)) or {}
    return plan if plan.get("program") == PROGRAM else {}


def json_bytes(value: Any) -> bytes:
    """Return a value as a JSON file: UTF-8, indented, with a newline at the end."""
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode("utf-8")


def manifest_bytes(value: Mapping[str, Any]) -> bytes:
    """Return the file of a manifest, with the checksum of the manifest."""
    return json_bytes(with_checksum(value))


def read_manifest_object(path: str) -> dict[str, Any]:
    """Read the JSON object in the file of a manifest.

    Raises:
        InputError: the file cannot be read, holds no JSON object, or was changed after writing.
    """
    value = json_object(storage.read(path))
    if value is None:
        raise InputError(f"{path}: not a manifest: it holds no JSON object")
    if not is_intact(value):
        raise InputError(
            f"{path}: checksum mismatch: the file is corrupt or was edited: make it again by "
            "running its job with `resume`"
        )
    return value


def manifest_from(
    cls: type[_Manifest],
    value: dict[str, Any],
    path: str,
    *,
    version: int,
    again: str,
    inputs: Callable[[], bytes] | None = None,
) -> _Manifest:
    """Return the manifest in a JSON object, after a check of its version.

    Args:
        cls: the class of the manifest.
        value: the object, intact and of the right kind.
        path: the path of the file, for errors.
        version: the version that this release reads.
        again: advice on making the output again, for errors.
        inputs: reads the separate file of the inputs, which a manifest with many inputs has.

    Raises:
        InputError: the manifest is of another version, or damaged.
    """
    if value.get("version") != version:
        raise InputError(
            f"{path} has version {value.get('version')!r}, this release reads {version}: use the "
            f"release of beam-bpe that wrote it, or {again}"
        )
    try:
        return from_jsonable(cls, value if inputs is None else put_back(value, inputs))
    except (ValueError, LookupError, TypeError) as error:
        raise InputError(f"{path}: damaged: {error}: {again}") from error


def read_json_object(path: str) -> dict[str, Any] | None:
    """Return the JSON object in a file; None if the file is missing or holds no JSON object."""
    try:
        return json_object(storage.read(path))
    except InputError:
        return None


def json_object(data: bytes) -> dict[str, Any] | None:
    """Return the JSON object in the contents of a file; None if the contents are not one."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _differences(old: object, new: object, place: str) -> list[str]:
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return [] if old == new else [f"{place} was {_short(old)}, is {_short(new)}"]
    found, dot = [], "." if " " in place else " "
    for name in sorted(old.keys() | new.keys()):
        if old.get(name) != new.get(name):  # a plan leaves out settings with default values
            was, now = old.get(name, _DEFAULT), new.get(name, _DEFAULT)
            found += _differences(was, now, f"{place}{dot}{name}")
    return found


def _short(value: Any) -> str:
    if value is _DEFAULT:
        return "the default"
    if isinstance(value, str) and len(value) > 58:  # a digest, most often
        value = value[:12] + "…"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."
