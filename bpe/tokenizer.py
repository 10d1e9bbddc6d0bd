"""The tokenizer: texts to token ids and back."""

from __future__ import annotations

import hashlib
from array import array
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from bpe import formats
from bpe._arrow import binary_array, id_list, id_rows, text_array, utf8
from bpe._encoding import CacheUse, TextEncoder
from bpe.dropout import Noise, row_seeds, seed_array
from bpe.errors import EncodingError, SpecialTokenError, TokenizerError, TokenizerFileError
from bpe.explain import (
    Explainer,
    html_table,
    superword_ids,
    superword_steps,
    unreachable_superwords,
    unreachable_tokens,
)
from bpe.files import write_atomically
from bpe.formats import huggingface
from bpe.formats.huggingface_superwords import approximate
from bpe.formats.post_processor import not_applied
from bpe.models import ByteLevel, CharacterLevel, WordPiece, is_symbol
from bpe.pretokenizer import Pretokenizer
from bpe.roles import Roles
from bpe.vocabulary import Vocabulary

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from bpe.explain import MergeStep
    from bpe.formats.huggingface import Dialect


__all__ = ["CacheUse", "Tokenizer"]


class Tokenizer(Vocabulary):
    """Encodes texts to token ids and decodes them; byte-level, every text decodes to itself.

    Text is cut at the special tokens that the caller allows (leftmost, then longest). The rest is
    cut into pre-tokens. In each, the adjacent pair of lowest rank, leftmost first, is merged until
    no pair has a rank (WordPiece takes the longest tokens from the front instead). Hugging Face's
    tokenizers with ``add_special_tokens=False`` and tiktoken do the same.

    Superwords cross pre-tokens (SuperBPE, arXiv 2503.13423): in each sequence of pre-tokens that
    follow each other, are one token each, and take part in a superword merge, these merges are made
    in the same way. No superword crosses a special or added token, or a match that is never split.

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
        tokens: the bytes of each id, special tokens as UTF-8; None for ids without a token. No
            two are equal. A byte-level model needs every single byte.
        merges: (left, right, result) ids in order, or a buffer of uint32 triples.
        superwords: merges across pre-tokens, likewise; of a byte-level model. A token that they
            alone make is never looked up as a pre-token.
        pretokenizer: how text is cut before merging.
        special_tokens: tokens, with their ids, that text can hold only if the caller allows it;
            otherwise the same characters are plain text. No merge makes or uses them.
        added_tokens: tokens, with their ids, that are cut out of every text.
        ignore_merges: whether a pre-token that is a token is encoded as it, whatever the merges.
        model: what a pre-token consists of before and after merging.
        training: how it was trained, if known.
        post_processor: that of tokenizer.json; written back, never applied.
        roles: what a model uses special tokens for.
        token_flags: how special and added tokens are found in a text, if not just anywhere.

    Raises:
        TokenizerError: the parts contradict each other; the message names what and where.
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
        vocabulary_path: str | os.PathLike[str] | None = None,
    ) -> Tokenizer:
        """Read a tokenizer file.

        Args:
            path: a tokenizer.json of Hugging Face; a ``.tiktoken`` file; a ``.model`` file of
                SentencePiece (BPE); ``vocab.json`` with ``merges.txt`` beside it; a directory
                that holds such files; or the name of a published vocabulary (``gpt2``,
                ``cl100k``, ``o200k``, ``llama3``) whose file is in the cache of tiktoken or of
                Hugging Face's hub, or in ``vocabulary_path``.
            pretokenizer: how text is cut, for formats that do not say it (not tokenizer.json);
                the published .tiktoken files and GPT-2's pair have theirs as default.
            pattern: a regular expression, or several, instead of a name.
            normalizer: steps of ``bpe.normalizer.NORMALIZERS``, beside a name or a pattern.
            never_split: patterns whose matches are pre-tokens, beside a name or a pattern.
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
        parts = formats.read(
            Path(path),
            pretokenizer=cut,
            special_tokens=special_tokens,
            vocabulary_path=None if vocabulary_path is None else Path(vocabulary_path),
        )
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
        """SHA-256 (hex) of its tokenizer.json, in whichever dialect that needs."""
        return hashlib.sha256(self.to_json(dialect="beam-bpe").encode()).hexdigest()

    @cached_property
    def text_sha256(self) -> str:
        """SHA-256 (hex) of what decides the ids of a text: all but post-processor and roles."""
        return self._with(_post_processor=None, _roles=Roles()).sha256

    @property
    def not_applied(self) -> tuple[str, ...]:
        """What the file asks for and encoding leaves out, in words: a post-processor's tokens."""
        return (*not_applied(self._post_processor), *self._roles.ignored)

    # Encoding.

    @cached_property
    def _text_encoder(self) -> TextEncoder:
        return TextEncoder(
            self._encoder,
            self._pretokenizer,
            special_tokens=self._special_tokens,
            added_tokens=self._added_tokens,
            token_flags=self._token_flags,
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
        """The tokens of a text, as in :meth:`token_text`; otherwise as :meth:`encode`."""
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
        """The ids of a column of texts.

        Without the GIL, but where Python cuts the texts: with a pattern that needs backtracking, or
        a normalizer beside tokens that are cut out of text.

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
        rows = len(texts)
        noise = Noise.of(
            dropout,
            lambda: row_seeds(seed, rows) if seeds is None else seed_array(seeds, rows=rows),
        )
        use = CacheUse()
        if id_type not in ("uint16", "uint32"):
            raise EncodingError(f"id_type {id_type!r:.60} is not 'uint16' or 'uint32'")
        if id_type == "uint16" and self.max_id >= 1 << 16:
            raise EncodingError(
                f"id_type uint16: it ends at 65535, and there is an id {self.max_id}"
            )
        ids = self._text_encoder.array(
            texts,
            allowed_special=allowed_special,
            noise=noise,
            use=use,
            id_type=pa.type_for_alias(id_type),
        )
        if cache_use is not None:  # nothing is added where there was an error
            cache_use.add(hits=use.hits, misses=use.misses)
        return ids

    def encode_batch(
        self,
        texts: Iterable[str | bytes] | pa.Array,
        *,
        allowed_special: Collection[str] | str = (),
    ) -> list[list[int]]:
        """The ids of each text; otherwise as :meth:`encode_arrow`, which is faster still.

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
        """The ids of ordinary tokens that no text encodes to.

        Merging the symbols of such a token, as one pre-token, gives other tokens; of a superword,
        merging the pre-tokens that it is made of. Trained tokenizers have none.
        """
        others = {*self._cut_tokens, *superword_ids(self)}
        ordinary = {
            id_: token
            for token, id_ in self._ids.items()
            if id_ not in others and not self._is_unknown(token)
        }
        words = unreachable_tokens(
            ordinary,
            model=self._model,
            is_never_split=self._pretokenizer.is_never_split,
            make_encoder=partial(self._make_encoder, never_split=False),
        )
        return sorted([*words, *unreachable_superwords(self)])

    def explain(self, pretoken: str | bytes) -> list[MergeStep]:
        """How one pre-token merges, step by step; the last step has its tokens.

        Cut a text with ``tokenizer.pretokenizer.split`` first. Superwords come after this:
        :meth:`explain_superwords`.

        Raises:
            EncodingError: the text holds a lone surrogate.
        """
        return self._explainer.steps(utf8(pretoken, what="the pre-token"))

    def explain_superwords(self, tokens: Sequence[bytes]) -> list[MergeStep]:
        """How the pre-tokens of a run merge, step by step; the last step has the superwords.

        Args:
            tokens: pre-tokens that follow each other in a text and are one token each.

        Raises:
            EncodingError: one of them is no token.
        """
        return superword_steps(self, tokens)

    @cached_property
    def _explainer(self) -> Explainer:
        return Explainer(self)

    def _is_unknown(self, token: bytes) -> bool:
        unknown = None if isinstance(self._model, ByteLevel) else self._model.unknown
        return unknown is not None and token == unknown.encode()

    # Decoding.

    def decode(self, ids: Iterable[int], *, skip_special_tokens: bool = False) -> str:
        """The text of ids. Bytes that are not well-formed UTF-8 become U+FFFD.

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
        """The bytes of ids; otherwise as :meth:`decode`."""
        numbers = id_list(ids)
        if skip_special_tokens:
            special = set(self._special_tokens.values())
            numbers = [id_ for id_ in numbers if id_ not in special]
        if isinstance(self._model, ByteLevel) and min(numbers, default=0) >= 0:
            try:
                return b"".join([self._tokens[id_] for id_ in numbers])  # type: ignore[misc]
            except (IndexError, TypeError):  # no such id, or a gap: reported below
                pass
        tokens = [self.token_bytes(id_) for id_ in numbers]
        if isinstance(self._model, ByteLevel):
            return b"".join(tokens)
        data, _ = self._encoder.decode(array("I", numbers), array("q", [0, len(numbers)]))
        return bytes(memoryview(data))

    def decode_batch(
        self, rows: Iterable[Iterable[int]], *, skip_special_tokens: bool = False
    ) -> list[str]:
        """The text of each row of ids; otherwise as :meth:`decode`."""
        return [self.decode(ids, skip_special_tokens=skip_special_tokens) for ids in rows]

    def decode_arrow(
        self, ids: pa.ListArray | pa.LargeListArray, *, skip_special_tokens: bool = False
    ) -> pa.LargeBinaryArray:
        """The bytes of each row of ids, without the GIL; nulls stay null.

        Args:
            ids: lists of any integer type.
            skip_special_tokens: whether to leave special tokens out.

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

        The result equals training with that size, ``training`` included. A loaded tokenizer can
        be truncated if its ids follow the order of its merges. Superwords whose ids come last go
        first. Where they competed with words (``train_superwords(boundless=True)``), the ids alone
        decide, and no ``training`` is kept: a smaller vocabulary would have others.

        Raises:
            TokenizerError: the size exceeds that of this tokenizer, or has no room for special
                tokens and alphabet; or the ids do not follow the order of the merges.
        """
        return Tokenizer(**self.__getstate__() | truncated(self, vocab_size))

    def approximate(self) -> Tokenizer:
        """A tokenizer with the same tokens whose superwords are ordinary merges.

        SuperBPE publishes tokenizers in this form: all merges in one list, and a pre-tokenizer that
        hardly cuts. ``tokenizer.json`` holds it, ``.tiktoken`` and ``vocab.json`` without the
        pre-tokenizer, ``.model`` does not. It also merges what is no pre-token by itself, so
        **some ids differ**; :func:`bpe.diff.agreement` measures how many.

        Raises:
            TokenizerError: there are no superwords.
        """
        return approximate(self)

    def __repr__(self) -> str:
        model = "" if isinstance(self._model, ByteLevel) else f"{self._model!r}, "
        special = len(self._special_tokens)
        superwords = f"{len(self._superwords) // 3:,} superwords, " if self._superwords else ""
        return (
            f"<bpe.Tokenizer: {len(self):,} tokens, {len(self._merges) // 3:,} merges, "
            f"{superwords}{model}pre-tokenizer {str(self._pretokenizer)!r}, "
            f"{special} special token{'' if special == 1 else 's'}"
            f"{', post-processor not applied' if self.not_applied else ''}>"
        )

    def _repr_html_(self) -> str:
        """A table for notebooks: size, pre-tokenizer, special tokens, first and last merges."""
        return html_table(self)


def truncated(tokenizer: Tokenizer, vocab_size: int) -> dict[str, Any]:
    """The tokens, merges, superwords and training of the first ``vocab_size`` tokens.

    Raises:
        TokenizerError: the size is impossible, or the ids do not follow the order of the merges.
    """
    if type(vocab_size) is not int or not 1 <= vocab_size <= len(tokenizer):
        raise TokenizerError(
            f"`vocab_size` {vocab_size!r:.60} is not between 1 and {len(tokenizer):,}, the number "
            "of tokens of this tokenizer"
        )
    merges, superwords = tokenizer.merges, tokenizer.superwords
    training = tokenizer.training
    trained_across = training.superwords if training is not None else None
    if superwords and (
        trained_across is None
        or trained_across.boundless
        or len(trained_across.merges) != len(superwords)
    ):
        training = None
    across = 0
    if training is None:
        count, across = _merges_needed(tokenizer, vocab_size)
    else:
        trained = training.first_rank + len(training.merges)
        if not isinstance(tokenizer.model, WordPiece) and trained != len(merges):
            raise TokenizerError(
                f"the training has {trained:,} merges, the tokenizer {len(merges):,}: "
                "it is the training of another tokenizer"
            )
        training = training.truncated(vocab_size)
        count = training.first_rank + len(training.merges)
        if isinstance(tokenizer.model, CharacterLevel) and tokenizer.model.byte_fallback:
            return _truncated_inside(tokenizer, vocab_size, count) | {"training": training}
        across = len(training.superwords.merges) if training.superwords is not None else 0
    # The ids that an extended tokenizer left free come before all that were trained.
    end = vocab_size + tokenizer.max_id + 1 - len(tokenizer)
    for content, id_ in (*tokenizer.special_tokens.items(), *tokenizer.added_tokens.items()):
        if id_ >= end:
            raise TokenizerError(
                f"a vocabulary of {vocab_size:,} tokens does not hold {content!r}, which has the "
                f"id {id_}: only tokenizers whose special tokens come first can be truncated"
            )
    return {
        "tokens": tokenizer.tokens[:end],
        "merges": merges[:count],
        "superwords": superwords[:across],
        "training": training,
    }


def _truncated_inside(tokenizer: Tokenizer, vocab_size: int, merges: int) -> dict[str, Any]:
    """Tokens and merges where the characters come last, as training with byte fallback has it."""
    dropped = len(tokenizer) - vocab_size
    characters = {id_ for id_ in _symbols(tokenizer) if len(tokenizer.token_text(id_)) == 1}
    end = len(tokenizer) - len(characters)
    if characters != set(range(end, len(tokenizer))):
        raise TokenizerError(
            "the tokens of single characters do not have the last ids: this is not the order in "
            "which the tokenizer was trained"
        )
    tokens = tokenizer.tokens
    return {
        "tokens": [*tokens[: end - dropped], *tokens[end:]],
        "merges": [
            tuple(id_ - dropped if id_ >= end else id_ for id_ in merge)
            for merge in tokenizer.merges[:merges]
        ],
    }


def _merges_needed(tokenizer: Tokenizer, vocab_size: int) -> tuple[int, int]:
    """How many merges, and superwords, the first tokens need, judged by the ids alone."""
    if isinstance(tokenizer.model, WordPiece):
        raise TokenizerError(
            "a WordPiece vocabulary does not say in which order its tokens were learnt: use "
            'tokenizer.with_training(bpe.Training.load("training.json"))'
        )
    if None in tokenizer.tokens:
        raise TokenizerError(f"no token has the id {tokenizer.tokens.index(None)}: ids with gaps")
    if vocab_size == len(tokenizer):
        return len(tokenizer.merges), len(tokenizer.superwords)
    symbols = _symbols(tokenizer)
    for id_ in sorted(symbols):
        if id_ >= vocab_size:
            raise TokenizerError(
                f"a vocabulary of {vocab_size:,} tokens does not hold the symbol "
                f"{tokenizer.token_text(id_)!r}, which has the id {id_}"
            )
    available = set(symbols)
    count = _first_merges(tokenizer.merges, vocab_size, available)
    return count, _first_merges(tokenizer.superwords, vocab_size, available, kind="superword merge")


def _first_merges(
    merges: Sequence[tuple[int, int, int]],
    vocab_size: int,
    available: set[int],
    *,
    kind: str = "merge",
) -> int:
    """How many merges come before the first that makes a token beyond the size.

    Args:
        merges: in order.
        vocab_size: of the tokens that are kept.
        available: tokens that need no merge; those that merges make are added.
        kind: what errors call a merge.
    """
    count, greatest = 0, -1
    for number, (_, _, result) in enumerate(merges):
        if result in available:
            continue
        if result < greatest:
            raise TokenizerError(
                f"{kind} {number} makes token {result} after one that made token {greatest}: the "
                "ids do not follow the order of the merges, so no smaller vocabulary is in it"
            )
        available.add(result)
        greatest = result
        if result < vocab_size:
            count = number + 1
    return count


def _symbols(tokenizer: Tokenizer) -> set[int]:
    """The ids of the symbols of unmerged pre-tokens."""
    model = tokenizer.model
    if isinstance(model, ByteLevel):
        return {id_ for id_, token in enumerate(tokenizer.tokens) if token and len(token) == 1}
    return {
        id_
        for id_, token in enumerate(tokenizer.tokens)
        if token and is_symbol(token.decode(), model)
    }
