"""A write that fails leaves what was there: on a disk that loses power, on a store that says no."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from pipelines import storage
from pipelines.errors import OutputError
from tests.pipelines import test_object_stores
from tests.pipelines.answers import Answer, answering

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from http.server import BaseHTTPRequestHandler
    from pathlib import Path

BEGUN = b"<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>"
REFUSED = b"<Error><Code>InvalidPart</Code><Message>no</Message></Error>"

use = test_object_stores.use


@pytest.fixture
def asked(use: Callable[[list[str]], None]) -> Iterator[list[str]]:
    """The requests to a store: as much of S3 as an upload needs, whose second part it refuses."""
    requests: list[str] = []

    def answer(request: BaseHTTPRequestHandler, _: bytes) -> Answer:
        requests.append(request.requestline)
        refused = "partNumber=2" in request.path
        return 400 if refused else 200, {"ETag": '"1"'}, REFUSED if refused else BEGUN

    with answering(answer) as server:
        keys = ("access_key=a", "secret_key=b", "region=us-east-1")
        use([f"endpoint_override=http://{server}", *keys])
        yield requests


def test_a_failed_upload_publishes_nothing(asked: list[str]) -> None:
    with pytest.raises(OutputError, match=r"s3://bucket/old\.bin: cannot write"):
        storage.write("s3://bucket/old.bin", bytes(40 << 20))
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
