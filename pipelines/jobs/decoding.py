"""The job of decoding an encoded corpus."""

from __future__ import annotations

from typing import BinaryIO

from pipelines.decode import decode_directory
from pipelines.failures import job_errors
from pipelines.run import use_storage_alone
from pipelines.settings import Execution


def decode(
    *,
    directory: str,
    stream: BinaryIO,
    execution: Execution = Execution(),  # noqa: B008  # immutable
) -> int:
    """Write the documents of an encoded corpus to ``stream`` as JSON lines; return how many.

    Args:
        directory: that holds the corpus.
        stream: where the lines go.
        execution: says how stores are reached; the work is done in this process.

    Raises:
        JobError: the directory is not an encoded corpus, or is damaged.
        BrokenPipeError: nobody reads the stream any more.
    """
    with job_errors():
        use_storage_alone(execution)
        return decode_directory(directory, stream)
