"""One client of a store for a process: Beam's S3 filesystem makes one for each call.

Each of them reads boto3's descriptions of the service and sets up TLS: 0.2 s of CPU, more than most
of what it is then asked for, and no connection is used twice.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

# As many as threads may ask at once; one is made only when all others are in use.
_CONNECTIONS = 256
# Where keys may come from, and each file's place unless the environment names another.
_FILES = {
    "AWS_SHARED_CREDENTIALS_FILE": "~/.aws/credentials",
    "AWS_CONFIG_FILE": "~/.aws/config",
}


def share_s3_clients() -> None:
    """Let Beam's S3 filesystem use one client of boto3 again and again, from any thread.

    Other settings, another environment, and keys that were written to a file anew have a client of
    their own: what a new client would see is seen. Without boto3 nothing is done.
    """
    try:
        from apache_beam.io.aws.clients.s3 import boto3_client  # noqa: PLC0415 - see above
    except ImportError:
        return
    made = boto3_client.boto3
    if made is not None and not isinstance(made, SimpleNamespace):
        # Beam has no place to hand a client in: its filesystem is found by its scheme, alone.
        boto3_client.boto3 = SimpleNamespace(session=SimpleNamespace(Session=_Session))


class _Session:
    """What Beam uses of ``boto3.session.Session``."""

    def client(self, **settings: Any) -> Any:
        return _client(tuple(sorted(settings.items())), _surroundings())


@functools.lru_cache(maxsize=8)  # those of keys that are no longer valid go
def _client(settings: tuple[tuple[str, Any], ...], surroundings: object) -> Any:
    del surroundings  # boto3 reads them
    # Packages of the extra s3.
    import boto3  # noqa: PLC0415
    from botocore.config import Config  # noqa: PLC0415

    config = Config(max_pool_connections=_CONNECTIONS)
    return boto3.session.Session().client(config=config, **dict(settings))


def _surroundings() -> tuple[object, ...]:
    """What boto3 looks at for keys, a region and an address, beside the settings."""
    told = sorted(item for item in os.environ.items() if item[0].startswith("AWS_"))
    return (*told, *map(_version, (os.environ.get(name, at) for name, at in _FILES.items())))


def _version(file: str) -> tuple[int, int] | None:
    try:
        found = Path(file).expanduser().stat()
    except (OSError, RuntimeError):  # it is not there; there is no home
        return None
    return found.st_mtime_ns, found.st_size
