"""A job that takes long enough to be hit in the middle, and where it can be seen how far it is."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tests.cli.process import BPE, environment
from tests.cluster.jobs import HERE
from tests.cluster.processes import ProgramError, wait_until
from tests.pipelines.corpora import sentence, tree

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cluster.jobs import Submission

Step = Literal["count", "encode"]
SPLITS = 60
_DOCUMENTS = 400  # of a split
_PATIENCE = 900.0  # seconds: a job starts again several times, on a machine that may be busy


@dataclass(frozen=True)
class SlowJob:
    """A corpus whose splits each hold a bad record: each leaves a file in both steps.

    A pattern that only Python can run, for its word border, makes it slow.
    """

    folder: Path

    @classmethod
    def of(cls, folder: Path) -> SlowJob:
        """Write the corpus, and run the job on the local runner."""
        made = cls(folder)
        (folder / "in").mkdir()
        for number in range(SPLITS):
            texts = (sentence(number * 7 + i, 60) for i in range(_DOCUMENTS))
            lines = [json.dumps({"text": text}) for text in texts]
            lines[number * 5] = "{"
            path = folder / "in" / f"{number:03}.jsonl"
            path.write_text("\n".join(lines), "utf-8")
        for arguments in (
            made.arguments("count", folder / "count"),
            ["train", "--counts", "count", "--output", "model", "--vocab-size", "330"],
            made.arguments("encode", folder / "encode"),
        ):
            subprocess.run(
                [*BPE, *arguments, *HERE.options],
                cwd=folder,
                env=environment(),
                check=True,
                capture_output=True,
            )
        return made

    def arguments(self, step: Step, output: Path) -> list[str]:
        common = [step, "--input", str(self.folder / "in"), "--output", str(output), "--json"]
        largest = max(path.stat().st_size for path in (self.folder / "in").iterdir())
        common += ["--split-size", str(largest), "--max-failures", str(SPLITS)]
        if step == "count":
            return [*common, "--pattern", r"\b\w+|\s+|[^\w\s]+"]
        return [*common, "--tokenizer", str(self.folder / "model" / "tokenizer.json")]

    @contextlib.contextmanager
    def started(
        self, step: Step, output: Path, submission: Submission, *more: str
    ) -> Iterator[Running]:
        """Start a step, and take it down at the end of the block if it is still there."""
        output.parent.mkdir(exist_ok=True)
        log = output.with_name(output.name + ".log")
        arguments = [*self.arguments(step, output), *more, *submission.options]
        with (
            log.open("w") as errors,
            subprocess.Popen(
                [*BPE, *arguments],
                cwd=output.parent,
                env=environment(),
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            ) as process,
        ):
            try:
                yield Running(process, step, output, log)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)

    def check(self, step: Step, output: Path) -> None:
        """Every file has the bytes that it has on the local runner, and there is no other."""
        expected, found = tree(self.folder / step), tree(output)
        assert sorted(found) == sorted(expected)
        assert [name for name in found if found[name] != expected[name]] == []


@dataclass(frozen=True)
class Running:
    """A step under way."""

    process: subprocess.Popen[str]
    step: Step
    output: Path
    log: Path

    def ended(self) -> bool:
        return self.process.poll() is not None

    def files(self, since: int = 0) -> dict[str, tuple[int, int]]:
        """Files of splits so far (inode and time), not before ``since`` (nanoseconds)."""
        files = "data/train-*" if self.step == "encode" else "dead-letters/part-*"
        found = {}
        for path in self.output.glob(files):
            with contextlib.suppress(FileNotFoundError):
                stat = path.stat()
                if stat.st_mtime_ns >= since:
                    found[path.name] = (stat.st_ino, stat.st_mtime_ns)
        return found

    def reaches(self, splits: int, *, since: int = 0) -> bool:
        """Wait until so many splits are done; False where the command ends before."""
        wait_until(
            lambda: self.ended() or len(self.files(since)) >= splits,
            f"{splits} splits",
            seconds=_PATIENCE,
            tail=self.said,
        )
        return not self.ended()

    def kill(self) -> None:
        """Send SIGKILL to the command."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def said(self) -> str:
        """The end of what the command said on standard error."""
        return self.log.read_text("utf-8")[-6000:]

    def finish(self) -> dict[str, int]:
        """Wait for the end, which must be a good one; the summary."""
        printed = self._wait()
        assert self.process.returncode == 0, f"{printed}\n{self.said()}"
        summary: dict[str, int] = json.loads(printed)
        return summary

    def fail(self) -> str:
        """Wait for the end, which must be an error; what it said last."""
        printed = self._wait()
        assert self.process.returncode == 1, f"{printed}\n{self.said()}"
        return self.said().strip().splitlines()[-1]

    def _wait(self) -> str:
        try:
            return self.process.communicate(timeout=_PATIENCE)[0]
        except subprocess.TimeoutExpired as error:
            raise ProgramError(f"bpe {self.step} does not end: {self.said()}") from error
