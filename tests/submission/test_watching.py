"""Messages about a job on its runner: its page, and its progress."""

from __future__ import annotations

import io
from typing import Any

import grpc
import pytest
from apache_beam.metrics.monitoring_infos import int64_user_counter
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.portability.api import beam_job_api_pb2 as api
from apache_beam.runners.portability.portable_runner import PipelineResult

from pipelines.errors import JobError
from pipelines.progress import LineProgress
from pipelines.run import observe
from pipelines.submission.job import wait, where_to_look
from pipelines.submission.workers import workers_of
from tests.cli.streams import wait_for

FLINK = "Flink's web UI, port 8081 of its JobManager"
MASTER = "--spark_master_url=spark://s:7077"
SPARK = "Spark's web UI, port 8080 of its master"
PRISM = "Prism's web UI, port 8074 of its machine"
STARTED = "which Beam started here for this job, without a web UI"


def result_of(service: Any = None) -> PipelineResult:
    """The result of Beam for a job of a job server."""
    return PipelineResult(service, "job-7", iter(()), iter(()))


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (
            ("DataflowRunner", "--project=p", "--region=europe-west1"),
            ": https://console.cloud.google.com/dataflow/jobs/europe-west1/job-7?project=p",
        ),
        (
            ("PortableRunner", "--job_endpoint=a:1"),
            f", job server a:1: watch it on the cluster's web UI ({FLINK}, {SPARK}, {PRISM})",
        ),
        (("FlinkRunner", "--flink_master=http://flink:8081"), ": watch it at http://flink:8081"),
        (("FlinkRunner", "--flink_master=flink:8081"), ": watch it at http://flink:8081"),
        (("FlinkRunner", "--job_endpoint=a:8099"), f", job server a:8099: watch it on {FLINK}"),
        (("FlinkRunner",), f", {STARTED}"),
        (("SparkRunner", MASTER), f", master s:7077: watch it on {SPARK}"),
        (("SparkRunner", "--job_endpoint=a:8099"), f", job server a:8099: watch it on {SPARK}"),
        (("SparkRunner",), f", {STARTED}"),
        (("PrismRunner", "--job_endpoint=a:8073"), f", job server a:8073: watch it on {PRISM}"),
        (("PrismRunner",), f", {STARTED}"),
    ],
)
def test_where_a_job_can_be_looked_at(flags: tuple[str, ...], said: str) -> None:
    runner, *others = flags
    made = PipelineOptions([f"--runner={runner}", *others])
    on = "" if runner == "DataflowRunner" else f" on {runner}"
    assert where_to_look(result_of(), made, workers_of(made)) == f"job job-7{on}{said}"


class Service:
    """The client of a job server that answers with the counters that it was given, or fails."""

    def __init__(self) -> None:
        self.counters: dict[str, tuple[int, ...]] | None = {}

    def GetState(self, _request: Any) -> Any:  # noqa: N802 - the name of the call
        if self.counters is None:
            raise grpc.RpcError
        return api.JobStateEvent(state=api.JobState.RUNNING)

    def GetJobMetrics(self, _request: Any) -> Any:  # noqa: N802
        if self.counters is None:
            raise grpc.RpcError
        infos = [
            int64_user_counter("bpe", name, number, ptransform=f"step {step}")
            for name, numbers in self.counters.items()
            for step, number in enumerate(numbers)
        ]
        return api.GetJobMetricsResponse(metrics=api.MetricResults(attempted=infos))


def test_progress_is_that_of_the_runners_counters_where_workers_tell_nothing() -> None:
    stream = io.StringIO()
    service = Service()
    result = result_of(service)
    with LineProgress(stream, interval=0.01).stage("count", 4_000_000) as stage:
        observe(result, stage)
        wait_for(r"bpe: count: running for \d", stream)
        service.counters = {"documents_read": (10, 5), "bytes_read": (900_000, 100_000)}
        observe(result, stage)
        wait_for(r"25%: 15 documents, 1\.00 MB of 4\.00 MB read, [\d.]+ .B/s, .* left", stream)
        service.counters = {
            "documents_read": (30,),
            "documents_kept": (10,),
            "bytes_read": (2_000_000,),
            "bytes_kept": (1_000_000,),
        }
        observe(result, stage)  # Beam would give its first answer again
        wait_for(r"75%: 40 documents, 3\.00 MB of 4\.00 MB read", stream)
        service.counters = {}
        observe(result, stage)
    assert "count: done in" in stream.getvalue().splitlines()[-1]


def test_a_job_does_not_fail_by_a_server_that_does_not_answer() -> None:
    with LineProgress(io.StringIO(), interval=60).stage("count", 10) as stage:
        service = Service()
        service.counters = {"documents_read": (1,), "bytes_read": (10,)}
        observe(result_of(service), stage)
        assert stage.snapshot().documents == 1
        service.counters = None
        observe(result_of(service), stage)
        assert (stage.snapshot().state, stage.snapshot().documents) == ("RUNNING", 1)


def test_a_runner_that_ends_its_thread_ends_the_job() -> None:
    class Ended:
        def wait_until_finish(self) -> None:
            raise SystemExit(3)

    with pytest.raises(JobError, match=r"the runner ended while it waited: SystemExit\(3\)"):
        wait(Ended(), lambda: True)
