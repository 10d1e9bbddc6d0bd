"""A watch on another runner: what is settled before it is submitted, and how it ends."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from pipelines.errors import ConfigError, JobError
from pipelines.settings import (
    EncodeSettings,
    Execution,
    InputSettings,
    OutputSettings,
    PretokenSettings,
)
from pipelines.watch.job import watch_count, watch_encode
from pipelines.watch.run import _run_elsewhere
from tests.pipelines.corpora import small_tokenizer

if TYPE_CHECKING:
    from pathlib import Path


class Job:
    """A pipeline, and the job that it becomes."""

    def __init__(self, ends: Exception | str) -> None:
        self._ends = ends
        self.cancelled = 0

    def run(self) -> Job:
        return self

    def wait_until_finish(self) -> str:
        if isinstance(self._ends, Exception):
            raise self._ends
        return self._ends

    def cancel(self) -> None:
        self.cancelled += 1


@pytest.mark.parametrize("ends", [RuntimeError("the stream of states broke off"), "FAILED"])
def test_a_job_that_we_lose_is_cancelled(ends: Exception | str) -> None:
    job = Job(ends)
    with pytest.raises((RuntimeError, JobError)):
        _run_elsewhere(job, threading.Event())
    assert job.cancelled == 1


def test_a_job_that_ends_is_not() -> None:
    job = Job("DONE")
    _run_elsewhere(job, threading.Event())
    assert job.cancelled == 0


def test_files_that_workers_cannot_see_are_refused_before_anything_is_written(
    tmp_path: Path,
) -> None:
    (tmp_path / "in").mkdir()
    small_tokenizer(tmp_path / "tokenizer.json")
    inputs = InputSettings(patterns=(str(tmp_path / "in"),))
    output = OutputSettings(directory=str(tmp_path / "out"))
    away = Execution(
        runner="PortableRunner",
        beam_args=("--job_endpoint=cluster.invalid:8099", "--environment_type=DOCKER"),
    )
    with pytest.raises(ConfigError, match=r"is read by the DOCKER workers .*--shared-path"):
        watch_count(inputs=inputs, pretokens=PretokenSettings(), output=output, execution=away)
    with pytest.raises(ConfigError, match=r"is read by the DOCKER workers .*--shared-path"):
        watch_encode(
            inputs=inputs,
            tokenizer=str(tmp_path / "tokenizer.json"),
            output=output,
            execution=away,
            encoding=EncodeSettings(),
        )
    assert not (tmp_path / "out").exists()


def test_a_job_server_that_does_not_answer(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    inputs = InputSettings(patterns=(str(tmp_path / "in"),))
    nobody = Execution(
        runner="PortableRunner",
        beam_args=(
            *("--job_endpoint=127.0.0.1:1", "--environment_type=LOOPBACK"),
            "--job_server_timeout=1",
        ),
    )
    with pytest.raises(JobError, match=r"no job server answers at 127\.0\.0\.1:1"):
        watch_count(
            inputs=inputs,
            pretokens=PretokenSettings(),
            output=OutputSettings(directory=str(tmp_path / "out")),
            execution=nobody,
        )
    assert not (tmp_path / "out").exists()
