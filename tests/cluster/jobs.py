"""A small whole job through the command line, here and on a cluster."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import zstandard

from tests.cli.process import bpe
from tests.pipelines import corpora
from tests.pipelines.corpora import sentence, tree

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping
    from pathlib import Path

BAD_RECORDS = 3
SECONDS = 1800  # on a machine that is busy


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
class Job:
    """Count, train, encode: a corpus, what else is set, and what the local runner makes of it."""

    corpus: Path
    local: Path
    settings: Mapping[str, Any]
    expected: dict[str, bytes]

    @classmethod
    def of(cls, corpus: Path, *, local: Path, **settings: Any) -> Job:
        made = cls(corpus, local, settings, {})
        made.run(local, HERE)
        return cls(corpus, local, settings, tree(local))

    def run(
        self, folder: Path, submission: Submission, *, status: int = 0
    ) -> subprocess.CompletedProcess[str]:
        """``bpe run``: all of it, by one command."""
        settings = {
            "input": list(corpora.patterns(self.corpus)),
            "output": str(folder),
            "special_token": "<|end|>",
            "append_token": "<|end|>",
            "vocab_size": 320,
            "split_size": corpora.SPLIT,
            "max_failures": BAD_RECORDS,
            **self.settings,
        }
        config = folder.with_suffix(".yaml")
        config.write_text(json.dumps(settings), "utf-8")
        return bpe("run", config, *submission.options, status=status, seconds=SECONDS)

    def verify(self, folder: Path, submission: Submission) -> None:
        """``bpe verify``: counts and token ids, compared with the corpus."""
        inputs = [flag for one in corpora.patterns(self.corpus) for flag in ("--input", one)]
        bpe("verify", folder, *inputs, "-q", *submission.options, seconds=SECONDS)

    def check(self, folder: Path) -> None:
        """Every file is there with the bytes that it has on the local runner, and nothing else."""
        found = tree(folder)
        assert sorted(found) == sorted(self.expected)
        assert [name for name in found if found[name] != self.expected[name]] == []


def write_corpus(folder: Path) -> None:
    """Every format and three bad records, each in a file of its own kind."""
    corpora.write_corpus(folder)
    lines = [json.dumps({"id": f"y{i}", "text": sentence(i + 300)}) for i in range(40)]
    lines[7] = '{"id": "torn", "text": "no end'
    lines[33] = '{"id": "number", "text": 5}'
    packed = zstandard.compress("\n".join(lines).encode())
    (folder / "b" / "torn.jsonl.zst").write_bytes(packed)
    (folder / "no text.txt").write_bytes(b"caf\xe9")
