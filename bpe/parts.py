"""The parts of a tokenizer as one value, `Parts`. Formats read and write it."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

from bpe.byte_alphabet import to_text
from bpe.errors import TokenizerError
from bpe.models import ByteLevel, Model, WordPiece
from bpe.pretokenizer import Pretokenizer
from bpe.roles import Roles
from bpe.special_tokens import TokenFlags, check_special_tokens
from bpe.token_table import TokenTable
from bpe.training_report import Training

if TYPE_CHECKING:
    from typing_extensions import Buffer


@dataclass(frozen=True, repr=False)
class Merges:
    """Merges as (left, right, result) ids, in order. Immutable.

    Attributes:
        flat: the ids one after the other, as uint32.
    """

    flat: array[int] = field(default_factory=partial(array, "I"))

    @classmethod
    def of(
        cls,
        merges: Merges | Sequence[tuple[int, ...]] | Iterator[tuple[int, ...]] | Buffer,
        *,
        kind: str = "merge",
    ) -> Merges:
        """Merges of triples, or of a buffer of uint32.

        Args:
            merges: triples, or a buffer of uint32.
            kind: the name of a merge in errors.

        Raises:
            TokenizerError: they are not triples of numbers from 0 to 2^32 - 1.
        """
        if isinstance(merges, Merges):
            return merges
        flat = array("I")
        try:
            view = memoryview(merges)  # type: ignore[arg-type]  # a sequence is next
        except TypeError:
            try:
                for left, right, result in merges:  # type: ignore[union-attr]
                    flat.extend((left, right, result))
            except (TypeError, ValueError, OverflowError) as error:
                raise TokenizerError(
                    f"{kind} {len(flat) // 3} is not three ids, left, right and result: {error}"
                ) from None
            return cls(flat)
        if view.nbytes % 12:
            raise TokenizerError(f"{view.nbytes} bytes of {kind}s are not triples of uint32")
        flat.frombytes(view.cast("B"))
        return cls(flat)

    @property
    def results(self) -> array[int]:
        """Return the id that each merge makes."""
        return self.flat[2::3]

    def first(self, count: int) -> Merges:
        """Return the first merges."""
        return Merges(self.flat[: 3 * count])

    def __len__(self) -> int:
        return len(self.flat) // 3

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        flat = iter(self.flat)
        return zip(flat, flat, flat, strict=True)

    def __hash__(self) -> int:
        return hash(self.flat.tobytes())


@dataclass(frozen=True, kw_only=True)
class Parts:
    """The parts of a tokenizer. Two with the same parts are equal; training does not count.

    Attributes:
        tokens: the bytes of each id, special tokens as UTF-8; None for ids without a token. No
            two are equal. A byte-level model needs every single byte.
        merges: (left, right, result) ids in order.
        pretokenizer: how text is cut before merging.
        superwords: (left, right, result) ids of merges across pre-tokens, in order, of a byte-level
            model. A token that only superwords make is never looked up as a pre-token.
        special_tokens: tokens, with their ids, that text can hold only if the caller allows it;
            otherwise the same characters are plain text. No merge makes or uses them.
        added_tokens: tokens, with their ids, that are cut out of every text.
        ignore_merges: whether a pre-token that is a token is encoded as it, whatever the merges.
        model: what a pre-token consists of before and after merging.
        post_processor: the post-processor of tokenizer.json; written back, never applied.
        roles: what a model uses special tokens for.
        token_flags: how special and added tokens are found in a text, if not just anywhere.
        training: how it was trained, if known.

    Raises:
        TokenizerError, SpecialTokenError: the parts contradict each other. What only the core sees
            is checked when it makes an encoder of them (`bpe.core_encoder`).
    """

    tokens: TokenTable
    merges: Merges
    pretokenizer: Pretokenizer
    superwords: Merges = field(default_factory=Merges)
    special_tokens: Mapping[str, int] = field(default_factory=dict)
    added_tokens: Mapping[str, int] = field(default_factory=dict)
    ignore_merges: bool = False
    model: Model = field(default_factory=ByteLevel)
    post_processor: Mapping[str, Any] | None = None
    roles: Roles = field(default_factory=Roles)
    token_flags: Mapping[str, TokenFlags] = field(default_factory=dict)
    training: Training | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        for content in self.special_tokens.keys() & self.added_tokens.keys():
            raise TokenizerError(f"{content!r} is both a special and an added token; choose one")
        vars(self).update(
            tokens=TokenTable.of(self.tokens),
            merges=Merges.of(self.merges),
            superwords=Merges.of(self.superwords, kind="superword merge"),
        )
        vars(self).update(
            special_tokens=self._checked_names(self.special_tokens),
            added_tokens=self._checked_names(self.added_tokens),
            ignore_merges=bool(self.ignore_merges),
            post_processor=deepcopy(self.post_processor),
        )
        vars(self).update(token_flags=self._checked_flags())
        for role, token in self.roles.tokens.items():
            if token not in self.cut_tokens and token.encode() not in self.tokens:
                raise TokenizerError(f"`{role}`: the tokenizer has no token {token!r}")

    def _checked_names(self, named: Mapping[str, int]) -> dict[str, int]:
        """Special or added tokens in the order of their ids."""
        check_special_tokens(named)
        for content, id_ in named.items():
            actual = self.tokens[id_] if 0 <= id_ < len(self.tokens) else None
            if actual != content.encode():
                raise TokenizerError(
                    f"the special or added token {content!r} should be token {id_}, which is "
                    f"{actual!r}"
                )
        return dict(sorted(named.items(), key=lambda item: item[1]))

    def _checked_flags(self) -> dict[str, TokenFlags]:
        """Return the flags of special and added tokens by id, without empty flags."""
        for content, flag in self.token_flags.items():
            if content not in self.cut_tokens:
                raise TokenizerError(
                    f"flags of {content!r:.60}, which is no special or added token"
                )
            if not isinstance(flag, TokenFlags):
                raise TokenizerError(
                    f"the flags of {content!r:.60} are {flag!r:.60}, not TokenFlags"
                )
        flags = {one: self.token_flags[one] for one in self.cut_tokens if one in self.token_flags}
        return {content: flag for content, flag in flags.items() if flag != TokenFlags()}

    def __getstate__(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @property
    def size(self) -> int:
        """Return the number of tokens: special tokens count, ids without a token do not."""
        return sum(begin < end for begin, end in pairwise(self.tokens.offsets))

    @property
    def max_id(self) -> int:
        """Return the greatest id: ``size - 1``, or more if some ids have no token."""
        return len(self.tokens) - 1

    @cached_property
    def ids(self) -> dict[bytes, int]:
        """Return the id of each token."""
        return {token: id_ for id_, token in enumerate(self.tokens) if token is not None}

    @cached_property
    def cut_tokens(self) -> dict[str, int]:
        """Return the special and the added tokens, which text is cut at, by id."""
        both = {**self.special_tokens, **self.added_tokens}
        return dict(sorted(both.items(), key=lambda item: item[1]))

    @cached_property
    def atomic_ids(self) -> frozenset[int]:
        """Return the ids that ordinary text never encodes to.

        That is every special token, and every added token unless it is a symbol of the model, part
        of a merge, or a WordPiece.
        """
        ids = frozenset(self.special_tokens.values())
        if isinstance(self.model, WordPiece) or not self.added_tokens:
            return ids
        added = {
            id_
            for content, id_ in self.added_tokens.items()
            if not self.model.is_symbol(content.encode())
        }
        return ids | added.difference(chain(self.merges.flat, self.superwords.flat))

    @cached_property
    def superword_ids(self) -> frozenset[int]:
        """Return the tokens that superwords alone make: no pre-token is one of them."""
        return frozenset(self.superwords.results).difference(self.merges.results)

    @cached_property
    def cut_texts(self) -> dict[int, str]:
        """Return the texts of special and added tokens, by id."""
        return {id_: content for content, id_ in self.cut_tokens.items()}

    def text(self, id_: int) -> str:
        """Return a token as tokenizer.json spells it: in GPT-2's alphabet, or as characters."""
        if id_ in self.cut_texts:
            return self.cut_texts[id_]
        token = self.tokens.bytes_of(id_)
        return to_text(token) if isinstance(self.model, ByteLevel) else token.decode()

    def ranks(self, merges: Merges) -> dict[tuple[bytes, bytes], int]:
        """Return the rank of each pair of tokens, by their bytes."""
        of = self.tokens.bytes_of
        return {(of(left), of(right)): rank for rank, (left, right, _) in enumerate(merges)}
