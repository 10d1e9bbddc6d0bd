"""The one line that is shown of a job that failed."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from pipelines.causes import first_cause
from pipelines.errors import JobError, RecordError
from pipelines.failures import WorkerError, error_in
from pipelines.submission.log import job_log

WORKER = """java.util.concurrent.CompletionException: java.lang.RuntimeError: over
\tat java.base/java.util.concurrent.CompletableFuture.encodeThrowable(CompletableFuture.java:315)
Caused by: org.apache.flink.runtime.JobException: Recovery is suppressed by NoRestartBackoff
\t... 3 more
Caused by: java.lang.RuntimeException: Error received from SDK harness for instruction 4: \
Traceback (most recent call last):
  File "apache_beam/runners/common.py", line 1512, in process
  File "job.py", line 3, in process
    raise ValueError("the value is wrong")
ValueError: the value is wrong

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "apache_beam/runners/worker/sdk_worker.py", line 310, in _execute
ValueError: the value is wrong [while running 'Encode splits']

\tat org.apache.beam.runners.fnexecution.control.FnApiControlClient.onNext(FnApi.java:1)
"""
JAVA = """org.apache.flink.client.program.ProgramInvocationException: Job failed
\tat org.apache.flink.client.program.PerJobMiniCluster.submit(PerJob.java:1)
Caused by: java.lang.IllegalStateException: No container running for id 9
\tat org.apache.beam.vendor.guava.Preconditions.check(Preconditions.java:1)
Caused by: java.io.IOException: Cannot run program "docker": error=2, No such file or directory
\t... 12 more
"""


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (WORKER, "ValueError: the value is wrong"),
        (
            JAVA,
            'IOException: Cannot run program "docker": error=2, No such file or directory',
        ),
        (
            "java.util.concurrent.ExecutionException: java.lang.IllegalArgumentException: no slots",
            "IllegalArgumentException: no slots",
        ),
        ("Pipeline job-1 failed in state FAILED: java.io.IOException: gone", "IOException: gone"),
        ("Pipeline job-1 failed in state FAILED: unknown error", ""),
        ("subprocess.CalledProcessError: no", "subprocess.CalledProcessError: no"),
        ("bundle inst006 failed: boom", "bundle inst006 failed: boom"),
        ("", ""),
    ],
)
def test_the_first_cause_is_found(text: str, cause: str) -> None:
    assert first_cause(text) == cause


def test_our_own_error_comes_before_all_others() -> None:
    text = JAVA + str(WorkerError.of(RecordError("a.txt, record at byte 3: bad")))
    found = error_in(RuntimeError("Pipeline x failed in state FAILED: unknown error"), [JAVA, text])
    assert type(found) is RecordError
    assert str(found) == "a.txt, record at byte 3: bad"


def test_what_was_logged_helps_where_beam_knows_nothing() -> None:
    found = error_in(RuntimeError("Pipeline x failed in state FAILED: unknown error"), [JAVA])
    assert type(found) is JobError
    assert str(found).startswith("the job failed: IOException: Cannot run")


def test_the_log_of_a_job_that_ended_well_is_removed() -> None:
    with job_log() as log:
        logging.getLogger("apache_beam").error("one that was survived")
    assert not Path(log.path).exists()
