"""Runners on this machine, each started once for the tests of a file, and always taken down.

Where a piece is missing, tests skip and say what brings it; with ``BPE_CLUSTER_REQUIRED=1`` they
fail instead.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from cluster import cache, flink, prism
from cluster.setup import missing_tools
from tests.cluster.jobs import Job, Submission, write_corpus

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def pieces() -> None:
    """What a cluster is made of is here."""
    lacking = [*missing_tools(), *(f"{name} is not here: make cluster" for name in cache.missing())]
    if lacking:
        told = "no cluster: " + "; ".join(lacking)
        if os.environ.get("BPE_CLUSTER_REQUIRED", "0") not in ("", "0"):
            pytest.fail(told)
        pytest.skip(told)


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    """A job, and what it makes on the local runner."""
    folder = tmp_path_factory.mktemp("corpus")
    write_corpus(folder / "in")
    return Job.of(folder / "in", local=folder / "local")


@pytest.fixture(scope="module")
def flink_local(pieces: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Submission]:
    """Flink inside its job server; workers are threads of the command."""
    with flink.start_local(tmp_path_factory.mktemp("flink")) as server:
        yield Submission.of(*flink.flags(server.endpoint, parallelism=2), environment="LOOPBACK")


@pytest.fixture(scope="module")
def on_prism(pieces: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Submission]:
    """Prism; workers are threads of the command."""
    program, endpoint = prism.start(tmp_path_factory.mktemp("prism"))
    with program:
        yield Submission.of(f"--job_endpoint={endpoint}", environment="LOOPBACK")
