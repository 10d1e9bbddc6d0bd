"""What counts, encoded corpora and dead letters hold, read in bounded memory."""

from __future__ import annotations

import heapq
import json
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines import storage
from pipelines.encode.parts import open_part
from pipelines.encode.rows import ID, INPUT_IDS, flat
from pipelines.errors import InputError
from pipelines.output.check_files import named_file
from pipelines.output.names import DEAD_LETTERS
from pipelines.report.writing_systems import kind_of
from pipelines.storage import join

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

    from bpe.counts import PretokenCounts
    from bpe.counts.manifest import CountsManifest
    from pipelines.encode.manifest import EncodedManifest, Part

    Numbers = npt.NDArray[np.int64]

_COUNT_ROWS = 65536  # read at a time
_ID_ROWS = 4096
_TOP = 40
SAMPLE_ROWS = 5
SAMPLE_TOKENS = 200  # of a row
_LONGEST_ROW = 1 << 20  # tokens: rows of more are counted as if they had so many
MOST_READ = 10_000  # bad records
_EXAMPLES = 3
# What differs between records of one reason: a byte, a position; not the 8 of UTF-8.
_HEX_BYTE = re.compile(r"\b0x[0-9a-f]+")
_NUMBER = re.compile(r"(?<![\w-])\d[\d,]*")
_LONGEST_LINE = 64 << 20


@dataclass(kw_only=True)
class CountedFacts:
    """What the counts hold, of pre-tokens or of runs.

    Attributes:
        id_bytes: of each id in a run; None of pre-tokens.
        lengths: occurrences of each length: of a pre-token in bytes, of a run in tokens.
        distinct_lengths: distinct pre-tokens or runs of each length.
        frequencies: for each n: distinct ones that occur 2^n to 2^(n+1) - 1 times, and the
            occurrences of these.
        kinds: for each kind of `kind_of`: distinct pre-tokens, occurrences, bytes of these; empty
            of runs.
        frequent: (occurrences, key of the counts), the most frequent ones first.
        longest: (length, occurrences, key), the longest first.
    """

    id_bytes: int | None = None
    lengths: Counter[int] = field(default_factory=Counter)
    distinct_lengths: Counter[int] = field(default_factory=Counter)
    frequencies: dict[int, tuple[int, int]] = field(default_factory=dict)
    kinds: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    frequent: list[tuple[int, bytes]] = field(default_factory=list)
    longest: list[tuple[int, int, bytes]] = field(default_factory=list)

    @property
    def distinct(self) -> int:
        """How many distinct pre-tokens or runs there are."""
        return self.distinct_lengths.total()

    def add(self, keys: list[bytes], counts: list[int]) -> None:
        """Take some keys in, of which none came before."""
        self._best_of(keys, counts)
        for key, count in zip(keys, counts, strict=True):
            size = self._length(key)
            self.lengths[size] += count
            self.distinct_lengths[size] += 1
            power = count.bit_length() - 1
            distinct, times = self.frequencies.get(power, (0, 0))
            self.frequencies[power] = (distinct + 1, times + count)
            if self.id_bytes is None:
                kind = kind_of(key)
                distinct, times, bytes_ = self.kinds.get(kind, (0, 0, 0))
                self.kinds[kind] = (distinct + 1, times + count, bytes_ + count * size)

    def _length(self, key: bytes) -> int:
        return len(key) // (self.id_bytes or 1)

    def _best_of(self, keys: list[bytes], counts: list[int]) -> None:
        """Keep the most frequent and the longest of these and those before."""
        frequent = heapq.nlargest(_TOP, zip(counts, keys, strict=True))
        self.frequent = heapq.nlargest(_TOP, [*self.frequent, *frequent])
        sized = zip(map(self._length, keys), counts, keys, strict=True)
        self.longest = heapq.nlargest(_TOP, [*self.longest, *heapq.nlargest(_TOP, sized)])


def counted_facts(counts: PretokenCounts) -> CountedFacts:
    """What counts in memory hold."""
    facts = CountedFacts(id_bytes=None if counts.runs is None else counts.runs.id_bytes)
    for first in range(0, len(counts), _COUNT_ROWS):
        columns = (one.slice(first, _COUNT_ROWS) for one in (counts.pretokens, counts.counts))
        facts.add(*(column.to_pylist() for column in columns))
    return facts


