"""Options for Beam, and errors on their way out of workers."""

from __future__ import annotations

import copy
import os
import threading
import time
from typing import TYPE_CHECKING, Any

import apache_beam as beam
import grpc
import pytest
from apache_beam.options.pipeline_options import DirectOptions, StandardOptions
from apache_beam.runners.portability.fn_api_runner import worker_handlers
from apache_beam.runners.worker import statesampler
from apache_beam.utils.counters import CounterFactory

import bpe
from bpe.errors import TrainingError
from pipelines import errors
from pipelines.corpus.documents.stored import LostFileError
from pipelines.errors import ConfigError, InputError, JobError, OutputError, RecordError
from pipelines.failures import FailureChannel, WorkerError, error_in, job_errors
from pipelines.local_runner import guarded
from pipelines.progress import Progress
from pipelines.run import options, run
from pipelines.settings import Execution
from tests.cli.process import bpe as run_bpe

if TYPE_CHECKING:
    from pathlib import Path

MODES = {
    "in_memory": Execution(workers=1),
    "multi_threading": Execution(workers=2),
}


@pytest.mark.parametrize(
    ("asked", "mode", "workers"),
    [
        ({"workers": 1}, "in_memory", 1),
        ({"workers": 3}, "multi_threading", 3),
        ({"workers": 4, "beam_args": ("--direct_num_workers=2",)}, "multi_threading", 2),
    ],
)
def test_the_local_runner_is_pinned_but_for_what_the_user_says_to_beam(
    asked: dict[str, Any], mode: str, workers: int
) -> None:
    made = options(Execution(**asked))
    assert made.view_as(StandardOptions).runner == "FnApiRunner"
    assert made.view_as(DirectOptions).direct_running_mode == mode
    assert made.view_as(DirectOptions).direct_num_workers == workers


def test_worker_processes_are_refused_with_a_reason() -> None:
    with pytest.raises(ConfigError, match=r"multi_processing: Beam's local runner hangs when one"):
        options(Execution(beam_args=("--direct_running_mode=multi_processing",)))


def test_a_value_set_in_one_view_is_seen_in_all_also_of_a_copy() -> None:
    made = options(Execution(workers=1))
    made.view_as(StandardOptions).streaming = True
    for one in (made, copy.deepcopy(made)):
        assert one.view_as(StandardOptions).streaming
        assert one.get_all_options()["streaming"]
    assert not options(Execution(workers=1)).view_as(StandardOptions).streaming


def test_other_runners_get_their_options_as_they_are() -> None:
    made = options(Execution(runner="PortableRunner", workers=3, beam_args=("--job_endpoint=h:1",)))
    assert made.get_all_options(drop_default=True) == {
        "runner": "PortableRunner",
        "job_endpoint": "h:1",
    }


def test_wrong_options_are_one_clear_error(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConfigError, match="direct_num_workers"):
        options(Execution(beam_args=("--direct_num_workers=many",)))
    with pytest.raises(ConfigError, match="`runner` NoSuchRunner"):
        options(Execution(runner="NoSuchRunner"))
    assert capfd.readouterr().err == ""


KINDS = [ConfigError, InputError, RecordError, OutputError, errors.VerificationError, JobError]


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_survives_as_text(kind: type[JobError]) -> None:
    message = "a 'quoted' \"line\" \\ with é, 東京 and \n a break"
    worker = WorkerError.of(kind(message))
    text = f"Traceback ...\nRuntimeError: {worker!r} [while running 'Encode']\\n\\n and more"
    found = error_in(RuntimeError(text))
    assert type(found) is kind
    assert str(found) == message


def test_an_error_of_a_kind_of_its_own_survives_as_the_kind_above() -> None:
    found = error_in(RuntimeError(repr(WorkerError.of(LostFileError("a.txt", "is gone")))))
    assert type(found) is InputError
    assert "a.txt" in str(found)
    assert "is gone" in str(found)


def test_an_error_is_found_behind_others() -> None:
    error = RuntimeError("wrapped")
    error.__cause__ = WorkerError.of(RecordError("bad"))
    assert type(error_in(error)) is RecordError


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (TrainingError("x"), ConfigError),
        (bpe.errors.TokenizerFileError("x"), InputError),
        (RuntimeError("Traceback:\n  File a\nKeyError: 'x'"), JobError),
        (MemoryError(), JobError),
        (ZeroDivisionError("two\nlines"), JobError),
    ],
)
def test_any_error_becomes_one_of_ours_on_one_line(error: Exception, kind: type[JobError]) -> None:
    with pytest.raises(JobError) as caught, job_errors():
        raise error
    assert type(caught.value) is type(error_in(error)) is kind
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is error


def fail(element: int, failures: FailureChannel, *, raw: bool) -> int:
    error = RecordError("file.txt: bad")
    if raw:
        raise WorkerError.of(error)
    with failures.reported():
        if element == 3:
            raise error
    return element


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("raw", [False, True], ids=["reported", "raised"])
def test_a_failure_in_a_worker_is_raised_once_and_clean(mode: str, raw: bool) -> None:
    def build(pipeline: beam.Pipeline, failures: FailureChannel) -> None:
        elements = pipeline | beam.Create(range(8)) | beam.Reshuffle()
        _ = elements | beam.Map(fail, failures, raw=raw)

    with pytest.raises(RecordError) as caught:
        run(build, execution=MODES[mode], pieces=8)
    assert str(caught.value) == "file.txt: bad"


