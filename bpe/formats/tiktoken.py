"""``.tiktoken``: a line for each token, its bytes in base64 and its rank, which is its id.

The file has neither merges nor a pre-tokenizer nor special tokens. Neighbours merge where their
bytes together are a token, the lowest rank first; a pre-token that is a token is that token.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import string
from array import array
from itertools import accumulate, chain, pairwise
from typing import TYPE_CHECKING, NamedTuple

from bpe._native import merges_of_ranks
from bpe.errors import TokenizerError, TokenizerFileError
from bpe.formats.ids import id_limit
from bpe.formats.limits import (
    Lack,
    Ordinary,
    check_lacks,
    common_lacks,
    cuts_as,
    named_tokens,
    require_byte_level,
)
from bpe.formats.parts import TokenizerFiles, TokenizerParts
from bpe.formats.special_ids import with_ids
from bpe.formats.strict_json import read_bytes, shorten
from bpe.pretokenize import Pretokenizer

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

    from bpe.formats.special_ids import SpecialIds
    from bpe.tokenizer import Tokenizer


class _Published(NamedTuple):
    pretokenizer: str
    special_tokens: dict[str, int]


_END = "<|endoftext|>"
# What tiktoken 0.14 says of the files that OpenAI publishes, by the SHA-256 of each.
_PUBLISHED = {
    "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930": _Published(  # r50k_base
        "gpt2", {_END: 50256}
    ),
    "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7": _Published(  # cl100k_base
        "cl100k",
        {
            _END: 100257,
            "<|fim_prefix|>": 100258,
            "<|fim_middle|>": 100259,
            "<|fim_suffix|>": 100260,
            "<|endofprompt|>": 100276,
        },
    ),
    "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d": _Published(  # o200k_base
        "o200k", {_END: 199999, "<|endofprompt|>": 200018}
    ),
}


def read(
    path: Path,
    *,
    pretokenizer: Pretokenizer | None = None,
    special_tokens: SpecialIds = None,
) -> TokenizerParts:
    """Read a .tiktoken file.

    Args:
        path: the file.
        pretokenizer: how text is cut; may be None for r50k_base, cl100k_base and o200k_base as
            OpenAI publishes them, which are recognised by their content.
        special_tokens: each with its id, or by name where it is one of a recognised file; None
            takes all of those.

    Raises:
        TokenizerFileError: the file is broken, or it is unknown how it cuts text.
    """
    data = read_bytes(path)
    tokens = _tokens(path, data)
    try:
        merges = merges_of_ranks(
            b"".join(token or b"" for token in tokens),
            array("q", chain([0], accumulate(len(token or b"") for token in tokens))),
        )
    except ValueError as error:
        raise TokenizerFileError(f"{path}: {error}") from None
    published = _PUBLISHED.get(hashlib.sha256(data).hexdigest())
    known = published.special_tokens if published else {}
    special = with_ids(path, special_tokens, known=known)
    if special is None:
        special = known
    if pretokenizer is None:
        if published is None:
            raise TokenizerFileError(
                f"{path}: a .tiktoken file does not say how text is cut; name the pre-tokenizer "
                "(for example `pretokenizer` cl100k) or give a pattern"
            )
        pretokenizer = Pretokenizer(published.pretokenizer)
    _add_special_tokens(path, tokens, special)
    return TokenizerParts(
        tokens=tokens,
        merges=merges,
        pretokenizer=pretokenizer,
        special_tokens=special,
        ignore_merges=True,
    )


def holds_ranks(path: Path) -> bool:
    """Whether a file begins as a .tiktoken file does, whatever it is called."""
    with path.open("rb") as file:
        fields = file.readline(1 << 16).split()
    try:
        return len(fields) == 2 and fields[1].isdigit() and bool(base64.b64decode(fields[0]))
    except ValueError:
        return False


_BASE64 = (string.ascii_letters + string.digits + "+/=").encode()


def _tokens(path: Path, data: bytes) -> list[bytes | None]:
    return _tokens_in_order(data) or _tokens_line_by_line(path, data)


def _tokens_in_order(data: bytes) -> list[bytes | None] | None:
    """The tokens of a file in which nothing is wrong and ranks count from 0, as most are.

    None for any other, and for an empty one.
    """
    between = data.translate(None, _BASE64)
    lines = len(between) // 2
    fields = data.split()
    if between != b" \n" * lines or len(fields) != 2 * lines:
        return None
    if fields[1::2] != [b"%d" % rank for rank in range(lines)]:
        return None
    try:
        tokens = [*map(binascii.a2b_base64, fields[::2])]
    except binascii.Error:
        return None
    for encoded, token in zip(fields[::2], tokens, strict=True):
        # Padding that is not at the end leaves fewer bytes than that.
        if len(token) != len(encoded) // 4 * 3 - encoded.count(b"=", -2) or len(encoded) % 4:
            return None
    return [*tokens] if len(set(tokens)) == lines else None


def _tokens_line_by_line(path: Path, data: bytes) -> list[bytes | None]:
    """The same of any file.

    Raises:
        TokenizerFileError: it is not one; the message names the line.
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
                f"{path}: line {number}: the token {shorten(token)} is empty or there twice"
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


