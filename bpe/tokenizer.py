"""The tokenizer: texts to token ids and back."""

from __future__ import annotations

import hashlib
from array import array
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from bpe import formats
from bpe._arrow import text_array
from bpe._encoding import Noise, TextEncoder, seed_array
from bpe._lists import binary_array, id_list, id_rows
from bpe._reach import unreachable_tokens
from bpe._text import utf8
from bpe._truncation import truncated
from bpe.cache import CacheUse
from bpe.dropout import row_seeds
from bpe.errors import EncodingError, SpecialTokenError, TokenizerError, TokenizerFileError
from bpe.explain import Explainer
from bpe.files import write_atomically
from bpe.formats import huggingface
from bpe.models import ByteLevel
from bpe.pretokenize import Pretokenizer
from bpe.vocabulary import Vocabulary

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Iterable, Mapping, Sequence

    import pyarrow as pa

    from bpe.explain import MergeStep
    from bpe.formats.huggingface import Dialect


class Tokenizer(Vocabulary):
    """A vocabulary and how texts become its tokens; of bytes, every text decodes to itself.

    A text is cut at the special tokens that the caller allows (leftmost, then longest), the rest
    is cut into pre-tokens, and in each of these the adjacent pair of lowest rank, leftmost first,
    is merged until none is left (or WordPieces are taken from its front). This is what Hugging
    Face's tokenizers do with ``add_special_tokens=False``, and tiktoken.

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
            id. No two are equal. Where the model is of bytes, every single byte is one.
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
    ) -> Tokenizer:
        """Read a tokenizer file.

        Args:
            path: a tokenizer.json of Hugging Face; a ``.tiktoken`` file; ``vocab.json`` with
                ``merges.txt`` beside it; or a directory that holds such files.
            pretokenizer: how text is cut, for formats that do not say it (not tokenizer.json);
                the published .tiktoken files and GPT-2's pair have theirs as default.
            pattern: a regular expression, or several, instead of a name.
            normalizer: steps of ``bpe.NORMALIZERS``, beside a name or a pattern.
            never_split: patterns that are pre-tokens whole, beside a name or a pattern.
            special_tokens: each with its id, or by name where the file (or its publisher) gives
                it one, for formats that do not say which they are.

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
        parts = formats.read(Path(path), pretokenizer=cut, special_tokens=special_tokens)
        try:
            return cls(**vars(parts))
        except (TokenizerError, SpecialTokenError) as error:
            raise TokenizerFileError(f"{path}: {error}") from None

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        leave_out: Collection[str] = (),
        dialect: Dialect = "huggingface",
    ) -> None:
        """Write a tokenizer file; it appears when it is complete.

        Args:
            path: ``*.tiktoken``; ``*vocab.json`` or ``*merges.txt`` for both of the pair; any
                other ``*.json``, or a directory that is there, for tokenizer.json.
            leave_out: what a file that cannot hold it may lack, to be given when it is loaded:
                any of ``bpe.formats.LEAVE_OUT``.
            dialect: of tokenizer.json. ``huggingface``: Hugging Face's libraries read it.
                ``beam-bpe``: what they cannot express is written so that they refuse the file and
                only this library reads it; all else stays as they read it.

        Raises:
            TokenizerError: the format cannot express this tokenizer; the message says what.
        """
        files = formats.write(self, Path(path), leave_out=leave_out, dialect=dialect)
        for name, data in files.contents.items():
            write_atomically(name, data)

    def to_json(self, *, dialect: Dialect = "huggingface") -> str:
        """The text of tokenizer.json, as :meth:`save` writes it; equal tokenizers give equal texts.

        Raises:
            TokenizerError: as :meth:`save`.
        """
        return huggingface.to_json(self, dialect=dialect)

    @cached_property
    def sha256(self) -> str:
        """SHA-256, in hexadecimal, of its tokenizer.json, in either dialect."""
        return hashlib.sha256(self.to_json(dialect="beam-bpe").encode()).hexdigest()

    # Encoding.

    @cached_property
    def _text_encoder(self) -> TextEncoder:
        return TextEncoder(
            self._encoder,
            self._pretokenizer,
            special_tokens=self._special_tokens,
            added_tokens=self._added_tokens,
        )

    def encode(
        self,
        text: str | bytes,
        *,
        allowed_special: Collection[str] | str = (),
        dropout: float = 0.0,
        seed: int = 0,
    ) -> list[int]:
        """The ids of a text.

        Args:
            text: a string, or any bytes, malformed UTF-8 included.
            allowed_special: the special tokens that are recognised, or ``"all"``. By default none
                is: what looks like one in a text is plain text.
            dropout: how often a merge is dropped (BPE-dropout: Provilkov, Emelianenko and Voita
                2020, algorithm 1), from 0 to 1: each time one is due, each that could be made is
                dropped for that time with this probability. 1 leaves single symbols.
            seed: of the random numbers, from 0 to 2^64 - 1: the same ids every time, everywhere.

        Raises:
            EncodingError: the text holds a lone surrogate, an allowed token is not special, or
                dropout is asked of WordPiece, which has no merges.
            UnknownCharacterError: the text holds a character without a token, and the model has
                no unknown token.
        """
        noise = Noise.of(dropout, lambda: row_seeds(seed, 1))
        return self._text_encoder.text(utf8(text), allowed_special=allowed_special, noise=noise)

    def tokenize(
        self,
        text: str | bytes,
        *,
        allowed_special: Collection[str] | str = (),
        dropout: float = 0.0,
        seed: int = 0,
    ) -> list[str]:
        """The tokens of a text, as :meth:`token_text` spells them; all else as :meth:`encode`."""
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
        cache_use: CacheUse | None = None,
    ) -> pa.ListArray | pa.ChunkedArray:
        """The ids of a column of texts, without the GIL.

        Args:
            texts: an Arrow array of strings or binaries, also as views or a dictionary; a Series
                of pandas or Polars; a numpy array, or any iterable, of str. Nulls stay null.
            allowed_special: as in :meth:`encode`.
            dropout: as in :meth:`encode`, drawn for each row by itself.
            seed: the rows have the seeds ``bpe.row_seeds(seed, len(texts))``. The first has the
                ids of ``encode(text, dropout=dropout, seed=seed)``.
            seeds: one for each row instead.
            cache_use: what the cache of words did is added to it.

        Returns:
            ``list<uint32>`` of the same length; chunked as the texts are (a Series is).

        Raises:
            EncodingError: an allowed token is not special, or an array has more than 2^31 - 1
                tokens, which its offsets cannot count: pass smaller ones.
            UnknownCharacterError: texts hold characters without a token, and the model has no
                unknown token; the error has the numbers of all such rows.
            TypeError: the column is not of text.
        """
        texts = text_array(texts)
        rows = len(texts)
        noise = Noise.of(
            dropout,
            lambda: row_seeds(seed, rows) if seeds is None else seed_array(seeds, rows=rows),
        )
        use = CacheUse()
        ids = self._text_encoder.array(texts, allowed_special=allowed_special, noise=noise, use=use)
        if cache_use is not None:  # nothing is added where there was an error
            cache_use.add(hits=use.hits, misses=use.misses)
        return ids

    def unreachable(self) -> list[int]:
        """The ids of ordinary tokens that no text encodes to.

        Merging the symbols of such a token, as one pre-token, does not end in it. (Where it does,
        texts can hold the token, whatever stands around it.) Trained tokenizers have none.
        """
        ordinary = {
            id_: token
            for token, id_ in self._ids.items()
            if id_ not in self._whole and not self._is_unknown(token)
        }
        return unreachable_tokens(
            ordinary,
            model=self._model,
            is_whole=self._pretokenizer.is_whole,
            make_encoder=self._make_encoder,
        )

    def explain(self, pretoken: str | bytes) -> list[MergeStep]:
        """How one pre-token merges, step by step; the last step has its tokens.

        Cut a text with ``tokenizer.pretokenizer.split`` first.

        Raises:
            EncodingError: the text holds a lone surrogate.
        """
        return self._explainer.steps(utf8(pretoken, what="the pre-token"))

    @cached_property
    def _explainer(self) -> Explainer:
        return Explainer(self)

    def _is_unknown(self, token: bytes) -> bool:
        unknown = None if isinstance(self._model, ByteLevel) else self._model.unknown
        return unknown is not None and token == unknown.encode()

    # Decoding.

    def decode(self, ids: Iterable[int], *, skip_special_tokens: bool = False) -> str:
        """The text of ids. Bytes that are not well-formed UTF-8 become U+FFFD.

        Where the model is of characters, the end of a word becomes a space, but for that of the
        last token; WordPieces are put together to words, with spaces between them.

        Args:
            ids: of any tokens.
            skip_special_tokens: whether special tokens are left out.

        Raises:
            EncodingError: no token has one of the ids.
            TypeError: one is not an int.
        """
        data = self.decode_bytes(ids, skip_special_tokens=skip_special_tokens)
        return data.decode("utf-8", "replace")

    def decode_bytes(self, ids: Iterable[int], *, skip_special_tokens: bool = False) -> bytes:
        """The bytes of ids; all else as :meth:`decode`."""
        numbers = id_list(ids)
        if skip_special_tokens:
            special = set(self._special_tokens.values())
            numbers = [id_ for id_ in numbers if id_ not in special]
        if isinstance(self._model, ByteLevel) and min(numbers, default=0) >= 0:
            try:
                return b"".join([self._tokens[id_] for id_ in numbers])  # type: ignore[misc]
            except (IndexError, TypeError):  # no such id, or a gap: said below
                pass
        tokens = [self.token_bytes(id_) for id_ in numbers]
        if isinstance(self._model, ByteLevel):
            return b"".join(tokens)
        data, _ = self._encoder.decode(array("I", numbers), array("q", [0, len(numbers)]))
        return bytes(memoryview(data))

    def decode_arrow(
        self, ids: pa.ListArray | pa.LargeListArray, *, skip_special_tokens: bool = False
    ) -> pa.LargeBinaryArray:
        """The bytes of each row of ids, without the GIL; nulls stay null.

        Args:
            ids: lists of any integer type.
            skip_special_tokens: whether special tokens are left out.

        Raises:
            EncodingError: no token has one of the ids, or an id is null.
            TypeError: the array is not of lists of integers.
        """
        values, rows = id_rows(ids)
        skipped = list(self._special_tokens.values()) if skip_special_tokens else []
        try:
            data, offsets = self._encoder.decode(values, rows, skipped)
        except ValueError as error:
            raise EncodingError(f"{error}; the greatest id is {self.max_id}") from None
        return binary_array(data, offsets, lists=ids)

    def truncated(self, vocab_size: int) -> Tokenizer:
        """The tokenizer of the first ``vocab_size`` tokens, as if no more had been trained.

        What was trained here is equal to training with that size, ``training`` too. What was
        loaded can be truncated if its ids follow the order of its merges.

        Raises:
            TokenizerError: the size is greater than that of this tokenizer, or too small for what
                comes before the merges; or the ids do not follow the order of the merges.
        """
        return Tokenizer(**self.__getstate__() | truncated(self, vocab_size))

    def __repr__(self) -> str:
        model = "" if isinstance(self._model, ByteLevel) else f"{self._model!r}, "
        return (
            f"<bpe.Tokenizer: {len(self):,} tokens, {len(self._merges) // 3:,} merges, "
            f"{model}pre-tokenizer {str(self._pretokenizer)!r}, "
            f"{len(self._special_tokens)} special tokens"
            f"{', post-processor not applied' if self.not_applied else ''}>"
        )
