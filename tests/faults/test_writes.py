"""A write that fails leaves what was there: on a disk that loses power, on a store that says no."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from pipelines import object_stores, storage
from pipelines.errors import OutputError
from pipelines.object_stores import StorageOptions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MEBIBYTE = 1 << 20
BEGUN = b"<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>"
REFUSED = b"<Error><Code>InvalidPart</Code><Message>no</Message></Error>"


class UploadsInParts(BaseHTTPRequestHandler):
    """As much of S3 as an upload in parts needs, which refuses the second part.

    Attributes:
        asked: the requests so far.
    """

    protocol_version = "HTTP/1.1"
    asked: list[str]

    def answer(self) -> None:
        self.asked.append(self.requestline)
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        refused = "partNumber=2" in self.path
        body = REFUSED if refused else BEGUN
        self.send_response(400 if refused else 200)
        self.send_header("ETag", '"1"')
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_POST = do_PUT = do_DELETE = do_HEAD = answer  # noqa: N815 - names of http.server

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def asked() -> Iterator[list[str]]:
    """The requests to a store that refuses the second part of an upload."""
    UploadsInParts.asked = []
    before = object_stores.options()
    with ThreadingHTTPServer(("127.0.0.1", 0), UploadsInParts) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        endpoint = f"endpoint_override=http://127.0.0.1:{server.server_port}"
        keys = ("access_key=a", "secret_key=b", "region=us-east-1")
        object_stores.use_options(StorageOptions.parse((endpoint, *keys)))
        yield UploadsInParts.asked
        object_stores.use_options(before)
        server.shutdown()


def test_a_failed_upload_publishes_nothing(asked: list[str]) -> None:
    with pytest.raises(OutputError, match=r"s3://bucket/old\.bin: cannot write"):
        storage.write("s3://bucket/old.bin", bytes(40 * MEBIBYTE))
    assert any("partNumber=1" in line for line in asked)
    assert not [line for line in asked if re.match(r"POST \S*uploadId=", line)]  # completes one
    assert not [line for line in asked if line.startswith("PUT") and "partNumber" not in line]


@pytest.mark.skipif(shutil.which("strace") is None, reason="no strace here: apt-get install strace")
def test_a_file_reaches_the_disk_before_its_name_does(tmp_path: Path) -> None:
    """As a power cut would have it: contents, then the name, then the folder with the name."""
    program = f"from pipelines import storage; storage.write({str(tmp_path / 'a')!r}, b'new')"
    log = tmp_path / "calls"
    calls = "trace=write,fsync,fdatasync,rename,renameat,renameat2"
    command = ["strace", "-f", "-y", "-e", calls, "-o", str(log)]
    subprocess.run([*command, sys.executable, "-c", program], check=True)
    made = [
        re.sub(r"^\d+ +(\w+)\(.*", r"\1", line)
        for line in log.read_text().splitlines()
        if str(tmp_path) in line
    ]
    assert [re.sub(r"rename.*", "rename", call) for call in made] == [
        *("write", "fsync", "rename", "fsync")
    ]
