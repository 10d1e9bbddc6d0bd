"""``bin``: the ids of all rows and nothing else, as nanoGPT maps them; or with llm.c's header.

llm.c (``dev/data/data_common.py``, ``llmc/dataloader.h``): 256 numbers of 32 bits, of which the
first three say the kind of file, its version and the number of ids; all others are 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pipelines.encode.rows import INPUT_IDS, flat
from pipelines.errors import ConfigError
from pipelines.export.format import PartWriter

if TYPE_CHECKING:
    import pyarrow as pa

    from pipelines.encode.rows import Ids

_HEADER = 256
_KINDS = {"uint16": (20240520, 1), "uint32": (20240801, 7)}  # of GPT-2, of Llama 3
_MAX_IDS = (1 << 31) - 1


class FlatPart(PartWriter):
    """The writer of ``bin``: a file a part, whose ids are in memory first if there is a header."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._sink = self.one_file("bin")
        self._held: list[Ids] = []
        self._counts_first = self.layout.settings.header != "none"

    def add(self, batch: pa.RecordBatch) -> None:
        """Append rows."""
        ids, _ = flat(batch.column(INPUT_IDS))
        self.rows += len(batch)
        self.tokens += len(ids)
        if self._counts_first:
            self._held.append(ids)
        else:
            self._sink.write(ids.data)

    def finish(self) -> None:
        """Write the header and the ids in memory.

        Raises:
            ConfigError: there are more ids than the header can count.
        """
        if self._counts_first:
            if self.tokens > _MAX_IDS:
                raise ConfigError(
                    f"`header` {self.layout.settings.header}: {self.name}.bin would hold "
                    f"{self.tokens:,} ids, and this header counts to {_MAX_IDS:,}: leave it out"
                )
            header = np.zeros(_HEADER, "<i4")
            header[:3] = *_KINDS[self.layout.id_type], self.tokens
            for values in (header, *self._held):
                self._sink.write(values.data)
        self.close("bin", self._sink)
