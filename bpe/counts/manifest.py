"""The manifest of a counts directory: what was counted, how, and which files hold the result."""

from __future__ import annotations

import functools
import json
import operator
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from bpe._codec import from_jsonable, to_jsonable
from bpe._inputs_file import put_back, take_out
from bpe.counts.pruning import Pruned
from bpe.counts.runs import CutRuns, Runs
from bpe.errors import CountsError
from bpe.files import is_intact, with_checksum
from bpe.pretokenizer import Pretokenizer
from bpe.special_tokens import check_special_tokens

MANIFEST_NAME = "manifest.json"
MAX_SHARDS = 99_999
KIND = "counts"
VERSION = 3
DATA = "data"  # the folder of the parts

_DEAD_LETTERS = re.compile(r"dead-letters/part-[0-9]{5}-of-[0-9]{5}(?:-g[0-9]{4,})?\.jsonl")
PART = re.compile(rf"{DATA}/part-(\d{{5}})-of-(\d{{5}})(?:-g([0-9]{{4,}}))?\.parquet")


def shard_file(shard: int, shards: int, generation: int = 0) -> str:
    """Return the path of a shard in its directory: ``data/part-00000-of-00016.parquet``.

    Counts that were appended to others have a ``generation`` from 1, which follows the numbers.

    >>> shard_file(0, 16, 2)
    'data/part-00000-of-00016-g0002.parquet'
    """
    return f"{DATA}/part-{shard:05d}-of-{shards:05d}{generation_suffix(generation)}.parquet"


def generation_suffix(generation: int) -> str:
    """Return the suffix in the names of appended files; empty for the first generation."""
    return f"-g{generation:04d}" if generation else ""


@dataclass(frozen=True)
class Totals:
    """Totals of counts.

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

    def __add__(self, other: Totals) -> Totals:
        sums = {name: value + vars(other)[name] for name, value in self._numbers().items()}
        return Totals(**sums, formats=add_formats(self.formats, other.formats))

    def __mul__(self, times: int) -> Totals:
        formats = {name: documents * times for name, documents in self.formats.items()}
        products = {name: value * times for name, value in self._numbers().items()}
        return Totals(**products, formats=formats)

    def _numbers(self) -> dict[str, int]:
        return {name: value for name, value in vars(self).items() if name != "formats"}


def add_formats(*formats: Mapping[str, int]) -> dict[str, int]:
    """Return the sum of documents by format, with the names sorted.

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
class DeadLetters:
    """A file of bad records that were set aside.

    Attributes:
        file: its name below the output directory.
        records: how many there are in it.
        bytes: its size.
        sha256: of its contents (hex).
    """

    file: str
    records: int
    bytes: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class Described:
    """The description that counts share with the manifest of their directory.

    Attributes:
        pretokenizer: how text was cut.
        special_tokens: cut out of the text first, and not counted.
        totals: what was counted.
        order_span: if order is tracked, all places of documents are in ``range(order_span)``;
            otherwise None.
        inputs: the files that were counted, if known.
        prune: what was dropped for being rare; None without pruning.
        scale: counts, totals and ``prune`` are multiplied by this; more than 1 only if weights are
            fractions.
        runs: of counts of runs, how they were found: pre-tokens are then the ids of their tokens
            as bytes, as `bpe.counts.Runs` says. None for counts of pre-tokens.
        cut: what the cuts of long runs may have changed; None without ``runs.max_run``.
    """

    pretokenizer: Pretokenizer
    special_tokens: tuple[str, ...] = ()
    totals: Totals
    order_span: int | None = None
    inputs: tuple[CountedInput, ...] = ()
    prune: Pruned | None = None
    scale: int = 1
    runs: Runs | None = None
    cut: CutRuns | None = None

    def described(self) -> dict[str, Any]:
        """Return the fields that counts share with their manifest."""
        return {one.name: vars(self)[one.name] for one in fields(Described)}


def summed(counts: Sequence[Described]) -> dict[str, Any]:
    """Return the fields of a description of several counts together that are sums of theirs."""
    return {
        "totals": sum((one.totals for one in counts), Totals()),
        "inputs": tuple(sorted(file for one in counts for file in one.inputs)),
        "prune": added(one.prune for one in counts),
        "cut": added(one.cut for one in counts),
    }


