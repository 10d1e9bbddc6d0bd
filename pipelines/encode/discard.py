"""Remove the parts of an encoded corpus after its export is verified: `bpe run --discard-ids`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pipelines import storage
from pipelines.encode.manifest import read_encoded
from pipelines.output.lock import locked
from pipelines.output.names import MANIFEST
from pipelines.storage import join

if TYPE_CHECKING:
    from pipelines.progress import Progress


def discard_parts(directory: str, progress: Progress) -> None:
    """Mark the manifest as discarded, and remove the parts; plan and records stay.

    The manifest is marked first, so that a call after a killed one removes the remaining parts.

    Raises:
        InputError: the directory holds no complete corpus.
        OutputError: a file cannot be written or removed.
    """
    root = storage.located(directory)
    with locked(root):
        manifest = read_encoded(root, discarded=True)
        if not manifest.discarded:
            marked = replace(manifest, discarded=True).files()
            storage.write(join(root, MANIFEST), marked[MANIFEST])
        for part in manifest.parts:
            storage.remove(join(root, part.file))
    progress.log(
        f"encode: {root}: its {len(manifest.parts):,} parts are removed: the export is verified"
    )
