"""One client of a store for a process: Beam's S3 filesystem makes one for each call.

Each of them reads boto3's descriptions of the service and sets up TLS: 0.2 s of CPU, more than most
of what it is then asked for, and no connection is used twice.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

# As many as threads may ask at once; one is made only when all others are in use.
_CONNECTIONS = 256
# Clients that are kept: those of keys that are no longer valid go.
_KEPT = 8
# Where keys may come from, and each file's place unless the environment names another.
_FILES = {
    "AWS_SHARED_CREDENTIALS_FILE": "~/.aws/credentials",
    "AWS_CONFIG_FILE": "~/.aws/config",
}
_OF_CONNECTIONS = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "REQUESTS_CA_BUNDLE")


def share_s3_clients() -> None:
    """Let Beam's S3 filesystem use one client of boto3 again and again, from any thread.

    Other settings, other variables of the environment that boto3 reads, and files of keys that were
    written anew have a client of their own. Without boto3 nothing is done.
    """
    try:
        from apache_beam.io.aws.clients.s3 import boto3_client  # noqa: PLC0415 - see above
    except ImportError:
        return
    made = boto3_client.boto3
    if made is not None and not isinstance(made, SimpleNamespace):
        # Beam has no place to hand a client in: its filesystem is found by its scheme, alone.
        boto3_client.boto3 = SimpleNamespace(session=SimpleNamespace(Session=_Clients))


class _Clients:
    """What Beam uses of ``boto3.session.Session``."""

    _kept: ClassVar[dict[object, Any]] = {}
    _lock: ClassVar = threading.Lock()  # of many threads that come first, one makes it

    def client(self, **settings: Any) -> Any:
        of = (tuple(sorted(settings.items())), _surroundings())
        with _Clients._lock:
            found = _Clients._kept.get(of)
            if found is None:
                found, signs = _made(settings)
                if signs:  # keys that were not found now may be next time
                    _Clients._kept[of] = found
                    for oldest in list(_Clients._kept)[:-_KEPT]:
                        del _Clients._kept[oldest]
        return found

    @classmethod
    def forget(cls) -> None:
        """A forked process makes its own: a connection is no use to two."""
        cls._kept = {}
        cls._lock = threading.Lock()


os.register_at_fork(after_in_child=_Clients.forget)


def _made(settings: dict[str, Any]) -> tuple[Any, bool]:
    """A client, and whether it has keys to sign requests with."""
    # Packages of the extra s3.
    import boto3  # noqa: PLC0415
    import botocore.session  # noqa: PLC0415
    from botocore.config import Config  # noqa: PLC0415

    read = botocore.session.get_session()
    config = Config(max_pool_connections=_CONNECTIONS)
    if not (os.environ.get("AWS_RETRY_MODE") or read.get_scoped_config().get("retry_mode")):
        # In other modes a client may retry so often in all: meant for one caller, not for a job.
        config = config.merge(Config(retries={"mode": "legacy"}))
    session = boto3.session.Session(botocore_session=read)
    client = session.client(config=config, **settings)
    signs = settings.get("aws_access_key_id") or session.get_credentials()
    return client, bool(signs)


def _surroundings() -> tuple[object, ...]:
    """What boto3 looks at for keys, a region and ways to an address, beside the settings."""
    told = sorted(
        item
        for item in os.environ.items()
        if item[0].startswith("AWS_") or item[0].upper() in _OF_CONNECTIONS
    )
    return (*told, *(_version(os.environ.get(name, at)) for name, at in _FILES.items()))


def _version(file: str) -> tuple[int, int] | None:
    try:
        found = Path(file).expanduser().stat()
    except (OSError, RuntimeError):  # it is not there; there is no home
        return None
    return found.st_mtime_ns, found.st_size
