"""What encoded corpora hold, read in bounded memory."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pipelines.encode.parts import open_part
from pipelines.encode.rows import ID, INPUT_IDS, flat
from pipelines.errors import InputError
from pipelines.output.check_files import named_file
from pipelines.parquet_writer import batches_of
from pipelines.storage import join

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    import numpy.typing as npt
    import pyarrow.parquet as pq

    from bpe import Tokenizer
    from bpe.counts.manifest import CountsPart
    from pipelines.encode.manifest import EncodedManifest, Part

    Numbers = npt.NDArray[np.int64]

_ROWS = 4096  # read at a time
_LONGEST_ROW = 1 << 20  # tokens: rows of more are counted as if they had so many
SAMPLE_ROWS = 5
SAMPLE_TOKENS = 200  # of a row


@contextmanager
def opened(directory: str, part: Part | CountsPart) -> Iterator[pq.ParquetFile]:
    """A part, open; its bytes are those that the manifest names.

    Raises:
        InputError: it is missing, damaged or another.
    """
    path = join(directory, part.file)
    try:
        with named_file(directory, part.file, part.bytes, part.sha256) as source:
            yield open_part(source)
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
        said = " ".join(str(error).split())
        raise InputError(f"{path}: damaged: {said}: check it with bpe verify") from error


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

    def most_frequent(
        self, ids: Collection[int], tokenizer: Tokenizer, most: int
    ) -> list[tuple[bytes, int, int]]:
        """The token, the id and the occurrences of those of some ids that occur most often."""
        ordered = sorted(ids, key=lambda id_: (-int(self.tokens[id_]), id_))[:most]
        return [(tokenizer.token_bytes(id_), id_, int(self.tokens[id_])) for id_ in ordered]


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
    parts = _spread(manifest, sample_parts)
    for done, part in enumerate(parts):
        advance(done, len(parts))
        with opened(directory, part) as file:
            for batch in batches_of(file, _ROWS, columns=[INPUT_IDS]):
                _add_rows(batch, tokens, lengths)
    advance(len(parts), len(parts))
    longest = int(np.flatnonzero(lengths).max(initial=0))
    return EncodedFacts(parts=len(parts), tokens=tokens, lengths=lengths[: longest + 1])


def _spread(manifest: EncodedManifest, most: int | None) -> list[Part]:
    """At most so many parts, evenly spread."""
    number = len(manifest.parts)
    count = number if most is None else min(most, number)
    return [manifest.parts[i * number // count] for i in range(count)]


def _add_rows(rows: pa.RecordBatch, tokens: Numbers, lengths: Numbers) -> None:
    ids, bounds = flat(rows.column(INPUT_IDS))
    found = np.bincount(ids, minlength=len(tokens))
    if len(found) > len(tokens):
        raise ValueError(f"id {ids.max()} is not below {len(tokens)}, the size of the vocabulary")
    tokens += found
    lengths += np.bincount(np.minimum(np.diff(bounds), _LONGEST_ROW), minlength=len(lengths))


@dataclass(frozen=True, kw_only=True)
class SampleRow:
    """A row of an encoded corpus, as far as it is shown.

    Attributes:
        file: the part that holds it.
        row: its number in the part, from 0.
        id: of the document, in UTF-8.
        tokens: how many it has.
        ids: those to show, from the first on.
    """

    file: str
    row: int
    id: bytes
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
    parts = _spread(manifest, sample_parts)
    rows = sum(part.documents for part in parts)
    most = min(SAMPLE_ROWS, rows)
    wanted = [(2 * i + 1) * rows // (2 * most) for i in range(most)]
    samples: list[SampleRow] = []
    begin = 0
    for part in parts:
        numbers = [row - begin for row in wanted if begin <= row < begin + part.documents]
        begin += part.documents
        if numbers:
            with opened(directory, part) as file:
                samples += [_sample_row(file, part, number) for number in numbers]
    return samples


def _sample_row(file: pq.ParquetFile, part: Part, number: int) -> SampleRow:
    row = _read_row(file, number)
    ids, _ = flat(row.column(INPUT_IDS))
    return SampleRow(
        file=part.file,
        row=number,
        id=row.column(ID)[0].as_py().encode(),
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
        for batch in file.iter_batches(_ROWS, row_groups=[group], columns=[ID, INPUT_IDS]):
            if left < len(batch):
                return batch.slice(left, 1)
            left -= len(batch)
    raise ValueError(f"row {number} is missing")
