"""Types of the C++ core."""

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from typing_extensions import Buffer as Readable

class Buffer:
    """Memory of the core, used in place through the buffer protocol; only ids can be changed."""

    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

class TextColumn:
    """Rows of an Arrow string or binary array without nulls."""

    def __init__(
        self, data: Readable, offsets: Readable, offset_width: int, first: int, rows: int
    ) -> None: ...
    def __len__(self) -> int: ...

# The scanner.

UNICODE_VERSION: str
PRETOKENIZERS: tuple[tuple[str, str, bool], ...]

class PatternTable:
    """A regular expression as a table of steps (``bpe/regex/table.py`` makes it); immutable."""

    def __init__(self, symbols: Readable, steps: Readable, roles: Readable, few: Readable) -> None:
        """Check a table.

        Args:
            symbols: uint8, one for each code point; a malformed byte b has that of U+DC00 + b.
            steps: uint32, for each state and symbol twice the next state, plus 1 if a match ends
                before the character; state 0 ends all, state 1 is the first.
            roles: uint8, for each symbol the sum of 1 if each match holds a character of one such
                symbol, 2 if it may hold one of this symbol before the first of those, 4 if no match
                begins behind this symbol, 8 if one may begin with it. The last symbol is the end of
                the text, the one before it a line feed that ends the text.
            few: all characters with a symbol of which each match holds one, where they are up to
                three of ASCII; else empty.

        Raises:
            ValueError: they do not fit together.
        """

NativePattern: TypeAlias = str | PatternTable | tuple[PatternTable, PatternTable]
"""A name or a table, which cuts; or what is never split: a table that finds its matches in a text,
and one that matches a text as a whole or not at all."""

def scan(pretokenizer: Sequence[NativePattern], data: Readable) -> Buffer:
    """The pre-tokens of ``data`` as int64 pairs (begin, end), byte offsets."""

def malformed_rows(column: TextColumn) -> Buffer:
    """The numbers (int64, ascending) of the rows that are not well-formed UTF-8."""

# The normalizers.

def changed_rows(column: TextColumn, step: str) -> Buffer:
    """The numbers (int64, ascending) of the rows that a step may change.

    Args:
        column: texts.
        step: ``nfc``, ``nfd``, ``nfkc``, ``nfkd``, ``strip-accents`` or ``strip-nonspacing``.
    """

def lowercase(column: TextColumn) -> tuple[Buffer, Buffer]:
    """The texts, each character by its lowercase letter, and offsets (int64, rows + 1)."""

def strip_marks(column: TextColumn, step: str) -> tuple[Buffer, Buffer]:
    """The texts without what a ``strip-`` step drops, and offsets (int64, rows + 1)."""

# The trainer.

WordOrder: TypeAlias = Literal["bytes", "bytes-descending", "first-seen"]
TIES: dict[str, WordOrder]  # the tie rules: each with its order of equally frequent words
PAIR_COUNTS: list[str]  # how often a pair of equal symbols occurs in a row of them

MergeRow: TypeAlias = tuple[int, int, int, int, int]
"""Left, right, token, count, symbols of all words after the merge."""

