"""Find the filesystem of `pyarrow.fs` for a URL, and make the filesystem with its options.

``s3://``, ``gs://`` and ``abfs://`` come with pyarrow; any other scheme is one of fsspec's, where
fsspec and the scheme's own package are installed. What comes with pyarrow is one line of the table
at the end. A URL is taken apart here, not by pyarrow: keys stay verbatim, whatever characters are
in them.
"""

from __future__ import annotations

import json
import os
import re
import threading
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.fs as pafs

from pipelines.errors import ConfigError, JobError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_TRIES = 6  # of a request that fails for a moment
_GCS_PATIENCE = timedelta(minutes=2)  # the client's own is fifteen
_CONNECT_SECONDS = 5.0


@dataclass(frozen=True)
class StorageOptions:
    """Options of object stores: keyword arguments of pyarrow's filesystems, or of fsspec's.

    Attributes:
        values: (scheme or "", key, value); "" is for every store of pyarrow.
    """

    values: tuple[tuple[str, str, str], ...] = ()

    @classmethod
    def parse(cls, texts: Iterable[str]) -> StorageOptions:
        """Parse texts ``KEY=VALUE`` or ``SCHEME.KEY=VALUE``; the last value of a key wins.

        Raises:
            ConfigError: a text has another form.
        """
        values = []
        for text in texts:
            match = re.fullmatch(r"(?:([a-zA-Z][-a-zA-Z0-9+]*)\.)?(\w+)=(.*)", text, re.DOTALL)
            if match is None:
                raise ConfigError(
                    f"`storage_option` {text!r} is not KEY=VALUE: for example "
                    "endpoint_override=http://localhost:9000"
                )
            values.append(((match[1] or "").lower(), match[2], match[3]))
        return cls(tuple(values))

    def of(self, scheme: str) -> dict[str, Any]:
        """Return the keyword arguments for the filesystem of a scheme."""
        kind = _KINDS.get(scheme, scheme)
        return {
            key: _value(value)
            for of, key, value in sorted(self.values, key=lambda one: one[0] != "")
            if (of == "" and scheme in _KINDS) or (of != "" and _KINDS.get(of, of) == kind)
        }


def _value(text: str) -> Any:
    """Return the value of a text: that of JSON (true, 60, 2.5, "60"), or else the text itself."""
    if text.lower() in ("true", "false"):  # pyarrow takes the text False for true
        return text.lower() == "true"
    try:
        return json.loads(text)
    except ValueError:
        return text


class _Process:
    """The options of this process, and the filesystems made so far."""

    def __init__(self) -> None:
        self.options = StorageOptions()
        self.made: dict[object, pafs.FileSystem] = {}
        self.lock = threading.Lock()
        self.forked = False

    def after_fork(self) -> None:
        """Forget the filesystems: a forked process lacks the threads of pyarrow's clients."""
        self.forked = self.forked or bool(self.made)
        self.made, self.lock = {}, threading.Lock()


_process = _Process()
os.register_at_fork(after_in_child=_process.after_fork)


def use_options(options: StorageOptions) -> None:
    """Reach all stores of this process by ``options`` from now on."""
    _process.options = options


def options() -> StorageOptions:
    """Return the options by which this process reaches stores."""
    return _process.options


class Place(NamedTuple):
    """A place in a store.

    Attributes:
        filesystem: a filesystem of pyarrow.
        path: the path in the filesystem: bucket or container, and the key.
    """

    filesystem: pafs.FileSystem
    path: str


def place(url: str) -> Place:
    """Return the place of a URL.

    Raises:
        ConfigError: the scheme cannot be used here; the message names the missing thing.
        JobError: this process was forked from one that used stores.
    """
    scheme, _, path = url.partition("://")
    scheme = scheme.lower()
    check_names(url, path.strip("/"))
    try:
        if scheme not in _STORES:
            return _of_fsspec(scheme, path)
        account = None
        if _STORES[scheme].has_accounts:
            account, path = _in_azure(scheme, path)
        filesystem = _filesystem(scheme, account)
    except JobError as error:
        raise type(error)(f"{url}: {error}") from error
    except (OSError, ValueError, TypeError, pa.ArrowException) as error:
        said = (str(error).splitlines() or [""])[0]
        raise ConfigError(
            f"{url}: {scheme}:// cannot be used with these options: {said} (of `storage_option`, "
            "SCHEME.KEY=VALUE is for one scheme alone)"
        ) from error
    if not path.strip("/").partition("/")[0]:
        raise ConfigError(f"{url} names no bucket or container: write {scheme}://BUCKET/NAME")
    return Place(filesystem, path)


