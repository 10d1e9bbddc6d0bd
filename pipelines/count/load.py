"""Reading the shards of a manifest of counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bpe._native import merge_runs
from bpe.counts import PretokenCounts
from bpe.counts.files import read_part
from bpe.errors import CountsError
from pipelines import storage
from pipelines.errors import InputError
from pipelines.storage import join

if TYPE_CHECKING:
    from bpe.counts.manifest import CountsManifest


def load_set(directory: str, manifest: CountsManifest, *, where: str) -> PretokenCounts:
    """Read and check the counts of a manifest.

    Args:
        directory: of the shards.
        manifest: of them.
        where: it was read from, for errors.

    Raises:
        InputError: a file is missing.
        CountsError: a file is damaged or of another run.
    """
    runs = []
    for shard, part in enumerate(manifest.parts):
        path = join(directory, part.file)
        data = storage.read_if_there(path)
        if data is None:
            raise InputError(f"{path} is missing, the manifest names it: count again")
        runs.append(read_part(data, part, shard=shard, shards=len(manifest.parts), where=path))
    try:
        return PretokenCounts.of(merge_runs(runs), manifest)
    except (CountsError, ValueError) as error:
        raise CountsError(f"{where}: {error}") from error
