"""``python -m pipelines.cli`` is ``bpe``."""

from __future__ import annotations

from pipelines.cli import program

program()
