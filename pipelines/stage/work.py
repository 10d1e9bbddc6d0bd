"""Temporary directories of jobs, which all workers of a job can reach."""

from __future__ import annotations

import contextlib
import logging
import tempfile
import uuid
from typing import TYPE_CHECKING

from pipelines import storage
from pipelines.errors import JobError
from pipelines.run import options
from pipelines.storage import join
from pipelines.submission.workers import workers_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipelines.settings import Execution

_LOGGER = logging.getLogger(__name__)


@contextlib.contextmanager
def temporary_work(name: str, place: str) -> Iterator[str]:
    """Yield a directory for temporary files; remove it and its contents at the end.

    Args:
        name: the name of the kind of job.
        place: the parent directory; empty for the temporary directory of this machine.
    """
    with tempfile.TemporaryDirectory(prefix=f"bpe-{name}-") as system:
        work = join(storage.located(place or system), f"{name}-{uuid.uuid4().hex}")
        try:
            yield work
        finally:
            try:
                storage.remove_tree(work)
            except JobError as error:
                _LOGGER.warning("%s: cannot remove temporary files: %s", work, error)


def are_here(execution: Execution) -> bool:
    """Return whether the workers see the files of this machine."""
    return workers_of(options(execution)).here
