"""The tokenizer: texts to token ids and back."""

from __future__ import annotations

import hashlib
import os
import struct
from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from bpe._arrow import (
    as_id,
    binary_rows,
    id_list,
    id_rows,
    list_array,
    text_array,
    text_column,
    utf8,
    values_of,
)
from bpe._native import Encoder, TextColumn
from bpe.core_encoder import make_encoder
from bpe.dropout import check_dropout, row_seeds, seed_array
from bpe.errors import (
    BadTextsError,
    EncodingError,
    SpecialTokenError,
    TokenizerError,
    TokenizerFileError,
)
from bpe.explain import (
    Explainer,
    MergeStep,
    common_prefix,
    html_table,
    superword_steps,
    unreachable,
)
from bpe.files import write_atomically
from bpe.formats import huggingface
from bpe.formats import read as read_files
from bpe.formats import write as write_files
from bpe.formats.huggingface_superwords import approximate
from bpe.formats.post_processor import not_applied
from bpe.models import ByteLevel, Model
from bpe.names import Dialect
from bpe.parts import Parts
from bpe.pretokenizer import Pretokenizer
from bpe.roles import Roles
from bpe.segments import TextCutter
from bpe.special_tokens import TokenFlags
from bpe.training_report import Training
from bpe.truncation import truncated

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(kw_only=True)
class CacheUse:
    """Hits and misses of the encoder's cache of words; calls add to them.

    The cache starts with the tokens of the vocabulary, and its contents depend on what was encoded
    before. So only the sum of the two is the same from run to run.

    Attributes:
        hits: pre-tokens found in the cache.
        misses: pre-tokens that were merged; with dropout, all.
    """

    hits: int = 0
    misses: int = 0


