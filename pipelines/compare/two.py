"""Compare two tokenizers without a corpus."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from bpe._codec import to_jsonable
from bpe.diff import compare, fit
from bpe.explain import visible
from pipelines.compare.tokenizers import load
from pipelines.count.directory import load_counts
from pipelines.errors import ConfigError
from pipelines.failures import job_errors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipelines.compare.tokenizers import ComparedTokenizer


def compare_two(files: Sequence[ComparedTokenizer], *, counts: str | None) -> dict[str, Any]:
    """Return the changes from the first tokenizer to the second, as JSON values.

    Tokens and merges are compared by their bytes, not by their ids.

    Args:
        files: the two tokenizers.
        counts: a directory of counts to measure both on; None to leave that out.

    Raises:
        ConfigError: there are more than two tokenizers.
        JobError: a tokenizer or the counts cannot be read.
    """
    if len(files) != 2:
        raise ConfigError(
            f"{len(files)} tokenizers are compared over a corpus alone: give `input`, or name two"
        )
    with job_errors():
        old, new = (load(file) for file in files)
        difference = compare(old, new)
        sides = (("old", old), ("new", new))
        measured = None
        if counts is not None:
            corpus = load_counts(counts)
            fits = {side: fit(tokenizer, corpus) for side, tokenizer in sides}
            measured = {
                side: {**asdict(one), "bytes_per_token": one.bytes_per_token}
                for side, one in fits.items()
            }
    changes = to_jsonable(difference, text=visible)
    settings = changes.pop("settings")
    merges = {name: changes.pop(f"{name}_merges") for name in ("kept", "gained", "lost", "moved")}
    return {
        **{
            side: {"name": file.name, "file": file.path, "tokens": len(tokenizer)}
            for (side, tokenizer), file in zip(sides, files, strict=True)
        },
        "same": difference.is_empty,
        **changes,
        "merges": merges,
        "settings": settings,
        "on_counts": measured,
    }
