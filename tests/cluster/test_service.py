"""The cluster that stays until it is stopped, as docs/running.md has people start it."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.cluster import service
from tests.cluster.jobs import Job, Submission
from tests.cluster.processes import free_ports

if TYPE_CHECKING:
    from pathlib import Path


def test_a_process_that_has_got_the_number_of_a_cluster_is_left_alone(apart: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        (apart / "running.pid").write_text(str(other.pid))
        assert service.running() is None
        assert not service.stop()
        assert other.poll() is None
        other.kill()


@pytest.mark.long
def test_a_cluster_is_started_used_and_stopped(
    pieces: None, apart: Path, job: Job, tmp_path: Path
) -> None:
    web, jobs, artifacts, expansion, pool = free_ports(5)
    layout = service.Layout(web=web, jobs=jobs, artifacts=artifacts, expansion=expansion, pool=pool)
    service.start(layout)
    try:
        assert service.running()
        with pytest.raises(service.ServiceError, match="a cluster is running"):
            service.start(layout)
        options = ("--runner", "PortableRunner", "--stage", "none", "--", *layout.options)
        job.run(tmp_path / "out", Submission(options))
        job.check(tmp_path / "out")
    finally:
        assert service.stop()
    assert service.running() is None
    assert not service.folder().exists()
    assert not service.stop()
