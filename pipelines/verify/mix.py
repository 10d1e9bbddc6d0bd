"""Whether a mix takes of each source the documents that it must."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from pipelines.errors import VerificationError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipelines.corpus.mix import Mix
    from pipelines.encode.encoder import EncodedBlock


@dataclass(frozen=True, kw_only=True)
class MixSums:
    """What a mix takes of a split, for each source in turn.

    Attributes:
        documents: that are taken.
        tokens: of these.
        lasts: documents that are the last one taken of the source.
        last_tokens: of these.
    """

    documents: tuple[int, ...]
    tokens: tuple[int, ...]
    lasts: tuple[int, ...]
    last_tokens: tuple[int, ...]


class MixTally:
    """Adds up what a mix takes of a split.

    Args:
        mix: which documents it takes.
    """

    def __init__(self, mix: Mix) -> None:
        self._mix = mix
        shape = len(mix.sources)
        self._documents, self._tokens = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        self._lasts, self._last_tokens = np.zeros(shape, np.int64), np.zeros(shape, np.int64)

    def add(self, encoded: EncodedBlock) -> None:
        """Add the documents of a block, which are taken."""
        files, places = (column.to_numpy() for column in (encoded.file_indexes, encoded.places))
        sizes = pc.list_value_length(encoded.documents.input_ids).to_numpy().astype(np.int64)
        of, is_last = self._mix.sources_of(files), self._mix.is_last(files, places)
        np.add.at(self._documents, of, 1)
        np.add.at(self._tokens, of, sizes)
        np.add.at(self._lasts, of[is_last], 1)
        np.add.at(self._last_tokens, of[is_last], sizes[is_last])

    def sums(self) -> MixSums:
        """All so far."""
        return MixSums(
            documents=tuple(self._documents.tolist()),
            tokens=tuple(self._tokens.tolist()),
            lasts=tuple(self._lasts.tolist()),
            last_tokens=tuple(self._last_tokens.tolist()),
        )


def check_mix(mix: Mix, splits: Iterable[MixSums]) -> None:
    """See that each source has the tokens asked for, and had not before its last document.

    One of which all tokens are asked for has all its documents, also the last ones without tokens.

    Args:
        mix: what the manifest says.
        splits: what it takes of each split of the inputs.

    Raises:
        VerificationError: one has not, or the manifest says other numbers.
    """
    found = list(splits)
    for number, source in enumerate(mix.sources):
        documents, tokens, lasts, last_tokens = (
            sum(getattr(one, name)[number] for one in found)
            for name in ("documents", "tokens", "lasts", "last_tokens")
        )
        if (documents, tokens) != (source.documents, source.tokens):
            raise VerificationError(
                f"source {source.name} of the mix: the inputs give {documents:,} documents of "
                f"{tokens:,} tokens, the manifest says {source.documents:,} of {source.tokens:,}"
            )
        available = (source.available_tokens, source.available_documents)
        is_whole = (source.asked, documents) == available
        is_reached = tokens - last_tokens < source.asked or is_whole
        if lasts != 1 or not (is_reached and source.asked <= tokens):
            raise VerificationError(
                f"source {source.name} of the mix: {source.asked:,} tokens are not reached with "
                "the document that the manifest names as the last one taken"
            )
