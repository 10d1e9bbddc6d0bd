"""The place of workers: files that they see, and whether they lack this package."""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING

import pytest
from apache_beam.options.pipeline_options import (
    PipelineOptions,
    PortableOptions,
)

from pipelines.errors import ConfigError, JobError
from pipelines.settings import Execution
from pipelines.submission.checks import (
    check_package,
    check_paths,
    check_ready,
    reach_job_server,
)
from pipelines.submission.workers import Workers, workers_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

PORTABLE = ("PortableRunner", "--job_endpoint=h:1")
PROCESS = ("PortableRunner", "--job_endpoint=127.0.0.1:8099", "--environment_type=PROCESS")
DOCKER = ("FlinkRunner", "--flink_master=http://flink:8081")
DATAFLOW = ("DataflowRunner", "--project=p", "--region=r")


def options_of(runner: str, *flags: str) -> PipelineOptions:
    return PipelineOptions([f"--runner={runner}", *flags])


def workers(runner: str, *flags: str) -> Workers:
    return workers_of(options_of(runner, *flags))


@pytest.mark.parametrize(
    ("asked", "kind", "address"),
    [
        (("FnApiRunner",), "local", ""),
        (("BundleBasedDirectRunner",), "local", ""),
        (("PrismRunner",), "loopback", ""),
        (("PrismRunner", "--job_endpoint=h:1"), "loopback", "h:1"),
        (("FlinkRunner",), "loopback", ""),
        (("FlinkRunner", "--flink_master=[local]"), "loopback", ""),
        (DOCKER, "docker", "flink:8081"),
        (("FlinkRunner", "--flink_master=flink:8081"), "docker", "flink:8081"),
        (("SparkRunner",), "loopback", ""),
        (("SparkRunner", "--spark_master_url=spark://s:7077"), "docker", "s:7077"),
        (PORTABLE, "docker", "h:1"),
        ((*PORTABLE, "--environment_type=LOOPBACK"), "loopback", "h:1"),
        (("PortableRunner", "--environment_type=beam:env:process:v1"), "process", ""),
        (PROCESS, "process", "127.0.0.1:8099"),
        ((*PORTABLE, "--environment_type=EXTERNAL"), "external", "h:1"),
        (DATAFLOW, "dataflow", "Dataflow"),
    ],
)
def test_options_tell_where_workers_are(asked: Sequence[str], kind: str, address: str) -> None:
    found = workers(*asked)
    assert (found.kind, found.address) == (kind, address)


@pytest.mark.parametrize(
    ("asked", "lack"),
    [
        (("FnApiRunner",), False),
        (("PrismRunner",), False),
        (PROCESS, True),
        (DOCKER, True),
        (DATAFLOW, True),
        ((*PROCESS, "--extra_package=dist/beam_bpe-0.1.0-cp311-cp311-linux_x86_64.whl"), False),
        ((*PROCESS, "--extra_package=dist/other-1.0.tar.gz"), True),
        ((*PROCESS, "--setup_file=./setup.py"), False),
        ((*DOCKER, "--environment_config=registry/mine:1"), False),
        ((*DOCKER, "--environment_option=docker_container_image=registry/mine:1"), False),
        ((*DOCKER, "--sdk_container_image=registry/mine:1"), False),
        ((*DOCKER, "--sdk_container_image=apache/beam_python3.11_sdk:2.77.0"), True),
        ((*DATAFLOW, "--sdk_container_image=gcr.io/p/mine"), False),
    ],
)
def test_a_job_whose_workers_lack_the_package_is_refused(asked: Sequence[str], lack: bool) -> None:
    made = options_of(*asked)
    lacks = pytest.raises(ConfigError, match=r"lack beam-bpe: .*pip wheel .*--extra_package=")
    with lacks if lack else contextlib.nullcontext():
        check_package(made, workers_of(made), how="auto")
    check_package(made, workers_of(made), how="none")


def test_a_requirements_file_can_bring_the_package(tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    for text, lack in (("numpy\n", True), ("numpy\nbeam_bpe==0.1.0\n", False)):
        path.write_text(text)
        made = options_of(*PROCESS, f"--requirements_file={path}")
        lacks = pytest.raises(ConfigError, match="lack beam-bpe")
        with lacks if lack else contextlib.nullcontext():
            check_package(made, workers_of(made), how="auto")


def test_local_files_are_refused_where_workers_cannot_see_them(tmp_path: Path) -> None:
    corpus, output = str(tmp_path / "a.txt"), "gs://bucket/out"
    for asked, why in (
        (DOCKER, "they run in containers"),
        (("PortableRunner", "--job_endpoint=127.0.0.1:1"), "they run in containers"),
        (DATAFLOW, "Dataflow's workers"),
        ((*PROCESS, "--job_endpoint=flink:8081"), "other machines"),
        ((*PROCESS, "--job_endpoint=10.0.0.1:1"), "other machines"),
    ):
        with pytest.raises(ConfigError, match=why) as caught:
            check_paths(workers(*asked), reads=[corpus], writes=output)
        assert str(caught.value).startswith(f"{corpus} is read by")
        with pytest.raises(ConfigError, match="is written by"):
            check_paths(workers(*asked), reads=[output], writes=str(tmp_path))


def test_files_that_workers_see_are_fine(tmp_path: Path) -> None:
    corpus, output = str(tmp_path / "a.txt"), str(tmp_path / "out")
    for asked in (("FnApiRunner",), ("PrismRunner",), ("FlinkRunner", "--flink_master=[local]")):
        assert check_paths(workers(*asked), reads=[corpus], writes=output) == ""
    assert check_paths(workers(*DOCKER), reads=["gs://b/in"], writes="gs://b/out") == ""
    shared = [str(tmp_path)]
    assert check_paths(workers(*DOCKER), reads=[corpus], writes=output, shared=shared) == ""
    beside = [f"{tmp_path}-beside"]  # a name that only begins like the directory of the files
    with pytest.raises(ConfigError):
        check_paths(workers(*DOCKER), reads=[corpus], writes=output, shared=beside)


@pytest.mark.parametrize("host", ["127.0.0.2", "localhost", "[::1]"])
def test_a_cluster_on_this_machine_is_only_noted(tmp_path: Path, host: str) -> None:
    corpus, here = str(tmp_path / "a.txt"), workers(*PROCESS, f"--job_endpoint={host}:8099")
    note = check_paths(here, reads=[corpus], writes=str(tmp_path / "out"))
    assert note.startswith(f"{corpus} (and 1 more) is on this machine")


def test_a_job_server_that_is_not_there_is_one_clear_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        endpoint = f"127.0.0.1:{server.getsockname()[1]}"
        made = options_of("PortableRunner", f"--job_endpoint={endpoint}")
        reach_job_server(made, workers_of(made))
        assert made.view_as(PortableOptions).job_server_timeout > 24 * 3600
    made = options_of("PortableRunner", f"--job_endpoint={endpoint}", "--job_server_timeout=1")
    with pytest.raises(JobError, match=f"no job server answers at {endpoint}"):
        reach_job_server(made, workers_of(made))
    made = options_of("PortableRunner", "--job_endpoint=8099")
    with pytest.raises(JobError, match="not HOST:PORT"):
        reach_job_server(made, workers_of(made))


def test_no_runner_is_downloaded_unasked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for runner, message in (
        ("PrismRunner", "no program prism on the PATH"),
        ("PortableRunner", "needs the address of a job server"),
    ):
        made = options_of(runner)
        with pytest.raises(ConfigError, match=message):
            check_ready(made, Execution(runner=runner), workers_of(made))
