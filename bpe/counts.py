"""Counts of pre-tokens: all that training needs to know of a corpus.

Counts add up: two halves of a corpus, counted apart, are the whole corpus counted at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from bpe._native import CountRun, merge_runs
from bpe._text import utf8
from bpe.counter import PretokenCounter
from bpe.counts_directory import read_counts, write_counts
from bpe.counts_files import run_from_table, run_table
from bpe.counts_manifest import CountedInput, CountsManifest, Totals
from bpe.errors import CountsError
from bpe.pretokenize import Pretokenizer
from bpe.special import check_special_tokens

__all__ = ["PretokenCounts", "Totals", "count_pretokens"]

_BLOCK_BYTES = 4 << 20
_MAX_COUNT = 2**63 - 1


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PretokenCounts:
    """The distinct pre-tokens of a corpus, sorted by their bytes, and how often each occurs.

    Equality looks at everything but ``inputs``: where the text came from does not matter.

    Attributes:
        run: the pre-tokens and their counts as the core holds them.
        pretokenizer: how the text was cut.
        special_tokens: cut out of the text before, and not counted.
        totals: documents, bytes and pre-tokens of the corpus.
        order_span: where order is tracked, all places of documents lie in ``range(order_span)``;
            None where it is not.
        inputs: the files that were counted, where they are known.

    Raises:
        CountsError: the parts contradict each other, or the counts add up to more than 2^63 - 1.
    """

    run: CountRun
    pretokenizer: Pretokenizer
    special_tokens: tuple[str, ...] = ()
    totals: Totals
    order_span: int | None = None
    inputs: tuple[CountedInput, ...] = ()

    def __post_init__(self) -> None:
        check_special_tokens(self.special_tokens)
        try:
            total = self.run.total()
        except OverflowError as error:
            raise CountsError(f"{error}: these counts cannot be held in 64 bits") from error
        if total != self.totals.pretokens:
            raise CountsError(
                f"the counts add up to {total}, the totals say {self.totals.pretokens} pre-tokens"
            )
        if (self.order_span is None) != (self.first_documents is None):
            raise CountsError(
                f"order_span is {self.order_span}, but the counts "
                f"{'do not know' if self.first_documents is None else 'know'} the order"
            )
        if self.order_span is not None and len(self):
            last = pc.max(self.first_documents).as_py()
            if last >= self.order_span:
                raise CountsError(f"a document has place {last}, order_span is {self.order_span}")

    @cached_property
    def _table(self) -> pa.Table:
        return run_table(self.run)

    @property
    def pretokens(self) -> pa.LargeBinaryArray:
        """The distinct pre-tokens in byte order."""
        return self._table["pretoken"].chunk(0)

    @property
    def counts(self) -> pa.Int64Array:
        """How often each pre-token occurs, at least once."""
        return self._table["count"].chunk(0)

    @property
    def first_documents(self) -> pa.Int64Array | None:
        """The place of the document in which each pre-token was first seen, if order is tracked."""
        return None if self.run.documents is None else self._table["first_document"].chunk(0)

    @property
    def first_positions(self) -> pa.Int64Array | None:
        """Its index among the pre-tokens of that document, if order is tracked."""
        return None if self.run.positions is None else self._table["first_position"].chunk(0)

    def __len__(self) -> int:
        """The number of distinct pre-tokens."""
        return len(self.run)

    def __repr__(self) -> str:
        how = self.pretokenizer.name or f"pattern {self.pretokenizer.pattern!r}"
        return (
            f"<PretokenCounts: {len(self):,} distinct of {self.totals.pretokens:,} pre-tokens "
            f"({how}) in {self.totals.documents:,} documents>"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PretokenCounts):
            return NotImplemented
        return (
            self.pretokenizer == other.pretokenizer
            and self.special_tokens == other.special_tokens
            and self.totals == other.totals
            and self.order_span == other.order_span
            and self._table.equals(other._table)
        )

    __hash__ = None  # type: ignore[assignment]  # compares by contents, which can be gigabytes

    def __getstate__(self) -> dict[str, object]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __add__(self, other: PretokenCounts) -> PretokenCounts:
        """The counts of both corpora; documents of ``other`` come after those of ``self``.

        Raises:
            CountsError: they were cut in another way, only one tracks order, or a count passes
                2^63 - 1.
        """
        if not isinstance(other, PretokenCounts):
            return NotImplemented
        for what in ("pretokenizer", "special_tokens"):
            mine, its = getattr(self, what), getattr(other, what)
            if mine != its:
                raise CountsError(
                    f"counts with different {what} cannot be added: {mine!r} and {its!r}; "
                    "count one of the corpora again"
                )
        if (self.order_span is None) != (other.order_span is None):
            raise CountsError("counts that track order cannot be added to counts that do not")
        shift = self.order_span or 0
        try:
            run = merge_runs([self.run, _shifted(other.run, shift)])
        except OverflowError as error:
            raise CountsError(str(error)) from error
        return PretokenCounts(
            run=run,
            pretokenizer=self.pretokenizer,
            special_tokens=self.special_tokens,
            totals=self.totals + other.totals,
            order_span=None if other.order_span is None else shift + other.order_span,
            inputs=tuple(sorted(self.inputs + other.inputs)),
        )

    def __mul__(self, times: int) -> PretokenCounts:
        """The counts of a corpus that holds this one ``times`` times, one after the other.

        Raises:
            CountsError: ``times`` is not positive, or a count passes 2^63 - 1.
        """
        if isinstance(times, bool) or not isinstance(times, int):
            return NotImplemented
        if times < 1:
            raise CountsError(f"counts are multiplied by 1 or more, not {times}")
        table = self._table
        try:
            counts = pc.multiply_checked(table["count"], pa.scalar(times, pa.int64()))
        except (pa.ArrowInvalid, OverflowError) as error:
            raise CountsError(f"{times} times a count passes 2^63 - 1") from error
        index = table.schema.get_field_index("count")
        return PretokenCounts(
            run=run_from_table(table.set_column(index, "count", counts), where="counts"),
            pretokenizer=self.pretokenizer,
            special_tokens=self.special_tokens,
            totals=self.totals * times,
            order_span=None if self.order_span is None else self.order_span * times,
            inputs=self.inputs,
        )

    __rmul__ = __mul__

    def items(self) -> Iterator[tuple[bytes, int]]:
        """Each pre-token with its count, in byte order."""
        for batch in self._table.select(["pretoken", "count"]).to_batches(max_chunksize=1 << 16):
            yield from zip(batch[0].to_pylist(), batch[1].to_pylist(), strict=True)

    def to_table(self) -> pa.Table:
        """``pretoken``, ``count`` and, where order is tracked, where each was first seen."""
        return self._table

    def save(self, directory: str | Path, *, shards: int = 16) -> None:
        """Write a counts directory: Parquet parts by hash, sorted inside, the manifest last.

        A counts directory that is there is replaced. The same counts are the same bytes.

        Raises:
            CountsError: the directory holds something else, or a pre-token is too large.
            OSError: it cannot be written.
        """
        manifest = CountsManifest(
            pretokenizer=self.pretokenizer,
            special_tokens=self.special_tokens,
            order_span=self.order_span,
            totals=self.totals,
            inputs=self.inputs,
            parts=(),
        )
        write_counts(Path(directory), self.run, manifest, shards=shards)

    @classmethod
    def load(cls, directory: str | Path) -> PretokenCounts:
        """Read a counts directory, and check every part of it.

        Raises:
            CountsError: the manifest or a part is missing, damaged, or of another run.
        """
        run, manifest = read_counts(Path(directory))
        try:
            return cls(
                run=run,
                pretokenizer=manifest.pretokenizer,
                special_tokens=manifest.special_tokens,
                totals=manifest.totals,
                order_span=manifest.order_span,
                inputs=manifest.inputs,
            )
        except CountsError as error:
            raise CountsError(f"{directory}: {error}") from error

    @classmethod
    def from_items(
        cls,
        items: Mapping[str, int] | Mapping[bytes, int] | Iterable[tuple[str | bytes, int]],
        *,
        pretokenizer: str = "none",
        pattern: str | None = None,
        special_tokens: Sequence[str] = (),
        track_order: bool = False,
    ) -> PretokenCounts:
        """Counts from elsewhere: pre-tokens with their counts; equal ones are added.

        Each item stands for one document, that pre-token as often as it counts; with
        ``track_order`` they come in the order of the items.

        Raises:
            CountsError: a pre-token is empty, or a count not between 1 and 2^63 - 1.
            EncodingError: a str has a lone surrogate.
        """
        counted: Counter[bytes] = Counter()
        first: dict[bytes, int] = {}
        documents = size = 0
        for item, count in items.items() if isinstance(items, Mapping) else items:
            key = _bytes_of(item, f"item {documents}")
            if not key:
                raise CountsError(f"item {documents} is empty: a pre-token is never empty")
            if type(count) is not int or count < 1:
                raise CountsError(
                    f"item {documents}, {item!r:.60}: {count!r} is not a count (>= 1)"
                )
            counted[key] += count
            if counted[key] > _MAX_COUNT:
                raise CountsError(f"the count of pre-token {item!r:.60} passes 2^63 - 1")
            first.setdefault(key, documents)
            documents += 1
            size += len(key) * count
        keys = sorted(counted)
        columns = {
            "pretoken": pa.array(keys, pa.large_binary()),
            "count": pa.array([counted[key] for key in keys], pa.int64()),
        }
        if track_order:
            columns["first_document"] = pa.array([first[key] for key in keys], pa.int64())
            columns["first_position"] = pa.array([0] * len(keys), pa.int64())
        return cls(
            run=run_from_table(pa.table(columns), where="items"),
            pretokenizer=Pretokenizer.of(pretokenizer, pattern),
            special_tokens=check_special_tokens(special_tokens),
            totals=Totals(documents=documents, bytes=size, pretokens=counted.total()),
            order_span=documents if track_order else None,
        )


def count_pretokens(
    texts: Iterable[str | bytes] | pa.Array | pa.ChunkedArray,
    *,
    pretokenizer: str = "gpt2",
    pattern: str | None = None,
    special_tokens: Sequence[str] = (),
    track_order: bool = False,
) -> PretokenCounts:
    """Count the pre-tokens of texts; each text is one document.

    Args:
        texts: str or bytes (which may be malformed UTF-8), or an Arrow array of strings.
        pretokenizer: a name of :data:`bpe.PRETOKENIZERS`.
        pattern: a regular expression in its place.
        special_tokens: cut out of the texts before, and not counted.
        track_order: keep where each pre-token was first seen, for ``ties="first-seen"``.

    Raises:
        CountsError: a text is null or no text; the message names its row.
        EncodingError: a str has a lone surrogate.
        PretokenizerError, SpecialTokenError: the arguments are wrong.

    Example:
        >>> dict(count_pretokens(["to be or not to be"], pretokenizer="words").items())
        {b'be': 2, b'not': 1, b'or': 1, b'to': 2}
    """
    cut = Pretokenizer.of(pretokenizer, pattern)
    special = check_special_tokens(special_tokens)
    counter = PretokenCounter(cut, special_tokens=special, track_order=track_order)
    documents = size = pretokens = 0
    for block in _blocks(texts):
        rows = range(documents, documents + len(block))
        pretokens += counter.add(block, pa.array(rows, pa.int64()) if track_order else None)
        documents += len(block)
        size += pc.sum(pc.binary_length(block)).as_py() or 0
    return PretokenCounts(
        run=merge_runs(counter.drain(1)),
        pretokenizer=cut,
        special_tokens=special,
        totals=Totals(documents=documents, bytes=size, pretokens=pretokens),
        order_span=documents if track_order else None,
    )


def _blocks(texts: Iterable[str | bytes] | pa.Array | pa.ChunkedArray) -> Iterator[pa.Array]:
    """The texts as Arrow arrays without nulls."""
    if isinstance(texts, (str, bytes)):
        raise CountsError("texts is a single text: give a list, [text]")
    if isinstance(texts, (pa.Array, pa.ChunkedArray)):
        row = 0
        for block in texts.chunks if isinstance(texts, pa.ChunkedArray) else [texts]:
            if block.null_count:
                null = row + pc.index(pc.is_null(block), pa.scalar(True)).as_py()
                raise CountsError(f"text {null} is null: drop it, or fill it with an empty string")
            yield _text_array(block)
            row += len(block)
        return
    held: list[bytes] = []
    size = 0
    for row, text in enumerate(texts):
        held.append(_bytes_of(text, f"text {row}"))
        size += len(held[-1])
        if size >= _BLOCK_BYTES:
            yield pa.array(held, pa.large_binary())
            held, size = [], 0
    if held:
        yield pa.array(held, pa.large_binary())


def _text_array(array: pa.Array) -> pa.Array:
    kind = array.type
    if pa.types.is_dictionary(kind):
        return _text_array(array.dictionary_decode())
    is_text = (
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_binary,
        pa.types.is_large_binary,
    )
    if not any(check(kind) for check in is_text):
        raise CountsError(f"texts are an Arrow array of {kind}: cast them to large_string first")
    return array


def _bytes_of(text: object, what: str) -> bytes:
    if not isinstance(text, (str, bytes)):
        raise CountsError(f"{what} is {text!r:.60}, not a str")
    return utf8(text, what=what)


def _shifted(run: CountRun, places: int) -> CountRun:
    """The same run with documents that come ``places`` later."""
    if run.documents is None or places == 0:
        return run
    table = run_table(run)
    try:
        moved = pc.add_checked(table["first_document"], pa.scalar(places, pa.int64()))
    except (pa.ArrowInvalid, OverflowError) as error:
        raise CountsError("the places of documents pass 2^63 - 1") from error
    index = table.schema.get_field_index("first_document")
    return run_from_table(table.set_column(index, "first_document", moved), where="counts")
