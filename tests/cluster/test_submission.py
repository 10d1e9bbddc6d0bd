"""Jobs that are submitted as a user submits them: staged, watched, cancelled, and failing."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from typing import TYPE_CHECKING

import grpc
import pytest
from apache_beam.portability.api import beam_job_api_pb2 as api
from apache_beam.portability.api import beam_job_api_pb2_grpc

from cluster import flink, workers
from cluster.processes import wait_until
from tests.cli.process import BPE, bpe, environment
from tests.cluster.jobs import Submission
from tests.pipelines.corpora import sentence

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cluster.jobs import Job

SLOW = ("--pattern", r"\w|\W", "--split-size", "100KB")  # a pattern of one's own, in Python
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
    """What the runner itself says of a job."""
    with grpc.insecure_channel(endpoint_of(submission)) as channel:
        service = beam_job_api_pb2_grpc.JobServiceStub(channel)
        found = service.GetState(api.GetJobStateRequest(job_id=job), timeout=60)
    return str(api.JobState.Enum.Name(found.state))


def interrupted(
    submission: Submission, corpus: Path, folder: Path, number: signal.Signals
) -> tuple[int, str, str]:
    """Send a signal to a command whose job runs: exit status, what it said, the job."""
    log = folder / "log"
    arguments = ["count", "--input", str(corpus), "--output", str(folder / "counts"), *SLOW]
    with (
        log.open("w") as errors,
        subprocess.Popen(
            [*BPE, *arguments, *submission.options],
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=errors,
            # A shell that starts a job in the background has it ignore SIGINT.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
        ) as process,
    ):
        try:
            said = re.compile(r"bpe: job (\S+) on PortableRunner")
            wait_until(
                lambda: process.poll() is not None or said.search(log.read_text()) is not None,
                "a job",
                seconds=PATIENCE,
                tail=log.read_text,
            )
            found = said.search(log.read_text())
            assert found is not None, log.read_text()
            job = found[1]
            wait_until(lambda: state_of(submission, job) == "RUNNING", "work", seconds=PATIENCE)
            process.send_signal(number)
            process.wait(PATIENCE)
        finally:
            process.kill()
    return process.returncode, log.read_text(), job


def check_cancelled(
    submission: Submission, corpus: Path, folder: Path, number: signal.Signals
) -> None:
    status, said, job = interrupted(submission, corpus, folder, number)
    word = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}[number]
    assert status == 128 + number
    last = said.rstrip().splitlines()[-1]
    assert last == (
        f"bpe: error: {word}: job {job} on PortableRunner was cancelled: the runner says "
        "CANCELLED; start again with --resume"
    )
    assert "Traceback" not in said
    assert state_of(submission, job) == "CANCELLED"
    assert not (folder / "counts" / "manifest.json").exists()


def test_an_interrupt_cancels_the_job(on_prism: Submission, corpus: Path, tmp_path: Path) -> None:
    check_cancelled(on_prism, corpus, tmp_path, signal.SIGINT)


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_cancel_the_job_on_flink(
    flink_local: Submission, corpus: Path, tmp_path: Path, number: signal.Signals
) -> None:
    check_cancelled(flink_local, corpus, tmp_path, number)


@pytest.mark.long
def test_a_job_may_last_longer_than_requests_to_its_server(
    on_prism: Submission, corpus: Path, tmp_path: Path
) -> None:
    arguments = ["count", "--input", str(corpus), "--output", str(tmp_path / "counts"), *SLOW]
    done = bpe(*arguments, *on_prism.options, "--job_server_timeout=1", seconds=PATIENCE)
    assert re.search(r"bpe: count: done in .*: 10,000 documents, .* read", done.stderr)


@pytest.mark.long
def test_the_package_is_staged_where_workers_lack_it(
    job: Job, bare_flink: Submission, tmp_path: Path
) -> None:
    job.run(tmp_path / "out", bare_flink)
    job.check(tmp_path / "out")


@pytest.mark.long
def test_sources_are_staged_when_asked_for(bare_flink: Submission, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a rose is a rose\n" * 100)
    arguments = ["count", "--input", str(tmp_path / "a.txt"), "--output", str(tmp_path / "counts")]
    done = bpe(*arguments, "--stage", "sdist", *bare_flink.options, seconds=900)
    assert "staging the sources of beam-bpe for the PROCESS workers" in done.stderr
    assert (
        json.loads((tmp_path / "counts" / "manifest.json").read_text())["totals"]["documents"] == 1
    )


@pytest.mark.long
def test_a_failing_job_says_one_thing(bare_flink: Submission, tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"text": "good"}\n{"text": "bad\n')
    arguments = ["count", "--input", str(bad), "--output", str(tmp_path / "counts")]
    done = bpe(*arguments, *bare_flink.options, status=1, seconds=PATIENCE)
    last = done.stderr.rstrip().splitlines()[-1]
    assert last.startswith(f"bpe: error: {bad}, record at byte 17: not one JSON value")
    log = re.search(r"\(full log: (\S+)\)$", last)
    assert log is not None
    assert "Traceback" not in done.stderr
    assert "\tat " not in done.stderr
    assert len(done.stderr) < 4000
