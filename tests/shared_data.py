"""Where the real corpora and vocabularies lie, for tests that use them when they are there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("BPE_SHARED", ROOT.parent / "shared"))


def shared_file(relative: str) -> Path:
    """The path of a shared data file; skips the calling test where it is absent."""
    path = SHARED / relative
    if not path.exists():
        pytest.skip(f"no shared data here: {relative} (set BPE_SHARED to its folder)")
    return path
