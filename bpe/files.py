"""Atomic writes, checksums inside JSON files, and reading files of many values."""

from __future__ import annotations

import gc
import hashlib
import json
import os
import re
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any


@contextmanager
def uncollected() -> Iterator[None]:
    """Return a context, or a decorator, in which Python looks for no garbage.

    What a large file holds stays while it is read, and is looked through again and again else.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def replacing(path: str | Path, *, durable: bool = True) -> Iterator[IO[bytes]]:
    """Open a file that appears under its name, or replaces another, when the block ends.

    Until then it is next to it, under a hidden name of its own, which `final_name` undoes; it is
    removed if the block raises. Contents reach the disk before the name does, and the name before
    this returns, so a power cut leaves the old file or the new one.

    Args:
        path: the path of the file.
        durable: whether to wait for the disk.
    """
    final = Path(path)
    final.parent.mkdir(parents=True, exist_ok=True)
    temporary = final.with_name(f".{final.name}.{uuid.uuid4().hex}.tmp")
    file = temporary.open("xb")
    try:
        yield file
        file.flush()
        if durable:
            os.fsync(file.fileno())
        file.close()
        temporary.replace(final)
        if durable:
            _sync_directory(final.parent)
    except BaseException:
        with suppress(OSError):  # as before, of a full disk
            file.close()
        with suppress(OSError):
            temporary.unlink()
        raise


def write_atomically(path: str | Path, data: bytes) -> None:
    """Write a file as in `replacing`."""
    with replacing(path) as file:
        file.write(data)


def _sync_directory(directory: Path) -> None:
    """Wait until the names in a local directory are on the disk."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network filesystems refuse
            os.fsync(handle)
    finally:
        os.close(handle)


def final_name(name: str) -> str:
    """Return the name, or path, of a file whose temporary name this may be."""
    return re.sub(r"(^|/)\.([^/]+)\.[0-9a-f]{32}\.tmp$", r"\1\2", name)


CHECKSUM = "checksum"


def fingerprint(value: Any) -> str:
    """Return the SHA-256 (hex) of a JSON value.

    Computed from ASCII text with sorted keys and no whitespace, so neither the order of keys nor
    the layout of a file matters.
    """
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def checksum_of(document: Mapping[str, Any]) -> str:
    """Return the fingerprint of a JSON object without its field ``checksum``."""
    return fingerprint({name: value for name, value in document.items() if name != CHECKSUM})


def with_checksum(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the object with its checksum as the last field, replacing any other."""
    content = {name: value for name, value in document.items() if name != CHECKSUM}
    return {**content, CHECKSUM: checksum_of(content)}


def is_intact(document: Mapping[str, Any]) -> bool:
    """Return whether an object has its checksum."""
    try:
        return bool(document.get(CHECKSUM) == checksum_of(document))
    except RecursionError:  # nested deeper than we ever write
        return False
