"""What tokenizers make of the same documents: totals that add up in any order, and differences.

Tokenizers cut text in different places. What lies between two places where all of them cut is a
piece that each encodes by itself; counted like pre-tokens, pieces say which of them make the
difference, exactly and in the memory of a count.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bpe._native import scan
from bpe.counts.files import run_from_ipc, run_table
from bpe.diff import same_tokens, token_sizes
from bpe.errors import BadTextsError
from bpe.pretokenizer import Pretokenizer
from pipelines.encode.tokens import unknown_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt

    from bpe import Tokenizer
    from bpe.counting import PretokenCounter

    Numbers = npt.NDArray[np.int64]

_ROWS = 1 << 16  # pieces that are encoded at a time
WHOLE = Pretokenizer("none")
# A vocabulary that is used takes a bit a token: of so many groups it is known.
USED_GROUPS = 256


@dataclass(frozen=True)
class Measures:
    """What one tokenizer made of some documents.

    Attributes:
        tokens: ids.
        single_byte: of these, ids of tokens of one byte.
        unknown: of these, ids of the unknown token.
        used: the ids that occur, as the bits of a number; None where that was not kept.
        same_tokens: tokens of the first tokenizer that it makes of the same bytes; None where one
            of them is not lossless.
        same_documents: documents of which both make the same tokens; None likewise.
    """

    tokens: int = 0
    single_byte: int = 0
    unknown: int = 0
    used: int | None = 0
    same_tokens: int | None = 0
    same_documents: int | None = 0

    def __add__(self, other: Measures) -> Measures:
        sums: dict[str, Any] = {}
        for name, one in vars(self).items():
            two = getattr(other, name)
            sums[name] = None if None in (one, two) else one | two if name == "used" else one + two
        return Measures(**sums)


@dataclass(frozen=True, kw_only=True)
class GroupTotals:
    """Some documents, and what each tokenizer made of them.

    Attributes:
        documents: how many.
        bytes: of their text, in UTF-8.
        measures: one for each tokenizer.
    """

    documents: int = 0
    bytes: int = 0
    measures: tuple[Measures, ...] = ()

    def __add__(self, other: GroupTotals) -> GroupTotals:
        if not self.measures or not other.measures:
            return self if self.measures else other
        return GroupTotals(
            documents=self.documents + other.documents,
            bytes=self.bytes + other.bytes,
            measures=tuple(a + b for a, b in zip(self.measures, other.measures, strict=True)),
        )

    def to_record(self) -> dict[str, Any]:
        """The same as JSON values, for `from_record`."""
        measures = [
            {**vars(one), "used": None if one.used is None else f"{one.used:x}"}
            for one in self.measures
        ]
        return {**vars(self), "measures": measures}

    @classmethod
    def from_record(cls, value: Mapping[str, Any]) -> GroupTotals:
        """What `to_record` was called on."""
        measures = tuple(
            Measures(**{**one, "used": None if one["used"] is None else int(one["used"], 16)})
            for one in value["measures"]
        )
        return cls(**{**value, "measures": measures})

    def to_json(self) -> dict[str, Any]:
        """The totals and what follows from them, as JSON values; rates of nothing are null."""
        return {
            "documents": self.documents,
            "bytes": self.bytes,
            "tokenizers": [
                {
                    "tokens": one.tokens,
                    "bytes_per_token": _rate(self.bytes, one.tokens),
                    "tokens_per_document": _rate(one.tokens, self.documents),
                    "single_byte_tokens": one.single_byte,
                    "single_byte_share": _rate(one.single_byte, one.tokens),
                    "unknown_tokens": one.unknown,
                    "vocabulary_used": None if one.used is None else one.used.bit_count(),
                    "same_tokens": one.same_tokens,
                    "same_token_share": _rate(one.same_tokens, self.measures[0].tokens),
                    "same_documents": one.same_documents,
                    "same_document_share": _rate(one.same_documents, self.documents),
                }
                for one in self.measures
            ],
        }


def _rate(number: int | None, of: int) -> float | None:
    return number / of if of and number is not None else None


class Meter:
    """Measures the token ids of one tokenizer.

    Attributes:
        sizes: the bytes of each token, by id; None if texts need not decode to themselves.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.sizes = token_sizes(tokenizer) if tokenizer.lossless else None
        unknown = unknown_id(tokenizer)
        self._single, self._unknown = (
            np.array([test(id_, token) for id_, token in enumerate(tokenizer.tokens)], bool)
            for test in (
                lambda _, token: token is not None and len(token) == 1,
                lambda id_, _: id_ == unknown,
            )
        )

    def measure(
        self, lists: pa.ListArray, codes: Numbers, groups: int, *, same: Sequence[Numbers] | None
    ) -> list[Measures]:
        """What the ids of some documents come to, for each group.

        Args:
            lists: the ids of each document.
            codes: the number of the group of each document, below ``groups``.
            groups: how many there are.
            same: how many tokens of the first tokenizer each document has, and whether it has the
                same; None where that is not known.
        """
        ids = pc.list_flatten(lists).to_numpy()
        of = np.repeat(codes, pc.list_value_length(lists).to_numpy())
        tokens = (of, of[self._single[ids]], of[self._unknown[ids]])
        numbers: list[list[Any]] = [np.bincount(one, minlength=groups).tolist() for one in tokens]
        numbers.append([None] * groups)
        if groups <= USED_GROUPS:
            marks = np.zeros((groups, len(self._single)), bool)
            marks[of, ids] = True
            packed = np.packbits(marks, axis=1, bitorder="little")
            numbers[-1] = [int.from_bytes(row.tobytes(), "little") for row in packed]
        if same is None:
            numbers += [[None] * groups] * 2
        else:
            numbers += [_by_group(values, codes, groups).tolist() for values in same]
        return [Measures(*of_group) for of_group in zip(*numbers, strict=True)]


