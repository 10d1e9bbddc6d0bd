"""Can the workers see the files that a job reads and writes?

Only inputs, counts and the output directory matter: a tokenizer travels to the workers in the
output directory (`pipelines.encode.steps.prepare_encoding`).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pipelines import storage
from pipelines.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipelines.submission.workers import Workers


def check_paths(
    workers: Workers, *, reads: Iterable[str], writes: str, shared: Iterable[str] = ()
) -> str:
    """Refuse files of this machine that workers elsewhere cannot see.

    Args:
        workers: where they are.
        reads: what they read: files or directories.
        writes: the output directory.
        shared: local directories that they see under the same names.

    Returns:
        What to say where it cannot be known; empty where there is nothing to say.

    Raises:
        ConfigError: they cannot see one; the message names it.
    """
    if workers.here:
        return ""
    mounted = [os.path.realpath(folder) for folder in shared]
    paths = [("is read", path) for path in reads] + [("is written", writes)]
    hidden = [(use, path) for use, path in paths if not _is_seen(path, mounted)]
    if not hidden:
        return ""
    use, path = hidden[0]
    more = f" (and {len(hidden) - 1} more)" if len(hidden) > 1 else ""
    if workers.near and workers.kind in ("process", "external"):
        return (
            f"{path}{more} lies on this machine; the {workers} must be on it too (if they see it "
            "over a network, say --shared-path)"
        )
    why = "they run in containers" if workers.kind == "docker" else "they are other machines"
    raise ConfigError(
        f"{path}{more} {use} by the {workers}, and lies on this machine: {why}. Put it where both "
        "see it (gs://, s3://, abfs://), or name the directory with `shared_paths` if they have it "
        "under the same name (NFS, a mounted volume)"
    )


def _is_seen(path: str, mounted: list[str]) -> bool:
    if not storage.is_local(path):
        return True
    place = os.path.realpath(path)
    return any(place == folder or place.startswith(f"{folder.rstrip('/')}/") for folder in mounted)