def test_no_more_workers_are_started_than_there_is_work() -> None:
    most = threading.active_count() + 20

    def check(_: int) -> None:
        assert threading.active_count() < most

    def build(pipeline: beam.Pipeline, failures: FailureChannel) -> None:
        _ = pipeline | beam.Create([0]) | beam.Map(check)

    run(build, execution=Execution(workers=30), pieces=1)
    with pytest.raises(JobError, match="AssertionError"):
        run(build, execution=Execution(workers=30), pieces=100)


class Slow:
    """Takes longer to pickle than the local runner waits before it sends what it has."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __reduce__(self) -> tuple[Any, ...]:
        time.sleep(1.2)
        return Slow, (self.number,)


def test_an_element_that_is_slow_to_write_arrives_whole(tmp_path: Path) -> None:
    result = tmp_path / "result"

    def write(element: tuple[str, list[Slow]]) -> None:
        key, values = element
        result.write_text(f"{key} {sorted(value.number for value in values)}")

    def build(pipeline: beam.Pipeline, failures: FailureChannel) -> None:
        slow = pipeline | beam.Create([1, 2]) | "Slow" >> beam.Map(lambda n: ("key", Slow(n)))
        _ = slow | beam.GroupByKey() | "Write" >> beam.Map(write)

    run(build, execution=MODES["multi_threading"], pieces=2)
    assert result.read_text() == "key [1, 2]"


def test_what_is_set_in_beam_is_put_back_by_the_last_of_several_jobs() -> None:
    """The limit of its buffers, and how long a bundle waits for the thread that samples time."""

    def found() -> tuple[int, int]:
        period = statesampler.StateSampler("", CounterFactory()).sampling_period_ms
        return worker_handlers.DATA_BUFFER_TIME_LIMIT_MS, int(period)

    before = found()
    assert min(before) > 10
    first, second = guarded(), guarded()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert found() == (0, 10)
    second.__exit__(None, None, None)
    assert found() == before


def add_numbers(pipeline: beam.Pipeline, _: FailureChannel) -> None:
    pipeline | beam.Create([1, 2, 3]) | beam.CombineGlobally(sum)


@pytest.mark.parametrize("times", [1, 2])
def test_a_worker_that_is_not_reached_in_time_is_started_again(
    monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """Beam gives up after 60 s; here it does sooner, on a port where nobody listens."""
    for name in ("grpc_proxy", "https_proxy", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    ready, left = grpc.channel_ready_future, [None] * times

    class Impatient:
        def result(self, *, timeout: int) -> None:
            assert timeout == 60
            ready(grpc.insecure_channel("127.0.0.1:9")).result(timeout=0.01)

    monkeypatch.setattr(
        grpc, "channel_ready_future", lambda to: (left.pop(), Impatient())[1] if left else ready(to)
    )
    said: list[str] = []
    progress = Progress()
    monkeypatch.setattr(progress, "log", said.append)

    def start() -> object:
        return run(add_numbers, execution=MODES["multi_threading"], pieces=2, progress=progress)

    if times == 1:
        start()
    else:
        with pytest.raises(JobError, match=r"did not reach its own worker .*overloaded"):
            start()
    assert said == ["Beam's local runner did not reach its worker within 60 s: starting it again"]


@pytest.mark.long
def test_a_proxy_between_beam_and_its_worker_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("some words\n" * 1000)
    done = run_bpe(
        *("count", "--input", "a.txt", "--format", "lines", "--output", "counts"),
        *("--workers", "2", "--split-size", "2000", "-q"),
        cwd=tmp_path,
        status=1,
        http_proxy="http://127.0.0.1:9",
        no_proxy="",
    )
    assert done.stderr == (
        "bpe: error: Beam did not reach its own worker on this machine within 60 s: a proxy is set "
        "(http_proxy): except this machine from it with no_proxy=localhost\n"
    )


def test_a_failure_of_another_process_is_raised() -> None:
    for failures in (FailureChannel(), FailureChannel("job", os.getpid() + 1)):
        assert not failures.stopped()
        with pytest.raises(WorkerError, match="a reason for the log"), failures.reported():
            raise RecordError("a reason for the log")


def test_the_first_failure_stays() -> None:
    with FailureChannel.here() as channel:
        failures = copy.deepcopy(channel)  # as a worker gets it
        assert not failures.stopped()
        for text in ("first", "second"):
            with failures.reported():
                raise InputError(text)
        assert failures.stopped()
        assert str(channel.first()) == "first"


def test_work_stops_when_the_job_has_ended() -> None:
    with FailureChannel.here() as failures:
        pass
    assert failures.stopped()
    assert failures.first() is None
    failures.stop()
    with failures.reported():
        raise InputError("too late")


def test_a_command_does_not_say_what_beam_does_without_its_extras(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("some words")
    command = ("count", "--input", "a.txt", "--output", "counts", "-q")
    # In a process of its own: Beam says it once, on import.
    assert run_bpe(*command, cwd=tmp_path, BPE_FRESH="1").stderr == ""
