"""Checks before an export: what the file cannot hold, and that it holds everything else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, get_args

from bpe._native import merges_of_ranks, merges_that_happen
from bpe.errors import TokenizerError
from bpe.formats.post_processor import not_applied
from bpe.formats.strict_json import shorten
from bpe.models import ByteLevel
from bpe.pretokenizer import Pretokenizer
from bpe.token_table import TokenTable

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from typing import Any

    from bpe.parts import Parts
    from bpe.roles import Roles

LossName: TypeAlias = Literal[
    "pretokenizer",
    "normalizer",
    "never-split",
    "special-tokens",
    "added-tokens",
    "token-flags",
    "post-processor",
    "roles",
]
LEAVE_OUT: tuple[LossName, ...] = get_args(LossName)
"""What :meth:`bpe.Tokenizer.save` can leave out of a file that cannot hold it."""

_SHOWN = 5


class Loss(NamedTuple):
    """Something of a tokenizer that a file does not hold.

    Attributes:
        what: the values themselves, for people.
        reported: loading the file without it is an error or a documented default. If not, ids
            silently change, so that writing has to be asked for.
    """

    what: str
    reported: bool = False


def check_losses(
    losses: Mapping[LossName, Loss], leave_out: Collection[str], *, kind: str, loading: str
) -> None:
    """Refuse to write a file that silently loses something.

    Args:
        losses: what the file does not hold, by its name in :data:`LEAVE_OUT`.
        leave_out: the losses that the caller accepts.
        kind: the format, for the message.
        loading: what can be given again on loading, for the message.

    Raises:
        TokenizerError: something else is lost silently.
    """
    silent = {name: loss for name, loss in losses.items() if not loss.reported}
    refused = [name for name in silent if name not in leave_out]
    if refused:
        values = "; ".join(silent[name].what for name in refused)
        raise TokenizerError(
            f"{kind} cannot hold {values}; to write it without, give "
            f"{' '.join(f'`leave_out` {name}' for name in refused)}; {loading}"
        )


def check_leave_out(leave_out: Collection[str]) -> None:
    """Refuse names that are not of :data:`LEAVE_OUT`.

    Raises:
        TokenizerError: one is not.
    """
    if isinstance(leave_out, str):
        raise TokenizerError(f"leave_out is a list of names, such as [{leave_out!r}], not a str")
    for name in leave_out:
        if name not in LEAVE_OUT:
            raise TokenizerError(f"leave_out has no {name!r}: use {', '.join(LEAVE_OUT)}")


def named_tokens(named: Mapping[str, int], *, of: Collection[str] | None = None) -> str:
    """The first few special or added tokens with their ids; of all, or of some."""
    if of is not None:
        named = {content: named[content] for content in of}
    shown = [f"{content!r} ({id_})" for content, id_ in list(named.items())[:_SHOWN]]
    more = len(named) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def common_losses(parts: Parts) -> dict[LossName, Loss]:
    """The losses of both ``.tiktoken`` and ``vocab.json`` with ``merges.txt``."""
    losses: dict[LossName, Loss] = {}
    cut = parts.pretokenizer
    if cut.normalizer:
        losses["normalizer"] = Loss(f"the normalizer {', '.join(cut.normalizer)}")
    if cut.never_split:
        losses["never-split"] = Loss(f"what is never split: {', '.join(cut.never_split)}")
    if parts.added_tokens:
        losses["added-tokens"] = Loss(
            f"the added tokens {named_tokens(parts.added_tokens)}, which are cut out of every text"
        )
    stripping = [token for token, flags in parts.token_flags.items() if flags.change_matches]
    if stripping:
        named = named_tokens(parts.cut_tokens, of=stripping)
        losses["token-flags"] = Loss(f"lstrip, rstrip or single_word of {named}")
    if adds := not_applied(parts.post_processor):
        losses["post-processor"] = Loss("; ".join(adds))
    if parts.roles:
        losses["roles"] = lost_roles(parts.roles)
    return losses


def lost_roles(roles: Roles) -> Loss:
    """The loss of roles, which changes no id: what asks for one later is refused."""
    named = [f"{role} {token!r}" for role, token in roles.tokens.items()]
    template = ["a chat template"] if roles.chat_template is not None else []
    return Loss(f"the roles of special tokens ({', '.join(named + template)})", reported=True)


def cuts_as(parts: Parts, name: str) -> bool:
    """Whether normalized text is cut as by a named pre-tokenizer."""
    cut = parts.pretokenizer
    return Pretokenizer.of(cut.name, cut.pattern) == Pretokenizer(name)


def require_byte_level(parts: Parts, *, kind: str) -> None:
    """Refuse models that are not byte-level, and superwords.

    Raises:
        TokenizerError: the model is another one, or has superwords.
    """
    if parts.superwords:
        raise TokenizerError(
            f"{kind} cannot hold superwords, which merge pre-tokens: write a tokenizer.json, or "
            "`approximate` them"
        )
    if not isinstance(parts.model, ByteLevel):
        raise TokenizerError(
            f"{kind} can hold byte-level tokenizers only, and this one is "
            f"{type(parts.model).__name__}: write a tokenizer.json"
        )


class Ordinary:
    """The tokens of a byte-level tokenizer that text can produce, and its merges.

    Attributes:
        tokens: the bytes of each id; None for gaps and for ids that text can never produce.
        merges: the merges that happen, as a flat list of ids: left, right, result, left, ...
    """

    def __init__(self, parts: Parts) -> None:
        atomic = parts.atomic_ids
        self.tokens: Sequence[bytes | None] = [
            None if id_ in atomic else token for id_, token in enumerate(parts.tokens)
        ]
        self._table = TokenTable.of(self.tokens)
        self.merges = _flat(
            merges_that_happen(self._table.data, self._table.offsets, parts.merges.flat)
        )

    def unmade(self) -> list[int]:
        """The ids of the tokens of several bytes that no merge makes."""
        results = set(self.merges[2::3])
        return [
            id_
            for id_, token in enumerate(self.tokens)
            if token is not None and len(token) > 1 and id_ not in results
        ]

    def merges_of_ranks(self) -> list[int]:
        """The merges that happen if ids are ranks, as in tiktoken.

        Raises:
            TokenizerError: the tokens are the joins of others in millions of ways.
        """
        try:
            return _flat(merges_of_ranks(self._table.data, self._table.offsets))
        except ValueError as error:
            raise TokenizerError(str(error)) from None

    def named(self, ids: Iterable[int]) -> str:
        """The first few tokens with their ids."""
        ids = list(ids)
        shown = [f"{shorten(self.tokens[id_])} ({id_})" for id_ in ids[:_SHOWN]]
        return ", ".join(shown) + (f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else "")


def _flat(buffer: Any) -> list[int]:
    return memoryview(buffer).cast("B").cast("I").tolist()
