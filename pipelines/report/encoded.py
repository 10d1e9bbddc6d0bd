"""What is in the rows of an encoded corpus: how often each token occurs, how long rows are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pipelines.encode.parts import open_part
from pipelines.errors import InputError
from pipelines.files import storage
from pipelines.files.storage import join

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from pipelines.encode.manifest import EncodedManifest

    Numbers = npt.NDArray[np.int64]

_ROWS = 4096  # read at a time
_LONGEST = 1 << 20  # tokens: rows of more are counted as if they had so many


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
        InputError: a part is missing or damaged.
    """
    tokens = np.zeros(manifest.vocab_size, np.int64)
    lengths = np.zeros(_LONGEST + 1, np.int64)
    chosen = _spread(len(manifest.parts), sample_parts)
    for done, number in enumerate(chosen):
        advance(done, len(chosen))
        path = join(directory, manifest.parts[number].file)
        try:
            with storage.open_binary(path) as source:
                for batch in open_part(source).iter_batches(_ROWS, columns=["input_ids"]):
                    _add(batch.column(0), tokens, lengths)
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


def _add(rows: pa.Array, tokens: Numbers, lengths: Numbers) -> None:
    ids = rows.flatten().to_numpy(zero_copy_only=False)
    found = np.bincount(ids, minlength=len(tokens))
    if len(found) > len(tokens):
        raise ValueError(f"id {ids.max()} is not below {len(tokens)}, the size of the vocabulary")
    tokens += found
    sizes = rows.value_lengths().to_numpy(zero_copy_only=False)
    lengths += np.bincount(np.minimum(sizes, _LONGEST), minlength=len(lengths))
