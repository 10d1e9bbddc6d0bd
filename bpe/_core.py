"""A tokenizer's parts as the core takes them."""

from __future__ import annotations

from array import array
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any

from bpe._atomic import atomic_ids
from bpe._native import Encoder
from bpe.errors import TokenizerError
from bpe.models import ByteLevel, CharacterLevel, Model, WordPiece

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


def make_encoder(
    *,
    tokens: Sequence[bytes | None],
    merges: array[int],
    special_tokens: Mapping[str, int],
    added_tokens: Mapping[str, int],
    model: Model,
    scheme: str,
    ignore_merges: bool,
) -> Encoder:
    """The core's encoder of a tokenizer.

    Raises:
        TokenizerError: the parts do not fit together, or not to the model.
    """
    settings = _model_settings(model, tokens)
    if not isinstance(model, ByteLevel):
        _check_strings(model, tokens)
    if isinstance(model, WordPiece) and (merges or ignore_merges):
        raise TokenizerError("a WordPiece model has no merges: give neither merges nor their use")
    special_ids = unspelled_ids(
        special_tokens=special_tokens,
        added_tokens=added_tokens,
        merging=merges,
        model=model,
        unknown=settings["unknown"],
    )
    lengths = (len(token) if token is not None else 0 for token in tokens)
    try:
        return Encoder(
            token_data=b"".join(token for token in tokens if token is not None),
            token_offsets=array("q", chain([0], accumulate(lengths))),
            merges=merges,
            special_ids=special_ids,
            scheme=scheme,
            ignore_merges=ignore_merges,
            **settings,
        )
    except ValueError as error:
        raise TokenizerError(str(error)) from None


def unspelled_ids(
    *,
    special_tokens: Mapping[str, int],
    added_tokens: Mapping[str, int],
    merging: Iterable[int],
    model: Model,
    unknown: int | None,
) -> list[int]:
    """The ids that no pre-token is looked up as: atomic ones, and that of unknown characters.

    Args:
        special_tokens: with their ids.
        added_tokens: the same.
        merging: the ids that merges use or make.
        model: the model.
        unknown: the id of its unknown token, if it has one.
    """
    atomic = atomic_ids(
        special_tokens=special_tokens, added_tokens=added_tokens, merging=merging, model=model
    )
    # No text spells the unknown token of characters, and no merge uses it.
    if isinstance(model, CharacterLevel) and unknown is not None:
        atomic.add(unknown)
    return sorted(atomic)


def _model_settings(model: Model, tokens: Sequence[bytes | None]) -> dict[str, Any]:
    settings: dict[str, Any] = {"affix": "", "unknown": None, "max_characters": 0}
    if isinstance(model, ByteLevel):
        return settings | {"model": "bytes"}
    if isinstance(model, CharacterLevel):
        settings |= {"model": "characters", "affix": model.end_of_word}
    elif isinstance(model, WordPiece):
        settings |= {"model": "word_piece", "affix": model.prefix}
        settings["max_characters"] = model.max_characters
    else:
        raise TokenizerError(
            f"the model is {model!r:.60}: give ByteLevel(), CharacterLevel() or WordPiece()"
        )
    if model.unknown is not None:
        try:
            settings["unknown"] = tokens.index(model.unknown.encode())
        except ValueError:
            raise TokenizerError(
                f"no token is the unknown token {model.unknown!r:.60} of the model"
            ) from None
    return settings


def _check_strings(model: Model, tokens: Sequence[bytes | None]) -> None:
    if not tokens:
        raise TokenizerError("a tokenizer has at least one token: give some")
    for id_, token in enumerate(tokens):
        if token is not None and not _is_utf8(token):
            raise TokenizerError(
                f"token {id_} is {token!r:.60}, which is not UTF-8: the tokens of "
                f"{type(model).__name__} are strings"
            )


def _is_utf8(token: bytes) -> bool:
    try:
        token.decode()
    except UnicodeDecodeError:
        return False
    return True
