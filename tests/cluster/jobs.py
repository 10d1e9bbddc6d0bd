"""A small whole job through the command line, here and on a cluster."""

from __future__ import annotations

import contextlib
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import zstandard

from tests.cli.process import bpe
from tests.cluster.processes import wait_until
from tests.faults.running import running
from tests.faults.whole import WholeJob
from tests.pipelines import corpora
from tests.pipelines.corpora import sentence, tree

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

BAD_RECORDS = 3
SECONDS = 1800  # on a machine that is busy
PATIENCE = 900.0  # seconds: a job may start again several times


@dataclass(frozen=True)
class Submission:
    """The runner of a job: the arguments after the job's own options."""

    options: tuple[str, ...] = ("--workers", "1")

    @classmethod
    def of(
        cls, *flags: str, environment: str, config: str | None = None, stage: str = "auto"
    ) -> Submission:
        """A job server, the kind of environment that workers run in, and who brings our package."""
        workers = [f"--environment_type={environment}"]
        if config is not None:
            workers.append(f"--environment_config={config}")
        return cls(("--runner", "PortableRunner", "--stage", stage, "--", *flags, *workers))

    @property
    def for_beam(self) -> tuple[str, ...]:
        """Those of the options that go to Beam."""
        return self.options[self.options.index("--") + 1 :]

    def __add__(self, flags: tuple[str, ...]) -> Submission:
        return Submission((*self.options, *flags))


HERE = Submission()


@dataclass(frozen=True)
class Job(WholeJob):
    """Count, train, encode, here and elsewhere."""

    def run(
        self, folder: Path, submission: Submission, *, status: int = 0
    ) -> subprocess.CompletedProcess[str]:
        """``bpe run``: all of it, by one command."""
        command = self.command(folder.with_suffix(".yaml"), folder)
        return bpe(*command, *submission.options, status=status, seconds=SECONDS)

    def verify(self, folder: Path, submission: Submission) -> None:
        """``bpe verify``: counts and token ids, compared with the corpus."""
        inputs = [flag for one in self.patterns() for flag in ("--input", one)]
        bpe("verify", folder, *inputs, "-q", *submission.options, seconds=SECONDS)

    def check(self, folder: Path) -> None:
        """Every file is there with the bytes that it has on the local runner, and nothing else."""
        check_same(folder, tree(self.disk))


def whole_job(folder: Path, **settings: Any) -> Job:
    """A job on every format, and what the local runner makes of it."""
    write_corpus(folder / "corpus")
    return Job.of(
        folder,
        vocab_size=320,
        split_size=corpora.SPLIT,
        max_failures=BAD_RECORDS,
        special_token=corpora.END,
        append_token=corpora.END,
        **settings,
    )


def check_same(folder: Path, expected: Mapping[str, bytes]) -> None:
    """Every file is there with its bytes, and nothing else."""
    found = tree(folder)
    assert sorted(found) == sorted(expected)
    assert [name for name in found if found[name] != expected[name]] == []


@dataclass(frozen=True)
class Command:
    """A command whose job runs elsewhere, and the file of what it says on stderr."""

    process: subprocess.Popen[str]
    log: Path

    @property
    def has_ended(self) -> bool:
        return self.process.poll() is not None

    def said(self) -> str:
        return self.log.read_text("utf-8")

    def wait_until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait until it holds, or the command has ended."""
        wait_until(lambda: self.has_ended or holds(), what, seconds=PATIENCE, tail=self.said)

    def says(self, pattern: str) -> re.Match[str]:
        """Wait until it says so."""
        self.wait_until(lambda: re.search(pattern, self.said()) is not None, pattern)
        found = re.search(pattern, self.said())
        assert found is not None, self.said()
        return found

    def ended(self, status: int) -> str:
        """Wait for the end; what it said last."""
        self.process.wait(PATIENCE)
        assert self.process.returncode == status, self.said()
        assert "Traceback" not in self.said()
        return self.said().rstrip().splitlines()[-1]


@contextlib.contextmanager
def started(*arguments: str | Path, log: Path) -> Iterator[Command]:
    """Start a command; it is gone at the end of the block."""
    with running(*arguments, log=log) as process:
        yield Command(process, log)


def write_corpus(folder: Path) -> None:
    """Every format and three bad records, each in a file of its own kind."""
    corpora.write_corpus(folder)
    lines = [json.dumps({"id": f"y{i}", "text": sentence(i + 300)}) for i in range(40)]
    lines[7] = '{"id": "torn", "text": "no end'
    lines[33] = '{"id": "number", "text": 5}'
    packed = zstandard.compress("\n".join(lines).encode())
    (folder / "b" / "torn.jsonl.zst").write_bytes(packed)
    (folder / "no text.txt").write_bytes(b"caf\xe9")
