"""Whole jobs on an S3 server of this machine (moto's), through Beam's own filesystem."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from pipelines import jobs
from pipelines.output.lock import CLAIMS
from pipelines.output.names import TIMINGS
from pipelines.settings import (
    Execution,
    InputSettings,
    OutputSettings,
    PretokenSettings,
    TrainSettings,
)
from tests.cli.process import ROOT, bpe, environment
from tests.faults.running import PATIENCE, PROCESSES, ended, running, until
from tests.pipelines.corpora import tree

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.faults.conftest import Undisturbed

BUCKET = "corpora"


@dataclass(frozen=True)
class Store:
    """A server, and what it was asked for so far."""

    port: int
    log: Path
    client: Any

    @property
    def options(self) -> tuple[str, ...]:
        """What Beam's filesystem needs to find it."""
        return (
            f"--s3_endpoint_url=http://127.0.0.1:{self.port}",
            "--s3_access_key_id=key",
            "--s3_secret_access_key=secret",
            "--s3_region_name=us-east-1",
        )

    def execution(self, *more: str) -> Execution:
        return Execution(workers=2, beam_args=(*self.options, *more))

    def tree(self, prefix: str) -> dict[str, bytes]:
        """Every object below ``prefix``, by its name there."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
        keys = [item["Key"] for page in pages for item in page.get("Contents", ())]
        return {
            key.removeprefix(prefix): self.client.get_object(Bucket=BUCKET, Key=key)["Body"].read()
            for key in keys
            if not key.endswith(TIMINGS)
        }

    def put(self, folder: Path, prefix: str) -> None:
        for name, data in tree(folder).items():
            self.client.put_object(Bucket=BUCKET, Key=f"{prefix}{name}", Body=data)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    log = tmp_path_factory.mktemp("store") / "log"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with log.open("wb") as out:
        server = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        end = time.monotonic() + PATIENCE
        while True:
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/moto-api/", timeout=5).close()
                break
            assert server.poll() is None, log.read_text()
            assert time.monotonic() < end
            time.sleep(0.05)
        client = boto3.client(
            "s3",
            endpoint_url=f"http://127.0.0.1:{port}",
            aws_access_key_id="key",
            aws_secret_access_key="secret",
            region_name="us-east-1",
        )
        client.create_bucket(Bucket=BUCKET)
        yield Store(port, log, client)
    finally:
        server.kill()
        server.wait()


def whole_job(store: Store, small: Undisturbed, prefix: str, *more: str) -> None:
    """Count, train, encode, verify and decode; compare with what a disk holds."""
    at = f"s3://{BUCKET}/{prefix}"
    store.put(small.corpus, f"{prefix}/corpus/")
    inputs = InputSettings(patterns=(f"{at}/corpus",), split_size=small.split)
    execution = store.execution(*more)
    jobs.train(
        inputs=inputs,
        pretokens=PretokenSettings(),
        training=TrainSettings(vocab_size=300),
        output=OutputSettings(directory=f"{at}/model"),
        execution=execution,
    )
    assert store.tree(f"{prefix}/model/") == small.made("train")
    store.put(small.folder / "ids", f"{prefix}/expected/")
    store.client.put_object(
        Bucket=BUCKET, Key=f"{prefix}/t.json", Body=(small.folder / "t.json").read_bytes()
    )
    jobs.encode(
        inputs=inputs,
        tokenizer=f"{at}/t.json",
        output=OutputSettings(directory=f"{at}/ids"),
        execution=execution,
    )
    assert store.tree(f"{prefix}/ids/") == small.made("encode")
    verified = jobs.verify(directory=f"{at}/ids", inputs=inputs, execution=execution)
    decoded = io.BytesIO()
    assert jobs.decode(directory=f"{at}/ids", stream=decoded, execution=execution) == (
        verified.documents
    )
    texts = [json.loads(line)["text"] for line in decoded.getvalue().splitlines()]
    lines = (small.corpus / "docs.jsonl").read_text("utf-8").splitlines()
    assert texts == [json.loads(line)["text"] for line in lines]


def test_a_store_gets_the_bytes_of_a_disk_and_nothing_is_renamed(
    store: Store, small: Undisturbed
) -> None:
    whole_job(store, small, "threads")
    asked = store.log.read_text("utf-8", "replace")
    assert "PUT /corpora/threads/ids/part-" in asked
    removed = re.findall(r'"(?:DELETE .*|POST /corpora/?\?delete.*)', asked)
    assert len(removed) == 3  # claims: of the model, its counts, and the ids
    assert ".tmp" not in asked
    uploads = store.client.list_multipart_uploads(Bucket=BUCKET)
    assert "Uploads" not in uploads


@pytest.mark.long
def test_options_reach_worker_processes(store: Store, small: Undisturbed) -> None:
    whole_job(store, small, "processes", PROCESSES[1])


@pytest.mark.long
@pytest.mark.parametrize("more", [(), PROCESSES[1:]], ids=["threads", "processes"])
def test_a_job_that_was_killed_is_resumed(
    store: Store, undisturbed: Undisturbed, tmp_path: Path, more: tuple[str, ...]
) -> None:
    """Through the command line, with a configuration file."""
    prefix = f"killed-{len(more)}"
    at = f"s3://{BUCKET}/{prefix}"
    store.put(undisturbed.corpus, f"{prefix}/corpus/")
    config = tmp_path / "job.yaml"
    config.write_text(
        json.dumps(
            {
                "input": [f"{at}/corpus"],
                "output": f"{at}/ids",
                "split_size": undisturbed.split,
                "beam_args": [*store.options, *more],
            }
        )
    )
    encode: list[str | Path] = [
        "encode",
        "--config",
        config,
        "--tokenizer",
        undisturbed.folder / "t.json",
        "-q",
    ]

    def parts() -> int:
        listed = store.client.list_objects_v2(Bucket=BUCKET, Prefix=f"{prefix}/ids/part-")
        return int(listed["KeyCount"])

    with running(*encode) as process:
        until(lambda: parts() >= 3, process)
        process.kill()
        ended(process)
    expected = undisturbed.made("encode")
    left = store.tree(f"{prefix}/ids/")
    assert "manifest.json" not in left
    left = {name: data for name, data in left.items() if not name.startswith(".lock/")}
    assert all(expected[name] == data for name, data in left.items())
    done = bpe(*encode, "--resume", "--json", seconds=600)
    assert json.loads(done.stdout)["resumed_parts"] >= 3
    assert store.tree(f"{prefix}/ids/") == expected
    bpe("verify", f"{at}/ids", "--input", f"{at}/corpus", "-q", "--", *store.options)


def test_a_bucket_that_is_not_there_is_named(store: Store, small: Undisturbed) -> None:
    arguments = ("--input", small.corpus, "--output", "s3://no-such-bucket/counts", "-q")
    done = bpe("count", *arguments, "--", *store.options, status=1)
    (error,) = (line for line in done.stderr.splitlines() if line.startswith("bpe: error:"))
    assert "s3://no-such-bucket/counts" in error
    assert "cannot write" in error


@contextlib.contextmanager
def holder(store: Store, directory: str) -> Iterator[subprocess.Popen[str]]:
    """A process that is ready to take the lock of a directory."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.faults.holding", directory, *store.options],
        cwd=ROOT,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert answer(process) == "ready"
        yield process
    finally:
        process.kill()
        process.communicate()


