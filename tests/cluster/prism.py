"""Prism, Beam's own runner, as a process of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.cluster import cache
from tests.cluster.processes import HOST, Program, free_ports

if TYPE_CHECKING:
    from pathlib import Path


def start(folder: Path) -> tuple[Program, str]:
    """Start it, and wait until it takes jobs; returns it and the endpoint of jobs."""
    (port,) = free_ports(1)
    command = [str(cache.prism()), f"-job_port={port}", "-serve_http=false"]
    program = Program("prism", command, folder=folder)
    try:
        program.wait_for(port)
    except BaseException:
        program.stop()
        raise
    return program, f"{HOST}:{port}"
