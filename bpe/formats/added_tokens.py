"""The ``added_tokens`` of a tokenizer.json: tokens that are cut out of texts whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bpe.formats.ids import id_limit
from bpe.formats.strict_json import Entry, shorten

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bpe.tokenizer import Tokenizer

_MAX_COMPARED = 100_000_000  # characters against characters: seconds


def write_added_tokens(tokenizer: Tokenizer) -> list[dict[str, Any]]:
    """Special and added tokens by id."""
    added = {**tokenizer.special_tokens, **tokenizer.added_tokens}
    return [
        {
            "id": id_,
            "content": content,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": content in tokenizer.special_tokens,
        }
        for content, id_ in sorted(added.items(), key=lambda item: item[1])
    ]


def read_added_tokens(
    entry: Entry, vocab: Mapping[str, int], *, normalizes: bool, own_ids: bool = False
) -> tuple[dict[str, int], set[str]]:
    """All added tokens with their ids, and which of them are special.

    Args:
        entry: ``added_tokens``.
        vocab: that of the model.
        normalizes: whether texts are normalized before they are cut.
        own_ids: whether the ids that stand here count. Hugging Face takes them from the
            vocabulary, or the next that is free.

    Raises:
        TokenizerFileError: a token is broken, or not looked for in texts as they are.
    """
    added: dict[str, int] = {}
    special: set[str] = set()
    normalized: set[str] = set()
    if entry.value is None:
        return added, special
    free = len(vocab)
    limit = id_limit(len(vocab))
    for item in entry.items():
        item.object("id", "content", "single_word", "lstrip", "rstrip", "normalized", "special")
        content = item.get("content").string()
        for option in ("single_word", "lstrip", "rstrip"):
            if item.get(option).boolean(default=False):
                item.get(option).fail(f"true is not supported (added token {shorten(content)})")
        if not content or content in added:
            item.get("content").fail(f"{shorten(content)} is empty or added twice")
        id_ = item.get("id").value
        expected = vocab.get(content, free)
        if own_ids and (type(id_) is not int or not 0 <= id_ < limit):
            item.get("id").fail(f"{shorten(id_)} is not an id from 0 to {limit - 1}")
        if not own_ids and (type(id_) is not int or id_ != expected):
            item.get("id").fail(
                f"{shorten(id_)} is not the id that {shorten(content)} has in Hugging Face's "
                f"tokenizers: {expected}"
            )
        added[content] = id_
        free = max(free, expected + 1)
        if item.get("special").boolean(default=False):
            special.add(content)
        if item.get("normalized").boolean(default=not item.get("special").value):
            normalized.add(content)
            if normalizes:
                item.get("normalized").fail(
                    f"true is not supported beside a normalizer: {shorten(content)} is looked for "
                    "in normalized text there, and in the text as it is here"
                )
    _check_one_pass(entry, normalized, added.keys() - normalized)
    return added, special


def _check_one_pass(entry: Entry, normalized: set[str], others: set[str]) -> None:
    """Refuse tokens that overlap across ``normalized``: Hugging Face looks for the others first.

    Where none overlap, two searches find what one finds.
    """
    if sum(map(len, normalized)) * sum(map(len, others)) > _MAX_COMPARED:
        entry.fail(
            "too many or too long added tokens differ in normalized; give all of them the same"
        )
    for a in normalized:
        for b in others:
            if a in b or b in a or _overlap(a, b) or _overlap(b, a):
                entry.fail(
                    f"{shorten(a)} and {shorten(b)} overlap and differ in normalized, so they are "
                    "looked for one after the other, which is not supported"
                )


def _overlap(a: str, b: str) -> bool:
    """Whether an end of ``a`` begins ``b``."""
    return any(b.startswith(a[i:]) for i in range(1, len(a)))
