"""A store that cannot be asked ends a command soon, with one error that names it."""

from __future__ import annotations

import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING

import pytest

from tests.cli.process import bpe

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KEYS = ("--s3_access_key_id=key", "--s3_secret_access_key=secret")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """A server that speaks HTTP, and has nothing; HOST:PORT."""
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as made:
        thread = threading.Thread(target=made.serve_forever, daemon=True)
        thread.start()
        yield f"127.0.0.1:{made.server_port}"
        made.shutdown()
        thread.join()


def error_of(tmp_path: Path, endpoint: str, *more: str) -> str:
    """The one error of a command that is to write to a store."""
    (tmp_path / "a.txt").write_text("a rose is a rose")
    job = ("count", "--input", tmp_path / "a.txt", "--output", "s3://bucket/counts", "--quiet")
    done = bpe(
        *job,
        *("--", f"--s3_endpoint_url={endpoint}", *more),
        status=1,
        seconds=100,  # Beam would go on for ten minutes
        AWS_EC2_METADATA_DISABLED="true",
        AWS_SHARED_CREDENTIALS_FILE=str(tmp_path / "none"),
        AWS_CONFIG_FILE=str(tmp_path / "none"),
    )
    (line,) = done.stderr.splitlines()
    return line


def test_nobody_listens(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # and does not listen
        endpoint = f"http://127.0.0.1:{closed.getsockname()[1]}"
        line = error_of(tmp_path, endpoint, *KEYS)
    assert f"s3://bucket: no store answers at {endpoint} (Could not connect" in line
    assert "correct -- --s3_endpoint_url=URL" in line


def test_another_protocol_is_spoken(tmp_path: Path, server: str) -> None:
    line = error_of(tmp_path, f"https://{server}", *KEYS)
    assert f"no store answers at https://{server} (SSL validation failed" in line


def test_the_address_is_none(tmp_path: Path) -> None:
    line = error_of(tmp_path, "storage", *KEYS)
    assert "s3://bucket: storage cannot be asked (Invalid endpoint: storage)" in line


def test_nothing_signs_the_requests(tmp_path: Path, server: str) -> None:
    line = error_of(tmp_path, f"http://{server}")
    assert f"http://{server} cannot be asked (Unable to locate credentials)" in line
    assert "--s3_access_key_id" in line
