"""What a file format cannot hold of a tokenizer, and the proofs that it holds the rest."""

from __future__ import annotations

from array import array
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from bpe._atomic import atomic_ids
from bpe._native import merges_of_ranks, merges_that_happen
from bpe.errors import TokenizerError
from bpe.formats.strict_json import shorten
from bpe.models import ByteLevel
from bpe.pretokenize import Pretokenizer

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from typing import Any

    from bpe.tokenizer import Tokenizer

LEAVE_OUT = (
    "pretokenizer",
    "normalizer",
    "never-split",
    "special-tokens",
    "added-tokens",
    "post-processor",
)
"""What :meth:`bpe.Tokenizer.save` leaves out of a file that cannot hold it, where it is told to."""

_SHOWN = 5


class Lack(NamedTuple):
    """Something of a tokenizer that a file does not hold.

    Attributes:
        what: for people: the values themselves.
        told: whether whoever loads the file without it is told so; if not, its ids are silently
            others, and writing the file without it has to be asked for.
    """

    what: str
    told: bool = False


def check_lacks(
    lacks: Mapping[str, Lack], leave_out: Collection[str], *, kind: str, loading: str
) -> None:
    """Refuse to write a file that silently says less than the tokenizer.

    Args:
        lacks: what the file does not hold, by its name in :data:`LEAVE_OUT`.
        leave_out: what the caller knows and accepts.
        kind: the format, for the message.
        loading: what may be given again when the file is loaded, for the message.

    Raises:
        TokenizerError: it lacks something else.
    """
    refused = {name: lack for name, lack in lacks.items() if not lack.told}
    missing = [name for name in refused if name not in leave_out]
    if missing:
        whats = "; ".join(refused[name].what for name in missing)
        raise TokenizerError(
            f"{kind} cannot hold {whats}; to write it without, give "
            f"{' '.join(f'`leave_out` {name}' for name in missing)}; {loading}"
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
            raise TokenizerError(
                f"{name!r} cannot be left out of a file; what can: {', '.join(LEAVE_OUT)}"
            )


def named_tokens(named: Mapping[str, int]) -> str:
    """Special or added tokens with their ids, the first few of many."""
    shown = [f"{content!r} ({id_})" for content, id_ in list(named.items())[:_SHOWN]]
    more = len(named) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def common_lacks(tokenizer: Tokenizer) -> dict[str, Lack]:
    """What neither ``.tiktoken`` nor ``vocab.json`` with ``merges.txt`` can hold."""
    lacks = {}
    cut = tokenizer.pretokenizer
    if cut.normalizer:
        lacks["normalizer"] = Lack(f"the normalizer {', '.join(cut.normalizer)}")
    if cut.never_split:
        lacks["never-split"] = Lack(f"what is never split: {', '.join(cut.never_split)}")
    if tokenizer.added_tokens:
        lacks["added-tokens"] = Lack(
            f"the added tokens {named_tokens(tokenizer.added_tokens)}, which are cut out of every "
            "text"
        )
    if tokenizer.not_applied:
        lacks["post-processor"] = Lack("; ".join(tokenizer.not_applied))
    return lacks


def cuts_as(tokenizer: Tokenizer, name: str) -> bool:
    """Whether normalized text is cut as a named pre-tokenizer does."""
    cut = tokenizer.pretokenizer
    return Pretokenizer.of(cut.name, cut.pattern) == Pretokenizer(name)


def require_byte_level(tokenizer: Tokenizer, *, kind: str) -> None:
    """Refuse models whose symbols are not the bytes.

    Raises:
        TokenizerError: the tokenizer has such a model.
    """
    if not isinstance(tokenizer.model, ByteLevel):
        raise TokenizerError(
            f"{kind} can hold byte-level tokenizers only, and this one is "
            f"{type(tokenizer.model).__name__}: write a tokenizer.json"
        )


class Ordinary:
    """The tokens of a byte-level tokenizer that merging and looking up can give, and its merges.

    Attributes:
        tokens: the bytes of each id; None for gaps and for ids that text can never produce.
        merges: the merges that happen, as a flat list of ids: left, right, result, left, ...
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        atomic = atomic_ids(
            special_tokens=tokenizer.special_tokens,
            added_tokens=tokenizer.added_tokens,
            merging=(id_ for merge in tokenizer.merges for id_ in merge),
            model=tokenizer.model,
        )
        self.tokens: Sequence[bytes | None] = [
            None if id_ in atomic else token for id_, token in enumerate(tokenizer.tokens)
        ]
        self._data = b"".join(token or b"" for token in self.tokens)
        lengths = (len(token or b"") for token in self.tokens)
        self._offsets = array("q", accumulate(lengths, initial=0))
        triples = array("I", (id_ for merge in tokenizer.merges for id_ in merge))
        self.merges = _flat(merges_that_happen(self._data, self._offsets, triples))

    def unmade(self) -> list[int]:
        """The ids of the tokens of several bytes that merging does not give."""
        made = set(self.merges[2::3])
        return [
            id_
            for id_, token in enumerate(self.tokens)
            if token is not None and len(token) > 1 and id_ not in made
        ]

    def merges_of_ranks(self) -> list[int]:
        """The merges that happen where the ids are ranks, as in tiktoken.

        Raises:
            TokenizerError: the tokens are the joins of others in millions of ways.
        """
        try:
            return _flat(merges_of_ranks(self._data, self._offsets))
        except ValueError as error:
            raise TokenizerError(str(error)) from None

    def named(self, ids: Iterable[int]) -> str:
        """Tokens with their ids, the first few of many."""
        ids = list(ids)
        shown = [f"{shorten(self.tokens[id_])} ({id_})" for id_ in ids[:_SHOWN]]
        return ", ".join(shown) + (f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else "")


def _flat(buffer: Any) -> list[int]:
    return memoryview(buffer).cast("B").cast("I").tolist()
