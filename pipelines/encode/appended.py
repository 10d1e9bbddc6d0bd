"""The manifest of a corpus that files were appended to, and what earlier generations left."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bpe._codec import decode
from bpe._inputs_file import INPUTS
from bpe.counts.manifest import DeadLetters
from pipelines import storage
from pipelines.encode.manifest import Part, Totals, named_in, read_encoded, set_aside_in
from pipelines.output.names import (
    DATA,
    DEAD_LETTERS,
    RECORDS_FILE,
    generation_of,
    of_generation,
    parse_part,
)
from pipelines.stage.record import read_records
from pipelines.storage import join

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pipelines.corpus.splits import Split
    from pipelines.encode.manifest import EncodedManifest, Source
    from pipelines.stage.record import Record


def appended(
    manifest: EncodedManifest,
    records: Sequence[Record],
    splits: Sequence[Split],
    directory: str,
    *,
    sources: Sequence[str],
) -> tuple[EncodedManifest, list[Record]]:
    """The manifest of what stands of an earlier one and of what a job has made, and its records.

    A record of which a file is taken again does not stand. Parts are in the order of their sources
    and files, whenever they were made.

    Args:
        manifest: of the job alone.
        records: that it has made.
        splits: that they are of.
        directory: of the corpus.
        sources: their order; others come last.

    Raises:
        InputError: the earlier manifest or its records are damaged.
    """
    before = read_encoded(directory)
    taken = {piece.name for split in splits for piece in split.pieces}
    inputs = {source.name: source for source in (*before.inputs, *manifest.inputs)}
    order = (*sources, *sorted({source.source for source in inputs.values()}))
    ranks = {name: rank for rank, name in enumerate(dict.fromkeys(order))}

    def place(record: Record) -> tuple[int, str, int, str]:
        part = decode(Part, record.totals["part"])
        name, start = (part.inputs[0].name, part.inputs[0].start) if part.inputs else ("", 0)
        return ranks.get(part.source, -1), name, start, part.file

    earlier = [
        record
        for record in read_records(
            directory, before.records_sha256, of_generation(RECORDS_FILE, before.generation)
        )
        if not _files_of(record) & taken
    ]
    standing = sorted([*earlier, *records], key=place)
    parts, letters = named_in(standing)
    named, dead = decode(tuple[Part, ...], parts), decode(tuple[DeadLetters, ...], letters)
    return (
        replace(
            manifest,
            totals=Totals.of(named, dead),
            inputs=_sources_of(named, inputs),
            parts=named,
            dead_letters=dead,
            set_aside=tuple(set_aside_in(standing)),
        ),
        standing,
    )


def _files_of(record: Record) -> set[str]:
    """The names of the files that a record is of, those set aside included."""
    ranges = decode(Part, record.totals["part"]).inputs
    return {one.name for one in ranges} | {one.name for one in set_aside_in([record])}


def _sources_of(parts: Iterable[Part], sources: Mapping[str, Source]) -> tuple[Source, ...]:
    """The inputs of parts, in their order."""
    begun = (one.name for part in parts for one in part.inputs if one.start == 0)
    return tuple(sources[name] for name in begun)


def tidy(directory: str, generation: int, *, prune: bool) -> None:
    """Remove what earlier generations left beside parts, and, to prune, what no record names.

    What the generation before wrote stays: somebody may be reading it.

    Raises:
        OutputError: a file cannot be removed.
    """
    for entry in storage.entries(directory):
        first = 0 if entry.name in (RECORDS_FILE, INPUTS) else generation
        if generation_of(entry.name, first) < generation - 1:
            storage.remove(join(directory, entry.name))
    if prune:
        manifest = read_encoded(directory)
        named = {part.file for part in manifest.parts}
        named |= {letters.file for letters in manifest.dead_letters}
        for folder in (DATA, DEAD_LETTERS):
            for entry in storage.entries(join(directory, folder)):
                file = f"{folder}/{entry.name}"
                if parse_part(file) and file not in named:
                    storage.remove(join(directory, file))
