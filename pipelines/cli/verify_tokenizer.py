"""``bpe verify`` of a tokenizer file: which of its tokens cannot be encoded to themselves?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipelines.cli.curve import training_file
from pipelines.cli.report import show_json
from pipelines.cli.tokenizer_options import load_tokenizer
from pipelines.progress import many

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bpe import Tokenizer

SHOWN = 20
TOKENIZER = "tokenizer.json"
TRAINING = "training.json"
_ENDINGS = (".json", ".txt", ".tiktoken", ".model")


def is_tokenizer_file(path: str) -> bool:
    """Whether this is a local file, or is named as one of a tokenizer is."""
    local = Path(path)
    return not local.is_dir() and (local.is_file() or local.name.endswith(_ENDINGS))


def verify_tokenizer(tokenizer: Tokenizer, path: str) -> dict[str, Any]:
    """Check a tokenizer that was read from ``path``; return what was found, as JSON values.

    A token is *unreachable* where merging its bytes does not end in it: no text has it. It is
    *cut* where it can be merged, but the text that it stands for is cut in several pre-tokens, so
    that it stands in longer ones, if anywhere.
    """
    unreachable = tokenizer.unreachable()
    return {
        "tokenizer": path,
        "tokens": len(tokenizer),
        "merges": len(tokenizer.merges),
        "unreachable": _described(tokenizer, unreachable),
        "cut": _described(tokenizer, _cut_apart(tokenizer, without=set(unreachable))),
    }


def show_tokenizer(ctx: click.Context, found: dict[str, Any]) -> None:
    """Print what `verify_tokenizer` has found."""
    if ctx.params["json"]:
        show_json(found)
    else:
        click.echo(_as_text(found))


def read_tokenizer(ctx: click.Context, path: str) -> Tokenizer:
    """The tokenizer of a file or a directory; ``training.json``, where it is beside, is read too.

    Raises:
        BpeError: one of them is damaged.
        JobError: one of them cannot be read.
    """
    from bpe.training import Training

    if "://" in path:
        return _load_from_store(path)
    tokenizer = load_tokenizer(ctx, path)
    beside = training_file(path)
    if beside.is_file() and (Path(path).is_dir() or Path(path).name == TOKENIZER):
        Training.load(beside)
    return tokenizer


def _load_from_store(directory: str) -> Tokenizer:
    from bpe.training import Training
    from pipelines import storage
    from pipelines.encode import tokenizer_files
    from pipelines.failures import job_errors

    root = storage.located(directory)
    with job_errors():
        data = storage.read_if_there(beside := storage.join(root, TRAINING))
        if data is not None:
            Training.read(data, where=beside)
        return tokenizer_files.load_tokenizer(storage.join(root, TOKENIZER))


def _cut_apart(tokenizer: Tokenizer, *, without: set[int]) -> list[int]:
    """The ids of the other ordinary tokens that are well-formed text and encode to several."""
    import pyarrow as pa

    skipped = {*without, *tokenizer.special_tokens.values(), *tokenizer.added_tokens.values()}
    texts = {
        id_: token
        for id_, token in enumerate(tokenizer.tokens)
        if token is not None and id_ not in skipped and _is_text(token)
    }
    lengths = tokenizer.encode_arrow(pa.array(texts.values(), pa.binary())).value_lengths()
    return [id_ for id_, length in zip(texts, lengths.to_pylist(), strict=True) if length > 1]


def _is_text(token: bytes) -> bool:
    try:
        token.decode()
    except UnicodeDecodeError:
        return False
    return True


def _described(tokenizer: Tokenizer, ids: Sequence[int]) -> list[dict[str, Any]]:
    return [
        {"id": id_, "token": tokenizer.token_bytes(id_).decode("utf-8", "backslashreplace")}
        for id_ in ids
    ]


def _as_text(summary: dict[str, Any]) -> str:
    size = f"{many(summary['tokens'], 'token')}, {many(summary['merges'], 'merge')}"
    lines = [f"{'verified':10}{summary['tokenizer']}: {size}"]
    if not summary["unreachable"]:
        lines.append(f"{'':10}each token is what its own bytes merge to")
    for name, what in (
        ("unreachable", "cannot be encoded to itself: its bytes do not merge to it"),
        ("cut", "is text that is cut: it stands in longer pieces, if anywhere"),
    ):
        found = summary[name]
        lines += (f"{'':10}token {one['id']} {one['token']!r} {what}" for one in found[:SHOWN])
        if len(found) > SHOWN:
            lines.append(f"{'':10}and {len(found) - SHOWN:,} more ({name}; --json lists all)")
    return "\n".join(lines)