@dataclass(frozen=True, init=False, repr=False)
class Tokenizer:
    """Encodes texts to token ids and decodes them; byte-level, every text decodes to itself.

    Text is cut at the special tokens that the caller allows (leftmost, then longest). The rest is
    cut into pre-tokens. In each, the adjacent pair of lowest rank, leftmost first, is merged until
    no pair has a rank (WordPiece takes the longest tokens from the front instead). Hugging Face's
    tokenizers with ``add_special_tokens=False`` and tiktoken do the same.

    Superwords cross pre-tokens (SuperBPE, arXiv 2503.13423): in each sequence of pre-tokens that
    follow each other, are one token each, and take part in a superword merge, these merges are made
    in the same way. No superword crosses a special or added token, or a match that is never split.

    Immutable, picklable, and usable from any number of threads at once. Two with the same parts are
    equal; training does not count.

    Example:
        >>> tokenizer = Tokenizer(
        ...     tokens=[*(bytes([byte]) for byte in range(256)), b"th", b"the"],
        ...     merges=[(116, 104, 256), (256, 101, 257)],
        ...     pretokenizer=Pretokenizer("gpt2"),
        ... )
        >>> tokenizer.encode("the tooth")
        [257, 32, 116, 111, 111, 256]

    Args:
        parts: what it is made of.
        **fields: of :class:`bpe.parts.Parts`, in its place; tokens and merges as sequences.

    Attributes:
        parts: what it is made of.

    Raises:
        TokenizerError: the parts contradict each other; the message names what and where.
    """

    parts: Parts
    _encoder: Encoder = field(compare=False)

    def __init__(self, parts: Parts | None = None, /, **fields: Any) -> None:
        parts = Parts(**fields) if parts is None else parts
        vars(self).update(parts=parts, _encoder=make_encoder(parts))

    def __hash__(self) -> int:
        return hash((self.parts.tokens, self.parts.merges))

    def __reduce__(self) -> tuple[type[Self], tuple[Parts]]:
        return type(self), (self.parts,)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        pretokenizer: str | Pretokenizer | None = None,
        pattern: str | Sequence[str] | None = None,
        normalizer: Sequence[str] = (),
        never_split: Sequence[str] = (),
        special_tokens: Mapping[str, int | None] | Collection[str] | None = None,
        vocabulary_path: str | os.PathLike[str] | None = None,
    ) -> Tokenizer:
        """Read a tokenizer file.

        Args:
            path: a tokenizer.json of Hugging Face; a ``.tiktoken`` file; a ``.model`` file of
                SentencePiece (BPE); ``vocab.json`` with ``merges.txt`` next to it; a directory
                that holds such files; or the name of a published vocabulary (``gpt2``,
                ``cl100k``, ``o200k``, ``llama3``) whose file is in the cache of tiktoken or of
                Hugging Face's hub, or in ``vocabulary_path``.
            pretokenizer: how text is cut, for formats that do not say it (not tokenizer.json);
                the published .tiktoken files and GPT-2's pair have theirs as default.
            pattern: a regular expression, or several, instead of a name.
            normalizer: steps of ``bpe.normalizer.NORMALIZERS``, for a name or a pattern.
            never_split: patterns whose matches are pre-tokens, for a name or a pattern.
            special_tokens: each with its id, or by name where the file (or its publisher) gives
                it one, for formats that do not say which they are.
            vocabulary_path: the folder where the files of published vocabularies are looked for
                first.

        Raises:
            TokenizerFileError: the file is broken, or says something that cannot be honoured
                exactly; the message names file and entry.
            PretokenizerError: an unknown name, or a pattern that does not compile.
            OSError: the file cannot be opened.
        """
        settings = (pretokenizer, pattern, *normalizer, *never_split)
        cut = (
            Pretokenizer.of(pretokenizer, pattern, normalizer=normalizer, never_split=never_split)
            if any(setting is not None for setting in settings)
            else None
        )
        try:
            parts = read_files(
                Path(path),
                pretokenizer=cut,
                special_tokens=special_tokens,
                vocabulary_path=None if vocabulary_path is None else Path(vocabulary_path),
            )
            return cls(parts)
        except TokenizerFileError:
            raise
        except (TokenizerError, SpecialTokenError) as error:
            raise TokenizerFileError(f"{path}: {error}") from None

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        leave_out: Collection[str] = (),
        dialect: Dialect = "huggingface",
    ) -> None:
        """Write a tokenizer file, atomically.

        Args:
            path: ``*.tiktoken``; ``*vocab.json`` or ``*merges.txt`` for both of the pair; any
                other ``*.json``, or an existing directory, for tokenizer.json.
            leave_out: what to omit if the format cannot hold it, to be given again on loading: any
                of ``bpe.formats.LEAVE_OUT``.
            dialect: of tokenizer.json. ``huggingface``: Hugging Face's libraries read it, and give
                the same ids, also of superwords.
                ``beam-bpe``: a tokenizer that they cannot express is written for this library
                alone, so that they refuse the file.

        Raises:
            TokenizerError: the format cannot express this tokenizer; the message says what.
        """
        files = write_files(self.parts, Path(path), leave_out=leave_out, dialect=dialect)
        for name, data in files.contents.items():
            write_atomically(name, data)

    def to_json(self, *, dialect: Dialect = "huggingface") -> str:
        """Return the text of tokenizer.json, as :meth:`save` writes it.

        Equal tokenizers have equal texts.

        Raises:
            TokenizerError: as :meth:`save`.
        """
        text, _ = huggingface.to_json(self.parts, dialect=dialect)
        return text

    @cached_property
    def sha256(self) -> str:
        """SHA-256 (hex) of its tokenizer.json, in whichever dialect that needs."""
        return hashlib.sha256(self.to_json(dialect="beam-bpe").encode()).hexdigest()

    @cached_property
    def text_sha256(self) -> str:
        """SHA-256 (hex) of what decides the ids of a text: all but post-processor and roles."""
        return self._with(post_processor=None, roles=Roles()).sha256

    @property
    def not_applied(self) -> tuple[str, ...]:
        """Parts of the file that encoding does not apply, described: a post-processor's tokens."""
        return (*not_applied(self.parts.post_processor), *self.parts.roles.ignored)

    # Its parts.

    @cached_property
    def tokens(self) -> tuple[bytes | None, ...]:
        """Return the bytes of each id; None where no token has it."""
        return tuple(self.parts.tokens)

    @property
    def merges(self) -> list[tuple[int, int, int]]:
        """Return the merges as (left, right, result) ids, in order."""
        return list(self.parts.merges)

    @property
    def superwords(self) -> list[tuple[int, int, int]]:
        """Return the merges across pre-tokens as (left, right, result) ids, in order."""
        return list(self.parts.superwords)

    @property
    def pretokenizer(self) -> Pretokenizer:
        """Return the pre-tokenizer, which cuts text before merging."""
        return self.parts.pretokenizer

    @property
    def special_tokens(self) -> Mapping[str, int]:
        """Return the tokens that text can hold only if the caller allows it, with their ids."""
        return MappingProxyType(self.parts.special_tokens)

    @property
    def added_tokens(self) -> Mapping[str, int]:
        """Return the tokens that are cut out of every text, with their ids."""
        return MappingProxyType(self.parts.added_tokens)

    @property
    def token_flags(self) -> Mapping[str, TokenFlags]:
        """Flags of the special and added tokens that have any: where a text matches them."""
        return MappingProxyType(self.parts.token_flags)

    @property
    def ignore_merges(self) -> bool:
        """True if a pre-token that is a token is encoded as that token, whatever the merges."""
        return self.parts.ignore_merges

    @property
    def model(self) -> Model:
        """Return the model: the symbols that a pre-token consists of."""
        return self.parts.model

    @property
    def post_processor(self) -> Mapping[str, Any] | None:
        """Return the ``post_processor`` of tokenizer.json, a copy; never applied."""
        return deepcopy(self.parts.post_processor)

    @property
    def training(self) -> Training | None:
        """Return the record of its training; None if unknown, as after loading."""
        return self.parts.training

    @property
    def roles(self) -> Roles:
        """Return the special token of each role, such as the beginning and end of a text."""
        return self.parts.roles

    def with_training(self, training: Training | None) -> Self:
        """This tokenizer with another :attr:`training`, such as ``Training.load(path)``."""
        return self._with(training=training)

    def with_roles(self, roles: Roles) -> Self:
        """This tokenizer with other roles; tokens to be added make another :attr:`post_processor`.

        Raises:
            TokenizerError: a token is none of this tokenizer's; or one that is to be added is not
                a special token.
        """
        processor: Mapping[str, Any] | None = roles.post_processor(self.special_tokens)
        if processor is None and not (self.roles.add_bos or self.roles.add_eos):
            processor = self.post_processor
        return self._with(roles=roles, post_processor=processor)

    def _with(self, **changes: Any) -> Self:
        """This tokenizer with other parts that do not change what a text encodes to."""
        other = object.__new__(type(self))
        cached = {name: value for name, value in vars(self).items() if name != "sha256"}
        vars(other).update(cached, parts=replace(self.parts, **changes))
        return other

    @property
    def lossless(self) -> bool:
        """True if every text decodes to itself: byte-level, and nothing is dropped.

        Special tokens, which a caller has to allow, may drop whitespace all the same.
        """
        keeps_text = isinstance(self.parts.model, ByteLevel) and self.parts.pretokenizer.lossless
        return keeps_text and not any(
            flags.drop_whitespace and token in self.parts.added_tokens
            for token, flags in self.parts.token_flags.items()
        )

    @property
    def max_id(self) -> int:
        """Return the greatest id: ``len() - 1``, or more if some ids have no token."""
        return self.parts.max_id

    def __len__(self) -> int:
        """Return the number of tokens: special tokens count, ids without a token do not."""
        return self.parts.size

    @property
    def vocab_size(self) -> int:
        """Return the number of tokens, as ``len()``; with gaps, :attr:`max_id` is greater."""
        return len(self)

    def get_vocab(self) -> dict[str, int]:
        """Return the id of each token by its text (:meth:`token_text`), in the order of ids."""
        return dict(self._ids_by_text)

    @cached_property
    def _ids_by_text(self) -> dict[str, int]:
        return {self.parts.text(id_): id_ for id_ in sorted(self.parts.ids.values())}

    def token_to_id(self, token: str | bytes) -> int | None:
        """Return the id of a token; None if there is none.

        Args:
            token: its text as in :meth:`get_vocab` (of bytes: ``Ġthe``), or its bytes.

        Raises:
            TypeError: it is neither str nor bytes.
        """
        return self._ids_by_text.get(token) if isinstance(token, str) else self.token_id(token)

    def id_to_token(self, token_id: int) -> str | None:
        """Return the text of a token (see :meth:`token_text`); None if no token has the id.

        Raises:
            TypeError: it is not an int.
        """
        try:
            return self.token_text(token_id)
        except EncodingError:
            return None

    def token_bytes(self, token_id: int) -> bytes:
        """Return the bytes of a token.

        Raises:
            EncodingError: no token has this id.
            TypeError: it is not an int.
        """
        token_id = as_id(token_id)
        token = self.tokens[token_id] if 0 <= token_id <= self.max_id else None
        if token is None:
            raise EncodingError(f"no token has the id {token_id}; the greatest id is {self.max_id}")
        return token

    def token_text(self, token_id: int) -> str:
        """Return a token as tokenizer.json spells it: bytes in GPT-2's alphabet, or its characters.

        Raises:
            EncodingError, TypeError: as :meth:`token_bytes`.
        """
        self.token_bytes(token_id)
        return self.parts.text(token_id)

    def token_id(self, token: str | bytes) -> int | None:
        """Return the id of the token with these bytes; None if there is none.

        Args:
            token: its bytes; a str means its UTF-8.

        Raises:
            EncodingError: a str has a lone surrogate, which no token has.
            TypeError: it is neither str nor bytes.
        """
        return self.parts.ids.get(utf8(token, what="the token"))

    # Encoding.

    @cached_property
    def _cutter(self) -> TextCutter:
        return TextCutter(self.parts.pretokenizer, flags=self.parts.token_flags)

    @cached_property
    def _added(self) -> dict[bytes, int]:
        return {content.encode(): id_ for content, id_ in self.parts.added_tokens.items()}

    def _cut_tokens(self, allowed_special: Collection[str] | str) -> dict[bytes, int]:
        """Return the tokens cut out of a text, added and allowed ones, with their ids."""
        special = self.parts.special_tokens
        if isinstance(allowed_special, str):
            if allowed_special != "all":
                raise EncodingError(
                    f"allowed_special is a collection of special tokens or 'all', not "
                    f"{allowed_special!r}"
                )
            allowed_special = special.keys()
        for content in allowed_special:
            if content not in special:
                raise EncodingError(
                    f"{content!r} is not a special token of this tokenizer, which has "
                    f"{', '.join(map(repr, special)) or 'none'}"
                )
        allowed = {token.encode(): special[token] for token in sorted(set(allowed_special))}
        return self._added | allowed if allowed else self._added

    def encode(
        self,
        text: str | bytes,
        *,
        allowed_special: Collection[str] | str = (),
        dropout: float = 0.0,
        seed: int = 0,
    ) -> list[int]:
        """Return the ids of a text.

        Args:
            text: a string, or any bytes, malformed UTF-8 included.
            allowed_special: the special tokens to recognize, or ``"all"``. By default none: what
                looks like one is plain text.
            dropout: the probability of skipping a possible merge, each time anew (BPE-dropout:
                Provilkov, Emelianenko and Voita 2020, algorithm 1), those of superwords included. 1
                leaves single symbols.
            seed: of dropout, from 0 to 2^64 - 1. The same seed gives the same ids everywhere.

        Raises:
            EncodingError: the text holds a lone surrogate, an allowed token is not special, or
                dropout is asked of WordPiece, which has no merges.
            UnknownCharacterError: the text holds a character without a token, and the model has
                no unknown token.
            PatternTimeoutError: a pattern backtracks too long on the text.
        """
        dropout, data = check_dropout(dropout), utf8(text)
        ids, *_ = self._cutter.encode(
            self._encoder,
            TextColumn(data, struct.pack("=qq", 0, len(data)), 8, 0, 1),
            lambda: pa.array([data], pa.large_binary()),
            self._cut_tokens(allowed_special),
            dropout=dropout,
            seeds=values_of(row_seeds(seed, 1)) if dropout else None,
        )
        return memoryview(ids).cast("I").tolist()

    def tokenize(
        self,
        text: str | bytes,
        *,
        allowed_special: Collection[str] | str = (),
        dropout: float = 0.0,
        seed: int = 0,
    ) -> list[str]:
        """Return the tokens of a text, as in :meth:`token_text`; otherwise as :meth:`encode`."""
        ids = self.encode(text, allowed_special=allowed_special, dropout=dropout, seed=seed)
        return [self.token_text(id_) for id_ in ids]

    def encode_arrow(
        self,
        texts: pa.Array | pa.ChunkedArray | Iterable[str | bytes | None],
        *,
        allowed_special: Collection[str] | str = (),
        dropout: float = 0.0,
        seed: int = 0,
        seeds: pa.Array | Iterable[int] | None = None,
        id_type: str = "uint32",
        cache_use: CacheUse | None = None,
    ) -> pa.ListArray | pa.ChunkedArray:
        """Return the ids of a column of texts.

        Without the GIL, but where Python cuts the texts: with a pattern that needs backtracking, or
        a normalizer with tokens that are cut out of text.

        Args:
            texts: an Arrow array of strings or binaries, also as views or a dictionary; a Series
                of pandas or Polars; a numpy array, or any iterable, of str. Nulls stay null.
            allowed_special: as in :meth:`encode`.
            dropout: as in :meth:`encode`, independent for each row.
            seed: the seeds of the rows are ``bpe.dropout.row_seeds(seed, len(texts))``; the first
                row gets the ids of ``encode(text, dropout=dropout, seed=seed)``.
            seeds: one seed for each row instead.
            id_type: ``uint32``, or ``uint16`` for a vocabulary of at most 65,536 ids.
            cache_use: hits and misses of the cache of words are added to it.

        Returns:
            Lists of that type, as many as there are texts; chunked as the texts are (a Series is).

        Raises:
            EncodingError: an allowed token is not special, an id does not fit ``id_type``, or an
                array has more than 2^31 - 1 tokens, too many for its offsets: pass smaller arrays.
            UnknownCharacterError: texts hold characters without a token, and the model has no
                unknown token; the error has the numbers of all such rows.
            PatternTimeoutError: a pattern backtracks too long on a text; the error has its row.
            TypeError: the column is not of text.
        """
        texts = text_array(texts)
        rows, dropout = len(texts), check_dropout(dropout)
        drawn = None
        if dropout:
            drawn = row_seeds(seed, rows) if seeds is None else seed_array(seeds, rows=rows)
        if id_type not in ("uint16", "uint32"):
            raise EncodingError(f"id_type {id_type!r:.60} is not 'uint16' or 'uint32'")
        if id_type == "uint16" and self.max_id >= 1 << 16:
            raise EncodingError(
                f"id_type uint16: it ends at 65535, and there is an id {self.max_id}"
            )
        kind, cut_out = pa.type_for_alias(id_type), self._cut_tokens(allowed_special)
        is_chunked = isinstance(texts, pa.ChunkedArray)
        done: list[pa.ListArray] = []
        asked = missed = first = 0
        for chunk in texts.chunks if is_chunked else [texts]:
            has_nulls = chunk.null_count > 0 and not pa.types.is_null(chunk.type)
            filled = chunk.fill_null(b"") if has_nulls else chunk
            try:
                ids, offsets, (pretokens, misses) = self._cutter.encode(
                    self._encoder,
                    text_column(filled),
                    partial(filled.cast, pa.large_binary()),
                    cut_out,
                    narrow=kind == pa.uint16(),
                    dropout=dropout,
                    seeds=None if drawn is None else values_of(drawn.slice(first, len(chunk))),
                )
            except BadTextsError as error:
                raise error.shifted(first) from None
            done.append(list_array(ids, offsets, id_type=kind, texts=chunk))
            asked, missed, first = asked + pretokens, missed + misses, first + len(chunk)
        if cache_use is not None:
            cache_use.hits += asked - missed  # nothing is added where there was an error
            cache_use.misses += missed
        return pa.chunked_array(done, type=pa.list_(kind)) if is_chunked else done[0]

    def encode_batch(
        self,
        texts: Iterable[str | bytes] | pa.Array,
        *,
        allowed_special: Collection[str] | str = (),
    ) -> list[list[int]]:
        """Return the ids of each text; otherwise as :meth:`encode_arrow`, which is faster still.

        Raises:
            TypeError: a text is None, or neither str nor bytes; the message names its row.
        """
        rows = self.encode_arrow(texts, allowed_special=allowed_special)
        ids: list[list[int]] = rows.to_pylist()
        if rows.null_count:
            row = next(row for row, values in enumerate(ids) if values is None)
            raise TypeError(f"text {row} is None, not a str or bytes")
        return ids

    def unreachable(self) -> list[int]:
        """Return the ids of ordinary tokens that no text encodes to.

        Merging the symbols of such a token, as one pre-token, gives other tokens; of a superword,
        merging the pre-tokens that it is made of. Trained tokenizers have none.
        """
        return unreachable(self.parts)

    def explain(self, pretoken: str | bytes) -> list[MergeStep]:
        """Return the merges of one pre-token, step by step; the last step has its tokens.

        Cut a text with ``tokenizer.pretokenizer.split`` first. Superwords come after this:
        :meth:`explain_superwords`.

        Raises:
            EncodingError: the text holds a lone surrogate.
        """
        return self._explainer.steps(utf8(pretoken, what="the pre-token"))

    def explain_superwords(self, tokens: Sequence[bytes]) -> list[MergeStep]:
        """Return the merges of a run of pre-tokens, step by step; the last step has the superwords.

        Args:
            tokens: pre-tokens that follow each other in a text and are one token each.

        Raises:
            EncodingError: one of them is no token.
        """
        return superword_steps(self.parts, tokens)

    def common_root(self, words: Iterable[str]) -> list[str]:
        """Return the tokens that all words begin with: whether related words share a root.

        Raises:
            UnknownCharacterError: a word holds a character without a token.
        """
        return common_prefix(*map(self.tokenize, words))

    @cached_property
    def _explainer(self) -> Explainer:
        return Explainer(self.parts)

    # Decoding.

    def decode(self, ids: Iterable[int], *, skip_special_tokens: bool = False) -> str:
        """Return the text of ids. Bytes that are not well-formed UTF-8 become U+FFFD.

        For a model of characters, the end of a word becomes a space, except at the end of the
        text; after a normalizer that marks spaces, each mark does, but for one that was put before
        the text. WordPieces are joined to words, with spaces between these.

        Args:
            ids: of any tokens.
            skip_special_tokens: whether to leave special tokens out.

        Raises:
            EncodingError: no token has one of the ids.
            TypeError: one is not an int.
        """
        data = self.decode_bytes(ids, skip_special_tokens=skip_special_tokens)
        return data.decode("utf-8", "replace")

    def decode_bytes(self, ids: Iterable[int], *, skip_special_tokens: bool = False) -> bytes:
        """Return the bytes of ids; otherwise as :meth:`decode`."""
        numbers = id_list(ids)
        skipped = list(self.parts.special_tokens.values()) if skip_special_tokens else []
        try:
            offsets = array("q", [0, len(numbers)])
            data, _ = self._encoder.decode(array("I", numbers), offsets, skipped)
        except (ValueError, OverflowError):
            for id_ in numbers:
                self.token_bytes(id_)  # names the one that is wrong
            raise
        return bytes(memoryview(data))

    def decode_batch(
        self, rows: Iterable[Iterable[int]], *, skip_special_tokens: bool = False
    ) -> list[str]:
        """Return the text of each row of ids; otherwise as :meth:`decode`."""
        return [self.decode(ids, skip_special_tokens=skip_special_tokens) for ids in rows]

    def decode_arrow(
        self, ids: pa.ListArray | pa.LargeListArray, *, skip_special_tokens: bool = False
    ) -> pa.LargeBinaryArray:
        """Return the bytes of each row of ids, without the GIL; nulls stay null.

        Args:
            ids: lists of any integer type.
            skip_special_tokens: whether to leave special tokens out.

        Raises:
            EncodingError: no token has one of the ids, or an id is null.
            TypeError: the array is not of lists of integers.
        """
        values, rows = id_rows(ids)
        skipped = list(self.parts.special_tokens.values()) if skip_special_tokens else []
        try:
            data, offsets = self._encoder.decode(values, rows, skipped)
        except ValueError as error:
            raise EncodingError(f"{error}; the greatest id is {self.max_id}") from None
        return binary_rows(data, offsets, nulls_of=ids)

    def truncated(self, vocab_size: int) -> Tokenizer:
        """Return the tokenizer of the first ``vocab_size`` tokens, as if no more had been trained.

        The result equals training with that size, ``training`` included. A loaded tokenizer can
        be truncated if its ids follow the order of its merges. Superwords whose ids come last go
        first. Where they competed with words (``train_superwords(boundless=True)``), the ids alone
        decide, and no ``training`` is kept: a smaller vocabulary would have others.

        Raises:
            TokenizerError: the size exceeds that of this tokenizer, or has no room for special
                tokens and alphabet; or the ids do not follow the order of the merges.
        """
        return Tokenizer(truncated(self.parts, vocab_size))

    def approximate(self) -> Tokenizer:
        """Return a tokenizer with the same tokens whose superwords are ordinary merges.

        SuperBPE publishes tokenizers in this form: all merges in one list, and a pre-tokenizer that
        hardly cuts. ``tokenizer.json`` holds it, ``.tiktoken`` and ``vocab.json`` without the
        pre-tokenizer, ``.model`` does not. It also merges what is no pre-token by itself, so
        **some ids differ**; :func:`bpe.diff.agreement` measures how many.

        Raises:
            TokenizerError: there are no superwords.
        """
        return Tokenizer(approximate(self.parts))

    def __repr__(self) -> str:
        model = "" if isinstance(self.parts.model, ByteLevel) else f"{self.parts.model!r}, "
        special = len(self.parts.special_tokens)
        superwords = f"{len(self.parts.superwords):,} superwords, " if self.parts.superwords else ""
        return (
            f"<bpe.Tokenizer: {len(self):,} tokens, {len(self.parts.merges):,} merges, "
            f"{superwords}{model}pre-tokenizer {str(self.parts.pretokenizer)!r}, "
            f"{special} special token{'' if special == 1 else 's'}"
            f"{', post-processor not applied' if self.not_applied else ''}>"
        )

    def _repr_html_(self) -> str:
        """Return a table for notebooks: size, pre-tokenizer, special tokens, some merges."""
        return html_table(self.parts)
