"""Waits for what another thread writes."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import io


def wait_for(pattern: str, stream: io.StringIO) -> None:
    """Wait until a stream holds what a regular expression matches."""
    end = time.monotonic() + 60
    while not re.search(pattern, stream.getvalue()):
        assert time.monotonic() < end, f"{pattern!r} never came: {stream.getvalue()!r}"
        time.sleep(0.01)