def tell(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    print(file=process.stdin, flush=True)


def answer(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_the_second_of_two_jobs_is_refused_until_the_first_is_dead(
    store: Store, small: Undisturbed
) -> None:
    at = f"s3://{BUCKET}/two"
    command = small.command("encode", f"{at}/ids", "--", *store.options)
    with holder(store, f"{at}/ids") as first:
        tell(first)
        assert answer(first) == "held"
        second = bpe(*command, status=1)
        (error,) = (line for line in second.stderr.splitlines() if line.startswith("bpe: error:"))
        assert error.startswith(f"bpe: error: {at}/ids: another job is writing to it (process ")
        assert f"process {first.pid} on " in error
        (name,) = store.tree("two/ids/")
        assert name.startswith(f"{CLAIMS}/")
        assert f"or until {at}/ids/{name} is removed" in error
        first.kill()
        first.wait()
        assert list(store.tree("two/ids/")) == [name]  # left behind
        bpe(*command)
    assert store.tree("two/ids/") == small.made("encode")


@pytest.mark.long
@pytest.mark.parametrize("number", range(3))
def test_of_processes_that_come_at_once_one_stays(store: Store, number: int) -> None:
    at = f"s3://{BUCKET}/at-once-{number}"
    with contextlib.ExitStack() as stack:
        processes = [stack.enter_context(holder(store, at)) for _ in range(5)]
        for process in processes:
            tell(process)
        answers = sorted(answer(process) for process in processes)
        assert [said == "held" for said in answers].count(True) == 1
        assert sum("another job is writing to it" in said for said in answers) == 4


@pytest.mark.long
def test_a_job_at_work_keeps_another_out(store: Store, undisturbed: Undisturbed) -> None:
    out = f"s3://{BUCKET}/at-work/ids"
    with running(*undisturbed.command("encode", out, "--", *store.options)) as first:
        until(lambda: ".plan.json" in store.tree("at-work/ids/"), first)
        os.killpg(first.pid, signal.SIGSTOP)
        for how in ("--overwrite", "--resume"):
            command = undisturbed.command("encode", out, how, "--", *store.options)
            assert f"(process {first.pid} on" in bpe(*command, status=1).stderr
        os.killpg(first.pid, signal.SIGCONT)
        assert ended(first) == (0, [])
    assert store.tree("at-work/ids/") == undisturbed.made("encode")
