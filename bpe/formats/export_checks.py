"""Checks before an export: what the file cannot hold, and that it holds everything else."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Literal, NamedTuple, TypeAlias, get_args

from bpe._native import merges_of_ranks, merges_that_happen
from bpe.errors import TokenizerError, listed
from bpe.formats.post_processor import not_applied
from bpe.formats.strict_json import shorten
from bpe.models import ByteLevel
from bpe.names import LossName
from bpe.parts import Merges, Parts
from bpe.pretokenizer import Pretokenizer
from bpe.token_table import TokenTable

LEAVE_OUT: tuple[LossName, ...] = get_args(LossName)
"""The parts that :meth:`bpe.Tokenizer.save` can leave out of a file that cannot hold them."""

Kind: TypeAlias = Literal["tiktoken", "vocab", "model", "tokenizer.json"]
Fate: TypeAlias = Literal["held", "lost", "reported", "refused"]

KINDS: Mapping[Kind, tuple[str, str]] = {
    "tiktoken": (
        "a .tiktoken file",
        "pre-tokenizer and special tokens can be given when the file is loaded",
    ),
    "vocab": (
        "vocab.json with merges.txt",
        "the pre-tokenizer can be given when the files are loaded",
    ),
    "model": ("a .model file of SentencePiece", "it cannot be given on loading"),
    "tokenizer.json": ("a tokenizer.json of another name", ""),
}
"""The formats: what messages call their files, and what can be given again on loading."""


class Loss(NamedTuple):
    """A part of a tokenizer that a file does not hold.

    Attributes:
        what: the values themselves, for people.
        reported: loading the file without it is an error or a documented default. If not, ids
            silently change, so that writing has to be asked for.
    """

    what: str
    reported: bool = False


def check_leave_out(leave_out: Collection[str]) -> None:
    """Check that all names are in :data:`LEAVE_OUT`.

    Raises:
        TokenizerError: a name is not in the list.
    """
    for name in listed(leave_out, "leave_out is", error=TokenizerError):
        if name not in LEAVE_OUT:
            raise TokenizerError(f"leave_out has no {name!r}: use {', '.join(LEAVE_OUT)}")


def named_tokens(named: Mapping[str, int]) -> str:
    """Return the first few special or added tokens with their ids."""
    return first_few([f"{content!r} ({id_})" for content, id_ in named.items()])


def first_few(names: Sequence[str], *, most: int = 5) -> str:
    """Return the first of some values, and the number of the others."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def _values(parts: Parts) -> Mapping[LossName, str]:
    """Return what a tokenizer has of each feature, empty for nothing.

    Not how text is cut: what a file loses of it depends on what its readers assume.
    """
    flags = parts.token_flags
    stripping = {token: parts.cut_tokens[token] for token in flags if flags[token].change_matches}
    roles = [f"{role} {token!r}" for role, token in parts.roles.tokens.items()]
    roles += ["a chat template"] if parts.roles.chat_template is not None else []
    return {
        "normalizer": ", ".join(parts.pretokenizer.normalizer),
        "never-split": ", ".join(parts.pretokenizer.never_split),
        "special-tokens": named_tokens(parts.special_tokens),
        "added-tokens": named_tokens(parts.added_tokens),
        "token-flags": named_tokens(stripping),
        "post-processor": "; ".join(not_applied(parts.post_processor)),
        "roles": ", ".join(roles),
    }


# Of each feature, its words in messages; and what becomes of it in a .tiktoken file, in vocab.json
# with merges.txt, in a .model file, and in a tokenizer.json. Roles change no id.
_TABLE: Mapping[LossName, tuple[str, tuple[Fate, Fate, Fate, Fate]]] = {
    "pretokenizer": ("{}", ("lost", "lost", "lost", "held")),
    "normalizer": ("the normalizer {}", ("lost", "lost", "held", "held")),
    "never-split": ("what is never split: {}", ("lost", "lost", "lost", "held")),
    "special-tokens": ("the special tokens {}", ("lost", "held", "held", "held")),
    "added-tokens": (
        "the added tokens {}, which are cut out of every text",
        ("lost", "lost", "refused", "held"),
    ),
    "token-flags": ("lstrip, rstrip or single_word of {}", ("lost", "lost", "lost", "held")),
    "post-processor": ("{}", ("lost", "lost", "lost", "held")),
    "roles": (
        "the roles of special tokens ({})",
        ("reported", "reported", "reported", "reported"),
    ),
}


