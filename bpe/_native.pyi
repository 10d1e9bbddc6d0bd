"""Types of the C++ core. What a parameter means is said in the headers of ``bpe/native``."""

from collections.abc import Sequence
from typing import Literal, TypeAlias

from typing_extensions import Buffer as Bytes

class Buffer:
    """Memory of the core, used in place through the buffer protocol; only ids can be changed."""

    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

UInt8: TypeAlias = Bytes
UInt32: TypeAlias = Bytes
UInt64: TypeAlias = Bytes
Int64: TypeAlias = Bytes
Offsets: TypeAlias = Bytes
"""Where each row begins, and where the last one ends, as int64."""
Rows: TypeAlias = tuple[Buffer, Buffer]
"""The bytes of rows one after the other, and their offsets (int64)."""

class TextColumn:
    """Rows of an Arrow string or binary array without nulls."""

    def __init__(
        self, data: Bytes, offsets: Bytes, offset_width: int, first: int, rows: int
    ) -> None: ...
    def __len__(self) -> int: ...

# Cutting and normalizing: text/pretokenizers.h, pattern_table.h, special.h, normalizer.h.

UNICODE_VERSION: str
PRETOKENIZERS: tuple[tuple[str, str, bool], ...]

class PatternTable:
    """A regular expression as a table of steps (``bpe/regex/table.py`` makes it); immutable."""

    def __init__(self, symbols: UInt8, steps: UInt32, roles: UInt8, few: UInt8) -> None:
        """Check a table; ValueError if its parts do not fit together."""

NativePattern: TypeAlias = str | PatternTable | tuple[PatternTable, PatternTable]
"""A name or a table, which cuts; or what is never split: a table that finds its matches in a text,
and one that matches a text as a whole or not at all."""

def scan(pretokenizer: Sequence[NativePattern], data: Bytes) -> Buffer:
    """The pre-tokens of ``data`` as int64 pairs (begin, end), byte offsets."""

def malformed_rows(column: TextColumn) -> Buffer:
    """The rows (int64, ascending) that are not well-formed UTF-8."""

def changed_rows(column: TextColumn, step: str) -> Buffer:
    """The rows (int64, ascending) that a normalization form or a ``strip-`` step may change."""

def lowercase(column: TextColumn) -> Rows:
    """The texts, each character by its lowercase letter."""

def strip_marks(column: TextColumn, step: str) -> Rows:
    """The texts without what a ``strip-`` step drops."""

class SpecialMatcher:
    """Finds the leftmost special token, and of those that begin there the longest."""

    def __init__(self, tokens: list[bytes], flags: list[int] = ...) -> None: ...
    def split(self, column: TextColumn, what: Int64, ids: list[int]) -> tuple[Rows, Buffer, Buffer]:
        """The parts of rows, none empty; what each is, a token's id or -1 for text; its row.

        Rows that ``what`` does not call text stay as they are.
        """

# The trainer: train/trainer.h.

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
        known: UInt32 | None = None,
    ) -> None:
        """Begin with words yet to be added; ``known`` merges are triples of symbols, by rank."""

    def reserve(self, *, symbols: int, words: int) -> None:
        """Make room for so many at most; what is not used costs no memory."""

    def add_words(
        self, *, ids: UInt32, offsets: Offsets, counts: Int64, symbol_of_id: UInt32
    ) -> None:
        """Add words of ids; nothing merges with an id whose symbol is 2^32 - 1."""

    def peek(self) -> tuple[bytes, bytes, int] | None:
        """The merge that comes next, whatever room there is: left, right, count."""

    def step(self, merges: int) -> bool:
        """Do up to so many merges more; False when there is nothing left to do."""

    def choose(self) -> tuple[int, int] | None:
        """The first half of a step: the pair to merge, out of its queue; None at the end."""

    def merge(self, left: int, right: int) -> None:
        """The other half, of any pair, which need not occur here."""

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

# Counts: count/counter.h, sorted_counts.h.

