"""The whole job (count, train, encode), and what it makes on a disk when nothing disturbs it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.cli.process import bpe
from tests.faults.running import PATIENCE, outcome
from tests.pipelines.corpora import KINDS

if TYPE_CHECKING:
    from pathlib import Path

SHARDS = 2  # files of counts: each is some calls to a store
VOCABULARY = 300


@dataclass(frozen=True)
class WholeJob:
    """A folder with ``corpus``, and what the job made of it in ``disk``."""

    folder: Path
    split: int
    max_failures: int = 0

    def patterns(self, where: str | None) -> tuple[str, ...]:
        """The corpus, or a copy of it: text and records in one folder are refused."""
        kinds = [kind for kind in KINDS if any(self.corpus.glob(kind))]
        return tuple(f"{where or self.corpus}/{kind}" for kind in kinds)

    @property
    def corpus(self) -> Path:
        return self.folder / "corpus"

    def made(self) -> dict[str, bytes]:
        """Every file that an undisturbed job makes."""
        return outcome(self.folder / "disk")

    def command(
        self, config: Path, output: Path | str, *, where: str | None = None, **more: Any
    ) -> list[str | Path]:
        """``bpe run`` on the corpus or a copy of it; ``config`` is written for it."""
        settings = {
            "input": list(self.patterns(where)),
            "output": str(output),
            "split_size": self.split,
            "max_failures": self.max_failures,
            "vocab_size": VOCABULARY,
            "shards": SHARDS,
            "workers": 2,
            **more,
        }
        config.write_text(json.dumps(settings), "utf-8")
        return ["run", config, "--quiet"]


def undisturbed_whole(folder: Path, *, split: int, max_failures: int = 0) -> WholeJob:
    """Do the job on ``corpus`` in ``folder``."""
    job = WholeJob(folder, split, max_failures)
    bpe(*job.command(folder / "disk.yaml", folder / "disk"), seconds=PATIENCE)
    return job
