"""A tokenizer as the JavaScript takes it: JSON values."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from bpe._core import unspelled_ids
from bpe.javascript.unicode import unicode_tables
from bpe.models import ByteLevel, CharacterLevel
from bpe.pretokenize import PRETOKENIZERS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bpe.models import Model
    from bpe.tokenizer import Tokenizer

MOST_TOKENS = 500_000
MOST_BYTES = 32_000_000  # of all tokens


def why_not(tokenizer: Tokenizer) -> str | None:
    """Why the JavaScript cannot do what this tokenizer does; None where it can."""
    cut = tokenizer.pretokenizer
    if cut.never_split:
        return f"it never splits {', '.join(map(repr, cut.never_split))}"
    for pattern in cut.patterns:
        if pattern not in PRETOKENIZERS:
            return f"it cuts text with a regular expression of its own, {pattern!r:.200}"
    size = sum(len(token) for token in tokenizer.tokens if token is not None)
    if len(tokenizer.tokens) > MOST_TOKENS or size > MOST_BYTES:
        return (
            f"its {len(tokenizer):,} tokens of {size:,} bytes are more than the {MOST_TOKENS:,} or "
            f"{MOST_BYTES:,} bytes that fit in a page"
        )
    return None


def tokenizer_data(tokenizer: Tokenizer) -> dict[str, Any]:
    """What ``makeTokenizer`` of ``tokenizer.js`` takes.

    Raises:
        ValueError: the JavaScript cannot do what this tokenizer does (:func:`why_not`).
    """
    reason = why_not(tokenizer)
    if reason is not None:
        raise ValueError(f"the tokenizer cannot run in a page: {reason}")
    cut = tokenizer.pretokenizer
    merges = (id_ for left, right, _ in tokenizer.merges for id_ in (left, right))
    return {
        "model": _model(tokenizer.model, tokenizer),
        "pretokenizers": list(cut.patterns) if cut.name is None else [cut.name],
        "normalizer": list(cut.normalizer),
        "special": dict(tokenizer.special_tokens),
        "added": dict(tokenizer.added_tokens),
        "unspelled": unspelled_ids(
            special_tokens=tokenizer.special_tokens,
            added_tokens=tokenizer.added_tokens,
            merging=(id_ for merge in tokenizer.merges for id_ in merge),
            model=tokenizer.model,
            unknown=_unknown(tokenizer.model, tokenizer),
        ),
        "ignoreMerges": tokenizer.ignore_merges,
        "lengths": _numbers(len(token or b"") for token in tokenizer.tokens),
        "tokens": _base64(b"".join(token or b"" for token in tokenizer.tokens)),
        "merges": _numbers(merges),
        "unicode": unicode_tables(),
    }


def _model(model: Model, tokenizer: Tokenizer) -> dict[str, Any]:
    if isinstance(model, ByteLevel):
        return {"type": "bytes"}
    unknown = _unknown(model, tokenizer)
    if isinstance(model, CharacterLevel):
        return {"type": "characters", "endOfWord": model.end_of_word, "unknown": unknown}
    return {
        "type": "wordpiece",
        "prefix": model.prefix,
        "unknown": unknown,
        "maxCharacters": model.max_characters,
    }


def _unknown(model: Model, tokenizer: Tokenizer) -> int | None:
    unknown = None if isinstance(model, ByteLevel) else model.unknown
    return None if unknown is None else tokenizer.token_id(unknown.encode())


def _numbers(numbers: Iterable[int]) -> str:
    """Base64 of numbers in LEB128: seven bits a byte, the lowest first."""
    data = bytearray()
    for number in numbers:
        while number >= 0x80:
            data.append(number & 0x7F | 0x80)
            number >>= 7  # noqa: PLW2901  # what is left of it
        data.append(number)
    return _base64(bytes(data))


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