def _by_group(values: Numbers, codes: Numbers, groups: int) -> Numbers:
    sums = np.zeros(groups, np.int64)
    np.add.at(sums, codes, values)
    return sums


def measure_block(
    texts: pa.Array,
    encoded: Sequence[pa.ListArray],
    *,
    meters: Sequence[Meter],
    groups: Sequence[str],
    codes: Numbers,
) -> dict[str, GroupTotals]:
    """The totals of a block, by group.

    Args:
        texts: its documents.
        encoded: their ids, of each tokenizer.
        meters: one for each tokenizer.
        groups: the keys of the groups, each once.
        codes: the number of the group of each document.
    """
    number = len(groups)
    sizes = pc.binary_length(texts).to_numpy().astype(np.int64)
    documents = _by_group(np.ones(len(texts), np.int64), codes, number)
    size = _by_group(sizes, codes, number)
    measured = [
        meter.measure(lists, codes, number, same=_same(meters[0], encoded[0], meter, lists))
        for meter, lists in zip(meters, encoded, strict=True)
    ]
    return {
        key: GroupTotals(
            documents=int(documents[group]),
            bytes=int(size[group]),
            measures=tuple(of[group] for of in measured),
        )
        for group, key in enumerate(groups)
        if documents[group]
    }


def _same(
    first: Meter, expected: pa.ListArray, meter: Meter, lists: pa.ListArray
) -> tuple[Numbers, Numbers] | None:
    """Of each document, the tokens of the first tokenizer that it has, and whether it has all."""
    if first.sizes is None or meter.sizes is None:
        return None
    tokens = same_tokens(expected, lists, sizes=(first.sizes, meter.sizes))
    lengths = (pc.list_value_length(one).to_numpy() for one in (expected, lists))
    return tokens, np.logical_and(*(tokens == one for one in lengths)).astype(np.int64)


def add_groups(
    groups: dict[str, GroupTotals], more: Mapping[str, GroupTotals], *, whole: str
) -> None:
    """Add totals by group; of many groups without the ids that occur, but for the ``whole``."""
    before = len(groups)
    for key, totals in more.items():
        groups[key] = groups.get(key, GroupTotals()) + totals
    if len(groups) - 1 > USED_GROUPS:
        for key in list(more) if before - 1 > USED_GROUPS else list(groups):
            if key != whole:
                unused = (replace(one, used=None) for one in groups[key].measures)
                groups[key] = replace(groups[key], measures=tuple(unused))


class PieceCutter:
    """Cuts texts where all of some pre-tokenizers cut them.

    One that normalizes text first, or does not cut at all, has no say; where none has, the cuts
    are those of GPT-2.

    Attributes:
        counted: how pieces are to be counted: the pre-tokenizer that all have in common, or the
            one that takes each piece as it is.
    """

    def __init__(self, pretokenizers: Iterable[Pretokenizer]) -> None:
        heard = {str(one): one for one in pretokenizers if not one.normalizer and one != WHOLE}
        self._cuts = tuple(heard.values()) or (Pretokenizer("gpt2"),)
        self.counted = self._cuts[0] if len(self._cuts) == 1 else WHOLE

    def add(self, texts: pa.Array, counts: PretokenCounter) -> None:
        """Count the pieces of some texts (large_string or large_binary without nulls)."""
        if len(self._cuts) == 1:
            counts.add(texts)
        elif len(texts):
            counts.add(self.pieces(texts))

    def pieces(self, texts: pa.Array) -> pa.LargeBinaryArray:
        """The pieces of some texts, in order; put together they are the texts."""
        _, offsets, data = texts.buffers()
        begins = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
        view = memoryview(data) if data is not None else memoryview(b"")
        bounds = [begins[:1]]
        for begin, end in zip(begins[:-1].tolist(), begins[1:].tolist(), strict=True):
            if end > begin:
                bounds.append(self._ends(bytes(view[begin:end])) + begin)
        joined = np.ascontiguousarray(np.concatenate(bounds), np.int64)
        return pa.LargeBinaryArray.from_buffers(
            pa.large_binary(), len(joined) - 1, [None, pa.py_buffer(joined), data]
        )

    def _ends(self, text: bytes) -> Numbers:
        """Where the pieces of a text end, ascending; the last is its length."""
        ends = _cut_places(self._cuts[0], text)
        for one in self._cuts[1:]:
            ends = np.intersect1d(ends, _cut_places(one, text), assume_unique=True)
        return ends