def added(losses: Iterable[Any]) -> Any:
    """Return the sum of the losses that are not None; None if there are none."""
    known = [loss for loss in losses if loss is not None]
    return functools.reduce(operator.add, known) if known else None


@dataclass(frozen=True, kw_only=True)
class CountsManifest(Described):
    """The contents of ``manifest.json``.

    Attributes:
        dead_letters: files of bad records; none where counts were saved by themselves.
        parts: one for each shard, in order.
    """

    parts: tuple[CountsPart, ...]
    dead_letters: tuple[DeadLetters, ...] = ()

    def files(self) -> dict[str, bytes]:
        """Return the files to write, by name, the manifest last; see `bpe._inputs_file`."""
        value, inputs = take_out(self.to_json())
        return {**inputs, MANIFEST_NAME: (json.dumps(value, indent=2) + "\n").encode("ascii")}

    def to_json(self) -> dict[str, Any]:
        """Return the manifest as JSON values, with all inputs."""
        distinct = sum(part.rows for part in self.parts)
        file = {
            "kind": KIND,
            "version": VERSION,
            **self.pretokenizer.settings,
            "special_tokens": self.special_tokens,
            "runs": self.runs,
            "cut": self.cut,
            "order_span": self.order_span,
            "totals": {**asdict(self.totals), "distinct_pretokens": distinct},
            "pruned": self.prune,
            "scale": self.scale,
            "inputs": self.inputs,
            "dead_letters": self.dead_letters,
            "parts": self.parts,
        }
        return with_checksum(to_jsonable(file))

    @classmethod
    def from_json(
        cls, text: str | bytes, *, where: str, inputs: Callable[[], bytes]
    ) -> CountsManifest:
        """Read a manifest.

        Args:
            text: the file.
            where: names it in errors.
            inputs: reads the file `bpe._inputs_file.INPUTS` next to it, if it names one.

        Raises:
            CountsError: it is no JSON, no counts manifest, of another version, a field is missing,
                of another type or impossible, or anything in it was changed (see `is_intact`).
        """
        try:
            document = from_jsonable(dict[str, Any], json.loads(text))
        except (ValueError, RecursionError) as error:
            raise CountsError(f"{where} is not a JSON object ({error}): count again") from error
        if (kind := document.get("kind")) != KIND:
            raise CountsError(f"{where} is the manifest of {kind!r:.60}, not of {KIND!r}")
        if (version := document.get("version")) != VERSION:
            raise CountsError(
                f"{where} has version {version!r:.60}, this library reads {VERSION}: use the "
                "release of beam-bpe that wrote it, or count again to another directory"
            )
        if not is_intact(document):
            raise CountsError(
                f"{where}: checksum mismatch: the file is corrupt or was edited: count again"
            )
        try:
            document = put_back(document, inputs)
            cut = {
                "name": document.get("pretokenizer"),
                "pattern": document.get("pattern"),
                "normalizer": document.get("normalizer") or [],
                "never_split": document.get("never_split") or [],
            }
            read = {"pretokenizer": cut, "prune": document.get("pruned")}
            manifest = from_jsonable(cls, document | read)
            check_special_tokens(manifest.special_tokens)
        except ValueError as error:
            raise CountsError(f"{where}: {error}: count again") from error
        _check_files(manifest, where)
        return manifest


def _check_files(manifest: CountsManifest, where: str) -> None:
    """Check that the parts are all shards in order, and no file is outside the directory."""
    parts = manifest.parts
    if not 1 <= len(parts) <= MAX_SHARDS:
        raise CountsError(f"{where} names {len(parts)} parts; there must be 1 to {MAX_SHARDS}")
    name = PART.fullmatch(parts[0].file)
    generation = int(name[3] or 0) if name else 0
    for shard, part in enumerate(parts):
        expected = shard_file(shard, len(parts), generation)
        if part.file != expected:
            raise CountsError(f"{where}: part {shard} is {part.file!r}, it must be {expected!r}")
    for letters in manifest.dead_letters:
        if _DEAD_LETTERS.fullmatch(letters.file) is None:
            raise CountsError(f"{where}: dead letters cannot be {letters.file!r}")
    records = sum(letters.records for letters in manifest.dead_letters)
    if manifest.dead_letters and records != manifest.totals.failures:
        raise CountsError(
            f"{where} names {manifest.totals.failures} bad records, but its dead letters hold "
            f"{records}"
        )
