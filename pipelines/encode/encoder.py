"""The documents of a split to their ids: what encoding and verifying do alike."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bpe.tokenizer import CacheUse
from pipelines.corpus.documents import BadRecord
from pipelines.corpus.documents.block import use_good_rows, without
from pipelines.corpus.keys import document_keys
from pipelines.encode.rows import with_ends
from pipelines.settings import MAX_ROW_TOKENS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bpe import Tokenizer
    from pipelines.corpus.documents import Block
    from pipelines.corpus.splits import FileRange, Split
    from pipelines.encode.rows import RowLayout


@dataclass(frozen=True, kw_only=True)
class EncodedBlock:
    """The documents of a block with their token ids, in columns of equal length.

    Attributes:
        texts: of the documents.
        plain: the token ids of each text (list of the layout's type of ids).
        rows: with the ids put at their ends.
    """

    texts: pa.Array
    plain: pa.ListArray
    rows: pa.RecordBatch


class SplitEncoder:
    """Encodes the blocks of one split.

    Args:
        tokenizer: whose ids are made.
        split: that the blocks are of.
        layout: of the rows to be made.

    Attributes:
        cache_use: what the tokenizer's cache of words did so far.
    """

    def __init__(self, tokenizer: Tokenizer, split: Split, *, layout: RowLayout) -> None:
        self.cache_use = CacheUse()
        self._tokenizer = tokenizer
        self._layout = layout
        self._settings = layout.settings
        allowed = layout.settings.allow_special
        self._allowed = "all" if "all" in allowed else allowed
        self._sources: dict[int, FileRange] = {piece.file_index: piece for piece in split.pieces}
        self._seeds = {
            index: file_seed(layout.settings.dropout_seed, piece.name)
            for index, piece in self._sources.items()
        }

    def encode(self, block: Block, set_aside: Callable[[BadRecord], object]) -> EncodedBlock:
        """Encode the documents of a block.

        Args:
            block: of documents.
            set_aside: takes the documents that no row holds, or that cannot be encoded.
        """
        kept = block.kept or tuple(pa.array([], field.type) for field in self._layout.kept)
        own = (block.texts, block.places, block.file_indexes, block.ids, document_keys(block))
        columns: tuple[pa.Array, ...] = (*own, *kept)
        plain, bad = use_good_rows(
            columns,
            self._encode,
            lambda row, reason: set_aside(self._bad(block, row, reason)),
        )
        columns = tuple(without(column, bad) for column in columns)
        ends = {"prepend": self._layout.prepend, "append": self._layout.append}
        input_ids = with_ends(plain, **ends)
        if len(input_ids.values) > MAX_ROW_TOKENS:
            numbers = without(pa.array(range(len(block))), bad)
            lengths = pc.list_value_length(input_ids)
            too_long = pc.indices_nonzero(pc.greater(lengths, MAX_ROW_TOKENS)).to_pylist()
            for at in too_long:
                reason = (
                    f"its {lengths[at]} tokens do not fit a row of Parquet (at most "
                    f"{MAX_ROW_TOKENS}): divide the document"
                )
                set_aside(self._bad(block, numbers[at].as_py(), reason))
            plain, input_ids, *rest = (
                without(column, too_long) for column in (plain, input_ids, *columns)
            )
            columns = tuple(rest)
        texts, _, _, ids, keys, *kept_columns = columns
        rows = self._layout.rows(ids=ids, kept=tuple(kept_columns), keys=keys, input_ids=input_ids)
        return EncodedBlock(texts=texts, plain=plain, rows=rows)

    def _encode(
        self, texts: pa.Array, places: pa.Int64Array, files: pa.Int32Array, *_: pa.Array
    ) -> pa.ListArray:
        dropout = self._settings.dropout
        seeds = document_seeds(self._seeds, files=files, places=places) if dropout else None
        return self._tokenizer.encode_arrow(
            texts,
            allowed_special=self._allowed,
            dropout=dropout,
            seeds=seeds,
            id_type=self._layout.id_type,
            cache_use=self.cache_use,
        )

    def _bad(self, block: Block, row: int, reason: str) -> BadRecord:
        source = self._sources[block.file_indexes[row].as_py()]
        text = block.texts[row].as_buffer().to_pybytes()
        return BadRecord.of(source, block.places[row].as_py(), reason, text)


def file_seed(seed: int, name: str) -> int:
    """What the seeds of the documents of a file are made of: 64 bits of a SHA-256."""
    return int.from_bytes(hashlib.sha256(f"{seed} {name}".encode()).digest()[:8], "little")


def document_seeds(
    seeds: Mapping[int, int], *, files: pa.Int32Array, places: pa.Int64Array
) -> pa.UInt64Array:
    """The seed of each document: of its file's SplitMix64 the number that its place counts.

    So it depends on the file's name and the place in it alone: that of a document at place 5 is
    ``bpe.dropout.row_seeds(seed of the file, 1, first=5)``.

    Args:
        seeds: `file_seed` of each file, by its number.
        files: the number of the file of each document.
        places: where in the file each document begins.
    """
    numbers, of = np.unique(files.to_numpy(), return_inverse=True)
    state = np.array([seeds[int(number)] for number in numbers], np.uint64)[of]
    with np.errstate(over="ignore"):
        # Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators" (2014), figure 17.
        state += (places.to_numpy().astype(np.uint64) + np.uint64(1)) * np.uint64(
            0x9E3779B97F4A7C15
        )
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return pa.array(state ^ (state >> np.uint64(31)))
