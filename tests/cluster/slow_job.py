"""A job that takes long enough to be hit in the middle, and where it can be seen how far it is."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tests.cli.process import bpe
from tests.cluster.jobs import HERE, PATIENCE, Command, check_same, started
from tests.faults.running import stamps
from tests.pipelines.corpora import sentence, tree

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cluster.jobs import Submission

Step = Literal["count", "encode"]
SPLITS = 60
_DOCUMENTS = 400  # of a split


@dataclass(frozen=True)
class SlowJob:
    """A corpus whose splits each hold a bad record: each leaves a file in both steps.

    A pattern that only Python can run, for its word border, makes it slow.
    """

    folder: Path

    @classmethod
    def written(cls, folder: Path) -> SlowJob:
        """Write the corpus."""
        (folder / "in").mkdir()
        for number in range(SPLITS):
            texts = (sentence(number * 7 + i, 60) for i in range(_DOCUMENTS))
            lines = [json.dumps({"text": text}) for text in texts]
            lines[number * 5] = "{"
            path = folder / "in" / f"{number:03}.jsonl"
            path.write_text("\n".join(lines), "utf-8")
        return cls(folder)

    @classmethod
    def of(cls, folder: Path) -> SlowJob:
        """Write the corpus, and run the job on the local runner."""
        made = cls.written(folder)
        made.run("count")
        bpe("train", "--counts", "count", "--output", "model", "--vocab-size", "330", cwd=folder)
        made.run("encode")
        return made

    def run(self, step: Step) -> None:
        """Run a step on the local runner."""
        bpe(*self.arguments(step, self.folder / step), *HERE.options, seconds=PATIENCE)

    def arguments(self, step: Step, output: Path) -> list[str | Path]:
        common = [step, "--input", self.folder / "in", "--output", output]
        largest = max(path.stat().st_size for path in (self.folder / "in").iterdir())
        common += ["--split-size", str(largest), "--max-failures", str(SPLITS)]
        if step == "count":
            return [*common, "--pattern", r"\b\w+|\s+|[^\w\s]+"]
        return [*common, "--tokenizer", self.folder / "model" / "tokenizer.json"]

    @contextlib.contextmanager
    def started(
        self, step: Step, output: Path, submission: Submission, *more: str
    ) -> Iterator[Running]:
        """Start a step, and take it down at the end of the block if it is still there."""
        log = output.with_name(output.name + ".log")
        arguments = [*self.arguments(step, output), *more, *submission.options]
        with started(*arguments, log=log) as command:
            yield Running(command.process, log, step, output)

    def check(self, step: Step, output: Path) -> None:
        """Every file has the bytes that it has on the local runner, and there is no other."""
        check_same(output, tree(self.folder / step))


@dataclass(frozen=True)
class Running(Command):
    """A step under way."""

    step: Step
    output: Path

    def files(self, since: int = 0) -> dict[str, tuple[int, int]]:
        """Files of splits so far (inode and time), not before ``since`` (nanoseconds)."""
        files = "data/train-" if self.step == "encode" else "dead-letters/part-"
        return {
            name: (inode, time)
            for name, (inode, time) in stamps(self.output).items()
            if name.startswith(files) and time >= since
        }

    def reaches(self, splits: int, *, since: int = 0) -> bool:
        """Wait until so many splits are done; False where the command ends before."""
        self.wait_until(lambda: len(self.files(since)) >= splits, f"{splits} splits")
        return not self.has_ended
