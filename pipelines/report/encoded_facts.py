"""The contents of encoded corpora, read in bounded memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pipelines.encode.parts import opened
from pipelines.encode.rows import ID, INPUT_IDS, flat
from pipelines.parquet_writer import batches_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from bpe import Tokenizer
    from pipelines.encode.manifest import EncodedManifest
    from pipelines.encode.rows import Ids, Numbers

_ROWS = 4096  # read at a time
_LONGEST_ROW = 1 << 20  # tokens: rows of more are counted as if they had so many
SAMPLE_ROWS = 5
SAMPLE_TOKENS = 200  # of a row


@dataclass(frozen=True, kw_only=True)
class SampleRow:
    """The part of a row of an encoded corpus that is shown.

    Attributes:
        file: the file of the part.
        row: the number of the row in the part, from 0.
        id: the id of the document, in UTF-8.
        tokens: the number of tokens in the row.
        ids: the token ids to show, from the first on.
    """

    file: str
    row: int
    id: bytes
    tokens: int
    ids: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class EncodedFacts:
    """The contents of the parts.

    Attributes:
        directory: the directory of the corpus.
        manifest: the manifest of the corpus.
        tokens: occurrences of each id.
        lengths: rows of each length in tokens, from 0 on, those of 2^20 and more in the last place.
        samples: a few rows, evenly spread, so the same ones each time.
    """

    directory: str
    manifest: EncodedManifest
    tokens: Numbers
    lengths: Numbers
    samples: tuple[SampleRow, ...]

    @property
    def rows(self) -> int:
        """Return the number of rows."""
        return int(self.lengths.sum())

    def length_at(self, share: float) -> int:
        """Return the length that this share of the rows does not exceed."""
        return int(np.searchsorted(np.cumsum(self.lengths), share * self.rows))

    def most_frequent(
        self, ids: Collection[int], tokenizer: Tokenizer, most: int
    ) -> list[tuple[bytes, int, int]]:
        """Return the token, id and occurrences of the most frequent of some ids."""
        ordered = sorted(ids, key=lambda id_: (-int(self.tokens[id_]), id_))[:most]
        return [(tokenizer.token_bytes(id_), id_, int(self.tokens[id_])) for id_ in ordered]


def read_encoded_facts(
    directory: str,
    manifest: EncodedManifest,
    *,
    advance: Callable[[int, int], object],
) -> EncodedFacts:
    """Read the ids of the parts in batches of rows, so that memory is bounded.

    Args:
        directory: the directory of the corpus.
        manifest: the manifest of the corpus.
        advance: called after each part with the number of parts read, and of all.

    Raises:
        InputError: a part is missing, damaged, or differs from the manifest.
    """
    tokens = np.zeros(manifest.tokenizer.vocab_size, np.int64)
    lengths = np.zeros(_LONGEST_ROW + 1, np.int64)
    parts = manifest.parts
    rows = sum(part.documents for part in parts)
    shown = min(SAMPLE_ROWS, rows)
    wanted = {(2 * i + 1) * rows // (2 * shown) for i in range(shown)}
    samples, before = list[SampleRow](), 0
    for done, part in enumerate(parts):
        advance(done, len(parts))
        first = before
        with opened(directory, part) as file:
            for batch in batches_of(file, _ROWS, columns=[ID, INPUT_IDS]):
                ids, bounds = flat(batch.column(INPUT_IDS))
                _add_rows(ids, np.diff(bounds), tokens, lengths)
                for row in sorted(wanted.intersection(range(before, before + len(batch)))):
                    begin, end = bounds[row - before : row - before + 2].tolist()
                    sample = SampleRow(
                        file=part.file,
                        row=row - first,
                        id=batch.column(ID)[row - before].as_py().encode(),
                        tokens=end - begin,
                        ids=tuple(ids[begin:end][:SAMPLE_TOKENS].tolist()),
                    )
                    samples.append(sample)
                before += len(batch)
    advance(len(parts), len(parts))
    longest = int(np.flatnonzero(lengths).max(initial=0))
    return EncodedFacts(
        directory=directory,
        manifest=manifest,
        tokens=tokens,
        lengths=lengths[: longest + 1],
        samples=tuple(samples),
    )


def _add_rows(ids: Ids, sizes: Numbers, tokens: Numbers, lengths: Numbers) -> None:
    found = np.bincount(ids, minlength=len(tokens))
    if len(found) > len(tokens):
        raise ValueError(f"id {ids.max()} is not below {len(tokens)}, the size of the vocabulary")
    tokens += found
    lengths += np.bincount(np.minimum(sizes, _LONGEST_ROW), minlength=len(lengths))
