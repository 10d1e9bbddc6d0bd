"""``.tiktoken``: a line for each token, its bytes in base64 and its rank, which is its id.

The file has no merges, pre-tokenizer or special tokens. Neighbours merge if their bytes together
are a token, the lowest rank first; a pre-token that is a token is encoded as it.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Collection, Mapping
from pathlib import Path

from bpe._native import merges_of_ranks
from bpe.errors import TokenizerError, TokenizerFileError
from bpe.formats.export_checks import (
    KINDS,
    Loss,
    Ordinary,
    check_implied,
    check_losses,
    cuts_as,
    named_tokens,
)
from bpe.formats.format import Format, SpecialIds, TokenizerFiles, id_limit, with_ids
from bpe.formats.published import of_contents
from bpe.formats.strict_json import read_bytes, shorten
from bpe.names import LossName
from bpe.parts import Merges, Parts
from bpe.pretokenizer import Pretokenizer
from bpe.token_table import TokenTable


def read(
    path: Path, pretokenizer: Pretokenizer | None = None, special_tokens: SpecialIds | None = None
) -> Parts:
    """Read a .tiktoken file.

    Args:
        path: the file.
        pretokenizer: how text is cut; None only for published vocabularies, which are recognized
            by their contents (`bpe.formats.published`).
        special_tokens: with their ids, or by name if a recognized file has them; None for all of
            a recognized file.

    Raises:
        TokenizerFileError: the file is broken, or needs a pre-tokenizer.
    """
    data = read_bytes(path)
    tokens = TokenTable.of_ranks(data) or TokenTable.of(_tokens_line_by_line(path, data))
    try:
        merges = merges_of_ranks(tokens.data, tokens.offsets)
    except ValueError as error:
        _tokens_line_by_line(path, data)  # which names the line of a token that is there twice
        raise TokenizerFileError(f"{path}: {error}") from None
    published = of_contents(data)
    known = published.special_tokens if published else {}
    special = known if special_tokens is None else with_ids(path, special_tokens, known)
    if pretokenizer is None:
        if published is None:
            raise TokenizerFileError(
                f"{path}: a .tiktoken file does not contain the pre-tokenizer: name it (for "
                "example `pretokenizer` cl100k) or give a pattern"
            )
        pretokenizer = Pretokenizer(published.pretokenizer)
    tokens = _with_special_tokens(path, tokens, special)
    return Parts(
        tokens=tokens,
        merges=Merges.of(merges),
        pretokenizer=pretokenizer,
        special_tokens=special,
        ignore_merges=True,
    )


def _holds_ranks(path: Path) -> bool:
    """Return whether a *.model, or a file without an ending as in caches, begins with a rank."""
    if path.suffix not in (".model", "") or not path.is_file():
        return False
    with path.open("rb") as file:
        fields = file.readline(1 << 16).split()
    try:
        return len(fields) == 2 and fields[1].isdigit() and bool(base64.b64decode(fields[0]))
    except ValueError:
        return False


def _tokens_line_by_line(path: Path, data: bytes) -> list[bytes | None]:
    """Return the tokens of any file.

    Raises:
        TokenizerFileError: the file is broken; the message names the line.
    """
    ranks: dict[bytes, int] = {}
    lines = data.split(b"\n")
    limit = id_limit(len(lines))
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            encoded, digits = line.split()
            token = base64.b64decode(encoded, validate=True)
            rank = int(digits) if digits.isdigit() and len(digits) < 10 else -1
        except (ValueError, binascii.Error) as error:
            raise TokenizerFileError(
                f"{path}: line {number}: {shorten(line)} is not a token in base64 and its rank: "
                f"{error}"
            ) from None
        if not 0 <= rank < limit:
            raise TokenizerFileError(
                f"{path}: line {number}: {shorten(digits)} is not a rank from 0 to {limit - 1}"
            )
        if not token or token in ranks:
            raise TokenizerFileError(
                f"{path}: line {number}: the token {shorten(token)} is empty or a duplicate"
            )
        ranks[token] = rank
    tokens: list[bytes | None] = [None] * (max(ranks.values(), default=-1) + 1)
    for token, rank in ranks.items():
        if tokens[rank] is not None:
            raise TokenizerFileError(
                f"{path}: {shorten(tokens[rank])} and {shorten(token)} have the same rank {rank}"
            )
        tokens[rank] = token
    return tokens


def _with_special_tokens(
    path: Path, tokens: TokenTable, special_tokens: Mapping[str, int]
) -> TokenTable:
    limit, special = id_limit(len(tokens)), dict[int, bytes]()
    for content, id_ in special_tokens.items():
        if not 0 <= id_ < limit:
            raise TokenizerFileError(
                f"{path}: the special token {content!r} cannot have the id {id_}: give one from 0 "
                f"to {limit - 1}"
            )
        other = special.get(id_) or (tokens[id_] if id_ < len(tokens) else None)
        if other is not None:
            raise TokenizerFileError(
                f"{path}: the special token {content!r} cannot have the id {id_}: the file gives "
                f"it to {shorten(other)}"
            )
        special[id_] = content.encode()
    return tokens.extended(special)


_KIND, _ = KINDS["tiktoken"]


def write(parts: Parts, path: Path, leave_out: Collection[str], *_: str) -> TokenizerFiles:
    """Return a tokenizer as a .tiktoken file: its ordinary tokens by id.

    Raises:
        TokenizerError: the file would silently lose something; the message names what.
    """
    ordinary = Ordinary(parts, kind=_KIND)
    _check_merges(parts, ordinary)
    data = b"".join(
        base64.b64encode(token) + b" %d\n" % id_
        for id_, token in enumerate(ordinary.tokens)
        if token is not None
    )
    assumed = _assumed_losses(parts, data)
    return TokenizerFiles({path: data}, check_losses(parts, "tiktoken", leave_out, known=assumed))


def _assumed_losses(parts: Parts, data: bytes) -> dict[LossName, Loss | None]:
    """Return the losses that readers assume, because OpenAI published these ranks."""
    losses: dict[LossName, Loss | None] = {"special-tokens": None}
    published = of_contents(data)
    known = published.special_tokens if published else {}
    if parts.special_tokens != known:
        instead = f", and is known to have {named_tokens(known)}" if known else ""
        named = named_tokens(parts.special_tokens) or "(none)"
        losses["special-tokens"] = Loss(f"the special tokens {named}{instead}")
    if published is None:
        # Loading then fails without a pre-tokenizer.
        losses["pretokenizer"] = Loss("the pre-tokenizer", reported=True)
    elif not cuts_as(parts, published.pretokenizer):
        losses["pretokenizer"] = Loss(
            f"a pre-tokenizer other than {published.pretokenizer}, with which OpenAI "
            "published these ranks"
        )
    return losses


def _check_merges(parts: Parts, ordinary: Ordinary) -> None:
    """Check that the merges of a tokenizer are those that the ranks imply."""
    unmade = ordinary.unmade()
    if unmade and not parts.ignore_merges:
        raise TokenizerError(
            f"{_KIND} cannot hold tokens that merging does not give, since tiktoken looks whole "
            f"pre-tokens up: {ordinary.named(unmade)}"
        )
    check_implied(ordinary.merges, ordinary.table, kind=_KIND)


FORMAT = Format(
    files="*.tiktoken",
    names=("*.tiktoken",),
    usual_names=("tokenizer.model",),
    self_contained=False,
    holds=_holds_ranks,
    read=read,
    write=write,
)
