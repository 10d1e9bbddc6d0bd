"""The manifest of a corpus that files were appended to, and what earlier generations left."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bpe._inputs_file import INPUTS
from pipelines import storage
from pipelines.encode.manifest import Totals, made_of, read_encoded, read_header, records_of
from pipelines.output.names import (
    DATA,
    DEAD_LETTERS,
    RECORDS_FILE,
    generation_of,
    parse_part,
)
from pipelines.storage import join

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipelines.corpus.splits import Split
    from pipelines.encode.manifest import EncodedManifest
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
    before = read_header(directory)
    taken = {piece.name for split in splits for piece in split.pieces}
    inputs = {source.name: source for source in (*before.inputs, *manifest.inputs)}
    order = (*sources, *sorted({source.source for source in inputs.values()}))
    ranks = {name: rank for rank, name in enumerate(dict.fromkeys(order))}

    def place(record: Record) -> tuple[int, str, int, str]:
        (part,), _, _ = made_of([record])
        name, start = (part.inputs[0].name, part.inputs[0].start) if part.inputs else ("", 0)
        return ranks.get(part.source, -1), name, start, part.file

    earlier = (
        record for record in records_of(before, directory) if taken.isdisjoint(_files_of(record))
    )
    ordered = sorted([*earlier, *records], key=place)
    whole = manifest.of_records(ordered)
    begun = (one.name for part in whole.parts for one in part.inputs if one.start == 0)
    totals = Totals.of_parts(whole.parts, whole.dead_letters)
    return replace(whole, totals=totals, inputs=tuple(inputs[name] for name in begun)), ordered


def _files_of(record: Record) -> list[str]:
    """The names of the files that a record is of, those set aside included."""
    (part,), _, aside = made_of([record])
    return [*(one.name for one in part.inputs), *(one.name for one in aside)]


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
