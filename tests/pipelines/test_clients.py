"""Calls of Beam's S3 filesystem share a client, until something that it was made from changes."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest
from apache_beam.io.aws.s3io import S3IO
from apache_beam.options.pipeline_options import PipelineOptions

import pipelines.files.storage  # noqa: F401 - it is what lets them share

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HERE = "--s3_endpoint_url=http://127.0.0.1:1"
GIVEN = ("--s3_access_key_id=given", "--s3_secret_access_key=secret")


@pytest.fixture
def keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that keys are read from."""
    for name in [*os.environ]:
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    write_keys(tmp_path / "credentials", "key1")
    return tmp_path / "credentials"


def write_keys(path: Path, key: str) -> None:
    path.write_text(f"[default]\naws_access_key_id = {key}\naws_secret_access_key = secret\n")


def client(*options: str) -> Any:
    """The client of boto3 that a call of Beam's filesystem has."""
    return S3IO(options=PipelineOptions([HERE, *options])).client.client


def key_of(made: Any) -> str:
    return str(made._request_signer._credentials.access_key)  # boto3 tells it nowhere else


def test_calls_share_a_client(keys: Path) -> None:
    together = threading.Barrier(8)

    def at_once(_: int) -> Any:
        together.wait()
        return client()

    with ThreadPoolExecutor(8) as pool:
        first, *others = pool.map(at_once, range(8))
    assert all(one is first for one in others)
    assert client() is first
    assert first.meta.endpoint_url == HERE.partition("=")[2]
    assert key_of(first) == "key1"


def test_other_settings_have_another(keys: Path) -> None:
    first = client()
    given = client(*GIVEN)
    assert key_of(given) == "given"
    assert client(*GIVEN) is given is not first
    elsewhere = S3IO(options=PipelineOptions(["--s3_endpoint_url=http://127.0.0.1:2"]))
    assert elsewhere.client.client.meta.endpoint_url == "http://127.0.0.1:2"
    assert client() is first


def test_keys_that_are_written_anew_are_used(keys: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert key_of(client()) == "key1"
    write_keys(keys, "key2")
    assert key_of(client()) == "key2"
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key3")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    assert key_of(client()) == "key3"


def test_another_way_to_the_store_is_used(keys: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = client()
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:3")
    assert client() is not first


def test_a_client_without_keys_is_not_kept(keys: Path) -> None:
    """Where a service that gives keys does not answer once, it may the next time."""
    keys.unlink()
    assert client() is not client()


def test_a_client_that_cannot_be_made_is_tried_again(keys: Path) -> None:
    for _ in range(2):
        with pytest.raises(ValueError, match="Invalid endpoint: nowhere"):
            S3IO(options=PipelineOptions(["--s3_endpoint_url=nowhere"]))
    assert client() is client()


def test_a_forked_process_has_its_own(keys: Path) -> None:
    first = client()
    if (child := os.fork()) == 0:
        os._exit(client() is first)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert client() is first


@pytest.fixture
def busy() -> Iterator[tuple[str, list[str]]]:
    """A server that has no time for anybody: its address, and what it was asked."""
    asked: list[str] = []

    class Busy(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            asked.append(self.path)
            self.send_response(503)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Busy) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()
        thread.join()


def test_each_call_may_be_tried_again(
    keys: Path, busy: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As often as the first: boto3's other modes have an allowance of 500 for all of a client."""
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "2")
    address, asked = busy
    options = PipelineOptions([f"--s3_endpoint_url={address}", "--s3_region_name=us-east-1"])

    def call(number: int) -> None:
        with pytest.raises(Exception, match="503"):
            S3IO(options=options).client.client.head_object(Bucket="b", Key=str(number))

    with ThreadPoolExecutor(60) as pool:
        list(pool.map(call, range(60)))
    tries = [sum(path.endswith(f"/b/{number}") for path in asked) for number in range(60)]
    assert set(tries) == {2}