def _add_special_tokens(
    path: Path, tokens: list[bytes | None], special_tokens: Mapping[str, int]
) -> None:
    limit = id_limit(len(tokens))
    for content, id_ in special_tokens.items():
        if not 0 <= id_ < limit:
            raise TokenizerFileError(
                f"{path}: the special token {content!r} cannot have the id {id_}: give one from 0 "
                f"to {limit - 1}"
            )
        tokens += [None] * (id_ + 1 - len(tokens))
        if tokens[id_] is not None:
            raise TokenizerFileError(
                f"{path}: the special token {content!r} cannot have the id {id_}: the file gives "
                f"it to {shorten(tokens[id_])}"
            )
        tokens[id_] = content.encode("utf-8", "surrogatepass")


_KIND = "a .tiktoken file"


def write(tokenizer: Tokenizer, path: Path, *, leave_out: Collection[str] = ()) -> TokenizerFiles:
    """A tokenizer as a .tiktoken file, which lists its ordinary tokens by id.

    Raises:
        TokenizerError: the file would silently say something else; the message names what.
    """
    require_byte_level(tokenizer, kind=_KIND)
    ordinary = Ordinary(tokenizer)
    _check_merges(tokenizer, ordinary)
    data = b"".join(
        base64.b64encode(token) + b" %d\n" % id_
        for id_, token in enumerate(ordinary.tokens)
        if token is not None
    )
    check_lacks(
        lacks := _lacks(tokenizer, data),
        leave_out,
        kind=_KIND,
        loading="how text is cut and special tokens can be given when the file is loaded",
    )
    return TokenizerFiles({path: data}, lacks)


def _lacks(tokenizer: Tokenizer, data: bytes) -> dict[str, Lack]:
    """What the file does not say, or what would be said of it because OpenAI published it."""
    lacks = common_lacks(tokenizer)
    published = _PUBLISHED.get(hashlib.sha256(data).hexdigest())
    known = published.special_tokens if published else {}
    if tokenizer.special_tokens != known:
        instead = f", and is known to have {named_tokens(known)}" if known else ""
        named = named_tokens(tokenizer.special_tokens) or "(none)"
        lacks["special-tokens"] = Lack(f"the special tokens {named}{instead}")
    if published is None:
        # Without one, such a file does not load.
        lacks["pretokenizer"] = Lack("how text is cut", told=True)
    elif not cuts_as(tokenizer, published.pretokenizer):
        lacks["pretokenizer"] = Lack(
            f"another way to cut text than {published.pretokenizer}'s, with which OpenAI "
            "published these ranks"
        )
    return lacks


def _check_merges(tokenizer: Tokenizer, ordinary: Ordinary) -> None:
    """Refuse tokenizers that merge otherwise than the ranks of their tokens imply."""
    unmade = ordinary.unmade()
    if unmade and not tokenizer.ignore_merges:
        raise TokenizerError(
            f"{_KIND} cannot hold tokens that merging does not give, since tiktoken looks whole "
            f"pre-tokens up: {ordinary.named(unmade)}"
        )
    implied = ordinary.merges_of_ranks()
    if ordinary.merges == implied:
        return
    made, ranked = (dict(_merges(merges)) for merges in (ordinary.merges, implied))
    for id_ in sorted(made.keys() | ranked.keys()):
        if made.get(id_) != ranked.get(id_):
            here, there = (ordinary.named(parts.get(id_, ())) for parts in (made, ranked))
            raise TokenizerError(
                f"{_KIND} cannot hold these merges: the ranks imply that {ordinary.named([id_])} "
                f"is merged from {there or 'nothing'}, and here it is from {here or 'nothing'}"
            )
    order = ordinary.merges[2::3]
    first = next((a, b) for a, b in pairwise(order) if a > b)
    raise TokenizerError(
        f"{_KIND} cannot hold these merges: their order is that of the ids, and here "
        f"{ordinary.named(first[:1])} is merged before {ordinary.named(first[1:])}"
    )


def _merges(flat: list[int]) -> Iterator[tuple[int, tuple[int, int]]]:
    """The id that each merge makes, and the two ids it is made of."""
    for left, right, made in zip(flat[::3], flat[1::3], flat[2::3], strict=True):
        yield made, (left, right)
