"""Files that say where a job runs: those in ``configs/runners/``, and how several come together."""

from __future__ import annotations

import re
from importlib.metadata import version
from typing import TYPE_CHECKING

import pytest
from apache_beam.options.pipeline_options import PipelineOptions, PortableOptions

from pipelines.cli.count import count
from pipelines.cli.encode import encode
from pipelines.cli.run import run
from pipelines.cli.train import train
from pipelines.settings import Execution
from pipelines.submission.workers import workers_of
from tests.cli.pages import blocks
from tests.cli.process import ROOT, bpe
from tests.cluster import flink, service
from tests.cluster.processes import HOST

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.cli.command import Command
    from pipelines.cli.layers import Values

RUNNERS = ROOT / "configs" / "runners"
PAGE = ROOT / "docs" / "running.md"
FILES = {
    "local": "local",
    "prism": "loopback",
    "flink": "external",
    "flink-standalone": "external",
    "spark": "loopback",
}
COMMANDS: list[Command] = [count, train, encode]


def values(command: Command, *arguments: str) -> Values:
    needed = {"count": [], "train": [], "encode": ["--tokenizer", "t.json"]}
    given = ["--input", "in", "--output", "out", *needed[str(command.name)], *arguments]
    return command.values(command.make_context(str(command.name), given))


def test_every_file_is_known() -> None:
    assert {path.stem for path in RUNNERS.glob("*.yaml")} == FILES.keys()


def test_what_commands_of_the_page_name_is_there() -> None:
    typed = "\n".join(one.text for one in blocks(PAGE) if one.kind == "console")
    files = set(re.findall(r"\bconfigs/[\w/.-]+\w", typed))
    assert len(files) > 5
    assert {file for file in files if not (ROOT / file).exists()} == set()
    # Jars and images of Beam are of the release that this package is tested with.
    beam = re.findall(r"(?:job-server[-:]|beam_\w+:|prism@v)(\d+\.\d+\.\d+)", typed)
    assert set(beam) == {version("apache-beam")}


@pytest.mark.parametrize("command", COMMANDS, ids=lambda one: str(one.name))
@pytest.mark.parametrize("name", FILES)
def test_the_files_go_with_every_command(command: Command, name: str) -> None:
    made = values(command, "--config", str(RUNNERS / f"{name}.yaml")).settings(Execution)
    runner = "FnApiRunner" if made.runner == "DirectRunner" else made.runner
    workers = workers_of(PipelineOptions([f"--runner={runner}", *made.beam_args]))
    assert workers.kind == FILES[name]


def test_a_cluster_of_this_machine_is_as_its_file_says() -> None:
    made = values(count, "--config", str(RUNNERS / "flink-standalone.yaml")).settings(Execution)
    assert (made.runner, made.stage) == ("PortableRunner", "none")
    options = flink.flags(f"{HOST}:{service.JOBS}", parallelism=flink.TASKMANAGERS * flink.SLOTS)
    pool = ["--environment_type=EXTERNAL", f"--environment_config={HOST}:{service.POOL}"]
    assert sorted(made.beam_args) == sorted([*options, *pool])


def test_of_several_files_the_last_one_wins(tmp_path: Path) -> None:
    given = "[--job_endpoint=a:1, --environment_type=DOCKER]"
    (tmp_path / "a.yaml").write_text(f"workers: 3\nbeam_args: {given}\nshards: 4\n")
    (tmp_path / "b.yaml").write_text("workers: 5\nbeam_args: [--environment_type=PROCESS]\n")
    files = ("--config", str(tmp_path / "a.yaml"), "--config", str(tmp_path / "b.yaml"))
    found = values(count, *files)
    assert (found["workers"], found["shards"]) == (5, 4)
    made = PipelineOptions([*found["beam_args"]]).view_as(PortableOptions)
    assert (made.job_endpoint, made.environment_type) == ("a:1", "PROCESS")
    found = values(count, *files, "--workers", "7", "--", "--job_endpoint=b:2")
    assert found["workers"] == 7
    made = PipelineOptions([*found["beam_args"]]).view_as(PortableOptions)
    assert (made.job_endpoint, made.environment_type) == ("b:2", "PROCESS")


def test_a_job_and_its_runner_can_stand_in_two_files(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text("input: in\noutput: out\nworkers: 1\n")
    local = str(RUNNERS / "local.yaml")
    found = run.values(run.make_context("run", [str(tmp_path / "job.yaml"), "--config", local]))
    assert found["input"] == ("in",)
    assert found["workers"] == 0


def test_commands_without_a_runner_say_so(tmp_path: Path) -> None:
    done = bpe("decode", tmp_path, "--", "--runner=FlinkRunner", status=2)
    assert "unexpected argument '--runner=FlinkRunner'" in done.stderr
    done = bpe("verify", tmp_path, "--", "--s3_endpoint_url=http://here", status=2)
    assert "give --storage-option KEY=VALUE, such as endpoint_override=URL" in done.stderr
