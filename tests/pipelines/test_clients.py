"""Calls of Beam's S3 filesystem share a client, until something that it was made from changes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from apache_beam.io.aws.s3io import S3IO
from apache_beam.options.pipeline_options import PipelineOptions

import pipelines.files.storage  # noqa: F401 - it is what lets them share

if TYPE_CHECKING:
    from pathlib import Path

HERE = "--s3_endpoint_url=http://127.0.0.1:1"


@pytest.fixture
def keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that keys are read from."""
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    write_keys(tmp_path / "credentials", "first")
    return tmp_path / "credentials"


def write_keys(path: Path, key: str) -> None:
    path.write_text(f"[default]\naws_access_key_id = {key}\naws_secret_access_key = secret\n")


def client(*options: str) -> Any:
    """The client of boto3 that a call of Beam's filesystem has."""
    return S3IO(options=PipelineOptions([HERE, *options])).client.client


def key_of(made: Any) -> str:
    return str(made._request_signer._credentials.access_key)  # boto3 tells it nowhere else


def test_calls_share_a_client(keys: Path) -> None:
    first = client()
    assert client() is first
    with ThreadPoolExecutor(4) as pool:
        assert all(one is first for one in pool.map(lambda _: client(), range(20)))
    assert first.meta.endpoint_url == HERE.partition("=")[2]
    assert key_of(first) == "first"


def test_other_settings_have_another(keys: Path) -> None:
    first = client()
    given = client("--s3_access_key_id=given", "--s3_secret_access_key=secret")
    assert given is not first
    assert key_of(given) == "given"
    elsewhere = S3IO(options=PipelineOptions(["--s3_endpoint_url=http://127.0.0.1:2"]))
    assert elsewhere.client.client.meta.endpoint_url == "http://127.0.0.1:2"
    assert client() is first


def test_keys_that_are_written_anew_are_used(keys: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = client()
    write_keys(keys, "second")
    assert client() is not first
    assert key_of(client()) == "second"
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "third")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    assert key_of(client()) == "third"


def test_a_client_that_cannot_be_made_is_tried_again(keys: Path) -> None:
    for _ in range(2):
        with pytest.raises(ValueError, match="Invalid endpoint: nowhere"):
            S3IO(options=PipelineOptions(["--s3_endpoint_url=nowhere"]))