def check_names(url: str, path: str) -> None:
    """Refuse a path with empty names, ``.`` or ``..``, which pyarrow cannot open in a store.

    Raises:
        ConfigError: the path has such a name.
    """
    if path and not {"", ".", ".."}.isdisjoint(path.split("/")):
        raise ConfigError(
            f"{url}: names with //, . or .. between slashes cannot be opened in a store: rename it"
        )


def _in_azure(scheme: str, path: str) -> tuple[str | None, str]:
    """Return the account of a URL of Azure, and its path from the container on.

    The forms of URLs are those of Beam, ``azfs://ACCOUNT/CONTAINER/KEY``; of Hadoop,
    ``abfs://CONTAINER@ACCOUNT.dfs.core.windows.net/KEY``; and of adlfs, ``abfs://CONTAINER/KEY``
    with the option ``account_name``.
    """
    first, _, rest = path.partition("/")
    if scheme == "azfs":
        return first, rest
    container, at, host = first.partition("@")
    if not at:
        return None, path
    named = re.fullmatch(r"([^.]+)\.(dfs|blob)\..+", host)
    if named is None:
        raise ConfigError(f"{host!r} is not ACCOUNT.dfs.core.windows.net")
    return named[1], f"{container}/{rest}"


def _filesystem(scheme: str, account: str | None) -> pafs.FileSystem:
    """Return the filesystem of a store and an account, made once for the same options.

    Raises:
        JobError: this process was forked from one that used stores.
    """
    if _process.forked:
        raise JobError(
            "this process was forked from one that used a store, and pyarrow's clients do not "
            "survive that: start processes by spawn"
        )
    key, store = (scheme, account, _process.options), _STORES[scheme]
    with _process.lock:
        if key not in _process.made:
            given = _process.options.of(scheme)
            if account is not None:
                given["account_name"] = account
            if not hasattr(pafs, store.kind):
                raise ConfigError(
                    f"this pyarrow is built without {scheme}://: install one from PyPI"
                )
            _process.made[key] = store.make(given)
        return _process.made[key]


def _gcs(given: dict[str, Any]) -> pafs.FileSystem:
    return pafs.GcsFileSystem(**{"retry_time_limit": _GCS_PATIENCE, **given})


def _azure(given: dict[str, Any]) -> pafs.FileSystem:
    account = given.pop("account_name", os.environ.get("AZURE_STORAGE_ACCOUNT"))
    if account is None:
        raise ConfigError(
            "it names no account: give `storage_option` account_name=ACCOUNT, or write "
            "abfs://CONTAINER@ACCOUNT.dfs.core.windows.net/NAME"
        )
    key = os.environ.get("AZURE_STORAGE_KEY")
    if key and not {"account_key", "sas_token", "client_id"} & given.keys():
        given["account_key"] = key
    return pafs.AzureFileSystem(account, **given)


def _s3(given: dict[str, Any]) -> pafs.FileSystem:
    environment = os.environ
    tries = environment.get("AWS_MAX_ATTEMPTS") or str(_TRIES)  # as the SDKs of AWS call it
    if not tries.isdecimal() or not 0 < int(tries) < 10_000:
        raise ConfigError(f"AWS_MAX_ATTEMPTS={tries} is not a number from 1 to 9999")
    made: dict[str, Any] = {
        "connect_timeout": _CONNECT_SECONDS,
        "retry_strategy": pafs.AwsStandardS3RetryStrategy(max_attempts=int(tries)),
    }
    if int(pa.__version__.partition(".")[0]) >= 21:
        made["allow_delayed_open"] = True  # one request for a small object, where it would be three
    endpoint = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
    if endpoint:
        made["endpoint_override"] = endpoint
    return pafs.S3FileSystem(**{**made, **given})