def read_counted_facts(
    directory: str, manifest: CountsManifest, *, advance: Callable[[int, int], object]
) -> CountedFacts:
    """Read all counts, some rows at a time: memory does not grow with them.

    Args:
        directory: of the counts.
        manifest: its manifest.
        advance: told after each part how many of how many are read.

    Raises:
        InputError: a part is missing, damaged or another than the manifest names.
    """
    facts = CountedFacts(id_bytes=None if manifest.runs is None else manifest.runs.id_bytes)
    for done, part in enumerate(manifest.parts):
        advance(done, len(manifest.parts))
        path = join(directory, part.file)
        try:
            with named_file(directory, part.file, part.bytes, part.sha256) as source:
                for batch in pq.ParquetFile(source).iter_batches(
                    _COUNT_ROWS, columns=["pretoken", "count"]
                ):
                    facts.add(*(column.to_pylist() for column in batch.columns))
        except (pa.ArrowException, OSError, ValueError, TypeError) as error:
            said = " ".join(str(error).split())
            raise InputError(f"{path}: damaged: {said}: check it with bpe verify") from error
    advance(len(manifest.parts), len(manifest.parts))
    return facts


@dataclass(frozen=True, kw_only=True)
class EncodedFacts:
    """What the parts that were read hold.

    Attributes:
        parts: how many were read, evenly spread over all.
        tokens: occurrences of each id.
        lengths: rows of each length in tokens, from 0 on, those of 2^20 and more in the last place.
    """

    parts: int
    tokens: Numbers
    lengths: Numbers

    @property
    def rows(self) -> int:
        """How many rows were read."""
        return int(self.lengths.sum())

    def length_at(self, share: float) -> int:
        """The length that this share of the rows does not exceed."""
        return int(np.searchsorted(np.cumsum(self.lengths), share * self.rows))


def read_encoded_facts(
    directory: str,
    manifest: EncodedManifest,
    *,
    sample_parts: int | None,
    advance: Callable[[int, int], object],
) -> EncodedFacts:
    """Read the ids of the parts, some rows at a time: memory does not grow with the corpus.

    Args:
        directory: of the corpus.
        manifest: its manifest.
        sample_parts: how many parts to read at most; None for all.
        advance: told after each part how many of how many are read.

    Raises:
        InputError: a part is missing, damaged or another than the manifest names.
    """
    tokens = np.zeros(manifest.tokenizer.vocab_size, np.int64)
    lengths = np.zeros(_LONGEST_ROW + 1, np.int64)
    chosen = _spread(len(manifest.parts), sample_parts)
    for done, number in enumerate(chosen):
        advance(done, len(chosen))
        part = manifest.parts[number]
        path = join(directory, part.file)
        try:
            with named_file(directory, part.file, part.bytes, part.sha256) as source:
                for batch in open_part(source).iter_batches(_ID_ROWS, columns=[INPUT_IDS]):
                    _add_rows(batch, tokens, lengths)
        except (pa.ArrowException, OSError, ValueError, KeyError) as error:
            said = " ".join(str(error).split())
            raise InputError(f"{path}: damaged: {said}: check it with bpe verify") from error
    advance(len(chosen), len(chosen))
    longest = int(np.flatnonzero(lengths).max(initial=0))
    return EncodedFacts(parts=len(chosen), tokens=tokens, lengths=lengths[: longest + 1])


