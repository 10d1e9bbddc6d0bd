"""A row of the table before it is run: contenders, and the cells that are made of their figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.cells import Cell


@dataclass(frozen=True, kw_only=True)
class Contender:
    """One process that does the work.

    Attributes:
        name: what the table calls it.
        module: of `benchmarks.contenders`.
        who: the name that the module knows; ``name`` where it is empty.
        arguments: what else it is given.
        output: contenders with the same word here must make the same.
        slow: whether it takes many times as long as the others.
    """

    name: str
    module: str
    who: str = ""
    arguments: tuple[str, ...] = ()
    output: str = "all"
    slow: bool = False

    @property
    def command(self) -> list[str]:
        """Arguments of ``python -m benchmarks.contenders``."""
        return [self.module, self.who or self.name, *self.arguments]


@dataclass(frozen=True, kw_only=True)
class Work:
    """The work of several contenders, and the targets of its figures.

    Attributes:
        name: for ``--only``.
        title: for the table.
        contenders: who does it.
        cells: what is asked.
        cores: how many processors each process is pinned to.
        rounds: how many there are at most, where the scale has more.
        compares: whether a contender compares several outputs of its own.
    """

    name: str
    title: str
    contenders: tuple[Contender, ...]
    cells: tuple[Cell, ...]
    cores: int = 1
    rounds: int | None = None
    compares: bool = False
