"""The tokenizer: texts to token ids and back."""

from __future__ import annotations

import hashlib
import struct
from array import array
from functools import cached_property
from itertools import accumulate, chain
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from bpe import formats
from bpe._arrow import text_column
from bpe._checks import checked_tokens, merge_triples, unreachable_tokens, whole_tokens
from bpe._lists import binary_array, id_rows, list_array
from bpe._native import Encoder, TextColumn
from bpe._pieces import cut_texts
from bpe._text import utf8
from bpe.errors import EncodingError, SpecialTokenError, TokenizerError, TokenizerFileError
from bpe.explain import merge_steps
from bpe.files import write_atomically
from bpe.formats import huggingface
from bpe.models import ByteLevel, Model
from bpe.pretokenize import Pretokenizer

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from typing_extensions import Buffer

    from bpe import _native
    from bpe.explain import MergeStep
    from bpe.training import Training

    _Columns = tuple[_native.Buffer, _native.Buffer]


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


class Tokenizer:
    """A byte-level BPE vocabulary: encodes any text, and decodes it back to the same bytes.

    A text is cut at the special tokens that the caller allows (leftmost, then longest), the rest
    is cut into pre-tokens, and in each of these the adjacent pair of lowest rank, leftmost first,
    is merged until none is left. This is what Hugging Face's tokenizers do with
    ``add_special_tokens=False``, and tiktoken.

    Immutable, picklable, and usable from any number of threads at once.

    Example:
        >>> tokenizer = Tokenizer(
        ...     tokens=[*(bytes([byte]) for byte in range(256)), b"th", b"the"],
        ...     merges=[(116, 104, 256), (256, 101, 257)],
        ...     pretokenizer=Pretokenizer("gpt2"),
        ... )
        >>> tokenizer.encode("the tooth")
        [257, 32, 116, 111, 111, 256]

    Args:
        tokens: the bytes of each id, special tokens as their UTF-8; None where no token has the
            id. No two are equal, and every single byte is one.
        merges: (left, right, result) ids, or a buffer of uint32 triples; the first merge first.
        pretokenizer: how text is cut before merging.
        special_tokens: tokens, with their ids, that a text holds only where the caller allows it;
            else the same characters are plain text. No merge makes or uses them.
        added_tokens: tokens, with their ids, that are cut out of every text whole.
        ignore_merges: whether a pre-token that is a token is that token, whatever the merges.
        model: what a pre-token consists of before and after merging.
        training: how it was trained, if it was.
        post_processor: what tokenizer.json says of that; written back, never applied.

    Raises:
        TokenizerError: they do not fit together; the message names what and where.
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
        if not isinstance(model, ByteLevel):
            raise TokenizerError(f"the model {model!r} is not supported yet: use ByteLevel()")
        for content in special_tokens.keys() & added_tokens.keys():
            raise TokenizerError(f"{content!r} is both a special and an added token; choose one")
        lengths = (len(token) if token is not None else 0 for token in self._tokens)
        try:
            self._encoder = Encoder(
                token_data=b"".join(token for token in self._tokens if token is not None),
                token_offsets=array("q", chain([0], accumulate(lengths))),
                merges=self._merges,
                special_ids=self._unmergeable(),
                scheme=pretokenizer.scheme,
                ignore_merges=self._ignore_merges,
            )
        except ValueError as error:
            raise TokenizerError(str(error)) from None

    def _unmergeable(self) -> list[int]:
        """Tokens that no text makes: the special ones, and added ones that are nothing else."""
        merging = set(self._added_tokens.values()).intersection(self._merges)
        return [
            *self._special_tokens.values(),
            *(
                id_
                for content, id_ in self._added_tokens.items()
                if id_ not in merging and len(content.encode()) > 1
            ),
        ]

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        pretokenizer: str | None = None,
        pattern: str | None = None,
        special_tokens: Mapping[str, int] | None = None,
    ) -> Tokenizer:
        """Read a tokenizer file.

        Args:
            path: a tokenizer.json of Hugging Face; a ``.tiktoken`` file; ``vocab.json`` with
                ``merges.txt`` beside it; or a directory that holds such files.
            pretokenizer: how text is cut, for formats that do not say it (not tokenizer.json);
                the published .tiktoken files and GPT-2's pair have theirs as default.
            pattern: a regular expression instead of a name.
            special_tokens: each with its id, for formats that do not say it.

        Raises:
            TokenizerFileError: the file is broken, or says something that cannot be honoured
                exactly; the message names file and entry.
            PretokenizerError: an unknown name, or a pattern that does not compile.
            OSError: the file cannot be opened.
        """
        given = pretokenizer is not None or pattern is not None
        cut = Pretokenizer(name=pretokenizer, pattern=pattern) if given else None
        parts = formats.read(Path(path), pretokenizer=cut, special_tokens=special_tokens)
        try:
            return cls(**vars(parts))
        except (TokenizerError, SpecialTokenError) as error:
            raise TokenizerFileError(f"{path}: {error}") from None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write tokenizer.json; the file appears when it is complete.

        Raises:
            TokenizerError: the format cannot express this tokenizer; the message says what.
        """
        write_atomically(Path(path), self.to_json().encode())

    def to_json(self) -> str:
        """The text of tokenizer.json: the same for equal tokenizers; raises as :meth:`save`."""
        return huggingface.to_json(self)

    @cached_property
    def sha256(self) -> str:
        """SHA-256, in hexadecimal, of the tokenizer.json that :meth:`save` writes."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    # What it consists of.

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
    def lossless(self) -> bool:
        """Whether every text decodes to itself: all but the pre-tokeniser ``words``."""
        return self._pretokenizer.lossless

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
        """
        token = self._tokens[token_id] if 0 <= token_id < len(self._tokens) else None
        if token is None:
            raise EncodingError(f"no token has the id {token_id}; the greatest id is {self.max_id}")
        return token

    def token_id(self, token: bytes) -> int | None:
        """The id of the token with these bytes; None where there is none."""
        return self._ids.get(token)

    @cached_property
    def _ids(self) -> dict[bytes, int]:
        return {token: id_ for id_, token in enumerate(self._tokens) if token is not None}

    # Encoding.

    def encode(
        self, text: str | bytes, *, allowed_special: Collection[str] | str = ()
    ) -> list[int]:
        """The ids of a text.

        Args:
            text: a string, or any bytes, malformed UTF-8 included.
            allowed_special: the special tokens that are recognised, or ``"all"``. By default none
                is: what looks like one in a text is plain text.

        Raises:
            EncodingError: the text holds a lone surrogate, or an allowed token is not special.
        """
        data = utf8(text)
        row = TextColumn(data, struct.pack("=qq", 0, len(data)), 8, 0, 1)
        ids, _ = self._encode(row, lambda: [data], self._allowed(allowed_special))
        return memoryview(ids).cast("I").tolist()

    def encode_arrow(
        self,
        texts: pa.Array | pa.ChunkedArray,
        *,
        allowed_special: Collection[str] | str = (),
    ) -> pa.ListArray | pa.ChunkedArray:
        """The ids of a column of texts, without the GIL.

        Args:
            texts: string, large_string, binary or large_binary. Nulls stay null.
            allowed_special: as in :meth:`encode`.

        Returns:
            ``list<uint32>`` of the same length; chunked as the texts are.

        Raises:
            EncodingError: an allowed token is not special, or an array has more than 2^31 - 1
                tokens, which its offsets cannot count: pass smaller ones.
            TypeError: the column is not of text.
        """
        if isinstance(texts, pa.ChunkedArray):
            chunks = [
                self.encode_arrow(chunk, allowed_special=allowed_special) for chunk in texts.chunks
            ]
            return pa.chunked_array(chunks, type=pa.list_(pa.uint32()))
        empty = (
            b"" if pa.types.is_binary(texts.type) or pa.types.is_large_binary(texts.type) else ""
        )
        has_nulls = texts.null_count > 0 and not pa.types.is_null(texts.type)
        filled = texts.fill_null(empty) if has_nulls else texts
        ids, offsets = self._encode(
            text_column(filled),
            lambda: filled.cast(pa.large_binary()).to_pylist(),
            self._allowed(allowed_special),
        )
        return list_array(ids, offsets, texts=texts)

    def _allowed(self, allowed_special: Collection[str] | str) -> list[int]:
        """The ids of the tokens that are cut out of a text whole."""
        added = list(self._added_tokens.values())
        if isinstance(allowed_special, str):
            if allowed_special != "all":
                raise EncodingError(
                    f"allowed_special is a collection of special tokens or 'all', not "
                    f"{allowed_special!r}"
                )
            return [*added, *self._special_tokens.values()]
        for content in allowed_special:
            if content not in self._special_tokens:
                raise EncodingError(
                    f"{content!r} is not a special token of this tokenizer, which has "
                    f"{', '.join(map(repr, self._special_tokens)) or 'none'}"
                )
        return [*added, *sorted({self._special_tokens[content] for content in allowed_special})]

    def _encode(
        self, column: TextColumn, texts: Callable[[], Iterable[bytes]], allowed: list[int]
    ) -> _Columns:
        """Ids and offsets of a column; ``texts`` are its rows for a pattern, which Python cuts."""
        try:
            if self._pretokenizer.is_native:
                return self._encoder.encode(column, allowed)
            whole = {self.token_bytes(id_): id_ for id_ in allowed}
            cut = cut_texts(texts(), pretokenizer=self._pretokenizer, whole=whole)
            return self._encoder.encode_pieces(*cut)
        except ValueError as error:  # a pre-token of 4 GiB
            raise EncodingError(str(error)) from None

    def unreachable(self) -> list[int]:
        """The ids of ordinary tokens that no text encodes to.

        Merging the bytes of such a token, as one pre-token, does not end in it. (Where it does,
        texts can hold the token, whatever stands around it.) Trained tokenizers have none.
        """
        whole = {*self._special_tokens.values(), *self._added_tokens.values()}
        ids = [id_ for id_, token in enumerate(self._tokens) if token and id_ not in whole]
        return unreachable_tokens(self._encoder, {id_: self.token_bytes(id_) for id_ in ids})

    def explain(self, pretoken: str | bytes) -> list[MergeStep]:
        """How one pre-token merges, step by step; the last step has its tokens.

        Cut a text with ``tokenizer.pretokenizer.split`` first.

        Raises:
            EncodingError: the text holds a lone surrogate.
        """
        data = utf8(pretoken, what="the pre-token")
        ordinary = self.token_id(data) not in (None, *self._special_tokens.values())
        return merge_steps(data, self._ranks, at_once=self._ignore_merges and ordinary)

    @cached_property
    def _ranks(self) -> dict[tuple[bytes, bytes], int]:
        of = self.token_bytes
        return {(of(left), of(right)): rank for rank, (left, right, _) in enumerate(self.merges)}

    # Decoding.

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids. Bytes that are not well-formed UTF-8 become U+FFFD.

        Raises:
            EncodingError: no token has one of the ids.
        """
        return self.decode_bytes(ids).decode("utf-8", "replace")

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """The bytes of ids; raises as :meth:`decode`."""
        numbers = list(ids)
        if min(numbers, default=0) >= 0:
            try:
                return b"".join([self._tokens[id_] for id_ in numbers])  # type: ignore[misc]
            except (IndexError, TypeError):  # no such id, or a gap: said below
                pass
        return b"".join([self.token_bytes(id_) for id_ in numbers])

    def decode_arrow(self, ids: pa.ListArray | pa.LargeListArray) -> pa.LargeBinaryArray:
        """The bytes of each row of ids, without the GIL; nulls stay null.

        Args:
            ids: lists of any integer type.

        Raises:
            EncodingError: no token has one of the ids, or an id is null.
            TypeError: the array is not of lists of integers.
        """
        values, rows = id_rows(ids)
        try:
            data, offsets = self._encoder.decode(values, rows)
        except ValueError as error:
            raise EncodingError(f"{error}; the greatest id is {self.max_id}") from None
        return binary_array(data, offsets, lists=ids)

    # As a value.

    def _state(self) -> tuple[Any, ...]:
        return tuple(getattr(self, f"_{name}") for name in _STATE)

    def __eq__(self, other: object) -> bool:
        """Whether the other has the same tokens, merges and settings; training does not count."""
        return self._state() == other._state() if isinstance(other, Tokenizer) else NotImplemented

    def __hash__(self) -> int:
        return hash((self._tokens, self._merges.tobytes()))

    def __getstate__(self) -> dict[str, Any]:
        return dict(zip(_STATE, self._state(), strict=True)) | {"training": self.training}

    def __setstate__(self, state: dict[str, Any]) -> None:
        Tokenizer.__init__(self, **state)

    def __repr__(self) -> str:
        cut = self._pretokenizer.name or self._pretokenizer.pattern
        return (
            f"<bpe.Tokenizer: {len(self):,} tokens, {len(self._merges) // 3:,} merges, "
            f"pre-tokeniser {cut!r}, {len(self._special_tokens)} special tokens>"
        )
