"""Files of many samples after a table of their offsets, as MDS and litdata have them."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.encode.rows import INPUT_IDS, as_bytes, as_lists, flat
from pipelines.export.format import PartWriter

if TYPE_CHECKING:
    from pipelines.stage.record import StoredFile


class ShardedPart(PartWriter):
    """The writer of a part in files of at most ``shard_size`` bytes, each in memory until written.

    A row that is larger than this size has a file of its own.
    """

    ending: str

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._held: list[pa.LargeBinaryArray] = []
        self._empty = 4 + 4 + len(self.config)  # the size in bytes of a file without samples
        self._used = self._empty

    @property
    def config(self) -> bytes:
        """Return the bytes between the table of offsets and the samples."""
        return b""

    def samples(self, batch: pa.RecordBatch) -> pa.LargeBinaryArray:
        """Return the samples of rows: their ids, unless the format adds to them."""
        return as_bytes(batch.column(INPUT_IDS))

    def add(self, batch: pa.RecordBatch) -> None:
        """Append rows; write files that are full."""
        limit, samples = self.layout.settings.shard_size, self.samples(batch)
        _, offsets = flat(batch.column(INPUT_IDS))
        ends = np.cumsum(pc.binary_length(samples).to_numpy() + 4)  # with its entry in the table
        begin = before = 0
        while begin < len(batch):
            end = int(np.searchsorted(ends, before + limit - self._used, side="right"))
            if end <= begin and not self._held:  # larger than a file may be
                end = begin + 1
            if end > begin:
                self._held.append(samples.slice(begin, end - begin))
                self._used += int(ends[end - 1]) - before
                self.rows += end - begin
                self.tokens += int(offsets[end] - offsets[begin])
                begin, before = end, int(ends[end - 1])
            if begin < len(batch):
                self._write()

    def finish(self) -> None:
        """Write the last file."""
        if self._held:
            self._write()

    def _write(self) -> None:
        ending = f"{len(self.files):05d}.{self.ending}"
        sizes = np.concatenate([pc.binary_length(samples) for samples in self._held])
        offsets = self._empty + 4 * self.rows + np.append(0, np.cumsum(sizes))
        sink = self.one_file(ending)
        sink.write(np.append(self.rows, offsets).astype("<u4").data)
        sink.write(self.config)
        for samples in self._held:
            sink.write(flat(as_lists(samples, pa.list_(pa.uint8())))[0].data)
        self.close(ending, sink)
        self._held, self._used, self.rows, self.tokens = [], self._empty, 0, 0


def base_name(file: StoredFile) -> str:
    """Return the name of a file without its folder, as in the index."""
    return PurePosixPath(file.file).name
