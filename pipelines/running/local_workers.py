"""Worker processes of Beam's local runner: told the options of the job, and watched.

Beam's runner starts them without any options, so that their filesystems know no endpoints and no
credentials; and it waits for ever for the answer of one that was killed, as the kernel does where
memory runs out. Here the options travel, and such a process ends the job with an error.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import signal
import threading
from typing import TYPE_CHECKING, Any

import grpc
from apache_beam.options.pipeline_options import DebugOptions, DirectOptions, WorkerOptions
from apache_beam.portability import python_urns
from apache_beam.portability.api import beam_fn_api_pb2, beam_provision_api_pb2
from apache_beam.runners.portability import local_job_service
from apache_beam.runners.portability.fn_api_runner import fn_runner, worker_handlers
from google.protobuf.struct_pb2 import Struct

from pipelines.errors import JobError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from apache_beam.options.pipeline_options import PipelineOptions

_Control = worker_handlers.BeamFnControlServicer
_JOB = "bpe_job="  # an experiment is how Beam lets an option of a program of its own travel
# What Beam has to say when the other end of a connection is gone, beside our error: these threads
# end with a traceback, these loggers log one.
_READERS = ("beam_control_read", "read_grpc_client_inputs")
_LOGGERS = ("apache_beam.runners.worker.data_plane", worker_handlers.__name__)
_LOGGER = logging.getLogger(__name__)
_PAUSE = 0.1  # seconds between two looks at who waits for a process that is gone
_listeners: dict[str, Callable[[JobError], object]] = {}


class _WatchedHandler(worker_handlers.SubprocessSdkWorkerHandler):  # type: ignore[misc]
    """Starts a worker process; where it ends by itself, those who wait for it get an error."""

    def start_worker(self) -> None:
        """Start the process, and a thread that waits for its end."""
        self._closing = threading.Event()
        self.worker = local_job_service.SubprocessSdkWorker(
            b"exec " + self._worker_command_line,  # no shell in between, which would hide its end
            self.control_address,
            self.provision_info,
            self.worker_id,
        )
        self.worker_thread = threading.Thread(name="run_worker", target=self._run)
        self.worker_thread.start()

    def close(self) -> None:
        """End the process."""
        self._closing.set()
        self._dismiss()
        try:
            super().close()
        except grpc.RpcError as error:
            _LOGGER.debug("closing the connection to a worker process: %s", error)
        finally:
            self.worker_thread.join()  # it may have something to tell

    def _dismiss(self) -> None:
        """Let a process that has yet to connect end as soon as it does: Beam tells only who has.

        Else it would wait for work, and Beam for its end: where one worker is killed, or a job
        fails, while another is still about to start.
        """
        connection = self.control_conn
        if connection._state == _Control.UNSTARTED_STATE:  # noqa: SLF001 - see above
            with contextlib.suppress(queue.Empty):
                while True:
                    connection._push_queue.get_nowait()  # noqa: SLF001 - see above
            self._answer("the job has ended")
        connection.push(_Control._DONE_MARKER)  # noqa: SLF001 - see above

    def _run(self) -> None:
        try:
            self.worker.run()
        except RuntimeError as ended:
            error = _lost(str(ended))
            if (tell := _listeners.get(self._job())) is not None:
                tell(error)
            # Again and again: the runner may be about to ask the process for more.
            while not self._closing.wait(_PAUSE):
                self._answer(str(error))

    def _answer(self, error: str) -> None:
        """Answer in place of the process: Beam's own ``abort`` does not end a wait for data."""
        with contextlib.suppress(RuntimeError):  # the runner asks right now
            for asked in self.control_conn._futures_by_id.values():  # noqa: SLF001 - see above
                asked.set(beam_fn_api_pb2.InstructionResponse(error=error))

    def _job(self) -> str:
        options = self.provision_info.provision_info.pipeline_options
        for key, value in options.items():
            if "experiments" in key:
                for one in value:
                    if str(one).startswith(_JOB):
                        return str(one).removeprefix(_JOB)
        return ""


def _lost(ended: str) -> JobError:
    """The error for a process of which Beam says how it ended."""
    code = int(ended.rpartition(" ")[2])
    number = -code
    try:
        name = signal.Signals(number).name
    except ValueError:
        return JobError(
            f"a worker process ended with status {code} before its work was done: what it said "
            "stands above; what is finished is kept with `resume`"
        )
    return JobError(
        f"a worker process was killed by signal {number} ({name}) before its work was done: where "
        "nobody did that by hand, memory ran out: use fewer `workers`, or a smaller `split_size`; "
        "what is finished is kept with `resume`"
    )


def _as_struct(options: PipelineOptions) -> Struct:
    """The options as a worker takes them; whole numbers as text, which JSON would make 2.0 of."""
    given = options.get_all_options(drop_default=True, retain_unknown_options=True)
    struct = Struct()
    struct.update(
        {
            f"beam:option:{name}:v1": str(value) if type(value) is int else value
            for name, value in given.items()
            if isinstance(value, (bool, int, float, str, list))
        }
    )
    return struct


@contextlib.contextmanager
def local_runner(
    options: PipelineOptions, *, job: str, tell: Callable[[JobError], object]
) -> Iterator[fn_runner.FnApiRunner]:
    """The local runner, for a job that runs in the block.

    Args:
        options: of the job.
        job: a name that no other job of this process has.
        tell: called with the error, from another thread, when a worker process is gone.
    """
    if options.view_as(DirectOptions).direct_running_mode != "multi_processing":
        yield fn_runner.FnApiRunner()
        return
    options.view_as(DebugOptions).add_experiment(_JOB + job)
    worker = options.view_as(WorkerOptions)
    worker.default_sdk_harness_log_level = worker.default_sdk_harness_log_level or "ERROR"
    worker_handlers.WorkerHandler.register_environment(python_urns.SUBPROCESS_SDK, bytes)(
        _WatchedHandler
    )
    _listeners[job] = tell
    before = threading.excepthook

    def quiet(ended: Any) -> None:
        if ended.thread is None or ended.thread.name not in _READERS:
            before(ended)

    threading.excepthook = quiet
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_is_news)
    try:
        provided = beam_provision_api_pb2.ProvisionInfo(pipeline_options=_as_struct(options))
        yield fn_runner.FnApiRunner(provision_info=fn_runner.ExtendedProvisionInfo(provided))
    finally:
        threading.excepthook = before
        for name in _LOGGERS:
            logging.getLogger(name).removeFilter(_is_news)
        del _listeners[job]


def _is_news(record: logging.LogRecord) -> bool:
    """Whether a log says more than that the other end of a connection is gone."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, grpc.RpcError)