def _cut_places(pretokenizer: Pretokenizer, text: bytes) -> Numbers:
    """Where pre-tokens begin or end, without 0, and the length of the text."""
    if native := pretokenizer.native:
        spans = np.frombuffer(memoryview(scan(native, text)), np.int64)
    else:
        spans = np.array(pretokenizer.spans(text), np.int64).ravel()
    places = np.unique(np.append(spans, len(text)))
    return places[places > 0]


@dataclass(frozen=True, kw_only=True)
class Example:
    """A piece of which two tokenizers make different numbers of tokens.

    Attributes:
        piece: its bytes.
        count: how often it occurs.
        more: tokens that the second makes of it beyond those of the first; negative where fewer.
    """

    piece: bytes
    count: int
    more: int

    @property
    def effect(self) -> tuple[int, bytes]:
        """The order of examples: the least is the greatest total difference."""
        return -abs(self.count * self.more), self.piece


@dataclass(frozen=True, kw_only=True)
class Difference:
    """How the tokens of two tokenizers differ over some pieces.

    Attributes:
        fewer: occurrences of pieces of which the second makes fewer tokens.
        more: of which it makes more.
        same: of which it makes as many.
        examples: the pieces that make the greatest difference, that one first.
    """

    fewer: int = 0
    more: int = 0
    same: int = 0
    examples: tuple[Example, ...] = ()

    def joined(self, other: Difference, examples: int) -> Difference:
        """Both together, with so many examples."""
        both = (*self.examples, *other.examples)
        return Difference(
            fewer=self.fewer + other.fewer,
            more=self.more + other.more,
            same=self.same + other.same,
            examples=tuple(heapq.nsmallest(examples, both, key=lambda one: one.effect)),
        )


def find_differences(
    run: bytes, tokenizers: Sequence[Tokenizer], *, examples: int
) -> list[Difference]:
    """How each further tokenizer differs from the first, over counted pieces.

    Args:
        run: the pieces and how often each occurs, as Arrow IPC bytes; no piece is in two runs.
        tokenizers: that are compared.
        examples: how many to keep.
    """
    table = run_table(run_from_ipc(run))
    found = [Difference()] * (len(tokenizers) - 1)
    for batch in table.to_batches(max_chunksize=_ROWS):
        pieces, counts = batch.column(0), batch.column(1).to_numpy()
        lengths = [_lengths(tokenizer, pieces) for tokenizer in tokenizers]
        for i, of in enumerate(lengths[1:]):
            both = (of >= 0) & (lengths[0] >= 0)
            more = np.where(both, of - lengths[0], 0)
            found[i] = found[i].joined(
                _difference(pieces, counts, more, both, examples=examples), examples
            )
    return found


def _difference(
    pieces: pa.Array,
    counts: Numbers,
    more: Numbers,
    both: npt.NDArray[np.bool_],
    *,
    examples: int,
) -> Difference:
    effect = np.abs(counts * more)
    rows = np.flatnonzero(effect)
    if examples and len(rows) > examples:  # all that are as great as the last one wanted
        least = np.partition(effect[rows], len(rows) - examples)[len(rows) - examples]
        rows = rows[effect[rows] >= least]
    kept = (
        Example(piece=pieces[row].as_py(), count=int(counts[row]), more=int(more[row]))
        for row in (rows.tolist() if examples else ())
    )
    return Difference(
        fewer=int(counts[more < 0].sum()),
        more=int(counts[more > 0].sum()),
        same=int(counts[both & (more == 0)].sum()),
        examples=tuple(heapq.nsmallest(examples, kept, key=lambda one: one.effect)),
    )


def _lengths(tokenizer: Tokenizer, pieces: pa.Array) -> Numbers:
    """How many tokens each piece has; -1 where it cannot be encoded."""
    try:
        lists = tokenizer.encode_arrow(pieces)
    except BadTextsError as error:
        unknown = np.zeros(len(pieces), bool)
        unknown[list(error.rows)] = True
        known = _lengths(tokenizer, pieces.filter(pa.array(~unknown)))
        lengths = np.full(len(pieces), -1, np.int64)
        lengths[~unknown] = known
        return lengths
    return np.asarray(pc.list_value_length(lists).to_numpy(), np.int64)
