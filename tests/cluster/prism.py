"""Prism, Beam's own runner, as a process of its own."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from tests.cluster import cache
from tests.cluster.processes import HOST, Program, free_ports

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextlib.contextmanager
def started(folder: Path) -> Iterator[tuple[Program, str]]:
    """Start it, and wait until it takes jobs; it and the endpoint of jobs."""
    (port,) = free_ports(1)
    command = [str(cache.prism()), f"-job_port={port}", "-serve_http=false"]
    with Program("prism", command, folder=folder) as program:
        yield program.wait_for(port), f"{HOST}:{port}"
