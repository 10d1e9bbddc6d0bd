"""Where a job says how far it is: what every job is given, whoever watches."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


class JobLog:
    """What is logged while a job runs elsewhere; here nobody keeps it.

    Attributes:
        errors: texts of errors, which may say more than Beam's exception.
    """

    errors: Sequence[str] = ()

    def keep(self) -> str:
        """Let the log stay; returns where it lies, or nothing."""
        return ""


class Stage:
    """One step of a job whose progress nobody watches; ``LiveStage`` is the one that is shown.

    Attributes:
        counters_path: the file for ``SlotWriter`` (None: nobody watches); set by ``set_slots``.
    """

    counters_path: str | None = None

    def set_slots(self, parts: int) -> None:
        """Make room for ``parts`` parts, numbered from 0."""

    def advance(self, done: int, total: int) -> None:
        """Set the progress of a step that is not measured in bytes."""

    def observe(
        self,
        *,
        state: str,
        documents: int = 0,
        bytes: int = 0,  # noqa: A002 - the unit is the name
        kept_bytes: int = 0,
    ) -> None:
        """Set what a runner elsewhere says: its state, and its counters where it has them."""

    def ended(self, why: str) -> None:
        """Say why the step ended, where it need not reach its total."""


class Progress(ABC):
    """Where a job says how far it is.

    Attributes:
        logs: makes what keeps the log of a job elsewhere; None: nobody does.
    """

    logs: Callable[[], contextlib.AbstractContextManager[JobLog]] | None = None

    @abstractmethod
    def stage(
        self, name: str, total_bytes: int | None, *, unit: str = "merges"
    ) -> contextlib.AbstractContextManager[Stage]:
        """Enter a step of the job.

        Args:
            name: of the step, such as ``count``.
            total_bytes: the size of its input as stored; None where that is not the measure.
            unit: what ``Stage.advance`` counts.
        """

    def job_log(self) -> contextlib.AbstractContextManager[JobLog]:
        """Keep what is logged while the block runs a job elsewhere."""
        return contextlib.nullcontext(JobLog()) if self.logs is None else self.logs()

    @abstractmethod
    def log(self, message: str) -> None:
        """Say one thing, such as the plan of a step."""


class NoProgress(Progress):
    """Says nothing; for libraries and tests."""

    @contextlib.contextmanager
    def stage(
        self,
        name: str,  # noqa: ARG002 - the interface
        total_bytes: int | None,  # noqa: ARG002
        *,
        unit: str = "merges",  # noqa: ARG002
    ) -> Iterator[Stage]:
        """Enter a step that is not shown."""
        yield Stage()

    def log(self, message: str) -> None:
        """Drop the message."""