class SortedCounts:
    """Distinct pre-tokens in byte order with their counts; where they were first seen, or None."""

    def __init__(
        self,
        data: Bytes,
        offsets: Bytes,
        offset_width: int,
        counts: Int64,
        documents: Int64 | None = None,
        positions: Int64 | None = None,
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
    """The rows with a count of at least ``below``; `bpe.counts.pruning.Losses` of the others."""

def add_counts(counts: list[SortedCounts]) -> SortedCounts:
    """Adds counts, keeps the earliest place; OverflowError past 2^63 - 1."""

def stable_hash(data: Bytes) -> int:
    """The hash that deals pre-tokens to the parts of a counts directory; it never changes."""

class Counter:
    """Counts pre-tokens in a hash table. Threads may share one; they take turns."""

    def __init__(
        self,
        pretokenizer: Sequence[NativePattern],
        special_tokens: list[bytes],
        track_order: bool,
    ) -> None: ...
    def add(self, column: TextColumn, places: Int64 | None = None) -> int:
        """Count texts; neighbours of one place are parts of one document."""

    def __len__(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    def drain(self, shards: int) -> list[SortedCounts]: ...

# Blocks of files, rows of ids, keys of documents: corpus/, pack/best_fit.h, table/xxh64.h.

def split_lines(data: Bytes, place: int) -> tuple[Buffer, Buffer, Buffer]:
    """Cut into lines, without their ends, as `Rows`; the place (int64) of each."""

def read_json_lines(
    data: Bytes, place: int, text_field: bytes, id_field: bytes, id_required: bool
) -> tuple[Buffer, Buffer, Buffer, Buffer, Buffer, Buffer, Buffer]:
    """Take two fields out of each line; lines of white space are no rows.

    Returns:
        texts as `Rows`; ids, offsets (int32, rows + 1), their validity bitmap;
        places (int64); (row, begin, end) of each line left to json.loads (int64).
    """

def best_fit(sizes: Int64, capacity: int) -> Buffer:
    """The row (int64) of each piece by best-fit decreasing; ValueError: a size does not fit."""

def row_hashes(column: TextColumn) -> Buffer:
    """XXH64 (uint64) of the bytes of each row, as the package ``xxhash`` gives it."""

# The encoder: encode/encoder.h, model.h, marks.h.

Encoded: TypeAlias = tuple[Buffer, Buffer, list[tuple[int, bytes]], tuple[int, int]]
"""Ids (uint32, or uint16 if narrow) and offsets (int64); the rows, left empty, that hold what has
no token, each with what that is; the pre-tokens that were asked of the cache of words, and how many
of these it did not know."""

class Encoder:
    """Texts to token ids and back; any number of threads may use it at once."""

    def __init__(
        self,
        *,
        token_data: Bytes,
        token_offsets: Offsets,
        merges: UInt32,
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
        superwords: UInt32 = b"",
        marks: UInt8 = b"",
    ) -> None:
        """Check and index a vocabulary, in which the token of an id that has none is empty.

        Raises:
            ValueError: the parts do not fit together; the message names the merge or the id.
        """

    def encode(
        self,
        column: TextColumn,
        special: SpecialMatcher,
        ids: list[int],
        *,
        narrow: bool = False,
        dropout: float = 0.0,
        seeds: UInt64 | None = None,
    ) -> Encoded:
        """Encode texts; special tokens are cut out. With dropout, each row has a seed."""

    def encode_segments(
        self,
        segments: TextColumn,
        what: Int64,
        row_ends: Int64,
        *,
        cut: bool = False,
        narrow: bool = False,
        dropout: float = 0.0,
        seeds: UInt64 | None = None,
    ) -> Encoded:
        """The same for `bpe.segments.Segments`; ``cut``: their text is still to be cut."""

    def decode(self, ids: UInt32, offsets: Offsets, skipped: list[int] = ...) -> Rows:
        """The bytes of rows of ids; those in ``skipped`` are left out."""

# Vocabularies in files: json/tokenizer.h, text/rank_lines.h, encode/ranked.h.

def tokens_in_rank_order(data: Bytes) -> Rows | None:
    """The tokens of a .tiktoken file whose ranks count from 0; None if anything else is in it."""

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

    def find(self, name: str) -> int | None: ...
    def tokens(self, own: list[int]) -> Rows | None:
        """The bytes that names spell, or are if in ``own``; None if one is not of the alphabet."""

def read_tokenizer_json(data: Bytes) -> TokenizerLists | None:
    """The lists of a file; None where it is broken or unusual, which the caller has to find out."""

def merges_of_ranks(token_data: Bytes, token_offsets: Offsets, model: str = "bytes") -> Buffer:
    """The merges (uint32 triples) of a vocabulary whose ids are its ranks.

    Raises:
        ValueError: a byte or a character of the model ("bytes" or "characters") has no token.
    """

def merges_that_happen(
    token_data: Bytes, token_offsets: Offsets, merges: UInt32, model: str = "bytes"
) -> Buffer:
    """Of merges (uint32 triples) those that some text needs; ValueError if a part has no token."""
