"""The files of a part, and the ids that are in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bpe.splitmix import mix64
from pipelines.stage.record import StoredFile
from pipelines.storage import join, replacing

if TYPE_CHECKING:
    import contextlib

    from pipelines.encode.rows import Ids
    from pipelines.storage import HashingFile


class Outputs:
    """The files of a part, which are written below a directory.

    Args:
        directory: the directory of the export, or a temporary one for files to compare.
        again: True if the files are only compared: not durable, and their ids are tallied.

    Attributes:
        files: the files that are complete.
        totals: more totals of the part.
    """

    def __init__(self, directory: str, *, again: bool) -> None:
        self._directory, self._again = directory, again
        self.files: list[StoredFile] = []
        self.totals = {"tally": 0} if again else {}

    def see(self, ids: Ids) -> None:
        """Tally, if files are compared, ids that are in the part, or dropped with its last row."""
        if self._again:
            self.totals["tally"] = (self.totals["tally"] + tally(ids)) % (1 << 64)

    def file(self, name: str) -> contextlib.AbstractContextManager[HashingFile]:
        """Return a context manager of the file of this name, complete when the block ends."""
        return replacing(join(self._directory, name), durable=not self._again)

    def add(self, name: str, sink: HashingFile, *, rows: int, tokens: int) -> None:
        """Add a complete file, with its numbers of rows and tokens."""
        self.files.append(StoredFile.of(name, sink.written(), rows=rows, tokens=tokens))


def tally(ids: Ids) -> int:
    """Return a checksum of 64 bits of some ids, which does not depend on their order."""
    return int(mix64(ids.astype(np.uint64) + np.uint64(1)).sum(dtype=np.uint64))
