"""The rows of a part of an encoded corpus, by row groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.encode.parts import open_part
from pipelines.encode.rows import CHUNK_INDEX, ID, INPUT_IDS, NUM_TOKENS, flat
from pipelines.errors import InputError, StoppedError
from pipelines.export.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pipelines.encode.manifest import Part
    from pipelines.encode.rows import Numbers
    from pipelines.progress import SlotWriter


class PartSource:
    """A part, opened: its rows, and what must be known of them before.

    Args:
        file: the part.
        path: where it is, for messages.
        part: what the manifest of the corpus says of it; padding is among its tokens here.
        with_id: whether the ids of documents are read too.
        slot: told how much is read.
        stopped: asked between row groups, whether nobody needs the result any more.
    """

    def __init__(
        self,
        file: Any,
        *,
        path: str,
        part: Part,
        with_id: bool = False,
        slot: SlotWriter | None = None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self.part = part
        self._path = path
        self._with_id = with_id
        self._slot = slot
        self._stopped = stopped
        try:
            self._file = open_part(file)
        except (pa.ArrowException, OSError) as error:
            raise self._damaged(error) from error

    def rows(self) -> Iterator[Rows]:
        """All rows, a row group at a time.

        Raises:
            InputError: the part is damaged.
            StoppedError: nobody needs the result any more.
        """
        names = set(self._file.schema_arrow.names)
        chunked = CHUNK_INDEX in names
        columns = [INPUT_IDS, *([CHUNK_INDEX] if chunked else []), *([ID] if self._with_id else [])]
        documents, size, groups = 0, self.part.bytes, self._file.metadata.num_row_groups
        for group in range(groups):
            if self._stopped():
                raise StoppedError
            table = self._read(group, columns)
            ids, offsets = flat(table[INPUT_IDS].combine_chunks())
            begins = table[CHUNK_INDEX].to_numpy() == 0 if chunked else None
            yield Rows(
                ids=ids,
                lengths=np.diff(offsets),
                begins=begins,
                names=table[ID].combine_chunks() if self._with_id else None,
            )
            documents += len(table) if begins is None else int(begins.sum())
            if self._slot is not None:
                self._slot.update(documents=documents, bytes=size * (group + 1) // groups)

    def lengths(self) -> Numbers:
        """How many ids each row has; 8 bytes a row in memory."""
        if self.part.padding:  # which is not in the column, and makes all rows of one length
            return np.full(self.part.rows, self.part.tokens // self.part.rows)
        return self._of_all(NUM_TOKENS, lambda column: column.to_numpy().astype(np.int64))

    def name_lengths(self) -> Numbers:
        """How many bytes the id of each row's document has."""
        return self._of_all(ID, lambda column: pc.binary_length(column).to_numpy().astype(np.int64))

    def _of_all(self, column: str, values: Callable[[pa.ChunkedArray], Numbers]) -> Numbers:
        groups = range(self._file.metadata.num_row_groups)
        found = [values(self._read(group, [column])[column]) for group in groups]
        return np.concatenate([np.zeros(0, np.int64), *found])

    def _read(self, group: int, columns: list[str]) -> pa.Table:
        try:
            return self._file.read_row_group(group, columns=columns)
        except (pa.ArrowException, OSError) as error:
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> InputError:
        said = " ".join(str(error).split())
        return InputError(f"{self._path}: damaged: {said}: check it with bpe verify")
