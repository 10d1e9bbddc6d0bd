"""An S3 server of this machine (moto's), and what it was asked for."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import boto3

from pipelines.output.names import SPLITS, TIMINGS
from tests.cluster.processes import HOST, Program, free_ports
from tests.pipelines.corpora import tree, without_times

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BUCKET = "corpora"


@dataclass(frozen=True)
class Store:
    """A server, and what it was asked for so far."""

    port: int
    log: Path
    client: Any

    @property
    def options(self) -> tuple[str, ...]:
        """The options with which pyarrow finds it."""
        return (
            f"endpoint_override=http://{HOST}:{self.port}",
            "access_key=key",
            "secret_key=secret",
            "region=us-east-1",
        )

    @property
    def flags(self) -> tuple[str, ...]:
        """The same on the command line."""
        return tuple(f"--storage-option={option}" for option in self.options)

    def tree(self, prefix: str) -> dict[str, bytes]:
        """Every object below ``prefix``, by its name there."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
        keys = [item["Key"] for page in pages for item in page.get("Contents", ())]
        return {
            key.removeprefix(prefix): without_times(
                key, self.client.get_object(Bucket=BUCKET, Key=key)["Body"].read()
            )
            for key in keys
            if not key.endswith((TIMINGS, SPLITS, "/"))  # what pyarrow leaves for an empty folder
        }

    def put(self, folder: Path, prefix: str) -> None:
        for name, data in tree(folder).items():
            self.client.put_object(Bucket=BUCKET, Key=f"{prefix}{name}", Body=data)

    def unfinished(self) -> list[dict[str, str]]:
        """The uploads that were begun and have not come to their end."""
        listed = self.client.list_multipart_uploads(Bucket=BUCKET)
        return list(listed.get("Uploads", ()))

    def asked(self, *, since: int = 0) -> str:
        """The requests so far, a line each; those after the first ``since`` bytes of the log."""
        return self.log.read_bytes()[since:].decode("utf-8", "replace")


@contextlib.contextmanager
def start_store(folder: Path) -> Iterator[Store]:
    """A server with one bucket, which is gone when the block ends; its log is in ``folder``."""
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "moto.server", "-H", HOST, "-p", str(port)]
    with Program("store", command, folder=folder) as server:
        server.wait_for(port)
        client = boto3.client(
            "s3",
            endpoint_url=f"http://{HOST}:{port}",
            aws_access_key_id="key",
            aws_secret_access_key="secret",
            region_name="us-east-1",
        )
        client.create_bucket(Bucket=BUCKET)
        yield Store(port, server.log, client)