def _of_fsspec(scheme: str, path: str) -> Place:
    if scheme in ("file", "memory"):
        raise ConfigError(f"{scheme}:// is not a store: name a local file by its path")
    try:
        from fsspec.core import url_to_fs  # noqa: PLC0415 - the extra fsspec
        from fsspec.registry import known_implementations  # noqa: PLC0415
    except ImportError as error:
        raise ConfigError(
            f"{scheme}:// is opened by fsspec, which is not installed here: "
            "pip install fsspec and the scheme's own package"
        ) from error
    # Others write there too.
    made = {"use_listings_cache": False, **_process.options.of(scheme)}
    try:
        filesystem, at = url_to_fs(f"{scheme}://{path}", **made)
    except ImportError as error:
        needs = known_implementations.get(scheme, {}).get("err", str(error))
        raise ConfigError(
            f"{scheme}:// needs a package that is not installed here: {needs}"
        ) from error
    except ValueError as error:
        if scheme in known_implementations:
            raise
        raise ConfigError(
            f"no filesystem is known for {scheme}://: copy the files to a local one, or use s3://, "
            "gs://, abfs:// or a scheme that fsspec knows"
        ) from error
    return Place(pafs.PyFileSystem(pafs.FSSpecHandler(filesystem)), at)


_REMEDIES = (
    (("NO_SUCH_BUCKET", "bucket does not exist"), "make the bucket, or correct its name"),
    (("status 301", "PermanentRedirect"), "give `storage_option` region=REGION of the bucket"),
    (
        ("NETWORK_CONNECTION", "UNAVAILABLE", "curlCode"),
        "correct `storage_option` endpoint_override=URL, or let the store be reached from here",
    ),
)


def remedy(error: object) -> str:
    """Return the remedy for an error of a store, after a colon; empty if unknown."""
    said = str(error)
    for marks, help_ in _REMEDIES:
        if any(mark in said for mark in marks):
            return f": {help_}"
    for store in _STORES.values():
        if any(mark in said for mark in store.denials):
            return f": see that there are keys ({store.keys}) and that they allow it"
    return ""


class _Store(NamedTuple):
    """A filesystem of pyarrow.

    Attributes:
        kind: the class of the filesystem in `pyarrow.fs`.
        schemes: the schemes of URLs of the store.
        make: makes the filesystem from the options.
        keys: the places of access keys, for messages.
        denials: texts in errors about keys that are missing, wrong or not sufficient.
        has_accounts: whether URLs may name an account.
    """

    kind: str
    schemes: tuple[str, ...]
    make: Callable[[dict[str, Any]], pafs.FileSystem]
    keys: str
    denials: tuple[str, ...]
    has_accounts: bool = False


_STORES = {
    scheme: store
    for store in (
        _Store(
            kind="S3FileSystem",
            schemes=("s3", "s3a"),
            make=_s3,
            keys="AWS_ACCESS_KEY_ID, ~/.aws, `storage_option` access_key, or anonymous=true for a "
            "public bucket",
            denials=(
                *("ACCESS_DENIED", "status 403"),
                *("SIGNATURE_DOES_NOT_MATCH", "INVALID_ACCESS_KEY_ID"),
            ),
        ),
        _Store(
            kind="GcsFileSystem",
            schemes=("gs", "gcs"),
            make=_gcs,
            keys="GOOGLE_APPLICATION_CREDENTIALS, gcloud auth application-default login, or "
            "`storage_option` anonymous=true for a public bucket",
            denials=("PERMISSION_DENIED", "UNAUTHENTICATED"),
        ),
        _Store(
            kind="AzureFileSystem",
            schemes=("abfs", "abfss", "azfs", "az"),
            make=_azure,
            has_accounts=True,
            keys="AZURE_STORAGE_KEY, `storage_option` account_key or sas_token",
            denials=(
                *("AuthenticationFailed", "AuthorizationFailure"),
                "AuthorizationPermissionMismatch",
            ),
        ),
    )
    for scheme in store.schemes
}
_KINDS = {scheme: store.kind for scheme, store in _STORES.items()}
