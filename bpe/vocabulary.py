"""The parts of a tokenizer, checked once: tokens, merges, model, pre-tokenizer."""

from __future__ import annotations

from array import array
from copy import deepcopy
from dataclasses import FrozenInstanceError, replace
from functools import cached_property
from itertools import chain, pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

from bpe._arrow import as_id, utf8
from bpe._native import Encoder
from bpe.byte_alphabet import to_text
from bpe.errors import EncodingError, TokenizerError
from bpe.models import ByteLevel, CharacterLevel, Model, WordPiece, atomic_ids
from bpe.normalizer import MARK, PREPENDING
from bpe.roles import Roles
from bpe.special_tokens import TokenFlags, check_special_tokens
from bpe.token_table import TokenTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from typing_extensions import Buffer, Self

    from bpe.pretokenizer import Pretokenizer
    from bpe.training_report import Training


_STATE = (
    "tokens",
    "merges",
    "superwords",
    "pretokenizer",
    "special_tokens",
    "added_tokens",
    "ignore_merges",
    "model",
    "post_processor",
    "roles",
    "token_flags",
)


class Vocabulary:
    """The parts of a :class:`bpe.Tokenizer`, which documents them: checked once, then immutable.

    Two with the same parts are equal, and pickle as their parts; training does not count.
    """

    _table: TokenTable
    _merges: array[int]
    _superwords: array[int]
    _pretokenizer: Pretokenizer
    _special_tokens: dict[str, int]
    _added_tokens: dict[str, int]
    _ignore_merges: bool
    _model: Model
    _training: Training | None
    _post_processor: dict[str, Any] | None
    _roles: Roles
    _token_flags: dict[str, TokenFlags]
    _encoder: Encoder

    def __init__(
        self,
        *,
        tokens: Sequence[bytes | None] | TokenTable,
        merges: Sequence[tuple[int, int, int]] | Buffer,
        superwords: Sequence[tuple[int, int, int]] | Buffer = (),
        pretokenizer: Pretokenizer,
        special_tokens: Mapping[str, int] = MappingProxyType({}),
        added_tokens: Mapping[str, int] = MappingProxyType({}),
        ignore_merges: bool = False,
        model: Model = ByteLevel(),  # noqa: B008  # immutable
        training: Training | None = None,
        post_processor: Mapping[str, Any] | None = None,
        roles: Roles = Roles(),  # noqa: B008  # immutable
        token_flags: Mapping[str, TokenFlags] = MappingProxyType({}),
    ) -> None:
        for content in special_tokens.keys() & added_tokens.keys():
            raise TokenizerError(f"{content!r} is both a special and an added token; choose one")
        table = tokens if isinstance(tokens, TokenTable) else TokenTable.of(tokens)
        vars(self).update(
            _table=table,
            _merges=merge_triples(merges),
            _superwords=merge_triples(superwords, kind="superword merge"),
            _pretokenizer=pretokenizer,
            _special_tokens=checked_names(table, special_tokens),
            _added_tokens=checked_names(table, added_tokens),
            _ignore_merges=bool(ignore_merges),
            _model=model,
            _training=training,
            _post_processor=deepcopy(post_processor),
            _roles=roles,
            _token_flags=_checked_flags(token_flags, {**special_tokens, **added_tokens}),
        )
        self._check_roles(roles)
        vars(self)["_encoder"] = self._make_encoder(model)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise FrozenInstanceError(f"cannot assign {name!r}: a tokenizer is immutable")

    def __delattr__(self, name: str) -> NoReturn:
        raise FrozenInstanceError(f"cannot delete {name!r}: a tokenizer is immutable")

    def _make_encoder(
        self, model: Model, *, marks: bytes = b"", never_split: bool = True
    ) -> Encoder:
        """One of the same tokens; without ``never_split``, any pre-token merges."""
        cut = self._pretokenizer
        return make_encoder(
            table=self._table,
            merges=self._merges,
            superwords=self._superwords,
            special_tokens=self._special_tokens,
            added_tokens=self._added_tokens,
            model=model,
            pretokenizer=cut if never_split else replace(cut, never_split=()),
            ignore_merges=self._ignore_merges,
            marks=marks,
            token_flags=self._token_flags,
        )

    def marking_encoder(self, marks: bytes) -> Encoder:
        """An encoder of the core that counts runs of the tokens whose byte in ``marks`` is 1."""
        return self._make_encoder(self._model, marks=marks)

    @property
    def tokens(self) -> tuple[bytes | None, ...]:
        """The bytes of each id; None where no token has it."""
        return self._tokens

    @property
    def merges(self) -> list[tuple[int, int, int]]:
        """The merges as (left, right, result) ids, in order."""
        return _as_triples(self._merges)

    @property
    def superwords(self) -> list[tuple[int, int, int]]:
        """The merges across pre-tokens as (left, right, result) ids, in order."""
        return _as_triples(self._superwords)

    @property
    def pretokenizer(self) -> Pretokenizer:
        """How text is cut before merging."""
        return self._pretokenizer

    @property
    def special_tokens(self) -> Mapping[str, int]:
        """The tokens that text can hold only if the caller allows it, with their ids."""
        return MappingProxyType(self._special_tokens)

    @property
    def added_tokens(self) -> Mapping[str, int]:
        """The tokens that are cut out of every text, with their ids."""
        return MappingProxyType(self._added_tokens)

    @property
    def token_flags(self) -> Mapping[str, TokenFlags]:
        """How special and added tokens are found, for those that have any of these flags."""
        return MappingProxyType(self._token_flags)

    @property
    def ignore_merges(self) -> bool:
        """Whether a pre-token that is a token is encoded as that token, whatever the merges."""
        return self._ignore_merges

    @property
    def model(self) -> Model:
        """What a pre-token consists of before and after merging."""
        return self._model

    @property
    def post_processor(self) -> Mapping[str, Any] | None:
        """The ``post_processor`` of tokenizer.json, a copy; never applied."""
        return deepcopy(self._post_processor)

    @property
    def training(self) -> Training | None:
        """How it was trained; None where that is not known, as after loading."""
        return self._training

    def with_training(self, training: Training | None) -> Self:
        """This tokenizer with another :attr:`training`, such as ``Training.load(path)``."""
        return self._with(_training=training)

    @property
    def roles(self) -> Roles:
        """What a model uses special tokens for."""
        return self._roles

    def with_roles(self, roles: Roles) -> Self:
        """This tokenizer with other roles; tokens to be added make another :attr:`post_processor`.

        Raises:
            TokenizerError: a token is none of this tokenizer's; or one that is to be added is not
                a special token.
        """
        self._check_roles(roles)
        for role in ("bos", "eos"):
            token = getattr(roles, role)
            if getattr(roles, f"add_{role}") and token not in self._special_tokens:
                raise TokenizerError(f"`add_{role}`: {token!r} is not a special token")
        processor = roles.post_processor(self._special_tokens)
        if processor is None and not (self._roles.add_bos or self._roles.add_eos):
            processor = deepcopy(self._post_processor)
        return self._with(_roles=roles, _post_processor=processor)

    def _with(self, **parts: object) -> Self:
        """This tokenizer with other parts that do not change what a text encodes to."""
        other = object.__new__(type(self))
        kept = {name: value for name, value in vars(self).items() if name != "sha256"}
        vars(other).update(kept, **parts)
        return other

    def _check_roles(self, roles: Roles) -> None:
        for role, token in roles.tokens.items():
            named = token in self._special_tokens or token in self._added_tokens
            if not named and token.encode() not in self._table:
                raise TokenizerError(f"`{role}`: the tokenizer has no token {token!r}")

    @property
    def lossless(self) -> bool:
        """Whether every text decodes to itself: byte-level, and nothing is dropped.

        Special tokens, which a caller has to allow, may drop whitespace all the same.
        """
        keeps_text = isinstance(self._model, ByteLevel) and self._pretokenizer.lossless
        return keeps_text and not any(
            flags.drop_whitespace and token in self._added_tokens
            for token, flags in self._token_flags.items()
        )

    @property
    def max_id(self) -> int:
        """The greatest id: ``len() - 1``, or more if some ids have no token."""
        return len(self._table) - 1

    def __len__(self) -> int:
        """The number of tokens: special tokens count, ids without a token do not."""
        return sum(begin < end for begin, end in pairwise(self._table.offsets))

    @property
    def vocab_size(self) -> int:
        """The number of tokens, as ``len()``; with gaps, :attr:`max_id` is greater."""
        return len(self)

    def get_vocab(self) -> dict[str, int]:
        """The id of each token by its text (see :meth:`token_text`), in the order of the ids."""
        return dict(self._ids_by_text)

    def token_to_id(self, token: str | bytes) -> int | None:
        """The id of a token; None if there is none.

        Args:
            token: its text as in :meth:`get_vocab` (of bytes: ``Ġthe``), or its bytes.

        Raises:
            TypeError: it is neither str nor bytes.
        """
        return self._ids_by_text.get(token) if isinstance(token, str) else self.token_id(token)

    def id_to_token(self, token_id: int) -> str | None:
        """The text of a token (see :meth:`token_text`); None if no token has the id.

        Raises:
            TypeError: it is not an int.
        """
        try:
            return self.token_text(token_id)
        except EncodingError:
            return None

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes of a token.

        Raises:
            EncodingError: no token has this id.
            TypeError: it is not an int.
        """
        token_id = as_id(token_id)
        token = self._table[token_id] if 0 <= token_id < len(self._table) else None
        if token is None:
            raise EncodingError(f"no token has the id {token_id}; the greatest id is {self.max_id}")
        return token

    def token_text(self, token_id: int) -> str:
        """A token as tokenizer.json spells it: bytes in GPT-2's alphabet, or its characters.

        Raises:
            EncodingError, TypeError: as :meth:`token_bytes`.
        """
        token = self.token_bytes(token_id)
        if token_id in self._cut_tokens:
            return self._cut_tokens[token_id]
        return to_text(token) if isinstance(self._model, ByteLevel) else token.decode()

    def token_id(self, token: str | bytes) -> int | None:
        """The id of the token with these bytes; None if there is none.

        Args:
            token: its bytes; a str stands for its UTF-8.

        Raises:
            EncodingError: a str has a lone surrogate, which no token has.
            TypeError: it is neither str nor bytes.
        """
        return self._ids.get(utf8(token, what="the token"))

    @cached_property
    def _tokens(self) -> tuple[bytes | None, ...]:
        return tuple(self._table)

    @cached_property
    def _ids(self) -> dict[bytes, int]:
        return {token: id_ for id_, token in enumerate(self._tokens) if token is not None}

    @cached_property
    def _ids_by_text(self) -> dict[str, int]:
        return {self.token_text(id_): id_ for id_ in sorted(self._ids.values())}

    @cached_property
    def _cut_tokens(self) -> dict[int, str]:
        """The special and added tokens by their ids."""
        tokens = chain(self._special_tokens.items(), self._added_tokens.items())
        return {id_: content for content, id_ in tokens}

    def _state(self) -> tuple[Any, ...]:
        return tuple(getattr(self, f"_{name}") for name in _STATE)

    def __eq__(self, other: object) -> bool:
        """Whether the other has the same tokens, merges and settings; training does not count."""
        return self._state() == other._state() if isinstance(other, Vocabulary) else NotImplemented

    def __hash__(self) -> int:
        return hash((self._tokens, self._merges.tobytes()))

    def __getstate__(self) -> dict[str, Any]:
        return dict(zip(_STATE, self._state(), strict=True)) | {"training": self.training}

    def __setstate__(self, state: dict[str, Any]) -> None:
        Vocabulary.__init__(self, **state)


def _as_triples(merges: array[int]) -> list[tuple[int, int, int]]:
    flat = iter(merges)
    return list(zip(flat, flat, flat, strict=True))


def merge_triples(
    merges: Sequence[tuple[int, int, int]] | Buffer, *, kind: str = "merge"
) -> array[int]:
    """Merges as one flat array of uint32: left, right, result, left, ...

    Args:
        merges: triples, or a buffer of uint32.
        kind: what errors call one of them.

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
                f"{kind} {len(flat) // 3} is not three ids, left, right and result: {error}"
            ) from None
        return flat
    if view.nbytes % 12:
        raise TokenizerError(f"{view.nbytes} bytes of {kind}s are not triples of uint32")
    flat.frombytes(view.cast("B"))
    return flat


