"""Check names, sizes and checksums of the files of an output against its manifest."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from bpe.files import final_name
from pipelines import storage
from pipelines.errors import VerificationError
from pipelines.output.directory import contents
from pipelines.output.names import (
    DATA,
    DEAD_LETTERS,
    VALIDATION,
    generation_of,
    is_rows,
    parse_part,
)
from pipelines.storage import join

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from pipelines.output.names import Kind
    from pipelines.storage import Written


def check_names(
    directory: str, kind: Kind, *, named: Collection[str], appended: bool = False
) -> None:
    """Check that all files of rows and of bad records are ``named``, and none is half-written.

    Files that an appending job has begun to write are allowed and, with ``appended``, superseded
    ones.

    Raises:
        VerificationError: there is such a file.
    """
    for name in (entry.name for entry in contents(directory, {"kind": kind})):
        final = final_name(name)
        part = parse_part(final)
        if (part and (part.generation or appended)) or (appended and final != name):
            continue
        if final != name:
            raise VerificationError(
                f"{join(directory, name)} is half written: a job is at work here, or was killed"
            )
        of_rows = name.startswith((f"{DATA}/", f"{DEAD_LETTERS}/", f"{VALIDATION}/"))
        if (
            of_rows or (name.endswith(".parquet") and not generation_of(name)) or is_rows(name)
        ) and name not in named:
            raise VerificationError(
                f"{join(directory, name)} is not named in the manifest: it is of another run, or "
                "none of ours: move it away"
            )


def check_file(path: str, size: int, sha256: str) -> None:
    """Compare a file with its size in bytes and SHA-256 (hex).

    Raises:
        VerificationError: the file is missing, or its size or SHA-256 differs.
    """
    _check_exists(path)
    _compare(path, storage.digest(path), size, sha256)


@contextlib.contextmanager
def checked_file(path: str, size: int, sha256: str) -> Iterator[Any]:
    """Check a file like `check_file` and open the checked bytes for reading.

    Raises:
        VerificationError: the file is missing, or its size or SHA-256 differs.
    """
    _check_exists(path)
    with storage.read_once(path) as (file, found):
        _compare(path, found, size, sha256)
        yield file


def _check_exists(path: str) -> None:
    if not storage.exists(path):
        raise VerificationError(f"{path} is missing, the manifest names it")


def _compare(path: str, found: Written, size: int, sha256: str) -> None:
    if found.bytes != size:
        raise VerificationError(f"{path} has {found.bytes} bytes, the manifest says {size}")
    if found.sha256 != sha256:
        raise VerificationError(f"{path}: its SHA-256 is not that of the manifest: it was changed")
