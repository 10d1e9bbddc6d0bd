"""A worker pool as Beam's ``worker_pool_main``, for several TaskManagers of this machine only.

``python pool.py PORT [BOOT]``: workers are ``python`` of the path, or the program BOOT.
"""

from __future__ import annotations

import sys
import threading
from typing import Any

import grpc
from apache_beam.portability.api import beam_fn_api_pb2, beam_fn_api_pb2_grpc
from apache_beam.runners.worker.worker_pool_main import BeamFnExternalWorkerPoolServicer
from apache_beam.utils import thread_pool_executor


class Pool(BeamFnExternalWorkerPoolServicer):  # type: ignore[misc]  # Beam has no types
    """Starts workers, and lets them end by themselves when who asked for them hangs up.

    Beam's own is for one TaskManager. It knows workers by numbers that each TaskManager, and each
    of its jobs, counts from 1: asked to stop the worker of one, it may kill that of another, which
    then waits for it for ever.
    """

    def StopWorker(self, _request: Any, _context: Any) -> Any:  # noqa: N802 - the name of the call
        """Leave it alone."""
        return beam_fn_api_pb2.StopWorkerResponse()


def main() -> None:
    """Serve until the process is ended."""
    port, *boot = sys.argv[1:]
    pool = Pool(
        use_process=True,
        container_executable=boot[0] if boot else None,
        data_buffer_time_limit_ms=-1,  # as Beam's: data is sent by size alone
    )
    # Pings of idle workers are no abuse; as in Beam.
    pings = [("grpc.http2.max_pings_without_data", 0), ("grpc.http2.max_ping_strikes", 0)]
    server = grpc.server(thread_pool_executor.shared_unbounded_instance(), options=pings)
    server.add_insecure_port(f"127.0.0.1:{port}")
    beam_fn_api_pb2_grpc.add_BeamFnExternalWorkerPoolServicer_to_server(pool, server)
    server.start()
    threading.Event().wait()


if __name__ == "__main__":
    main()