class Trainer:
    """The merge loop over words of symbols."""

    def __init__(
        self,
        *,
        alphabet: list[bytes],
        ties: str,
        pair_counts: str = ...,
        by_score: bool = False,
        prefix: bytes = b"",
        max_tokens: int,
        min_frequency: int,
        forbidden: list[bytes],
        whole_words: list[tuple[bytes, int]] = ...,
        pruned: int = 0,
        known: Readable | None = None,
    ) -> None:
        """Begin with words yet to be added.

        Args:
            alphabet: the strings of symbols 0, 1, ..., all different.
            ties: a rule of ``bpe.TIES``.
            pair_counts: one of ``PAIR_COUNTS``; the default is the first.
            by_score: whether the pair of the greatest WordPiece score is merged.
            prefix: what a merge drops from the beginning of the right string.
            max_tokens: strings in the vocabulary, the alphabet included.
            min_frequency: a rarer pair is never merged.
            forbidden: strings that no merge makes.
            whole_words: tokens with their counts, the most frequent first: each gets an id
                before the first merge that is not more frequent.
            pruned: what words that are not added can add to the count of any pair.
            known: merges of a tokenizer that is extended, as uint32 triples of symbols, by rank.
                No word to be added has a pair of these.
        """

    def add_words(self, words: TextColumn, *, counts: Readable, symbol_of_byte: Readable) -> None:
        """Add words of bytes, int64 counts, and 256 symbols of one byte each."""

    def add_token_words(
        self, *, ids: Readable, offsets: Readable, counts: Readable, symbol_of_id: Readable
    ) -> None:
        """Add words of uint32 token ids, int64 offsets and counts, and the symbol of each id."""

    def add_apart(self, tokens: int) -> None:
        """Add tokens to the corpus with which nothing merges.

        Raises:
            OverflowError: there are more than 2^62 tokens and symbols.
        """

    def peek(self) -> tuple[int, int, int] | None:
        """The merge that comes next, whatever room there is: left, right, count."""

    def step(self, merges: int) -> bool:
        """Do up to so many merges more; False when there is nothing left to do."""

    def choose(self) -> tuple[int, int] | None:
        """The first half of a step: the pair to merge, out of its queue; None at the end."""

    def merge(self, left: int, right: int) -> None:
        """The other half, of any pair, which need not occur here.

        Trainers that share their merges have one of them choose, and all of them merge.
        """

    def finish(self) -> None:
        """Give ids to the whole words that are left, while there is room."""

    @property
    def merge_count(self) -> int: ...
    @property
    def initial_tokens(self) -> int: ...
    @property
    def tokens_now(self) -> int:
        """The symbols of all words after the merges so far."""

    @property
    def vocabulary_full(self) -> bool: ...
    @property
    def first_affected(self) -> int | None:
        """The number of the first merge, made or missing, that pruned words could have changed."""

    def tied(self) -> Buffer:
        """The numbers (uint32) of the merges that the tie rule chose; none of huggingface."""

    def repeated(self) -> Buffer:
        """The numbers (uint32) of the merges that made a string that was there before."""

    def whole_tokens(self) -> list[tuple[int, int, int]]:
        """The whole words that have ids: symbol, count, merges before it."""

    def merges(self) -> list[MergeRow]: ...
    def tokens(self) -> list[bytes]: ...

# The counter.

class SpecialMatcher:
    """Finds the leftmost special token, and of those that begin there the longest."""

    def __init__(self, tokens: list[bytes], flags: list[int] = ...) -> None:
        """``flags``: the bits of each token; left out, or empty, if none has any."""

    def cut(self, data: Readable) -> Buffer:
        """Begin, end and index of each token found and of the text between (-1), int64."""

    def split(self, column: TextColumn) -> tuple[Buffer, Buffer, Buffer]:
        """The texts between tokens, none of them empty.

        Returns:
            data, offsets (int64, parts + 1), and for each part the row it comes from (int64).
        """

class SortedCounts:
    """Distinct pre-tokens in byte order with their counts; where they were first seen, or None."""

    def __init__(
        self,
        data: Readable,
        offsets: Readable,
        offset_width: int,
        counts: Readable,
        documents: Readable | None = None,
        positions: Readable | None = None,
    ) -> None:
        """Copies and checks; ValueError names the first row that is wrong."""

    @property
    def data(self) -> Buffer: ...
    @property
    def offsets(self) -> Buffer: ...
    @property
    def counts(self) -> Buffer: ...
    @property
    def documents(self) -> Buffer | None: ...
    @property
    def positions(self) -> Buffer | None: ...
    def __len__(self) -> int: ...
    def total(self) -> int:
        """The sum of the counts; OverflowError past 2^63 - 1."""

    def split(self, shards: int) -> list[SortedCounts]:
        """The sorted counts of each shard, by ``stable_hash(key) % shards``."""

    def misplaced(self, shard: int, shards: int) -> int:
        """The first row whose key belongs to another shard, or -1."""