def check_losses(
    parts: Parts,
    kind: Kind,
    leave_out: Collection[str],
    *,
    known: Mapping[LossName, Loss | None],
) -> dict[LossName, Loss]:
    """Return what a file would lose of a tokenizer, by the table of formats.

    Args:
        parts: to be written.
        kind: the format.
        leave_out: the losses that the caller accepts.
        known: of features that depend on more than the format, their loss, or None for none.

    Raises:
        TokenizerError: something else is lost silently, or the format can never hold it.
    """
    files, loading = KINDS[kind]
    values, losses = _values(parts), dict[LossName, Loss]()
    for name, (words, fates) in _TABLE.items():
        fate, value = fates[list(KINDS).index(kind)], values.get(name)
        what = words.format(value) if value else ""
        if fate == "refused" and what:
            raise TokenizerError(f"{files} cannot hold {what}: leave them out of the tokenizer")
        loss = Loss(what, reported=fate == "reported") if fate != "held" and what else None
        if (loss := known.get(name, loss)) is not None:
            losses[name] = loss
    refused = [name for name in losses if not losses[name].reported and name not in leave_out]
    if refused:
        raise TokenizerError(
            f"{files} cannot hold {'; '.join(losses[name].what for name in refused)}; to write it "
            f"without, give {' '.join(f'`leave_out` {name}' for name in refused)}; {loading}"
        )
    return losses


def cuts_as(parts: Parts, name: str) -> bool:
    """Return whether normalized text is cut in the same way as by a named pre-tokenizer."""
    cut = parts.pretokenizer
    return Pretokenizer.of(cut.name, cut.pattern) == Pretokenizer(name)


class Ordinary:
    """The tokens of a byte-level tokenizer that text can produce, and its merges.

    Attributes:
        tokens: the bytes of each id; None for gaps and for ids that text can never produce.
        table: the same.
        merges: the merges that happen.

    Raises:
        TokenizerError: the model is another one, or has superwords; ``kind`` names the format.
    """

    def __init__(self, parts: Parts, *, kind: str) -> None:
        if parts.superwords:
            raise TokenizerError(
                f"{kind} cannot hold superwords, which merge pre-tokens: write a tokenizer.json, "
                "or `approximate` them"
            )
        if not isinstance(parts.model, ByteLevel):
            raise TokenizerError(
                f"{kind} can hold byte-level tokenizers only, and this one is "
                f"{type(parts.model).__name__}: write a tokenizer.json"
            )
        atomic = parts.atomic_ids
        self.tokens: Sequence[bytes | None] = [
            None if id_ in atomic else token for id_, token in enumerate(parts.tokens)
        ]
        self.table = table = TokenTable.of(self.tokens)
        self.merges = Merges.of(merges_that_happen(table.data, table.offsets, parts.merges.flat))

    def unmade(self) -> list[int]:
        """Return the ids of the tokens of several bytes that no merge makes."""
        results = set(self.merges.results)
        return [
            id_
            for id_, token in enumerate(self.tokens)
            if token is not None and len(token) > 1 and id_ not in results
        ]

    def named(self, ids: Iterable[int]) -> str:
        """Return the first few tokens with their ids."""
        return first_few([f"{shorten(self.tokens[id_])} ({id_})" for id_ in ids])


def check_implied(merges: Merges, tokens: TokenTable, *, kind: str, model: str = "bytes") -> None:
    """Check that merges are those that happen if any two tokens that make a token merge.

    The token with the lowest id is then made first, as in tiktoken and SentencePiece.

    Args:
        merges: those that happen, as ids of ``tokens``.
        tokens: in the order in which they are made.
        kind: the format, for errors.
        model: the name of the core's model.

    Raises:
        TokenizerError: other merges would happen; or the tokens are the joins of others in millions
            of ways.
    """
    try:
        implied = Merges.of(merges_of_ranks(tokens.data, tokens.offsets, model))
    except ValueError as error:
        raise TokenizerError(f"{kind} cannot hold these tokens: {error}") from None

    def shown(merge: tuple[int, int, int] | None) -> str:
        pair = [] if merge is None else map(tokens.bytes_of, merge[:2])
        return " and ".join(map(shorten, pair)) or "none"

    for number, (theirs, ours) in enumerate(zip_longest(implied, merges)):
        if theirs != ours:
            raise TokenizerError(
                f"{kind} cannot hold these merges: there, any two tokens that make a token merge, "
                f"in the order of what they make; so merge {number} would be of {shown(theirs)}, "
                f"and here it is of {shown(ours)}"
            )
