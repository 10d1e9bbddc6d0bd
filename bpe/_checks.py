"""What a tokenizer is made of, checked before the core sees it."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from bpe.errors import TokenizerError
from bpe.special import check_special_tokens

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from typing_extensions import Buffer


def checked_tokens(tokens: Sequence[bytes | None]) -> tuple[bytes | None, ...]:
    """Tokens by id, each at least one byte, or None where no token has the id; the last is one.

    Raises:
        TokenizerError: one is something else.
    """
    for id_, token in enumerate(tokens):
        if token is not None and (not isinstance(token, bytes) or not token):
            raise TokenizerError(
                f"token {id_} is {token!r}: a token is at least one byte, or None for no token"
            )
    size = len(tokens)
    while size > 0 and tokens[size - 1] is None:
        size -= 1
    return tuple(tokens[:size])


def merge_triples(merges: Sequence[tuple[int, int, int]] | Buffer) -> array[int]:
    """Merges as one flat array of uint32: left, right, result, left, ...

    Raises:
        TokenizerError: they are not triples of numbers from 0 to 2^32 - 1.
    """
    flat = array("I")
    try:
        view = memoryview(merges)  # type: ignore[arg-type]  # a sequence is next
    except TypeError:
        try:
            for left, right, result in merges:  # type: ignore[union-attr]
                flat.extend((left, right, result))
        except (TypeError, ValueError, OverflowError) as error:
            raise TokenizerError(
                f"merge {len(flat) // 3} is not three ids, left, right and result: {error}"
            ) from None
        return flat
    if view.nbytes % 12:
        raise TokenizerError(f"{view.nbytes} bytes of merges are not triples of uint32")
    flat.frombytes(view.cast("B"))
    return flat


def whole_tokens(tokens: Sequence[bytes | None], named: Mapping[str, int]) -> dict[str, int]:
    """Special or added tokens in the order of their ids.

    Raises:
        SpecialTokenError: one is empty, not a str, or has no UTF-8.
        TokenizerError: its id is not that of the token with its bytes.
    """
    check_special_tokens(named)
    for content, id_ in named.items():
        found = tokens[id_] if 0 <= id_ < len(tokens) else None
        if found != content.encode():
            raise TokenizerError(
                f"the special or added token {content!r} should be token {id_}, which is {found!r}"
            )
    return dict(sorted(named.items(), key=lambda item: item[1]))
