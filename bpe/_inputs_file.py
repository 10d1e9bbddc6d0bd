"""The very many inputs of a manifest, in a Parquet file that it names."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Collection
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bpe.files import with_checksum

INPUTS = "inputs.parquet"
MOST_INPUTS = 4096  # that a manifest lists itself


def inputs_file_names(inputs: Collection[object]) -> set[str]:
    """Names of the files that hold a manifest's inputs: one if there are very many, else none."""
    return {INPUTS} if len(inputs) > MOST_INPUTS else set()


def take_out(
    manifest: dict[str, Any], file: str = INPUTS
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return a manifest without the inputs, and by its name the ``file`` with a row for each.

    They stay where they are few, and there is no file.
    """
    rows = manifest["inputs"]
    if not inputs_file_names(rows):
        return manifest, {}
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), sink, compression="zstd")
    data = sink.getvalue()
    inputs = {
        "file": file,
        "rows": len(rows),
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
    }
    return with_checksum({**manifest, "inputs": inputs}), {file: data}


def put_back(manifest: dict[str, Any], read: Callable[[], bytes]) -> dict[str, Any]:
    """Return what `take_out` was given; ``read`` returns the content of the file.

    Raises:
        ValueError: the file is missing, or not that of the manifest.
    """
    named = manifest.get("inputs")
    if not isinstance(named, dict):
        return manifest
    try:
        data = read()
    except FileNotFoundError as error:
        raise ValueError(f"{INPUTS} is missing, the manifest names it") from error
    if hashlib.sha256(data).hexdigest() != named.get("sha256"):
        raise ValueError(f"the SHA-256 of {INPUTS} is not that of the manifest: it was changed")
    try:
        inputs = pq.read_table(pa.BufferReader(data)).to_pylist()
    except pa.ArrowException as error:
        raise ValueError(f"{INPUTS} does not fit the manifest: {error}") from error
    return {**manifest, "inputs": inputs}
