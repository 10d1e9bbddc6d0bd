"""Token ids back to documents, as JSON lines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa

from pipelines import storage
from pipelines.encoding import load_tokenizer
from pipelines.errors import InputError
from pipelines.manifest import read_encoded
from pipelines.output import TOKENIZER
from pipelines.parts import open_part, read_rows
from pipelines.storage import join

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bpe import Tokenizer

ROWS = 1024  # decoded and written at a time


def decode_directory(directory: str, stream: BinaryIO) -> int:
    """Write every document of an encoded corpus to ``stream``, in the order of the parts.

    Each is a line of JSON, ``{"id": ..., "text": ...}``, in UTF-8.

    Returns:
        How many there were.

    Raises:
        InputError: the directory is not an encoded corpus, or a file in it is damaged.
    """
    root = storage.located(directory)
    manifest = read_encoded(root)
    tokenizer = load_tokenizer(join(root, TOKENIZER))
    if tokenizer.sha256 != manifest.tokenizer_sha256:
        raise InputError(f"{join(root, TOKENIZER)} is not the tokenizer of the manifest")
    documents = 0
    for part in manifest.parts:
        path = join(root, part.file)
        if storage.digest(path) != storage.Written(bytes=part.bytes, sha256=part.sha256):
            raise InputError(f"{path}: damaged: it is not the file that the manifest names")
        for table in _tables(path):
            for batch in table.to_batches(max_chunksize=ROWS):
                stream.write(_lines(batch, tokenizer))
                documents += len(batch)
    return documents


def _tables(path: str) -> Iterator[pa.Table]:
    try:
        with storage.open_binary(path) as source:
            yield from read_rows(open_part(source))
    except (pa.ArrowException, OSError, ValueError) as error:
        said = " ".join(str(error).split())
        raise InputError(f"{path}: damaged: {said}: check it with bpe verify") from error


def _lines(batch: pa.RecordBatch, tokenizer: Tokenizer) -> bytes:
    texts = tokenizer.decode_arrow(batch["input_ids"])
    return b"".join(
        json.dumps({"id": id_, "text": text.decode("utf-8", "replace")}, ensure_ascii=False).encode(
            "utf-8"
        )
        + b"\n"
        for id_, text in zip(batch["id"].to_pylist(), texts.to_pylist(), strict=True)
    )
