"""Where a job whose result is one file keeps what its workers leave for each other."""

from __future__ import annotations

import contextlib
import tempfile
import uuid
from typing import TYPE_CHECKING

from apache_beam.io.filesystems import FileSystems

from pipelines import storage
from pipelines.errors import ConfigError
from pipelines.runners import is_local, options

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipelines.settings import Execution


@contextlib.contextmanager
def workspace(execution: Execution, output: str | None) -> Iterator[str]:
    """A directory for the files of a job while it runs, where all of its workers reach it.

    Args:
        execution: where the work is done.
        output: the file of the result; where workers do not share this machine, it lies beside it.

    Raises:
        ConfigError: nothing says where that is.
    """
    if is_local(options(execution)):
        with tempfile.TemporaryDirectory(prefix="bpe-compare-") as folder:
            yield folder
        return
    if output is None:
        raise ConfigError(
            f"--runner {execution.runner}: its workers leave the result in a file: give --output "
            "FILE.json, where they and this machine reach it"
        )
    folder = f"{storage.located(output)}.{uuid.uuid4().hex[:8]}"
    storage.make_directory(folder)
    try:
        yield folder
    finally:
        with contextlib.suppress(OSError):
            FileSystems.delete([folder])
