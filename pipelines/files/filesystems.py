"""Which filesystem of Beam a path is of, and what that filesystem needs."""

from __future__ import annotations

import importlib.util
import os
import re
from pathlib import Path
from typing import NamedTuple

from apache_beam.io.filesystem import FileSystem
from apache_beam.io.filesystems import FileSystems

from pipelines.errors import ConfigError
from pipelines.files.clients import share_s3_clients
from pipelines.files.endpoints import check_s3

share_s3_clients()  # in each process that has our package, workers too


class _Extra(NamedTuple):
    """What a filesystem of Beam needs: our extra, Beam's, and a module that comes with them."""

    name: str
    of_beam: str
    module: str


# Beam knows some of these schemes without the packages, and then fails with an error of its own.
_EXTRAS = {
    "gs": _Extra("gcs", "gcp", "google.cloud.storage"),
    "s3": _Extra("s3", "aws", "boto3"),
    "azfs": _Extra("azure", "azure", "azure.storage.blob"),
    "hdfs": _Extra("hdfs", "hadoop", "hdfs"),
}


def is_local(path: str) -> bool:
    """Whether ``path`` is on a filesystem of this machine (it has no scheme)."""
    return FileSystems.get_scheme(path) is None


def has_folders(path: str) -> bool:
    """Whether the filesystem of ``path`` has folders: object stores have names with slashes."""
    return bool(FileSystems.get_filesystem(path).has_dirs())


def check_filesystem(path: str) -> None:
    """Refuse a path of a filesystem that is unknown, or cannot be used here.

    Raises:
        ConfigError: it is one; the message names the extra to install.
        JobError: no server answers where S3 is said to be.
    """
    scheme = FileSystems.get_scheme(path)
    if scheme is None:
        return
    known = _EXTRAS.get(scheme)
    if known is not None and not _is_installed(known.module):
        raise ConfigError(
            f"{path}: {scheme}:// needs packages that are not installed here: "
            f"pip install 'beam-bpe[{known.name}]' (or 'apache-beam[{known.of_beam}]')"
        )
    if all(one.scheme() != scheme for one in FileSystem.get_all_subclasses()):
        schemes = ", ".join(f"{one}://" for one in _EXTRAS)
        raise ConfigError(
            f"{path}: no filesystem is known for {scheme}://: copy the files to a local one, or to "
            f"one of {schemes}"
        )
    try:
        found = FileSystems.get_filesystem(path)
    except (ValueError, OSError) as error:
        raise ConfigError(f"{path}: {scheme}:// cannot be used: {error}") from error
    if scheme == "s3":
        check_s3(path, found._options)  # noqa: SLF001 - those that its requests are made with


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # a package that it is in
        return False


def located(directory: str) -> str:
    """``directory`` as every worker can use it: absolute where local, without a slash at the end.

    Raises:
        ConfigError: its filesystem cannot be used here, or the name holds a character that remote
            filesystems read as a pattern.
    """
    if is_local(directory):
        return os.path.normpath(Path.cwd() / directory)
    check_filesystem(directory)
    if re.search(r"[*?\[\]]", directory):
        raise ConfigError(
            f"{directory}: '*', '?', '[' and ']' are patterns to this filesystem: rename it"
        )
    return directory.rstrip("/")


def join(directory: str, *names: str) -> str:
    """The path of a name below ``directory``."""
    return str(FileSystems.join(directory, *names))


def of_client(error: Exception) -> str:
    """What the client of a store says is wrong, in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:500]


def reason(error: OSError) -> str:
    """What the system says is wrong, in one line."""
    return error.strerror or " ".join(str(error).split())
