"""Settings of where a job runs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal

from pipelines.option import Natural, Settings, advanced, option

Staging = Literal["auto", "none"]
# That shells complete; any that Beam knows will do.
RUNNERS = (
    *("DirectRunner", "DataflowRunner", "FlinkRunner"),
    *("PortableRunner", "PrismRunner", "SparkRunner"),
)


@dataclass(frozen=True, kw_only=True)
class Execution(Settings, group="Where it runs"):
    """The runner that does the work, and the number of its workers.

    Attributes:
        beam_args: Options of Beam.
        runner: Beam runner. DirectRunner runs in this process; the others take their options, such
            as --job_endpoint=HOST:PORT, after --.
        workers: Threads of the local runner.
        stage: How remote workers get this package. auto: through Beam's options (--extra_package,
            --setup_file or your own image); none: it is already installed there.
        shared_paths: Local directory that remote workers see under the same path (NFS, a
            mounted volume); repeatable.
        storage_options: Option for stores, an argument of pyarrow's filesystem, such as
            endpoint_override=URL or region=NAME; repeatable. SCHEME.KEY=VALUE is for one scheme
            only; fsspec schemes need this form.
    """

    runner: str = option("DirectRunner", suggestions=RUNNERS, metavar="NAME")
    workers: Natural = option(0, maximum=1_000, default_is="one per core")
    beam_args: tuple[str, ...] = option((), joined=True)
    stage: Staging = advanced("auto", metavar="HOW")
    shared_paths: tuple[str, ...] = advanced((), name="shared_path", metavar="DIR")

    storage_options: tuple[str, ...] = advanced((), name="storage_option", metavar="KEY=VALUE")

    @property
    def worker_count(self) -> int:
        """Return the number of local workers; by default, of cores that this process may use."""
        return self.workers or cores()


def cores() -> int:
    """Return the number of cores that this process may use; if unknown, of all cores."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
