"""The command line ``bpe``."""

from __future__ import annotations

from pipelines.cli.main import main

__all__ = ["main"]
