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
_ENDINGS = (".json", ".txt", ".tiktoken", ".model")


def is_tokenizer(path: Path) -> bool:
    """Whether this is a tokenizer file, or a directory that holds one and no job's output."""
    if path.is_dir():
        held = (TOKENIZER, "vocab.json")
        return not (path / "manifest.json").exists() and any((path / n).exists() for n in held)
    return path.is_file() or path.name.endswith(_ENDINGS)


def verify_tokenizer(ctx: click.Context) -> None:
    """Print what is found; exit with status 1 where a token is unreachable.

    A token is *unreachable* where merging its bytes does not end in it: no text has it. It is
    *cut* where it can be merged, but the text that it stands for is cut in several pre-tokens, so
    that it stands in longer ones, if anywhere.
    """
    if ctx.params["input"]:
        raise click.UsageError("--input goes with encoded output or counts, not a tokenizer", ctx)
    path = ctx.params["path"]
    tokenizer = load_tokenizer(ctx, path)
    _check_training(Path(path))
    unreachable = tokenizer.unreachable()
    summary = {
        "tokenizer": path,
        "tokens": len(tokenizer),
        "merges": len(tokenizer.merges),
        "unreachable": _described(tokenizer, unreachable),
        "cut": _described(tokenizer, _cut_apart(tokenizer, without=set(unreachable))),
    }
    if ctx.params["json"]:
        show_json(summary)
    else:
        click.echo(_as_text(summary))
    if unreachable:
        ctx.exit(1)


def _check_training(path: Path) -> None:
    """Read what the training told, where it stands beside the file that the training wrote."""
    from bpe.training import Training

    beside = training_file(str(path))
    if beside.is_file() and (path.is_dir() or path.name == TOKENIZER):
        Training.load(beside)


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
