"""The manifest of a counts directory: what was counted, how, and which files hold the result."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

from bpe._checksum import is_intact, with_checksum
from bpe.counts.pruning import Pruned
from bpe.errors import BpeError, CountsError
from bpe.pretokenize import Pretokenizer
from bpe.special import check_special_tokens

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MANIFEST_NAME = "manifest.json"
MAX_SHARDS = 99_999
KIND = "counts"
VERSION = 2  # 1 had its parts beside the manifest
DATA = "data"  # the folder of the parts

_PART = re.compile(r"part-(\d{5})-of-(\d{5})\.parquet")


def shard_file(shard: int, shards: int) -> str:
    """The file of a shard below its directory: ``data/part-00000-of-00016.parquet``."""
    return f"{DATA}/part-{shard:05d}-of-{shards:05d}.parquet"


def is_part_name(name: str) -> bool:
    """Whether a file of this name in the folder ``data`` can be a part."""
    return _PART.fullmatch(name) is not None


def check_shards(shards: int) -> None:
    """Raise CountsError for a number of parts that file names cannot express."""
    if not 1 <= shards <= MAX_SHARDS:
        raise CountsError(f"shards={shards} is not between 1 and {MAX_SHARDS}")


@dataclass(frozen=True)
class Totals:
    """What was counted.

    Attributes:
        documents: texts, empty ones included.
        bytes: of all texts, in UTF-8, special tokens included.
        pretokens: occurrences: the sum of all counts.
        failures: bad records that were set aside and are in none of the other numbers.
        formats: documents by the format of the file that held them, as far as they come from files.
    """

    documents: int = 0
    bytes: int = 0
    pretokens: int = 0
    failures: int = 0
    formats: Mapping[str, int] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        formats = {f"formats: {name}": documents for name, documents in self.formats.items()}
        for name, value in (asdict(self) | {"formats": 0} | formats).items():
            if value < 0:
                raise CountsError(f"totals: {name} is negative: {value}")

    def __add__(self, other: Totals) -> Totals:
        return Totals(
            self.documents + other.documents,
            self.bytes + other.bytes,
            self.pretokens + other.pretokens,
            self.failures + other.failures,
            add_formats(self.formats, other.formats),
        )

    def __mul__(self, times: int) -> Totals:
        return Totals(
            self.documents * times,
            self.bytes * times,
            self.pretokens * times,
            self.failures * times,
            {name: documents * times for name, documents in self.formats.items()},
        )


def add_formats(*formats: Mapping[str, int]) -> dict[str, int]:
    """Add up documents by format; the names are sorted.

    >>> add_formats({"text": 1}, {"jsonl": 2, "text": 3})
    {'jsonl': 2, 'text': 4}
    """
    total: Counter[str] = Counter()
    for one in formats:
        total.update(one)
    return dict(sorted(total.items()))


@dataclass(frozen=True, order=True)
class CountedInput:
    """A file that was counted: its name in the corpus and its size in bytes."""

    name: str
    size: int


@dataclass(frozen=True)
class CountsPart:
    """A Parquet file of a counts directory: its name, rows, size in bytes and SHA-256."""

    file: str
    rows: int
    bytes: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class CountsManifest:
    """Everything ``manifest.json`` says.

    Attributes:
        pretokenizer: how text was cut.
        special_tokens: cut out before, not counted.
        order_span: where order is tracked, the number of places documents can have; else None.
        totals: what was counted.
        inputs: the files it came from.
        parts: one for each shard, in order.
        prune: what was dropped for being rare.
        scale: all counts are in units of ``1 / scale``.
    """

    pretokenizer: Pretokenizer
    special_tokens: tuple[str, ...]
    order_span: int | None
    totals: Totals
    inputs: tuple[CountedInput, ...]
    parts: tuple[CountsPart, ...]
    prune: Pruned | None = None
    scale: int = 1

    def to_json(self) -> str:
        """The text of the file: the same for the same manifest, and ASCII."""
        totals = asdict(self.totals)
        failures, formats = totals.pop("failures"), totals.pop("formats")
        document = {
            "kind": KIND,
            "version": VERSION,
            **self.pretokenizer.settings,
            "special_tokens": list(self.special_tokens),
            "order_span": self.order_span,
            "totals": {
                **totals,
                "distinct_pretokens": sum(part.rows for part in self.parts),
                "failures": failures,
                "formats": formats,
            },
            "pruned": None if self.prune is None else asdict(self.prune),
            "scale": self.scale,
            "inputs": [asdict(file) for file in self.inputs],
            "parts": [asdict(part) for part in self.parts],
        }
        return json.dumps(with_checksum(document), indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes, *, where: str) -> CountsManifest:
        """Read a manifest; ``where`` names it in errors.

        Raises:
            CountsError: it is no JSON, no counts manifest, of another version, a field is missing,
                of another type or impossible, or anything in it was changed (see `is_intact`).
        """
        try:
            document = json.loads(text)
            root = _Object(document, where)
        except (ValueError, RecursionError) as error:
            raise CountsError(f"{where} is not JSON ({error}): count again") from error
        kind = root.get("kind", str)
        if kind != KIND:
            raise CountsError(f"{where} is the manifest of {kind!r}, not of {KIND!r}")
        version = root.get("version", int)
        if version != VERSION:
            raise CountsError(
                f"{where} has version {version}, this library reads {VERSION}: "
                "use the release of beam-bpe that wrote it, or count again to another directory"
            )
        try:
            manifest = cls(
                pretokenizer=_pretokenizer(root),
                special_tokens=check_special_tokens(root.items("special_tokens", str)),
                order_span=root.get("order_span", int, type(None)),
                totals=_totals(root),
                inputs=tuple(
                    CountedInput(entry.get("name", str), entry.size("size"))
                    for entry in root.objects("inputs")
                ),
                parts=tuple(
                    CountsPart(
                        entry.get("file", str),
                        entry.size("rows"),
                        entry.size("bytes"),
                        entry.get("sha256", str),
                    )
                    for entry in root.objects("parts")
                ),
                prune=_pruned(root),
                scale=root.size("scale", default=1),
            )
        except BpeError as error:
            message = str(error)
            raise CountsError(message if where in message else f"{where}: {message}") from error
        _check_parts(manifest.parts, where)
        distinct = _Object(root.get("totals", dict), f"{where}: totals").size("distinct_pretokens")
        rows = sum(part.rows for part in manifest.parts)
        if distinct != rows:
            raise CountsError(
                f"{where} tells of {distinct} distinct pre-tokens, but its parts have {rows} rows"
            )
        if not is_intact(document):
            raise CountsError(f"{where}: its checksum says that it was changed: count again")
        return manifest


def _pretokenizer(root: _Object) -> Pretokenizer:
    pattern = root.get("pattern", str, list, type(None))
    return Pretokenizer(
        root.get("pretokenizer", str, type(None)),
        tuple(root.items("pattern", str)) if isinstance(pattern, list) else pattern,
        normalizer=tuple(root.items("normalizer", str, default=())),
        never_split=tuple(root.items("never_split", str, default=())),
    )


def _pruned(root: _Object) -> Pruned | None:
    value = root.get("pruned", dict, type(None))
    if value is None:
        return None
    entry = _Object(value, f"{root.where}: pruned")
    return Pruned(**{field.name: entry.size(field.name) for field in fields(Pruned)})


def _totals(root: _Object) -> Totals:
    totals = _Object(root.get("totals", dict), f"{root.where}: totals")
    named = totals.get("formats", dict) if "formats" in totals.names else {}  # of files alone
    formats = _Object(named, f"{totals.where}: formats")
    return Totals(
        totals.size("documents"),
        totals.size("bytes"),
        totals.size("pretokens"),
        totals.size("failures"),
        {name: formats.size(name) for name in formats.names},
    )


def _check_parts(parts: Sequence[CountsPart], where: str) -> None:
    """Parts are all shards in order; so no manifest can name a file outside its directory."""
    if not 1 <= len(parts) <= MAX_SHARDS:
        raise CountsError(f"{where} names {len(parts)} parts; there must be 1 to {MAX_SHARDS}")
    for shard, part in enumerate(parts):
        expected = shard_file(shard, len(parts))
        if part.file != expected:
            raise CountsError(f"{where}: part {shard} is {part.file!r}, it must be {expected!r}")


class _Object:
    """A JSON object whose fields are taken with the type they must have."""

    def __init__(self, value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise CountsError(f"{where} is not a JSON object")
        self._fields = value
        self.where = where

    @property
    def names(self) -> list[str]:
        return list(self._fields)

    def get(self, name: str, *kinds: type) -> Any:
        if name not in self._fields:
            raise CountsError(f"{self.where} has no field {name!r}")
        value = self._fields[name]
        if type(value) not in kinds:
            expected = " or ".join(
                "null" if kind is type(None) else kind.__name__ for kind in kinds
            )
            raise CountsError(f"{self.where}: {name} is {value!r:.60}, it must be {expected}")
        return value

    def size(self, name: str, *, default: int | None = None) -> int:
        value: int = (
            default if default is not None and name not in self._fields else self.get(name, int)
        )
        if value < 0:
            raise CountsError(f"{self.where}: {name} is negative: {value}")
        return value

    def items(
        self, name: str, kind: type, *, default: Sequence[Any] | None = None
    ) -> Sequence[Any]:
        """The items of a list; ``default`` where the field may be null or missing."""
        if default is not None and self._fields.get(name) is None:
            return default
        values: list[Any] = self.get(name, list)
        for value in values:
            if type(value) is not kind:
                raise CountsError(
                    f"{self.where}: {name} holds {value!r:.60}, not a {kind.__name__}"
                )
        return values

    def objects(self, name: str) -> list[_Object]:
        values: list[Any] = self.get(name, list)
        return [_Object(value, f"{self.where}: {name}[{i}]") for i, value in enumerate(values)]
