"""The command line ``bpe``: the entry point."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.cli.loading import ended_by_interrupts

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``bpe`` with ``arguments`` (those of the process by default).

    Returns:
        The exit status.
    """
    with ended_by_interrupts():
        from pipelines.cli.commands import main as run
    return run(arguments)
