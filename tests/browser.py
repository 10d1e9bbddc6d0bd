"""Pages in a real browser without a window: what they show once their scripts have run."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from typing import TYPE_CHECKING

from tests.shared_data import missing

if TYPE_CHECKING:
    from pathlib import Path

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-dev-shm-usage", "--hide-scrollbars"),
)


def browser() -> str:
    """Chromium, or one like it; where there is none the test is skipped, or fails in CI."""
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None:
        missing("no Chromium here (Debian: apt-get install chromium)", "BPE_BROWSER_REQUIRED")
    return found


def shown(page: Path, *, flags: tuple[str, ...] = ()) -> str:
    """The HTML of a page opened from disk, after its scripts."""
    with tempfile.TemporaryDirectory(prefix="bpe-browser-", ignore_cleanup_errors=True) as profile:
        done = subprocess.run(
            [
                *(browser(), *_FLAGS, *flags, f"--user-data-dir={profile}"),
                *("--dump-dom", page.as_uri()),
            ],
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=300,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout
