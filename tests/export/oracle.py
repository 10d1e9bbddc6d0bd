"""The expected output of ``bpe export``, computed slowly from the ids, with none of its code.

documents of all sources → halves → choice → order → units → rows of each part
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections import defaultdict
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow.parquet as pq

from tests.bpe.test_pack import best_fit

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from pipelines.settings import ExportSettings

MASK = (1 << 64) - 1
OWN = ("id", "key", "input_ids", "num_tokens")
Row: TypeAlias = dict[str, Any]  # with the columns of a Parquet part


@dataclass(frozen=True, kw_only=True)
class Document:
    """A row of the ids: ``source`` and ``file`` are numbers, ``row`` counts within the file."""

    source: int
    epoch: int = 0
    file: int
    row: int
    source_name: str
    file_name: str
    key: int
    id: str
    ids: list[int]
    columns: dict[str, Any]

    @property
    def place(self) -> tuple[int, int, int, int]:
        return self.source, self.epoch, self.file, self.row


def mix64(x: int) -> int:
    """SplitMix64's finalizer."""
    x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ x >> 27) * 0x94D049BB133111EB) & MASK
    return x ^ x >> 31


def seed64(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")


def share(text: str) -> Fraction:
    """70% or 1/3 or 0.5, exactly."""
    return Fraction(text[:-1]) / 100 if text.endswith("%") else Fraction(text)


def read(sources: Mapping[str, Path]) -> list[Document]:
    """The documents of all sources, in their order."""
    parts = [
        (source, name, file, part, pq.read_table(directory / part))
        for source, (name, directory) in enumerate(sources.items())
        for file, part in enumerate(part_names(directory))
    ]
    columns = {name for *_, table in parts for name in table.column_names}.difference(OWN)
    return [
        Document(
            source=source,
            file=file,
            row=row,
            source_name=name,
            file_name=part,
            key=values["key"],
            id=values["id"],
            ids=values["input_ids"],
            columns={column: values.get(column) for column in columns},
        )
        for source, name, file, part, table in parts
        for row, values in enumerate(table.to_pylist())
    ]


def part_names(directory: Path) -> list[str]:
    manifest = json.loads((directory / "manifest.json").read_bytes())
    records = pq.read_table(directory / manifest["records"]["file"])["files"].to_pylist()
    return [json.loads(files)[0]["file"] for files in records]


def halves(documents: Sequence[Document], options: ExportSettings) -> dict[str, list[Document]]:
    """The documents to train on, as often as they are taken, and those held out; in order."""
    border = math.floor(Fraction(options.validation) * 2**64)
    held_out = [document for document in documents if document.key < border]
    rest = [document for document in documents if document.key >= border]
    return {
        "train": ordered(chosen(rest, options), options),
        "validation": ordered(held_out, options),
    }


def chosen(documents: Sequence[Document], options: ExportSettings) -> list[Document]:
    """The training documents that a mixture, or a budget of one source, takes."""
    if not options.mix and options.token_budget is None:
        return list(documents)
    names = {document.source_name for document in documents}
    mix = (one.rpartition("=") for one in options.mix)
    shares = {name: share(text) for name, _, text in mix} or dict.fromkeys(names, Fraction(1))
    by_source = {name: [one for one in documents if one.source_name == name] for name in shares}
    tokens = {name: sum(len(one.ids) for one in by_source[name]) for name in shares}
    budget = options.token_budget
    if budget is None:
        budget = math.floor(min(tokens[name] / shares[name] for name in shares))
    return [
        one
        for name in shares
        for one in taken(by_source[name], math.floor(budget * shares[name]), name, options)
    ]


def taken(
    documents: list[Document], asked: int, name: str, options: ExportSettings
) -> list[Document]:
    """Whole epochs of a source, and of the last one as many documents as have the tokens left."""
    epochs, left = divmod(asked, sum(len(one.ids) for one in documents))
    result = [replace(one, epoch=epoch) for epoch in range(epochs) for one in documents]
    seed = seed64(f"choose {options.mix_seed} {name}")
    for one in sorted(documents, key=lambda one: (mix64(one.key ^ seed), one.file, one.row)):
        if left <= 0:
            break
        result.append(replace(one, epoch=epochs))
        left -= len(one.ids)
    return result


def ordered(documents: Iterable[Document], options: ExportSettings) -> list[Document]:
    if options.shuffle is None:
        return sorted(documents, key=lambda one: one.place)
    return sorted(documents, key=lambda one: (shuffle_key(one, options), one.place))


def shuffle_key(one: Document, options: ExportSettings) -> int:
    text = f"shuffle {options.shuffle} {one.source_name} {one.epoch} {one.file_name}"
    return mix64((seed64(text) + (one.row + 1) * 0x9E3779B97F4A7C15) & MASK)


def units(
    half: Sequence[Document],
    documents: Sequence[Document],
    options: ExportSettings,
    unit_tokens: int,
) -> list[int]:
    """The unit of each document of a half: its bucket, or the run of files that it is in.

    ``documents`` are all that the sources have: files count entirely, whatever is taken of them.
    """
    if options.shuffle is not None:
        buckets = max(1, math.ceil(sum(len(one.ids) for one in half) / unit_tokens))
        return [(shuffle_key(one, options) >> 32) * buckets >> 32 for one in half]
    sizes: dict[tuple[int, int], int] = defaultdict(int)
    for one in documents:
        sizes[one.source, one.file] += len(one.ids)
    run_of: dict[tuple[int, int], int] = {}
    run, tokens, before = -1, 0, -1
    for (source, file), size in sorted(sizes.items()):
        if source != before or tokens + size > unit_tokens:
            run, tokens = run + 1, 0
        run_of[source, file], tokens, before = run, tokens + size, source
    runs = [(one.source, one.epoch, run_of[one.source, one.file]) for one in half]
    number = {key: i for i, key in enumerate(sorted(set(runs)))}
    return [number[key] for key in runs]


def parts(
    half: Sequence[Document],
    documents: Sequence[Document],
    options: ExportSettings,
    *,
    unit_tokens: int,
    pad: int | None = None,
) -> list[list[Row]]:
    """The rows of each part of a half."""
    unit = units(half, documents, options, unit_tokens)
    if options.packing == "best-fit":
        placed = [
            (number, row)
            for number, group in itertools.groupby(range(len(half)), key=lambda i: unit[i])
            for row in fitted([half[i] for i in group], options, pad)
        ]
    elif options.pack is not None:
        placed = packed(half, unit, options, pad)
    else:
        placed = [
            (number, row)
            for number, one in zip(unit, half, strict=True)
            for row in chunks(one, options)
        ]
    by_unit = itertools.groupby(placed, key=lambda pair: pair[0])
    return [[row for _, row in rows] for _, rows in by_unit]


def chunks(one: Document, options: ExportSettings) -> list[Row]:
    """A row a document, or a row a chunk of one."""
    if (size := options.max_tokens) is None:
        return [{"id": one.id, **one.columns, **ids_columns(one.ids)}]
    return [
        {
            "id": one.id,
            "chunk_index": i,
            **one.columns,
            **ids_columns(one.ids[begin : begin + size]),
        }
        for i, begin in enumerate(range(0, max(len(one.ids), 1), size))
    ]


def ids_columns(ids: list[int]) -> Row:
    return {"input_ids": ids, "num_tokens": len(ids)}


Piece: TypeAlias = tuple[Document, int, int]  # a document; where in it ids begin and end


def packed(
    half: Sequence[Document], unit: Sequence[int], options: ExportSettings, pad: int | None
) -> list[tuple[int, Row]]:
    """Rows cut out of the stream of all ids, with the units in which they begin."""
    size = options.pack or 0
    pieces: dict[int, list[Piece]] = defaultdict(list)
    begins_in: dict[int, int] = dict(enumerate(unit[:1]))  # the first row, of the first document
    begin = 0
    for number, one in zip(unit, half, strict=True):
        end = begin + len(one.ids)
        if begin == end:  # in the row in which the document before it ends
            pieces[max((begin - 1) // size, 0)].append((one, 0, 0))
        for row in range(begin // size, math.ceil(end / size)) if end > begin else ():
            cut = slice(max(row * size, begin) - begin, min((row + 1) * size, end) - begin)
            pieces[row].append((one, cut.start, cut.stop))
            begins_in.setdefault(row, number)
        begin = end
    if pieces and begin < len(pieces) * size and options.pack_remainder == "drop":
        del pieces[len(pieces) - 1]
    first = unit[0] if unit else 0  # where all documents are empty
    return [
        (begins_in.get(row, first), packed_row(pieces[row], options, pad)) for row in sorted(pieces)
    ]


def fitted(documents: Sequence[Document], options: ExportSettings, pad: int | None) -> list[Row]:
    """The rows of one part by best fit: in the order of their first documents."""
    size = options.pack or 0
    pieces = [
        (number, begin, min(begin + size, len(one.ids)))
        for number, one in enumerate(documents)
        for begin in range(0, max(len(one.ids), 1), size)
    ]
    places = iter(best_fit([end - begin for _, begin, end in pieces if end > begin], size))
    row_of = [next(places) if end > begin else None for _, begin, end in pieces]
    first = next((row for row in row_of if row is not None), 0)
    rows: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for piece, row in zip(pieces, row_of, strict=True):
        first = first if row is None else row  # an empty one goes where the one before it is
        rows[first].append(piece)
    return [
        packed_row([(documents[number], begin, end) for number, begin, end in row], options, pad)
        for row in sorted(rows.values())
    ]


def packed_row(pieces: Sequence[Piece], options: ExportSettings, pad: int | None) -> Row:
    """A packed row; ``add_column`` as docs/rows.md describes it."""
    size, ids = options.pack or 0, [id_ for one, begin, end in pieces for id_ in one.ids[begin:end]]
    lengths = [end - begin for _, begin, end in pieces]
    padding = size - len(ids) if pad is not None else 0
    numbered = [*enumerate(lengths), (-1, padding)]
    added = {
        "document_ids": [number for number, length in numbered for _ in range(length)],
        "position_ids": [place for _, length in numbered for place in range(length)],
        "cu_seqlens": sorted({0, *itertools.accumulate(length for _, length in numbered)}),
    }
    documents = [
        {"id": one.id, "offset": begin, "length": end - begin, **one.columns}
        for one, begin, end in pieces
    ]
    return {
        "documents": documents,
        "input_ids": ids + [pad or 0] * padding,
        "num_tokens": len(ids),
        **{name: added[name] for name in options.add_column},
    }
