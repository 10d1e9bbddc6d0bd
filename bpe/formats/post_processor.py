"""The ``post_processor`` of tokenizer.json, which adds special tokens: kept, never applied."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bpe.formats.strict_json import Entry, shorten


def check_post_processor(entry: Entry) -> None:
    """Check that a post-processor leaves ``encode(text, add_special_tokens=False)`` alone.

    Raises:
        TokenizerFileError: the post-processor is not supported.
    """
    if entry.value is None:
        return
    kind = entry.object().get("type")
    if kind.value == "Sequence":
        for item in entry.object("type", "processors").get("processors").items():
            check_post_processor(item)
    else:
        kind.must_be("ByteLevel", "TemplateProcessing", "BertProcessing", "RobertaProcessing")


def not_applied(post_processor: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Return what a post-processor does in Hugging Face's libraries, and not here."""
    return tuple(
        f"the post-processor {step.get('type')}, which adds {_tokens(step)} to each text in "
        "Hugging Face's libraries, unless add_special_tokens=False"
        for step in _steps(post_processor)
        if step.get("type") != "ByteLevel"
    )


def _steps(post_processor: Mapping[str, Any] | None) -> Iterator[Mapping[str, Any]]:
    if post_processor is None:
        return
    if post_processor.get("type") != "Sequence":
        yield post_processor
        return
    for step in post_processor["processors"]:
        yield from _steps(step)


def _tokens(step: Mapping[str, Any]) -> str:
    """Return the tokens that a post-processor adds; ``tokens`` if the entry is malformed."""
    try:
        if step["type"] in ("BertProcessing", "RobertaProcessing"):
            names = [step["cls"][0], step["sep"][0]]
        else:
            names = [
                piece["SpecialToken"]["id"] for piece in step["single"] if "SpecialToken" in piece
            ]
    except (KeyError, TypeError, IndexError):
        names = []
    return " and ".join(map(shorten, names)) or "tokens"
