"""Files of many samples after a table of their offsets, as MDS and litdata have them."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from pipelines.encode.rows import INPUT_IDS, flat
from pipelines.export.format import PartWriter

if TYPE_CHECKING:
    import numpy.typing as npt

    from pipelines.encode.rows import Numbers
    from pipelines.stage.record import StoredFile


class ShardedPart(PartWriter):
    """The writer of a part in files of at most ``shard_size`` bytes, each in memory until written.

    A row that is larger than this size has a file of its own.
    """

    ending: str

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._held: list[pa.RecordBatch] = []
        self._used = self._head
        self._shards = 0

    @property
    def config(self) -> bytes:
        """Return the bytes between the table of offsets and the samples."""
        return b""

    @property
    def _head(self) -> int:
        """Return the size in bytes of a file without samples."""
        return 4 + 4 + len(self.config)

    @abstractmethod
    def sizes(self, batch: pa.RecordBatch) -> Numbers:
        """Return the size in bytes of each sample."""

    @abstractmethod
    def samples(self, batch: pa.RecordBatch) -> npt.NDArray[Any]:
        """Return all samples, one after the other."""

    def add(self, batch: pa.RecordBatch) -> None:
        """Append rows; write files that are full."""
        limit = self.layout.settings.shard_size
        ends = np.cumsum(self.sizes(batch) + 4)  # with its entry in the table
        begin = before = 0
        while begin < len(batch):
            room = limit - self._used
            end = int(np.searchsorted(ends, before + room, side="right"))
            if end <= begin and self._used == self._head:  # larger than a file may be
                end = begin + 1
            if end > begin:
                self._held.append(batch.slice(begin, end - begin))
                self._used += int(ends[end - 1]) - before
                begin, before = end, int(ends[end - 1])
            if begin < len(batch):
                self._write()

    def finish(self) -> None:
        """Write the last file."""
        if self._held:
            self._write()

    def _write(self) -> None:
        (batch,) = pa.Table.from_batches(self._held).combine_chunks().to_batches()
        ids, _ = flat(batch.column(INPUT_IDS))
        name = f"{self.name}.{self._shards:05d}.{self.ending}"
        count, offsets = len(batch), np.append(0, np.cumsum(self.sizes(batch)))
        with self.outputs.file(name) as sink:
            self.put(sink, np.append(count, self._head + 4 * count + offsets).astype("<u4"))
            sink.write(self.config)
            self.put(sink, self.samples(batch))
        self.outputs.add(name, sink, rows=count, tokens=len(ids))
        self._held, self._used = [], self._head
        self._shards += 1


def base_name(file: StoredFile) -> str:
    """Return the name of a file without its folder, as in the index."""
    return PurePosixPath(file.file).name
