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
from pipelines.corpus.mix import mix_hashes
from pipelines.encode.rows import Documents, with_ends
from pipelines.encode.validation import held_out
from pipelines.settings import MAX_ROW_TOKENS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bpe import Tokenizer
    from pipelines.corpus.documents import Block
    from pipelines.corpus.mix import Mix
    from pipelines.corpus.splits import FileRange, Split
    from pipelines.encode.rows import RowLayout


@dataclass(frozen=True, kw_only=True)
class EncodedBlock:
    """The documents of a block with their token ids, in columns of equal length.

    Attributes:
        texts: of the documents.
        plain: the token ids of each text (list of the layout's type of ids).
        documents: what becomes rows: the ids with those put at their ends.
        places: where in its file each begins, as in a block.
        file_indexes: the number of the file of each.
        held_out: whether each is held out for validation; None where none is.
        hashes: that order the documents of a source of a mix; None where nobody asked for them.
    """

    texts: pa.Array
    plain: pa.ListArray
    documents: Documents
    places: pa.Int64Array
    file_indexes: pa.Int32Array
    held_out: pa.BooleanArray | None = None
    hashes: pa.UInt64Array | None = None

    def half(self, *, held_out: bool) -> tuple[Documents, pa.Array]:
        """The documents held out for validation, or the others, and their texts."""
        if self.held_out is None:
            return self.documents, self.texts
        mask = self.held_out if held_out else pc.invert(self.held_out)
        documents = Documents(
            ids=self.documents.ids.filter(mask),
            kept=tuple(column.filter(mask) for column in self.documents.kept),
            input_ids=self.documents.input_ids.filter(mask),
        )
        return documents, self.texts.filter(mask)


class SplitEncoder:
    """Encodes the blocks of one split.

    Args:
        tokenizer: whose ids are made.
        split: that the blocks are of.
        layout: of the rows to be made.
        mix: which documents to take; None for all.
        measures: whether to say the hashes of documents, of which a mix is to take some.

    Attributes:
        cache_use: what the tokenizer's cache of words did so far.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        split: Split,
        *,
        layout: RowLayout,
        mix: Mix | None = None,
        measures: bool = False,
    ) -> None:
        self.cache_use = CacheUse()
        self._mix = mix
        self._measures = measures
        self._tokenizer = tokenizer
        self._layout = layout
        rows = layout.settings
        self._settings = rows
        # One row must hold a whole document, unless documents are cut.
        self._limited = rows.max_tokens is None and rows.pack is None
        self._allowed = "all" if "all" in rows.allow_special else rows.allow_special
        self._sources: dict[int, FileRange] = {piece.file_index: piece for piece in split.pieces}
        self._seeds = {
            index: file_seed(rows.dropout_seed, piece.name)
            for index, piece in self._sources.items()
        }

    def encode(self, block: Block, set_aside: Callable[[BadRecord], object]) -> EncodedBlock:
        """Encode the documents of a block, those that are taken.

        Args:
            block: of documents.
            set_aside: takes the documents that no row holds, or that cannot be encoded.
        """
        kept = block.kept
        if self._layout.has_keys:
            kept += (document_keys(block),)
        if len(kept) < len(self._layout.kept):  # a block of no document
            kept = tuple(pa.array([], field.type) for field in self._layout.kept)
        columns = (block.texts, block.places, block.file_indexes, block.ids, *kept)
        if share := self._settings.validation:
            columns += (held_out(block, share),)
        if self._measures:
            columns += (pa.array(mix_hashes(block, self._settings.mix_seed)),)
        if self._mix is not None:
            taken = self._mix.takes(block, self._settings.mix_seed)
            columns = tuple(column.filter(taken) for column in columns)
        of_block = columns
        plain, bad = use_good_rows(
            columns,
            self._encode,
            lambda row, reason: set_aside(self._bad(of_block, row, reason)),
        )
        columns = tuple(without(column, bad) for column in columns)
        input_ids = with_ends(plain, prepend=self._layout.prepend, append=self._layout.append)
        if self._limited and len(input_ids.values) > MAX_ROW_TOKENS:
            fits = pc.less_equal(pc.list_value_length(input_ids), MAX_ROW_TOKENS)
            for record in self._too_long(columns, input_ids, fits):
                set_aside(record)
            plain, input_ids, *rest = (
                column.filter(fits) for column in (plain, input_ids, *columns)
            )
            columns = tuple(rest)
        texts, places, files, ids, *kept_columns = columns
        hashes = kept_columns.pop() if self._measures else None
        marks = kept_columns.pop() if share else None
        return EncodedBlock(
            texts=texts,
            plain=plain,
            documents=Documents(ids=ids, kept=tuple(kept_columns), input_ids=input_ids),
            places=places,
            file_indexes=files,
            held_out=marks,
            hashes=hashes,
        )

    def _encode(
        self, texts: pa.Array, places: pa.Int64Array, files: pa.Int32Array, *_: pa.Array
    ) -> pa.ListArray:
        dropout = self._settings.dropout
        if not dropout:
            return self._tokenizer.encode_arrow(
                texts,
                allowed_special=self._allowed,
                id_type=self._layout.id_type,
                cache_use=self.cache_use,
            )
        return self._tokenizer.encode_arrow(
            texts,
            allowed_special=self._allowed,
            dropout=dropout,
            seeds=document_seeds(self._seeds, files=files, places=places),
            id_type=self._layout.id_type,
            cache_use=self.cache_use,
        )

    def _bad(self, columns: tuple[pa.Array, ...], row: int, reason: str) -> BadRecord:
        texts, places, files, *_ = columns
        text = texts[row].as_buffer().to_pybytes()
        return BadRecord.of(self._sources[files[row].as_py()], places[row].as_py(), reason, text)

    def _too_long(
        self, columns: tuple[pa.Array, ...], input_ids: pa.ListArray, fits: pa.BooleanArray
    ) -> list[BadRecord]:
        return [
            self._bad(
                columns,
                row,
                f"its {len(input_ids[row])} tokens do not fit a row of Parquet (at most "
                f"{MAX_ROW_TOKENS}): cut documents with `max_tokens` or `pack`",
            )
            for row in pc.indices_nonzero(pc.invert(fits)).to_pylist()
        ]


def file_seed(seed: int, name: str) -> int:
    """What the seeds of the documents of a file are made of: 64 bits of a SHA-256."""
    return int.from_bytes(hashlib.sha256(f"{seed} {name}".encode()).digest()[:8], "little")


def document_seeds(
    seeds: Mapping[int, int], *, files: pa.Int32Array, places: pa.Int64Array
) -> pa.UInt64Array:
    """The seed of each document: of its file's SplitMix64 the number that its place counts.

    So it depends on the file's name and the place in it alone: that of a document at place 5 is
    ``bpe.row_seeds(seed of the file, 1, first=5)``.

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
