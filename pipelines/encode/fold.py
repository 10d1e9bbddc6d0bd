"""Write the manifest of an encoded corpus, and remove files of earlier appending jobs."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bpe._inputs_file import INPUTS
from pipelines import storage
from pipelines.corpus.reading import check_failures
from pipelines.encode.duplicates import duplicate_ids
from pipelines.encode.manifest import Part, Totals, read_encoded, read_header, records_of
from pipelines.errors import JobError
from pipelines.output.directory import plan_of_run, remove_temporaries
from pipelines.output.names import (
    DATA,
    DEAD_LETTERS,
    MANIFEST,
    RECORDS_FILE,
    generation_of,
    of_generation,
    parse_part,
    part_file,
)
from pipelines.stage.record import write_records
from pipelines.storage import join

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pipelines.corpus.splits import Split
    from pipelines.encode.manifest import EncodedManifest
    from pipelines.encode.steps import EncodeJob
    from pipelines.stage.record import Record


def write_manifest(
    records: Iterable[Record],
    job: EncodeJob,
    splits: Iterable[Split] = (),
    *,
    sources: Sequence[str] = (),
) -> dict[str, Any]:
    """Check that no part is missing, and write the manifest.

    Args:
        records: the records of all parts, in any order.
        job: the job that made the parts.
        splits: the splits of the parts; empty if the documents came from no files.
        sources: the names of the sources, in order, if the job appends.

    Raises:
        RecordError: all parts together have more bad records than the job may set aside.
        JobError: the runner lost a part.
    """
    ordered = sorted(records, key=lambda record: record.unit)
    splits = list(splits)
    manifest = job.manifest(ordered, splits)
    made, generation = manifest.parts, splits[0].generation if splits else 0
    expected = [part_file(part, job.parts, generation) for part in range(job.parts)]
    if [part.file for part in made] != expected:
        raise JobError(
            f"the runner returned {len(made)} parts of {len(expected)}: "
            "use another runner; parts that are there can be kept with `resume`"
        )
    if generation:
        manifest, ordered = appended(*(manifest, ordered, splits, job.directory), sources=sources)
    check_failures(
        manifest.totals.failures,
        job,
        [letters.file for letters in manifest.dead_letters],
        documents=manifest.totals.documents,
    )
    if job.run:
        plan_of_run(job.directory, job.run)  # of another job by now: this one ends
    if not generation:
        files_of = [part.file for part in manifest.parts]
        manifest = replace(manifest, duplicate_ids=duplicate_ids(job.directory, files_of))
    remove_temporaries(job.directory)
    file = of_generation(RECORDS_FILE, generation)
    named = write_records(job.directory, ordered, file)
    files = replace(manifest, generation=generation, records=named).files()
    for name, data in files.items():
        storage.write(join(job.directory, name), data)
    value: dict[str, Any] = json.loads(files[MANIFEST])
    return value


def appended(
    manifest: EncodedManifest,
    records: Sequence[Record],
    splits: Sequence[Split],
    directory: str,
    *,
    sources: Sequence[str],
) -> tuple[EncodedManifest, list[Record]]:
    """Add the parts of a job to the parts of the earlier manifest; return manifest and records.

    An earlier record is dropped if the job reads one of its files again. Parts are in the order of
    their sources and files, not in the order of their making.

    Args:
        manifest: the manifest of the job alone.
        records: the records that the job has made.
        splits: the splits of these records.
        directory: the directory of the corpus.
        sources: the names of the sources, in order; other sources come last.

    Raises:
        InputError: the earlier manifest or its records are damaged.
    """
    before = read_header(directory)
    taken = {piece.name for split in splits for piece in split.pieces}
    inputs = {source.name: source for source in (*before.inputs, *manifest.inputs)}
    order = (*sources, *sorted({source.source for source in inputs.values()}))
    ranks = {name: rank for rank, name in enumerate(dict.fromkeys(order))}

    def place(record: Record) -> tuple[int, str, int, str]:
        part = Part.of_record(record)
        name, start = (part.inputs[0].name, part.inputs[0].start) if part.inputs else ("", 0)
        return ranks.get(part.source, -1), name, start, part.file

    earlier = (
        record
        for record in records_of(before, directory)
        if taken.isdisjoint(_files_of(Part.of_record(record)))
    )
    ordered = sorted([*earlier, *records], key=place)
    parts = tuple(map(Part.of_record, ordered))
    begun = tuple(inputs[one.name] for part in parts for one in part.inputs if one.start == 0)
    return replace(manifest, totals=Totals.of_parts(parts), inputs=begun, parts=parts), ordered


def _files_of(part: Part) -> list[str]:
    """Return the names of the files of a part, with the files that were set aside."""
    return [*(one.name for one in part.inputs), *(one.name for one in part.set_aside)]


def tidy(directory: str, generation: int, *, prune: bool) -> None:
    """Remove files of earlier generations, except parts; to prune, also parts without a record.

    Files of the generation before this one stay, because a reader may still use them.

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
