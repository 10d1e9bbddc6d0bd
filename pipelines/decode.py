"""Token ids back to documents, as JSON lines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa

from pipelines.encode.manifest import read_encoded
from pipelines.encode.parts import open_part, read_rows
from pipelines.encode.steps import row_layout
from pipelines.encode.tokenizer_files import PUT_BACK, load_tokenizer
from pipelines.errors import ConfigError, InputError
from pipelines.files import storage
from pipelines.files.storage import join
from pipelines.output.names import TOKENIZER
from pipelines.verify.joining import joined

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bpe import Tokenizer
    from pipelines.encode.rows import RowLayout

DOCUMENTS = 1024  # decoded and written at a time


def decode_directory(directory: str, stream: BinaryIO) -> int:
    """Write every document of an encoded corpus to ``stream``, in the order of the parts.

    Each is a line of JSON, ``{"id": ..., "text": ...}``, in UTF-8. Chunks and pieces of packed rows
    are put together again, without the tokens put at the ends of documents; where a remainder was
    dropped, the last document of a part is what there is of it.

    Returns:
        How many there were.

    Raises:
        InputError: the directory is not an encoded corpus, or a file in it is damaged.
    """
    root = storage.located(directory)
    manifest = read_encoded(root)
    if not storage.exists(join(root, TOKENIZER)):
        raise InputError(f"{join(root, TOKENIZER)} is missing: {PUT_BACK}")
    tokenizer = load_tokenizer(join(root, TOKENIZER))
    if tokenizer.sha256 != manifest.tokenizer_sha256:
        raise InputError(
            f"{join(root, TOKENIZER)} is not the tokenizer of the manifest: {PUT_BACK}"
        )
    try:
        layout = row_layout(
            manifest.rows, id_type=manifest.id_type, reading=manifest.reading, tokenizer=tokenizer
        )
    except ConfigError as error:
        raise InputError(f"{root}: the manifest contradicts itself: {error}") from error
    documents = 0
    for part in manifest.parts:
        path = join(root, part.file)
        if storage.digest(path) != storage.Written(bytes=part.bytes, sha256=part.sha256):
            raise InputError(f"{path}: damaged: it is not the file that the manifest names")
        for ids, tokens in _documents(path, layout, cut=bool(part.dropped.cut)):
            for first in range(0, len(ids), DOCUMENTS):
                some = slice(first, first + DOCUMENTS)
                stream.write(_lines(ids[some], tokens[some], tokenizer))
            documents += len(ids)
    return documents


def _documents(
    path: str, layout: RowLayout, *, cut: bool
) -> Iterator[tuple[pa.StringArray, pa.ListArray]]:
    try:
        with storage.open_binary(path) as source:
            yield from joined(read_rows(open_part(source), layout.schema), layout, cut=cut)
    except (pa.ArrowException, OSError, ValueError) as error:
        said = " ".join(str(error).split())
        raise InputError(f"{path}: damaged: {said}: check it with bpe verify") from error


def _lines(ids: pa.StringArray, tokens: pa.ListArray, tokenizer: Tokenizer) -> bytes:
    texts = tokenizer.decode_arrow(tokens)
    return b"".join(
        json.dumps({"id": id_, "text": text.decode("utf-8", "replace")}, ensure_ascii=False).encode(
            "utf-8"
        )
        + b"\n"
        for id_, text in zip(ids.to_pylist(), texts.to_pylist(), strict=True)
    )
