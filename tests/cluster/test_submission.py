"""Jobs that are submitted as a user submits them: staged, watched, cancelled, and failing."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import grpc
import pytest
from apache_beam.portability.api import beam_job_api_pb2 as api
from apache_beam.portability.api import beam_job_api_pb2_grpc

from tests.cli.process import bpe
from tests.cluster.jobs import PATIENCE
from tests.cluster.processes import wait_until
from tests.cluster.slow_job import SlowJob
from tests.shared_data import long_but

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cluster.jobs import Command, Submission
    from tests.cluster.processes import Program

long = pytest.mark.long


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> SlowJob:
    return SlowJob.written(tmp_path_factory.mktemp("slow"))


def endpoint_of(submission: Submission) -> str:
    flag = next(one for one in submission.options if one.startswith("--job_endpoint="))
    return flag.partition("=")[2]


def state_of(submission: Submission, job: str) -> str:
    """The runner's own state of a job."""
    with grpc.insecure_channel(endpoint_of(submission)) as channel:
        service = beam_job_api_pb2_grpc.JobServiceStub(channel)
        found = service.GetState(api.GetJobStateRequest(job_id=job), timeout=60)
    return str(api.JobState.Enum.Name(found.state))


WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}


@pytest.mark.parametrize("number", long_but(WORDS, signal.SIGINT))
@pytest.mark.parametrize(
    "submission", long_but(["on_prism", "flink_local"], "on_prism"), indirect=True
)
def test_a_signal_cancels_the_job(
    submission: Submission, slow: SlowJob, tmp_path: Path, number: signal.Signals
) -> None:
    with slow.started("count", tmp_path / "counts", submission) as command:
        job = command.says(r"bpe: job (\S+) on PortableRunner")[1]
        wait_until(lambda: state_of(submission, job) == "RUNNING", "work", seconds=PATIENCE)
        command.process.send_signal(number)
        assert command.ended(128 + number) == (
            f"bpe: error: {WORDS[number]}: job {job} on PortableRunner was cancelled: the runner "
            "says CANCELLED; start again with --resume"
        )
    assert state_of(submission, job) == "CANCELLED"
    assert not (tmp_path / "counts" / "manifest.json").exists()


@contextlib.contextmanager
def stopped(program: Program) -> Iterator[None]:
    """A program that does nothing for a while, and whose system takes connections all the same."""
    os.kill(program.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(program.pid, signal.SIGCONT)


def connections(process: int, endpoint: str) -> set[str]:
    """The open sockets of a process that are connected to an address of this machine (Linux)."""
    port = f":{int(endpoint.rpartition(':')[2]):04X}"
    tables = [Path("/proc/net", name).read_text() for name in ("tcp", "tcp6")]
    lines = [line.split() for table in tables for line in table.splitlines()]
    there = {f"socket:[{one[9]}]" for one in lines if one[2].endswith(port) and one[3] == "01"}
    own = set()
    with contextlib.suppress(OSError):  # one is closed at this moment, or all
        own = {str(one.readlink()) for one in Path(f"/proc/{process}/fd").iterdir()}
    return there & own


def wait_for_submission(command: Command, endpoint: str) -> None:
    """Wait until it is connected for more than the moment in which it asks whether it can be."""
    now: set[str] = set()

    def connected() -> bool:
        nonlocal now
        before, now = now, connections(command.process.pid, endpoint)
        return bool(before & now)

    command.wait_until(connected, "a submission")


@long
@pytest.mark.skipif(sys.platform != "linux", reason="connections are seen in /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_the_job_is_submitted_cancels_it(
    prism_program: tuple[Program, Submission], slow: SlowJob, tmp_path: Path, number: signal.Signals
) -> None:
    program, submission = prism_program
    with slow.started("count", tmp_path / "counts", submission) as command:
        with stopped(program):
            wait_for_submission(command, endpoint_of(submission))
            command.process.send_signal(number)
            command.says(f"bpe: {WORDS[number]} while the job is submitted: it is cancelled once")
        job = command.says(r"cancelling job (\S+) on PortableRunner")[1]
        last = command.ended(128 + number)
    assert f"job {job} on PortableRunner was cancelled: the runner says CANCELLED" in last
    assert state_of(submission, job) == "CANCELLED"


@long
@pytest.mark.skipif(sys.platform != "linux", reason="connections are seen in /proc")
def test_a_second_signal_does_not_wait_for_the_submission(
    prism_program: tuple[Program, Submission], slow: SlowJob, tmp_path: Path
) -> None:
    program, submission = prism_program
    with slow.started("count", tmp_path / "counts", submission) as command, stopped(program):
        wait_for_submission(command, endpoint_of(submission))
        command.process.send_signal(signal.SIGINT)
        command.says("while the job is submitted")
        command.process.send_signal(signal.SIGINT)
        last = command.ended(130)
    assert "interrupted while the job was submitted to PortableRunner: it may run there" in last
    assert re.search(r"under the name bpe-count-\d{8}-\d{6}: find it in", last)


@long
def test_a_job_may_last_longer_than_requests_to_its_server(
    on_prism: Submission, slow: SlowJob, tmp_path: Path
) -> None:
    count = slow.arguments("count", tmp_path / "counts")
    done = bpe(*count, *on_prism.options, "--job_server_timeout=1", seconds=PATIENCE)
    assert re.search(r"bpe: count: done in .*: 23,940 documents, .* read", done.stderr)


@long
def test_a_failing_job_says_one_thing(
    bare_flink: Submission, package: dict[str, tuple[str, ...]], tmp_path: Path
) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"text": "good"}\n{"text": "bad\n')
    arguments = ["count", "--input", str(bad), "--output", str(tmp_path / "counts")]
    options = (bare_flink + package["wheel"]).options
    done = bpe(*arguments, *options, status=1, seconds=PATIENCE)
    last = done.stderr.rstrip().splitlines()[-1]
    assert last.startswith(f"bpe: error: {bad}, record at byte 17: not one JSON value")
    log = re.search(r"\(full log: (\S+)\)$", last)
    assert log is not None
    assert "Traceback" not in done.stderr
    assert "\tat " not in done.stderr
    assert len(done.stderr) < 4000
