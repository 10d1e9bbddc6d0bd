"""The documents of a split to their ids: what encoding and verifying do alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.documents import BadRecord
from pipelines.rows import Documents, with_ends
from pipelines.settings import MAX_ROW_TOKENS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bpe import Tokenizer
    from pipelines.documents import Block
    from pipelines.rows import RowLayout
    from pipelines.splits import FileRange, Split


@dataclass(frozen=True, kw_only=True)
class EncodedBlock:
    """The documents of a block with their token ids, in columns of equal length.

    Attributes:
        texts: of the documents.
        plain: the token ids of each text (list of uint32).
        documents: what becomes rows: the ids with those put at their ends.
        bad: documents that were left out: a row of Parquet cannot hold them.
    """

    texts: pa.Array
    plain: pa.ListArray
    documents: Documents
    bad: tuple[BadRecord, ...] = ()


class SplitEncoder:
    """Encodes the blocks of one split.

    Args:
        tokenizer: whose ids are made.
        split: that the blocks are of.
        layout: of the rows to be made.
    """

    def __init__(self, tokenizer: Tokenizer, split: Split, *, layout: RowLayout) -> None:
        self._tokenizer = tokenizer
        self._split = split
        self._layout = layout
        rows = layout.settings
        # One row must hold a whole document, unless documents are cut.
        self._limited = rows.max_tokens is None and rows.pack is None
        self._allowed = "all" if "all" in rows.allow_special else rows.allow_special

    def encode(self, block: Block) -> EncodedBlock:
        """Encode the documents of a block."""
        plain = self._tokenizer.encode_arrow(block.texts, allowed_special=self._allowed)
        ids, texts, kept = block.ids, block.texts, list(block.kept)
        input_ids = with_ends(plain, prepend=self._layout.prepend, append=self._layout.append)
        bad: tuple[BadRecord, ...] = ()
        if self._limited and len(input_ids.values) > MAX_ROW_TOKENS:
            fits = pc.less_equal(pc.list_value_length(input_ids), MAX_ROW_TOKENS)
            bad = tuple(self._too_long(block, input_ids, fits))
            ids, texts, plain, input_ids, *kept = (
                column.filter(fits) for column in (ids, texts, plain, input_ids, *kept)
            )
        return EncodedBlock(
            texts=texts,
            plain=plain,
            documents=Documents(ids=ids, kept=tuple(kept), input_ids=input_ids),
            bad=bad,
        )

    def _too_long(
        self, block: Block, input_ids: pa.ListArray, fits: pa.BooleanArray
    ) -> Iterator[BadRecord]:
        sources: dict[int, FileRange] = {piece.file_index: piece for piece in self._split.pieces}
        for row in pc.indices_nonzero(pc.invert(fits)).to_pylist():
            text = block.texts[row].as_buffer().to_pybytes()
            tokens = len(input_ids[row])
            yield BadRecord.of(
                sources[block.file_indexes[row].as_py()],
                block.places[row].as_py(),
                f"its {tokens} tokens do not fit a row of Parquet (at most {MAX_ROW_TOKENS}): "
                "cut documents with --max-tokens or --pack",
                text,
            )