def checked_names(tokens: TokenTable, named: Mapping[str, int]) -> dict[str, int]:
    """Special or added tokens in the order of their ids.

    Raises:
        SpecialTokenError: one is empty, not a str, or has no UTF-8.
        TokenizerError: the token with its id has other bytes.
    """
    check_special_tokens(named)
    for content, id_ in named.items():
        actual = tokens[id_] if 0 <= id_ < len(tokens) else None
        if actual != content.encode():
            raise TokenizerError(
                f"the special or added token {content!r} should be token {id_}, which is {actual!r}"
            )
    return dict(sorted(named.items(), key=lambda item: item[1]))


def _checked_flags(
    flags: Mapping[str, TokenFlags], named: Mapping[str, int]
) -> dict[str, TokenFlags]:
    """The flags of special and added tokens, in the order of their ids, without empty ones.

    Raises:
        TokenizerError: one is of no such token, or none of `TokenFlags`.
    """
    for content, flag in flags.items():
        if content not in named:
            raise TokenizerError(f"flags of {content!r:.60}, which is no special or added token")
        if not isinstance(flag, TokenFlags):
            raise TokenizerError(f"the flags of {content!r:.60} are {flag!r:.60}, not TokenFlags")
    order = sorted(flags, key=named.__getitem__)
    return {content: flags[content] for content in order if flags[content] != TokenFlags()}


