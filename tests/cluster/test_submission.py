"""Jobs that are submitted as a user submits them: staged, watched, cancelled, and failing."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import grpc
import pytest
from apache_beam.portability.api import beam_job_api_pb2 as api
from apache_beam.portability.api import beam_job_api_pb2_grpc

from tests.cli.process import BPE, bpe, environment
from tests.cluster import flink, workers
from tests.cluster.jobs import Submission
from tests.cluster.processes import wait_until
from tests.pipelines.corpora import sentence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cluster.jobs import Job
    from tests.cluster.package import Package
    from tests.cluster.processes import Program

SLOW = ("--pattern", r"\b\w|\w|\W", "--split-size", "100KB")  # only Python can run its \b
PATIENCE = 300.0


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Enough for a job to be met in the middle."""
    folder = tmp_path_factory.mktemp("slow")
    lines = [json.dumps({"text": sentence(i, 90)}) for i in range(500)]
    for number in range(20):
        (folder / f"{number:02}.jsonl").write_text("\n".join(lines), "utf-8")
    return folder


@pytest.fixture(scope="module")
def bare_flink(pieces: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Submission]:
    """Flink inside its job server, which starts workers that lack our package."""
    folder = tmp_path_factory.mktemp("bare-flink")
    config = json.dumps({"command": str(workers.boot_command(folder))})
    with flink.start_local(folder) as server:
        flags = flink.flags(server.endpoint, parallelism=2)
        yield Submission.of(*flags, environment="PROCESS", config=config)


def endpoint_of(submission: Submission) -> str:
    flag = next(one for one in submission.options if one.startswith("--job_endpoint="))
    return flag.partition("=")[2]


def state_of(submission: Submission, job: str) -> str:
    """The runner's own state of a job."""
    with grpc.insecure_channel(endpoint_of(submission)) as channel:
        service = beam_job_api_pb2_grpc.JobServiceStub(channel)
        found = service.GetState(api.GetJobStateRequest(job_id=job), timeout=60)
    return str(api.JobState.Enum.Name(found.state))


@dataclass(frozen=True)
class Counting:
    """A command whose job runs elsewhere, and what it says."""

    process: subprocess.Popen[bytes]
    log: Path

    def said(self) -> str:
        return self.log.read_text("utf-8")

    def says(self, pattern: str) -> re.Match[str]:
        """Wait until it says so."""
        wait_until(
            lambda: self.process.poll() is not None or re.search(pattern, self.said()) is not None,
            pattern,
            seconds=PATIENCE,
            tail=self.said,
        )
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
def counting(submission: Submission, corpus: Path, folder: Path, **env: str) -> Iterator[Counting]:
    """Start a command that takes signals as in a terminal; it is gone at the end of the block."""
    log = folder / "log"
    arguments = ["count", "--input", str(corpus), "--output", str(folder / "counts"), *SLOW]
    with (
        log.open("w") as errors,
        subprocess.Popen(
            [*BPE, *arguments, *submission.options],
            env=environment(**env),
            stdout=subprocess.DEVNULL,
            stderr=errors,
            # A shell that starts a job in the background has it ignore SIGINT.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
        ) as process,
    ):
        try:
            yield Counting(process, log)
        finally:
            process.kill()


WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}


def check_cancelled(
    submission: Submission, corpus: Path, folder: Path, number: signal.Signals
) -> None:
    with counting(submission, corpus, folder) as command:
        job = command.says(r"bpe: job (\S+) on PortableRunner")[1]
        wait_until(lambda: state_of(submission, job) == "RUNNING", "work", seconds=PATIENCE)
        command.process.send_signal(number)
        assert command.ended(128 + number) == (
            f"bpe: error: {WORDS[number]}: job {job} on PortableRunner was cancelled: the runner "
            "says CANCELLED; start again with --resume"
        )
    assert state_of(submission, job) == "CANCELLED"
    assert not (folder / "counts" / "manifest.json").exists()


def test_an_interrupt_cancels_the_job(on_prism: Submission, corpus: Path, tmp_path: Path) -> None:
    check_cancelled(on_prism, corpus, tmp_path, signal.SIGINT)


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


