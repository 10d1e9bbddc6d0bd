"""Check a job before its submission to a runner."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING

from apache_beam.options.pipeline_options import (
    PortableOptions,
    PrismRunnerOptions,
    SetupOptions,
)

from pipelines import storage
from pipelines.errors import ConfigError, JobError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from apache_beam.options.pipeline_options import PipelineOptions

    from pipelines.settings import Execution, Staging
    from pipelines.submission.workers import Workers

_PACKAGE = re.compile(r"\s*beam[-_]bpe(?![a-z0-9])", re.IGNORECASE)
_REACH_SECONDS = 15
# Beam ends the streams that tell it of a job after as long as it waits for the job server to
# answer, five minutes by default, and takes the job for failed.
_STREAM_SECONDS = 365 * 24 * 3600


def check_ready(beam_options: PipelineOptions, execution: Execution, workers: Workers) -> None:
    """Complete Beam's options for the runner, and check the job server and the package.

    Raises:
        ConfigError, JobError: the runner lacks something; the message says how to get it.
    """
    if workers.kind == "local":
        return
    if not beam_options.view_as(PortableOptions).job_endpoint:
        _find_engine(beam_options, workers.runner)
    reach_job_server(beam_options, workers)
    check_package(beam_options, workers, how=execution.stage)


def _find_engine(beam_options: PipelineOptions, runner: str) -> None:
    """Find the program from which Beam starts a runner on this machine."""
    if runner == "PortableRunner":
        raise ConfigError(
            "`runner` PortableRunner needs the address of a job server: "
            "`beam_args` --job_endpoint=HOST:PORT (docs/running.md)"
        )
    prism = beam_options.view_as(PrismRunnerOptions)
    if runner == "PrismRunner" and not prism.prism_location:
        prism.prism_location = shutil.which("prism")
        if prism.prism_location is None:
            raise ConfigError(
                "`runner` PrismRunner: no program prism on the PATH: build it (docs/running.md), "
                "or name it with `beam_args` --prism_location=FILE, or a running one with "
                "`beam_args` --job_endpoint=HOST:PORT"
            )


def reach_job_server(beam_options: PipelineOptions, workers: Workers) -> None:
    """Check that the job server answers, and let Beam's streams last as long as the job.

    Raises:
        JobError: the address is malformed, or no job server answers.
    """
    portable = beam_options.view_as(PortableOptions)
    endpoint = portable.job_endpoint
    given = int(portable.job_server_timeout or 0)
    portable.job_server_timeout = max(given, _STREAM_SECONDS)
    if not endpoint or endpoint == "embed":
        return None
    host, _, port = str(endpoint).rpartition(":")
    if not host or not port.isdigit():
        raise JobError(f"--job_endpoint={endpoint} is not HOST:PORT")
    patience = min(given or _REACH_SECONDS, _REACH_SECONDS)
    until = time.monotonic() + patience
    while True:
        try:
            return socket.create_connection((host.strip("[]"), int(port)), patience).close()
        except OSError as error:
            if time.monotonic() > until:
                raise JobError(
                    f"no job server answers at {endpoint} ({error.strerror or error}): start it, "
                    "or correct --job_endpoint (docs/running.md says how for "
                    f"{workers.runner})"
                ) from error
        time.sleep(0.5)


def check_paths(
    workers: Workers, *, reads: Iterable[str], writes: str, shared: Iterable[str] = ()
) -> str:
    """Refuse files of this machine that workers elsewhere cannot see.

    Args:
        workers: the place of the workers.
        reads: the files or directories that the workers read.
        writes: the output directory.
        shared: local directories that the workers see under the same names.

    Returns:
        A note for the user if the check cannot be sure; else empty.

    Raises:
        ConfigError: the workers cannot see a file; the message names the file.
    """
    if workers.here:
        return ""
    mounted = [os.path.realpath(folder) for folder in shared]
    uses = [*((path, "is read") for path in reads), (writes, "is written")]
    hidden = [(path, use) for path, use in uses if not _is_seen(path, mounted)]
    if not hidden:
        return ""
    path, use = hidden[0]
    more = f" (and {len(hidden) - 1} more)" if len(hidden) > 1 else ""
    if workers.near and workers.kind in ("process", "external"):
        return (
            f"{path}{more} is on this machine: the {workers} are assumed to be on it too (if they "
            "see it over a network, give --shared-path)"
        )
    why = "they run in containers" if workers.kind == "docker" else "they are other machines"
    raise ConfigError(
        f"{path}{more} {use} by the {workers}, but is on this machine: {why}. Put it on a store "
        "(s3://, gs://, abfs://), or name the directory with `shared_paths` if they see it under "
        "the same path (NFS, a mounted volume)"
    )


def _is_seen(path: str, mounted: list[str]) -> bool:
    if not storage.is_local(path):
        return True
    place = os.path.realpath(path)
    return any(place == folder or place.startswith(f"{folder.rstrip('/')}/") for folder in mounted)


def check_package(beam_options: PipelineOptions, workers: Workers, *, how: Staging) -> None:
    """Refuse a job whose workers lack this package, as far as the options tell.

    Raises:
        ConfigError: the workers lack the package; the message says how to send the package.
    """
    setup = beam_options.view_as(SetupOptions)
    packages = [path.rpartition("/")[2] for path in setup.extra_packages or ()]
    required: list[str] = []
    if setup.requirements_file:
        with contextlib.suppress(OSError):  # Beam says what is wrong with it
            required = Path(setup.requirements_file).read_text(errors="replace").splitlines()
    brought = any(_PACKAGE.match(text) for text in (*packages, *required))
    has_it = workers.here or workers.has_own_image or setup.setup_file or brought
    if how == "auto" and not has_it:
        raise ConfigError(
            f"the {workers} lack beam-bpe: build a wheel in a checkout (pip wheel --no-deps "
            "--wheel-dir dist .) and send it with Beam's option --extra_package=dist/FILE.whl; or "
            "name an image that has it (--sdk_container_image); or use `stage` none if it is "
            "installed there"
        )
