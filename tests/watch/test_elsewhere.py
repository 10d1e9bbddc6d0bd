"""A watch on another runner: what is settled before it is submitted, and how it ends."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import apache_beam as beam
import grpc
import pytest

from pipelines.errors import ConfigError, JobError
from pipelines.progress import NoProgress
from pipelines.run import Until, attend
from pipelines.settings import (
    EncodeSettings,
    Execution,
    InputSettings,
    OutputSettings,
    PretokenSettings,
)
from pipelines.watch.job import watch_count, watch_encode
from pipelines.watch.keeper import run_until_stopped
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

    @property
    def state(self) -> str:
        return "CANCELLED" if self.cancelled else "RUNNING"


def forever() -> bool:
    """Wait on."""
    return True


def test_a_job_that_we_lose_is_cancelled() -> None:
    job = Job(RuntimeError("whatever the client of a runner raises"))
    with pytest.raises(RuntimeError):
        attend(job, poll=forever, until=Until())
    assert job.cancelled == 1


def test_a_job_that_ended_is_not() -> None:
    for state in ("FAILED", "DONE"):
        job = Job(state)
        assert attend(job, poll=forever, until=Until()) == state
        assert job.cancelled == 0


class Broken(grpc.RpcError):  # type: ignore[misc]  # grpc has no types
    """A stream that broke off."""


class Lost(Job):
    """A job that goes on, though nobody tells of it unasked."""

    def __init__(self) -> None:
        super().__init__(Broken())
        self.states = ["DONE", "RUNNING", "", "RUNNING"]

    @property
    def state(self) -> str:
        return self.states.pop() if len(self.states) > 1 else self.states[0]


def test_a_job_whose_stream_of_states_breaks_off_goes_on() -> None:
    job = Lost()
    assert attend(job, poll=forever, until=Until()) == "DONE"
    assert job.states == ["DONE"]
    assert job.cancelled == 0


class Endless(Job):
    """A job that ends when it is cancelled."""

    def __init__(self) -> None:
        super().__init__("CANCELLED")
        self._over = threading.Event()

    def wait_until_finish(self) -> str:
        self._over.wait()
        return super().wait_until_finish()

    def cancel(self) -> None:
        super().cancel()
        self._over.set()


def test_a_job_that_is_told_to_stop_is_taken_back() -> None:
    job, until = Endless(), Until()
    until.stop()
    assert attend(job, poll=forever, until=until) is None
    assert job.cancelled == 1


class Keeps:
    """A keeper that takes its time to end."""

    error = None
    ended = False
    progress = NoProgress()

    def run(self, stopping: threading.Event, _: object) -> None:
        stopping.wait()
        time.sleep(0.5)
        self.ended = True


def fails(_: object) -> None:
    raise ValueError("a worker failed")


def test_the_keeper_has_ended_when_a_job_has_failed() -> None:
    keeper = Keeps()
    with pytest.raises(JobError, match="a worker failed"):
        run_until_stopped(
            lambda pipeline, _: pipeline | beam.Create([1]) | beam.Map(fails),
            execution=Execution(workers=1),
            keeper=keeper,  # type: ignore[arg-type]
        )
    assert keeper.ended


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
    with pytest.raises(ConfigError, match=r"is read by the DOCKER workers .*`shared_paths`"):
        watch_count(inputs=inputs, pretokens=PretokenSettings(), output=output, execution=away)
    with pytest.raises(ConfigError, match=r"is read by the DOCKER workers .*`shared_paths`"):
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