def _spread(parts: int, most: int | None) -> list[int]:
    """The numbers of at most so many parts, evenly spread."""
    if most is None or most >= parts:
        return list(range(parts))
    return [i * parts // most for i in range(most)]


def _add_rows(rows: pa.RecordBatch, tokens: Numbers, lengths: Numbers) -> None:
    ids, bounds = flat(rows.column(INPUT_IDS))
    found = np.bincount(ids, minlength=len(tokens))
    if len(found) > len(tokens):
        raise ValueError(f"id {ids.max()} is not below {len(tokens)}, the size of the vocabulary")
    tokens += found
    sizes = np.minimum(np.diff(bounds), _LONGEST_ROW)
    lengths += np.bincount(sizes, minlength=len(lengths))


@dataclass(frozen=True, kw_only=True)
class SampleRow:
    """A row of an encoded corpus, as far as it is shown.

    Attributes:
        file: the part that holds it.
        row: its number in the part, from 0.
        id: of the document.
        tokens: how many it has.
        ids: those to show, from the first on.
    """

    file: str
    row: int
    id: str
    tokens: int
    ids: tuple[int, ...]


def read_sample_rows(
    directory: str, manifest: EncodedManifest, *, sample_parts: int | None
) -> list[SampleRow]:
    """A few rows, evenly spread over those of the parts, so the same ones each time.

    Reads one row group for each at most, some rows at a time.

    Args:
        directory: of the corpus.
        manifest: its manifest.
        sample_parts: how many parts to read at most; None for all.

    Raises:
        InputError: a part is missing, damaged or another than the manifest names.
    """
    chosen = [manifest.parts[number] for number in _spread(len(manifest.parts), sample_parts)]
    rows = sum(part.documents for part in chosen)
    most = min(SAMPLE_ROWS, rows)
    wanted = [(2 * i + 1) * rows // (2 * most) for i in range(most)]
    samples: list[SampleRow] = []
    begin = 0
    for part in chosen:
        numbers = [row - begin for row in wanted if begin <= row < begin + part.documents]
        begin += part.documents
        if not numbers:
            continue
        path = join(directory, part.file)
        try:
            with named_file(directory, part.file, part.bytes, part.sha256) as source:
                file = open_part(source)
                samples += [_sample_row(file, part, number) for number in numbers]
        except (pa.ArrowException, OSError, ValueError, KeyError) as error:
            said = " ".join(str(error).split())
            raise InputError(f"{path}: damaged: {said}: check it with bpe verify") from error
    return samples


def _sample_row(file: pq.ParquetFile, part: Part, number: int) -> SampleRow:
    row = _read_row(file, number)
    ids, _ = flat(row.column(INPUT_IDS))
    return SampleRow(
        file=part.file,
        row=number,
        id=row.column(ID)[0].as_py(),
        tokens=len(ids),
        ids=tuple(ids[:SAMPLE_TOKENS].tolist()),
    )


def _read_row(file: pq.ParquetFile, number: int) -> pa.RecordBatch:
    """One row, without the columns that pass through."""
    left = number
    for group in range(file.metadata.num_row_groups):
        if left >= (rows := file.metadata.row_group(group).num_rows):
            left -= rows
            continue
        for batch in file.iter_batches(_ID_ROWS, row_groups=[group], columns=[ID, INPUT_IDS]):
            if left < len(batch):
                return batch.slice(left, 1)
            left -= len(batch)
    raise ValueError(f"row {number} is missing")


@dataclass
class Reason:
    """Records that were set aside for one reason.

    Attributes:
        records: how many.
        examples: (file, place, reason in full) of the first ones.
    """

    records: int = 0
    examples: list[tuple[str, str, str]] = field(default_factory=list)


def read_reasons(directory: str) -> dict[str, Reason]:
    """The reasons of the first 10,000 bad records below ``directory``, the most frequent first.

    Reasons that differ only in numbers are one. Lines that are damaged are left out.
    """
    reasons: dict[str, Reason] = {}
    for number, record in enumerate(_records(directory)):
        if number >= MOST_READ:
            break
        said = str(record.get("reason"))
        reason = reasons.setdefault(_NUMBER.sub("N", _HEX_BYTE.sub("0xNN", said)), Reason())
        reason.records += 1
        if len(reason.examples) < _EXAMPLES:
            place = f"{record.get('unit') or 'place'} {record.get('place')}"
            reason.examples.append((str(record.get("file")), place, said))
    return dict(sorted(reasons.items(), key=lambda item: (-item[1].records, item[0])))


def _records(directory: str) -> Iterator[dict[str, Any]]:
    folder = join(directory, DEAD_LETTERS)
    for entry in storage.entries(folder):
        if entry.kind != "file" or not entry.name.endswith(".jsonl"):
            continue
        try:
            with storage.open_binary(join(folder, entry.name)) as file:
                yield from _lines(file)
        except (OSError, InputError):
            continue


def _lines(file: Any) -> Iterator[dict[str, Any]]:
    """The records of a file, a chunk at a time: a bad record can be as large as any."""
    rest = b""
    while chunk := bytes(file.read(storage.CHUNK)):
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > _LONGEST_LINE:
            return
        for line in lines:
            try:
                value = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(value, dict):
                yield value
