"""The whole job (count, train, encode), and what it makes on a disk when nothing disturbs it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.cli.process import bpe
from tests.faults.running import PATIENCE, outcome
from tests.pipelines import corpora

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from typing_extensions import Self

COMMON = {
    "vocab_size": 300,
    "shards": 2,  # files of counts: each is some calls to a store
    "workers": 2,
}


@dataclass(frozen=True)
class WholeJob:
    """A folder with ``corpus``, what the job made of it in ``disk``, and its settings."""

    folder: Path
    settings: Mapping[str, Any]

    @classmethod
    def of(cls, folder: Path, **settings: Any) -> Self:
        """Do the job on ``corpus`` in ``folder``."""
        job = cls(folder, settings)
        bpe(*job.command(folder / "disk.yaml", job.disk), seconds=PATIENCE)
        return job

    @property
    def corpus(self) -> Path:
        return self.folder / "corpus"

    @property
    def disk(self) -> Path:
        return self.folder / "disk"

    def patterns(self, where: str | None = None) -> tuple[str, ...]:
        """The corpus, or a copy of it."""
        own = str(self.corpus)
        return tuple(one.replace(own, where or own) for one in corpora.patterns(self.corpus))

    def made(self) -> dict[str, bytes]:
        """Every file that an undisturbed job makes."""
        return outcome(self.disk)

    def command(
        self, config: Path, output: Path | str, *, where: str | None = None, **more: Any
    ) -> list[str | Path]:
        """``bpe run`` on the corpus or a copy of it; ``config`` is written for it."""
        inputs = {"input": list(self.patterns(where)), "output": str(output)}
        settings = {**COMMON, **self.settings, **inputs, **more}
        config.write_text(json.dumps(settings), "utf-8")
        return ["run", config, "--quiet"]
