"""Files that appear under their final names only when they are complete."""

from __future__ import annotations

import os
import uuid
from pathlib import Path


def write_atomically(path: str | Path, data: bytes) -> None:
    """Write a file beside its final name, then rename it; a reader sees all of it or nothing."""
    final = Path(path)
    final.parent.mkdir(parents=True, exist_ok=True)
    temporary = final.with_name(f".{final.name}.{uuid.uuid4().hex}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(final)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