def make_encoder(
    *,
    table: TokenTable,
    merges: array[int],
    superwords: array[int],
    special_tokens: Mapping[str, int],
    added_tokens: Mapping[str, int],
    model: Model,
    pretokenizer: Pretokenizer,
    ignore_merges: bool,
    marks: bytes,
    token_flags: Mapping[str, TokenFlags] = MappingProxyType({}),
) -> Encoder:
    """The core's encoder of a tokenizer; with ``marks``, one that counts runs.

    Raises:
        TokenizerError: the parts contradict each other, or do not go with the model.
    """
    tokens = () if isinstance(model, ByteLevel) else tuple(table)
    settings = _model_settings(model, tokens, normalizer=pretokenizer.normalizer)
    if not isinstance(model, ByteLevel):
        _check_strings(model, tokens)
    if isinstance(model, WordPiece) and (merges or ignore_merges):
        raise TokenizerError(
            "a WordPiece model has no merges: give neither merges nor ignore_merges"
        )
    if superwords and not isinstance(model, ByteLevel):
        raise TokenizerError(
            f"superwords need a byte-level model, not {type(model).__name__}, whose tokens can "
            "hold the beginning or end of a word: joined, they would not be the text"
        )
    special_ids = unspelled_ids(
        special_tokens=special_tokens,
        added_tokens=added_tokens,
        merging=chain(merges, superwords),
        model=model,
        unknown=settings["unknown"],
    )
    named = {**special_tokens, **added_tokens}
    try:
        return Encoder(
            token_data=table.data,
            token_offsets=table.offsets,
            merges=merges,
            special_ids=special_ids,
            pretokenizer=pretokenizer.native,
            ignore_merges=ignore_merges,
            superwords=superwords,
            marks=marks,
            token_flags={named[content]: flag.bits for content, flag in token_flags.items()},
            **settings,
        )
    except ValueError as error:
        raise TokenizerError(str(error)) from None


