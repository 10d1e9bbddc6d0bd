"""The interface of a format: takes the rows of a part in any portions, and writes files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.stage.record import StoredFile

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager, ExitStack

    import pyarrow as pa

    from pipelines.export.manifest import ExportHeader
    from pipelines.export.rows import ExportLayout
    from pipelines.storage import HashingFile


class PartWriter:
    """The writer of a part; this one writes no file, each format has a class of its own.

    Args:
        name: the name of the part's files, below the directory, without ending.
        layout: the layout of the rows.
        opened: returns a context manager of a file by its name, complete when the block ends.
        stack: the stack that closes the files, also after an error.

    Attributes:
        files: the files that are complete.
    """

    def __init__(
        self,
        name: str,
        layout: ExportLayout,
        *,
        opened: Callable[[str], AbstractContextManager[HashingFile]],
        stack: ExitStack,
    ) -> None:
        self.name, self.layout, self._opened, self._stack = name, layout, opened, stack
        self.files: list[StoredFile] = []
        self.rows = self.tokens = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Append rows.

        Raises:
            InputError, OutputError: a file cannot be read or written.
        """

    def finish(self) -> None:
        """Write the rest of the part."""

    @staticmethod
    def index(files: Sequence[StoredFile], header: ExportHeader) -> bytes:  # noqa: ARG004 - of formats that have one
        """Return the contents of ``index.json``, which lists the files; empty without one."""
        return b""

    def one_file(self, ending: str) -> HashingFile:
        """Return the sink of the part's file with this ending; `close` or the stack closes it."""
        return self._stack.enter_context(self._opened(f"{self.name}.{ending}"))

    def close(self, ending: str, sink: HashingFile) -> None:
        """Close a file of the part that has all rows since the last one, and list the file."""
        self._stack.close()
        file, written = f"{self.name}.{ending}", vars(sink.written())
        self.files.append(StoredFile(file=file, rows=self.rows, tokens=self.tokens, **written))