def prune_run(
    counts: SortedCounts, below: int, id_bytes: int = 0
) -> tuple[SortedCounts, int, int, int, Buffer]:
    """The rows with a count of at least ``below``, and what the others were.

    Args:
        counts: the pre-tokens.
        below: the limit.
        id_bytes: the bytes of an id, if keys are ids.

    Returns:
        the run; of the others their number, occurrences and bytes, and how often each pair of
        adjacent bytes occurred (65,536 int64, at ``first << 8 | second``), then how often each
        byte was the last (256). Of ids: sums of the pairs with a hash (65,536), then zeros.
    """

def add_counts(counts: list[SortedCounts]) -> SortedCounts:
    """Adds counts, keeps the earliest place; OverflowError past 2^63 - 1."""

def stable_hash(data: Readable) -> int:
    """The hash that deals pre-tokens to the parts of a counts directory; it never changes."""

class Counter:
    """Counts pre-tokens in a hash table. Threads may share one; they take turns."""

    def __init__(
        self,
        pretokenizer: Sequence[NativePattern],
        special_tokens: list[bytes],
        track_order: bool,
    ) -> None: ...
    def add(self, column: TextColumn, places: Readable | None = None) -> int:
        """Count texts; neighbours of one place are parts of one document."""

    def __len__(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    def drain(self, shards: int) -> list[SortedCounts]: ...

# The line readers.

def split_lines(data: Readable, place: int) -> tuple[Buffer, Buffer, Buffer]:
    """Cut into lines, without their ends: text, offsets (int64, rows + 1), places (int64)."""

def read_json_lines(
    data: Readable, place: int, text_field: bytes, id_field: bytes, id_required: bool
) -> tuple[Buffer, Buffer, Buffer, Buffer, Buffer, Buffer, Buffer]:
    """Take two fields out of each line; lines of white space are no rows.

    Returns:
        text, offsets (int64, rows + 1); ids, offsets (int32, rows + 1), their validity bitmap;
        places (int64); (row, begin, end) of each line left to json.loads (int64).
    """

# Packing.

def best_fit(sizes: Readable, capacity: int) -> Buffer:
    """The row (int64) of each piece by best-fit decreasing, in the order of opening.

    Its twin is ``tests.bpe.test_pack.best_fit``.

    Args:
        sizes: int64, from 1 to ``capacity``.
        capacity: of a row.

    Raises:
        ValueError: a size is out of range.
    """

# Keys of documents.

def row_hashes(column: TextColumn) -> Buffer:
    """XXH64 (uint64) of the bytes of each row; its twin is ``reference.xxh64``."""

# The encoder.

Encoded: TypeAlias = tuple[Buffer, Buffer, list[tuple[int, bytes]], tuple[int, int]]

class Encoder:
    """Texts to token ids and back; any number of threads may use it at once."""

    def __init__(
        self,
        *,
        token_data: Readable,
        token_offsets: Readable,
        merges: Readable,
        special_ids: list[int],
        pretokenizer: Sequence[NativePattern],
        ignore_merges: bool,
        model: str,
        affix: str,
        unknown: int | None,
        max_characters: int,
        byte_fallback: bool = False,
        fuse_unknown: bool = False,
        mark: str = "",
        drops_space: bool = False,
        superwords: Readable = b"",
        marks: Readable = b"",
        token_flags: Mapping[int, int] = ...,
    ) -> None:
        """Check and index a vocabulary.

        Args:
            token_data: the bytes of all tokens, one after the other.
            token_offsets: int64; token i is token_data[offsets[i]:offsets[i + 1]], empty for a gap.
            merges: uint32 triples (left, right, result), the first merge first.
            special_ids: tokens that no text makes.
            pretokenizer: how texts are cut; empty to encode pieces only.
            ignore_merges: whether a pre-token that is a token encodes to it whatever the merges.
            model: "bytes", "characters" or "word_piece".
            affix: the end of a word of characters, or the prefix of a WordPiece.
            unknown: the id of what has no token.
            max_characters: a word of more is unknown to WordPiece.
            byte_fallback: whether characters without a token become tokens such as <0x0A>.
            fuse_unknown: whether unknown characters next to each other are one unknown token.
            mark: what decodes to a space; "" for nothing.
            drops_space: whether decoding drops a space that a row begins with.
            superwords: as merges, across pre-tokens.
            marks: a byte for each token, 0 to 3: the id of a pre-token that is one token then has
                this mark in its upper two bits. There are no superwords then.
            token_flags: the bits of tokens that are cut out of text, by id.

        Raises:
            ValueError: they do not fit together; the message names the merge or the id.
        """

    def encode(
        self,
        column: TextColumn,
        allowed: list[int],
        *,
        narrow: bool = False,
        dropout: float = 0.0,
        seeds: Readable | None = None,
    ) -> Encoded:
        """Encode texts; ``allowed`` tokens are cut out whole.

        Args:
            column: the texts.
            allowed: ids of the tokens.
            narrow: whether the ids are made uint16.
            dropout: how often a merge is dropped.
            seeds: uint64, one for each row, where dropout is above 0.

        Returns:
            Ids (uint32, or uint16 if narrow); offsets (int64, rows + 1); the rows, left empty, that
            hold what has no token, each with what that is; the pre-tokens that were asked of the
            cache of words, and how many of these it did not know.
        """

    def encode_pieces(
        self,
        data: Readable,
        pieces: Readable,
        row_ends: Readable,
        *,
        cut: bool = False,
        narrow: bool = False,
        dropout: float = 0.0,
        seeds: Readable | None = None,
    ) -> Encoded:
        """The same for text that is cut: int64 triples (begin, end, what).

        What: the id of a token; -1 for a pre-token, or with ``cut`` for text that is still to be
        cut into pre-tokens; -2 for a pre-token in which nothing merges.
        """

    def decode(
        self, ids: Readable, offsets: Readable, skipped: list[int] = ...
    ) -> tuple[Buffer, Buffer]:
        """Bytes and offsets (int64, rows + 1) of rows of ids (uint32, with int64 offsets).

        Ids in ``skipped`` are left out.
        """

def random_words(seed: int, first: int, count: int) -> Buffer:
    """Numbers (uint64) ``first`` to ``first + count - 1`` of SplitMix64."""

def tokens_in_rank_order(data: Readable) -> tuple[Buffer, Buffer] | None:
    """Bytes and offsets (int64) of the tokens of a .tiktoken file whose ranks count from 0.

    None where anything else is in it. Tokens may be there twice.
    """

class TokenizerLists:
    """Vocabulary and merges of a tokenizer.json."""

    @property
    def head(self) -> bytes:
        """The file with nothing in the two lists."""

    @property
    def merges(self) -> Buffer:
        """uint32 triples (left, right, result)."""

    def __len__(self) -> int: ...
    def names(self) -> list[str]:
        """How the tokens are spelled, by id, without gaps."""

    def find(self, name: str) -> int | None:
        """The id of a name."""

    def tokens(self, own: list[int]) -> tuple[Buffer, Buffer] | None:
        """The bytes that the names spell, and their offsets (int64).

        Args:
            own: ids whose names are their own bytes.

        Returns:
            None where another name holds a character that is not of the byte alphabet.
        """

def read_tokenizer_json(data: Readable) -> TokenizerLists | None:
    """The lists of a file; None where it is broken or unusual, which the caller has to find out.

    Its twin is in ``formats.token_text``.
    """

def merges_of_ranks(token_data: Readable, token_offsets: Readable, model: str = "bytes") -> Buffer:
    """The merges (uint32 triples) of a vocabulary whose ids are its ranks.

    Raises:
        ValueError: a byte or a character of the model ("bytes" or "characters") has no token.
    """

def merges_that_happen(
    token_data: Readable, token_offsets: Readable, merges: Readable, model: str = "bytes"
) -> Buffer:
    """Of merges (uint32 triples, the first one first) those that some text needs, in their order.

    Two vocabularies of the same tokens merge every text alike where these are the same.

    Raises:
        ValueError: a single byte, or a part of a merge, has no token.
    """
