"""A store that cannot be asked ends a command soon, with one error that names it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.cli.process import bpe
from tests.pipelines.answers import Answer, answering

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KEYS = ("access_key=key", "secret_key=secret", "region=here")
NOBODY = "endpoint_override=http://127.0.0.1:9"
HERE = "endpoint_override=http://{server}"


@pytest.fixture
def denials() -> list[int]:
    """The statuses of a store's answers so far, after the one that it gives to all."""
    return [403]


@pytest.fixture
def server(denials: list[int]) -> Iterator[str]:
    """HOST:PORT of a store that is busy, or does not take the keys."""

    def deny(*_: object) -> Answer:
        denials.append(denials[0])
        return denials[0], {"x-ms-error-code": "AuthenticationFailed"}, b""

    with answering(deny) as server:
        yield server


def error_of(
    tmp_path: Path, *options: str, scheme: str = "s3", attempts: str = "2", status: int = 1
) -> str:
    """The one error of a command that is to write to a store."""
    (tmp_path / "a.txt").write_text("a rose is a rose")
    output = f"{scheme}://bucket/counts"
    done = bpe(
        *("count", "--input", tmp_path / "a.txt", "--output", output, "--quiet"),
        *(f"--storage-option={one}" for one in options),
        status=status,
        seconds=100,
        AWS_EC2_METADATA_DISABLED="true",
        AWS_SHARED_CREDENTIALS_FILE=str(tmp_path / "none"),
        AWS_CONFIG_FILE=str(tmp_path / "none"),
        AWS_MAX_ATTEMPTS=attempts,
    )
    (line,) = done.stderr.splitlines()
    return line


@pytest.mark.parametrize(
    ("scheme", "options", "said"),
    [
        (
            "s3",
            (NOBODY, *KEYS),
            r"Could not connect to server.*\b9\b.*correct --storage-option endpoint_override=URL",
        ),
        ("s3", ("endpoint_override=https://{server}", *KEYS), "SSL"),
        ("s3a", ("endpoint_override=storage", *KEYS), "Could not resolve host: storage"),
        ("s3", (HERE,), ""),  # nothing signs
        ("s3", (HERE, *KEYS), r"see that there are .*AWS_ACCESS_KEY_ID"),
        (
            "gs",
            ("endpoint_override={server}", "scheme=http", "anonymous=true"),
            r"see that there are .*GOOGLE_APPLICATION_CREDENTIALS",
        ),
        (
            "abfs",
            (
                *("account_name=a", "account_key=a2V5"),
                *("blob_storage_authority={server}", "blob_storage_scheme=http"),
                *("dfs_storage_authority={server}", "dfs_storage_scheme=http"),
            ),
            r"see that there are .*AZURE_STORAGE_KEY",
        ),
    ],
)
def test_a_store_that_does_not_answer_is_named(
    tmp_path: Path, server: str, scheme: str, options: tuple[str, ...], said: str
) -> None:
    line = error_of(tmp_path, *(one.format(server=server) for one in options), scheme=scheme)
    assert re.search(f" {scheme}://bucket/counts: cannot .*{said}", line)


def test_a_request_is_sent_as_often_as_the_environment_says(
    tmp_path: Path, server: str, denials: list[int]
) -> None:
    times = []
    for attempts in ("1", "3"):
        denials[:] = [503]
        line = error_of(tmp_path, HERE.format(server=server), *KEYS, attempts=attempts)
        assert "s3://bucket" in line
        times.append(len(denials) - 1)
    assert times[1] == 3 * times[0] > 0


@pytest.mark.parametrize("said", ["0", "many", "10000"])
def test_attempts_that_are_no_number(tmp_path: Path, said: str) -> None:
    line = error_of(tmp_path, NOBODY, *KEYS, attempts=said, status=2)
    assert f"AWS_MAX_ATTEMPTS={said} is not a number from 1 to 9999" in line
