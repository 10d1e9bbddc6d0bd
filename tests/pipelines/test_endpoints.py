"""A store that cannot be asked ends a command soon, with one error that names it."""

from __future__ import annotations

import re
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING

import pytest

from tests.cli.process import bpe

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KEYS = ("access_key=key", "secret_key=secret")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """A server that speaks HTTP, and has nothing; HOST:PORT."""
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as made:
        thread = threading.Thread(target=made.serve_forever, daemon=True)
        thread.start()
        yield f"127.0.0.1:{made.server_port}"
        made.shutdown()
        thread.join()


def error_of(
    tmp_path: Path,
    endpoint: str,
    *more: str,
    scheme: str = "s3",
    attempts: str = "2",
    status: int = 1,
) -> str:
    """The one error of a command that is to write to a store."""
    (tmp_path / "a.txt").write_text("a rose is a rose")
    output = f"{scheme}://bucket/counts"
    job = ("count", "--input", tmp_path / "a.txt", "--output", output, "--quiet")
    done = bpe(
        *job,
        *(f"--storage-option={one}" for one in (f"endpoint_override={endpoint}", *more)),
        status=status,
        seconds=100,
        AWS_EC2_METADATA_DISABLED="true",
        AWS_SHARED_CREDENTIALS_FILE=str(tmp_path / "none"),
        AWS_CONFIG_FILE=str(tmp_path / "none"),
        AWS_MAX_ATTEMPTS=attempts,
    )
    (line,) = done.stderr.splitlines()
    return line


NOBODY = r"Could not connect to server.*\b9\b.*correct --storage-option endpoint_override=URL"


@pytest.mark.parametrize(
    ("endpoint", "options", "scheme", "said"),
    [
        pytest.param("http://127.0.0.1:9", KEYS, "s3", NOBODY, id="nobody listens"),
        pytest.param("https://{server}", KEYS, "s3", "SSL", id="another protocol"),
        pytest.param("storage", KEYS, "s3a", "Could not resolve host: storage", id="no address"),
        pytest.param("http://{server}", (), "s3", "", id="nothing signs"),
    ],
)
def test_a_store_that_does_not_answer_is_named(
    tmp_path: Path, server: str, endpoint: str, options: tuple[str, ...], scheme: str, said: str
) -> None:
    line = error_of(tmp_path, endpoint.format(server=server), *options, scheme=scheme)
    assert re.search(f" {scheme}://bucket/counts: cannot .*{said}", line)


def test_a_request_is_sent_as_often_as_the_environment_says(tmp_path: Path) -> None:
    asked: list[str] = []

    class Busy(BaseHTTPRequestHandler):
        def parse_request(self) -> bool:
            asked.append(self.path if super().parse_request() else "")
            self.send_error(503)
            return False

    times = {}
    with HTTPServer(("127.0.0.1", 0), Busy) as busy:
        thread = threading.Thread(target=busy.serve_forever, daemon=True)
        thread.start()
        for attempts in (1, 3):
            asked.clear()
            endpoint = f"http://127.0.0.1:{busy.server_port}"
            line = error_of(tmp_path, endpoint, *KEYS, attempts=str(attempts))
            assert "s3://bucket" in line
            times[attempts] = len(asked)
        busy.shutdown()
        thread.join()
    assert times[1] > 0
    assert times[3] == 3 * times[1]


@pytest.mark.parametrize("said", ["0", "many", "10000"])
def test_attempts_that_are_no_number(tmp_path: Path, said: str) -> None:
    line = error_of(tmp_path, "http://127.0.0.1:9", *KEYS, attempts=said, status=2)
    assert f"AWS_MAX_ATTEMPTS={said} is not a number from 1 to 9999" in line