def wait_for_submission(command: Counting, endpoint: str) -> None:
    """Wait until it is connected for more than the moment in which it asks whether it can be."""
    now: set[str] = set()

    def connected() -> bool:
        nonlocal now
        before, now = now, connections(command.process.pid, endpoint)
        return command.process.poll() is not None or bool(before & now)

    wait_until(connected, "a submission", seconds=PATIENCE, tail=command.said)


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="connections are seen in /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_the_job_is_submitted_cancels_it(
    prism_program: tuple[Program, Submission], corpus: Path, tmp_path: Path, number: signal.Signals
) -> None:
    program, submission = prism_program
    with counting(submission, corpus, tmp_path) as command:
        with stopped(program):
            wait_for_submission(command, endpoint_of(submission))
            command.process.send_signal(number)
            command.says(f"bpe: {WORDS[number]} while the job is submitted: it is cancelled once")
        job = command.says(r"cancelling job (\S+) on PortableRunner")[1]
        last = command.ended(128 + number)
    assert f"job {job} on PortableRunner was cancelled: the runner says CANCELLED" in last
    assert state_of(submission, job) == "CANCELLED"


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="connections are seen in /proc")
def test_a_second_signal_does_not_wait_for_the_submission(
    prism_program: tuple[Program, Submission], corpus: Path, tmp_path: Path
) -> None:
    program, submission = prism_program
    with counting(submission, corpus, tmp_path) as command, stopped(program):
        wait_for_submission(command, endpoint_of(submission))
        command.process.send_signal(signal.SIGINT)
        command.says("while the job is submitted")
        command.process.send_signal(signal.SIGINT)
        last = command.ended(130)
    assert "interrupted while the job was submitted to PortableRunner: it may run there" in last
    assert re.search(r"under the name bpe-count-\d{8}-\d{6}: find it in", last)


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_cancel_the_job_on_flink(
    flink_local: Submission, corpus: Path, tmp_path: Path, number: signal.Signals
) -> None:
    check_cancelled(flink_local, corpus, tmp_path, number)


@pytest.mark.long
def test_progress_comes_from_the_runner_where_workers_tell_nothing(
    on_prism: Submission, tmp_path: Path
) -> None:
    corpus, temporary = tmp_path / "in", tmp_path / "temporary"
    corpus.mkdir()
    temporary.mkdir()
    lines = "\n".join(json.dumps({"text": sentence(i, 90)}) for i in range(500))
    for number in range(200):  # enough for a line of progress, of which there is one in ten seconds
        (corpus / f"{number:03}.jsonl").write_text(lines, "utf-8")
    with counting(on_prism, corpus, tmp_path, TMPDIR=str(temporary)) as command:
        # The driver reads it by its name: what workers of this machine write is lost from here on.
        wait_until(lambda: [*temporary.glob("bpe-progress-*")] != [], "slots", tail=command.said)
        for slots in temporary.glob("bpe-progress-*"):
            slots.unlink()
        assert "bpe: job " not in command.said()
        command.says(r"bpe: job \S+ on PortableRunner")
        found = command.says(
            r"bpe: count: ([1-9]\d?)%: ([1-9][\d,]*) documents?, [\d.]+ .B of [\d.]+ .B read"
        )
        assert int(found[2].replace(",", "")) < 100_000
        command.process.send_signal(signal.SIGINT)
        assert "was cancelled" in command.ended(130)


@pytest.mark.long
def test_a_job_may_last_longer_than_requests_to_its_server(
    on_prism: Submission, corpus: Path, tmp_path: Path
) -> None:
    arguments = ["count", "--input", str(corpus), "--output", str(tmp_path / "counts"), *SLOW]
    done = bpe(*arguments, *on_prism.options, "--job_server_timeout=1", seconds=PATIENCE)
    assert re.search(r"bpe: count: done in .*: 10,000 documents, .* read", done.stderr)


@pytest.mark.long
def test_the_package_is_staged_where_workers_lack_it(
    job: Job, bare_flink: Submission, package: Package, tmp_path: Path
) -> None:
    job.run(tmp_path / "out", bare_flink + package.as_wheel)
    job.check(tmp_path / "out")


@pytest.mark.long
def test_sources_are_staged_when_asked_for(
    bare_flink: Submission, package: Package, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("a rose is a rose\n" * 100)
    arguments = ["count", "--input", str(tmp_path / "a.txt"), "--output", str(tmp_path / "counts")]
    bpe(*arguments, *(bare_flink + package.as_sources).options, seconds=1800)
    assert (
        json.loads((tmp_path / "counts" / "manifest.json").read_text())["totals"]["documents"] == 1
    )


@pytest.mark.long
def test_a_failing_job_says_one_thing(
    bare_flink: Submission, package: Package, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"text": "good"}\n{"text": "bad\n')
    arguments = ["count", "--input", str(bad), "--output", str(tmp_path / "counts")]
    options = (bare_flink + package.as_wheel).options
    done = bpe(*arguments, *options, status=1, seconds=PATIENCE)
    last = done.stderr.rstrip().splitlines()[-1]
    assert last.startswith(f"bpe: error: {bad}, record at byte 17: not one JSON value")
    log = re.search(r"\(full log: (\S+)\)$", last)
    assert log is not None
    assert "Traceback" not in done.stderr
    assert "\tat " not in done.stderr
    assert len(done.stderr) < 4000
