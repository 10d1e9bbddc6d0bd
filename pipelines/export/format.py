"""The interface of a format: takes the rows of a part in any portions, and writes files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import contextlib

    import numpy.typing as npt
    import pyarrow as pa

    from pipelines.export.outputs import Outputs
    from pipelines.export.rows import ExportLayout
    from pipelines.storage import HashingFile


class PartWriter(ABC):
    """The writer of a part.

    Args:
        name: the name of the part's files, below the export, without ending.
        layout: the layout of the rows.
        outputs: the files of the part.
        stack: the stack that closes the files, also after an error.
    """

    def __init__(
        self, name: str, layout: ExportLayout, *, outputs: Outputs, stack: contextlib.ExitStack
    ) -> None:
        self.name, self.layout, self.outputs, self._stack = name, layout, outputs, stack

    @abstractmethod
    def add(self, batch: pa.RecordBatch) -> None:
        """Append rows.

        Raises:
            InputError, OutputError: a file cannot be read or written.
        """

    @abstractmethod
    def finish(self) -> None:
        """Write the rest of the part, and add its files to the outputs."""

    def one_file(self, ending: str) -> Any:
        """Return the sink of a part's file with this ending; the stack closes the sink."""
        self.file, self.rows, self.tokens = f"{self.name}.{ending}", 0, 0
        return self._stack.enter_context(self.outputs.file(self.file))

    def close(self, sink: HashingFile) -> None:
        """Close the file of the part, and add the file to the outputs."""
        self._stack.close()
        self.outputs.add(self.file, sink, rows=self.rows, tokens=self.tokens)

    def put(self, sink: HashingFile, values: npt.NDArray[Any]) -> None:
        """Append the bytes of an array to a file."""
        if len(values):
            sink.write(np.ascontiguousarray(values).data)

    @property
    def id_type(self) -> np.dtype[Any]:
        """Return the type of the ids, with little-endian bytes."""
        return np.dtype("<u2" if self.layout.id_type == "uint16" else "<u4")