def atomic_ids_of(vocabulary: Vocabulary) -> set[int]:
    """The ids of its tokens that ordinary text never encodes to: see `atomic_ids`."""
    return atomic_ids(
        special_tokens=vocabulary.special_tokens,
        added_tokens=vocabulary.added_tokens,
        merging=(id_ for merge in chain(vocabulary.merges, vocabulary.superwords) for id_ in merge),
        model=vocabulary.model,
    )


def unspelled_ids(
    *,
    special_tokens: Mapping[str, int],
    added_tokens: Mapping[str, int],
    merging: Iterable[int],
    model: Model,
    unknown: int | None,
) -> list[int]:
    """The ids that no pre-token is looked up as: atomic ids, and the unknown token of characters.

    Args:
        special_tokens: with their ids.
        added_tokens: with their ids.
        merging: the ids that merges, superwords included, use or make.
        model: of the tokenizer.
        unknown: the id of the model's unknown token, if any.
    """
    atomic = atomic_ids(
        special_tokens=special_tokens, added_tokens=added_tokens, merging=merging, model=model
    )
    # No text spells the unknown token of characters, and no merge uses it.
    if isinstance(model, CharacterLevel) and unknown is not None:
        atomic.add(unknown)
    return sorted(atomic)


def _model_settings(
    model: Model, tokens: Sequence[bytes | None], *, normalizer: Sequence[str]
) -> dict[str, Any]:
    settings: dict[str, Any] = {"affix": "", "unknown": None, "max_characters": 0}
    if isinstance(model, ByteLevel):
        return settings | {"model": "bytes"}
    if isinstance(model, CharacterLevel):
        settings |= {
            "model": "characters",
            "affix": model.end_of_word,
            "byte_fallback": model.byte_fallback,
            "fuse_unknown": model.fuse_unknown,
            "mark": MARK if "mark-spaces" in normalizer else "",
            "drops_space": not PREPENDING.isdisjoint(normalizer),
        }
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
                f"the unknown token {model.unknown!r:.60} of the model is not in the vocabulary"
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
