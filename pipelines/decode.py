"""Decode token ids to documents, as JSON lines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, BinaryIO

from bpe.errors import EncodingError
from pipelines import storage
from pipelines.encode.manifest import read_encoded
from pipelines.encode.parts import opened
from pipelines.encode.rows import ID, INPUT_IDS, without_ends
from pipelines.encode.tokens import end_ids
from pipelines.errors import ConfigError, InputError
from pipelines.failures import job_errors
from pipelines.parquet_writer import batches_of
from pipelines.run import use_storage
from pipelines.settings import Execution
from pipelines.storage import join
from pipelines.tokenizer_files import stored_tokenizer

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from bpe import Tokenizer
    from pipelines.encode.manifest import Part

DOCUMENTS = 1024  # decoded and written at a time


def decode(
    *,
    directory: str,
    stream: BinaryIO,
    execution: Execution = Execution(),  # noqa: B008  # immutable
) -> int:
    """Write every document of an encoded corpus to ``stream``, in the order of the parts.

    Each document is a line of JSON, ``{"id": ..., "text": ...}``, in UTF-8, without the tokens that
    encoding put at its ends.

    Args:
        directory: the directory of the corpus.
        stream: the stream for the lines.
        execution: the options of stores; the work is done in this process.

    Returns:
        The number of documents.

    Raises:
        JobError: the directory is not an encoded corpus, or a file in it is damaged.
        BrokenPipeError: nobody reads the stream any more.
    """
    with job_errors():
        use_storage(execution)
        root = storage.located(directory)
        manifest = read_encoded(directory)
        tokenizer = stored_tokenizer(root, manifest.tokenizer.sha256)
        try:
            ends = end_ids(tokenizer, manifest.rows)
        except ConfigError as error:
            raise InputError(f"{root}: the manifest contradicts itself: {error}") from error
        for part in manifest.parts:
            stream.writelines(
                _lines(join(root, part.file), batch.column(ID), tokens, tokenizer)
                for batch, tokens in _documents(root, part, ends)
            )
        return manifest.totals.documents


def _documents(
    root: str, part: Part, ends: dict[str, Any]
) -> Iterator[tuple[pa.RecordBatch, pa.ListArray]]:
    """Yield batches of rows, and their ids without the tokens put at the ends of documents."""
    with opened(root, part) as file:
        for batch in batches_of(file, DOCUMENTS, columns=[ID, INPUT_IDS]):
            yield batch, without_ends(batch.column(INPUT_IDS), **ends)


def _lines(path: str, ids: pa.StringArray, tokens: pa.ListArray, tokenizer: Tokenizer) -> bytes:
    try:
        texts = tokenizer.decode_arrow(tokens)
    except EncodingError as error:
        raise InputError(f"{path}: {error}: check it with bpe verify") from error
    return b"".join(
        json.dumps({"id": id_, "text": text.decode("utf-8", "replace")}, ensure_ascii=False).encode(
            "utf-8"
        )
        + b"\n"
        for id_, text in zip(ids.to_pylist(), texts.to_pylist(), strict=True)
    )
