"""What a tokenizer consists of: tokens, merges, a model, and how texts are cut."""

from __future__ import annotations

from functools import cached_property
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from bpe._checks import checked_tokens, merge_triples, whole_tokens
from bpe._core import make_encoder
from bpe._lists import as_id
from bpe._text import utf8
from bpe.errors import EncodingError, TokenizerError
from bpe.formats.byte_alphabet import to_text
from bpe.formats.post_processors import not_applied
from bpe.models import ByteLevel, Model

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from typing_extensions import Buffer

    from bpe._native import Encoder
    from bpe.pretokenize import Pretokenizer
    from bpe.training import Training

_STATE = (
    "tokens",
    "merges",
    "pretokenizer",
    "special_tokens",
    "added_tokens",
    "ignore_merges",
    "model",
    "post_processor",
)


class Vocabulary:
    """The parts of a :class:`bpe.Tokenizer`, which says what they are; checked, and unchangeable.

    Two with the same parts are equal, and pickle as their parts; training does not count.
    """

    def __init__(
        self,
        *,
        tokens: Sequence[bytes | None],
        merges: Sequence[tuple[int, int, int]] | Buffer,
        pretokenizer: Pretokenizer,
        special_tokens: Mapping[str, int] = MappingProxyType({}),
        added_tokens: Mapping[str, int] = MappingProxyType({}),
        ignore_merges: bool = False,
        model: Model = ByteLevel(),  # noqa: B008  # immutable
        training: Training | None = None,
        post_processor: Mapping[str, Any] | None = None,
    ) -> None:
        self._tokens = checked_tokens(tokens)
        self._merges = merge_triples(merges)
        self._pretokenizer = pretokenizer
        self._special_tokens = whole_tokens(self._tokens, special_tokens)
        self._added_tokens = whole_tokens(self._tokens, added_tokens)
        self._ignore_merges = bool(ignore_merges)
        self._model = model
        self._post_processor = post_processor
        self.training = training
        for content in special_tokens.keys() & added_tokens.keys():
            raise TokenizerError(f"{content!r} is both a special and an added token; choose one")
        self._encoder = self._make_encoder(model)

    def _make_encoder(self, model: Model) -> Encoder:
        return make_encoder(
            tokens=self._tokens,
            merges=self._merges,
            special_tokens=self._special_tokens,
            added_tokens=self._added_tokens,
            model=model,
            scheme=self._pretokenizer.name or "",
            ignore_merges=self._ignore_merges,
        )

    @property
    def tokens(self) -> tuple[bytes | None, ...]:
        """The bytes of each id; None where no token has it."""
        return self._tokens

    @property
    def merges(self) -> list[tuple[int, int, int]]:
        """The merges as (left, right, result) ids, the first one first."""
        flat = iter(self._merges)
        return list(zip(flat, flat, flat, strict=True))

    @property
    def pretokenizer(self) -> Pretokenizer:
        """How text is cut before merging."""
        return self._pretokenizer

    @property
    def special_tokens(self) -> Mapping[str, int]:
        """The tokens that a text holds only where the caller allows it, with their ids."""
        return MappingProxyType(self._special_tokens)

    @property
    def added_tokens(self) -> Mapping[str, int]:
        """The tokens that are cut out of every text whole, with their ids."""
        return MappingProxyType(self._added_tokens)

    @property
    def ignore_merges(self) -> bool:
        """Whether a pre-token that is a token is that token, whatever the merges."""
        return self._ignore_merges

    @property
    def model(self) -> Model:
        """What a pre-token consists of before and after merging."""
        return self._model

    @property
    def post_processor(self) -> Mapping[str, Any] | None:
        """What tokenizer.json says of that; never applied."""
        return self._post_processor

    @property
    def not_applied(self) -> tuple[str, ...]:
        """What the file asks for and encoding leaves out, in words: a post-processor's tokens."""
        return not_applied(self._post_processor)

    @property
    def lossless(self) -> bool:
        """Whether every text decodes to itself: a model of bytes does, if nothing is dropped."""
        return isinstance(self._model, ByteLevel) and self._pretokenizer.lossless

    @property
    def max_id(self) -> int:
        """The greatest id; with gaps, it is greater than the number of tokens suggests."""
        return max(id_ for id_, token in enumerate(self._tokens) if token is not None)

    def __len__(self) -> int:
        """The number of tokens, special ones included, gaps not."""
        return sum(token is not None for token in self._tokens)

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes of a token.

        Raises:
            EncodingError: no token has this id.
            TypeError: it is not an int.
        """
        token_id = as_id(token_id)
        token = self._tokens[token_id] if 0 <= token_id < len(self._tokens) else None
        if token is None:
            raise EncodingError(f"no token has the id {token_id}; the greatest id is {self.max_id}")
        return token

    def token_text(self, token_id: int) -> str:
        """A token as tokenizer.json spells it: bytes in GPT-2's alphabet, or its characters.

        Raises:
            EncodingError, TypeError: as :meth:`token_bytes`.
        """
        token = self.token_bytes(token_id)
        if token_id in self._whole:
            return self._whole[token_id]
        return to_text(token) if isinstance(self._model, ByteLevel) else token.decode()

    def token_id(self, token: str | bytes) -> int | None:
        """The id of a token, special ones included; None where there is none.

        Args:
            token: its bytes, or its characters, which stand for their UTF-8.

        Raises:
            EncodingError: a str has a lone surrogate, which no token has.
            TypeError: it is neither str nor bytes.
        """
        return self._ids.get(utf8(token, what="the token"))

    @cached_property
    def _ids(self) -> dict[bytes, int]:
        return {token: id_ for id_, token in enumerate(self._tokens) if token is not None}

    @cached_property
    def _whole(self) -> dict[int, str]:
        """The special and added tokens by their ids."""
        whole = chain(self._special_tokens.items(), self._added_tokens.items())
        return {id_: content for content, id_ in whole}

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
