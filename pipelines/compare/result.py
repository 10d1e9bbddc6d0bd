"""Result of a comparison as JSON: the file of ``bpe compare --output``."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from bpe.explain import visible
from pipelines import storage
from pipelines.compare.totals import GROUP, described, sums_of
from pipelines.errors import InputError
from pipelines.output.names import json_object, read_json_object

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from bpe import Tokenizer
    from pipelines.compare.pieces import Difference
    from pipelines.compare.tokenizers import ComparedTokenizer

EXAMPLES = 20
KIND = "comparison"
VERSION = 2


def comparison(
    files: Sequence[ComparedTokenizer],
    tokenizers: Sequence[Tokenizer],
    *,
    totals: pa.Table,
    used: Sequence[int],
    differences: Sequence[Difference],
    **more: Any,
) -> dict[str, Any]:
    """Return the result as JSON values.

    Args:
        files: the names of the tokenizers.
        tokenizers: the loaded tokenizers.
        totals: of each group; those of documents without one have null.
        used: the number of different ids that each tokenizer has given.
        differences: of each further tokenizer from the first; empty if pieces were not counted.
        **more: ``by``, ``inputs``, ``failures`` and ``bad_records``.
    """
    names = [file.name for file in files]
    rows = sorted(
        totals.to_pylist(), key=lambda row: (-row["bytes"], row[GROUP] is not None, row[GROUP])
    )
    total = described(sums_of(totals), tokenizers)
    for one, ids in zip(total["tokenizers"], used, strict=True):
        one["vocabulary_used"] = ids
    return {
        "kind": KIND,
        "version": VERSION,
        "tokenizers": [
            {
                "name": file.name,
                "path": file.path,
                "vocab_size": len(tokenizer),
                "pretokenizer": str(tokenizer.pretokenizer),
                "model": type(tokenizer.model).__name__,
            }
            for file, tokenizer in zip(files, tokenizers, strict=True)
        ],
        **more,
        "total": total,
        "groups": [
            {"name": row[GROUP], **described(row, tokenizers)}
            for row in rows
            if more["by"] is not None
        ],
        "differences": [
            {
                "first": names[0],
                "second": name,
                "pieces_with_fewer_tokens": one.fewer,
                "pieces_with_more_tokens": one.more,
                "pieces_with_as_many_tokens": one.same,
                "examples": [
                    _example(row["piece"], row["count"], row["more"], (tokenizers[0], tokenizer))
                    for row in one.examples.to_pylist()
                ],
            }
            for one, name, tokenizer in zip(differences, names[1:], tokenizers[1:], strict=False)
        ],
    }


def _example(
    piece: bytes, count: int, more: int, tokenizers: Sequence[Tokenizer]
) -> dict[str, Any]:
    return {
        "piece": visible(piece),
        "count": count,
        "more_tokens": count * more,
        "tokens": [
            [visible(one.token_bytes(id_)) for id_ in islice(one.encode(piece), 100)]
            for one in tokenizers
        ],
    }


def is_comparison(path: str) -> bool:
    """Return whether a ``.json`` file holds a comparison, by its ``kind``."""
    value = read_json_object(path) if path.endswith(".json") else None
    return value is not None and value.get("kind") == KIND


def read_comparison(path: str) -> dict[str, Any]:
    """Read a file that ``bpe compare --output`` wrote.

    Raises:
        InputError: the file cannot be read or holds no comparison.
    """
    value = json_object(storage.read(path))
    if value is None or value.get("kind") != KIND:
        raise InputError(f"{path}: not a comparison: bpe compare --output writes one")
    if value.get("version") != VERSION:
        raise InputError(
            f"{path}: a comparison of version {value.get('version')}, not {VERSION}: use the "
            "release of beam-bpe that wrote it, or compare again"
        )
    return value
