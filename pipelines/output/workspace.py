"""Where a job whose result is one file keeps what its workers leave for each other."""

from __future__ import annotations

import contextlib
import logging
import tempfile
import uuid
from typing import TYPE_CHECKING

from pipelines import storage
from pipelines.errors import ConfigError, JobError
from pipelines.local_runner import is_local
from pipelines.run import options

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipelines.settings import Execution

_LOGGER = logging.getLogger(__name__)


@contextlib.contextmanager
def workspace(execution: Execution, output: str | None) -> Iterator[str]:
    """A directory for the files of a job while it runs, where all of its workers reach it.

    It may not be there yet; it is removed at the end with all that is in it.

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
            f"`runner` {execution.runner}: its workers leave the result in a file: give `output` "
            "FILE.json, where they and this machine reach it"
        )
    folder = f"{storage.located(output)}.{uuid.uuid4().hex[:8]}"
    try:
        yield folder
    finally:
        _remove(folder)


def _remove(folder: str) -> None:
    """Remove the directory of a job with all that workers left in it."""
    try:
        storage.remove_tree(folder)
    except JobError as error:
        _LOGGER.warning("%s: cannot remove what the job left for itself: %s", folder, error)
