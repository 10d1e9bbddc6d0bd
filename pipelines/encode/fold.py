"""Write the manifest of an encoded corpus, and remove files that are not needed any more."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bpe._inputs_file import INPUTS
from pipelines import storage
from pipelines.corpus.reading import check_failures
from pipelines.encode.duplicates import duplicate_ids
from pipelines.encode.manifest import Part, read_encoded, read_header, records_of
from pipelines.output.directory import locked, plan_of_run, remove_temporaries
from pipelines.output.names import (
    DATA,
    DEAD_LETTERS,
    MANIFEST,
    RECORDS_FILE,
    generation_of,
    of_generation,
    parse_part,
)
from pipelines.stage.record import write_records
from pipelines.storage import join

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipelines.encode.steps import EncodeJob
    from pipelines.progress import Progress
    from pipelines.stage.record import Record


def write_manifest(
    records: Sequence[Record], job: EncodeJob, *, sources: Sequence[str] = ()
) -> None:
    """Write the manifest of a job's parts and of all earlier ones.

    Args:
        records: the records of all parts, in order.
        job: the job that made the parts.
        sources: the names of the sources, in order, if the job appends.

    Raises:
        RecordError: all parts together have more bad records than the job may set aside.
        InputError: the earlier manifest or its records are damaged.
        JobError: another job has taken the directory over.
    """
    made = [(Part.of_unit(record), record) for record in records]
    if job.generation:
        made = with_earlier(made, job.directory, sources=sources)
    manifest = job.manifest(tuple(part for part, _ in made))
    letters = [letters.file for letters in manifest.dead_letters]
    totals = manifest.totals
    check_failures(totals.failures, job, letters, documents=totals.documents)
    plan_of_run(job.directory, job.run)  # of another job by now: this one ends
    if not job.generation:
        again = duplicate_ids(job.directory, manifest.parts)
        manifest = replace(manifest, duplicate_ids=again)
    remove_temporaries(job.directory)
    file = of_generation(RECORDS_FILE, job.generation)
    named = write_records(job.directory, [record for _, record in made], file)
    for name, data in replace(manifest, records=named).files().items():
        storage.write(join(job.directory, name), data)


def with_earlier(
    made: Sequence[tuple[Part, Record]], directory: str, *, sources: Sequence[str]
) -> list[tuple[Part, Record]]:
    """Add the parts of earlier jobs; parts are in the order of their sources and files.

    An earlier part is dropped if the job reads one of its files again.

    Args:
        made: the parts of the job, with their records.
        directory: the directory of the corpus.
        sources: the names of the sources, in order; other sources come last.

    Raises:
        InputError: the earlier manifest or its records are damaged.
    """
    taken = {name for part, _ in made for name in part.names}
    records = records_of(read_header(directory), directory)
    before = ((Part.of_unit(record), record) for record in records)
    parts = [*(one for one in before if taken.isdisjoint(one[0].names)), *made]
    order = (*sources, *sorted({part.source for part, _ in parts if part.inputs}))
    ranks = {name: rank for rank, name in enumerate(dict.fromkeys(order))}

    def place(one: tuple[Part, Record]) -> tuple[int, str, int, str]:
        part = one[0]
        name, start = (part.inputs[0].name, part.inputs[0].start) if part.inputs else ("", 0)
        return ranks.get(part.source, -1), name, start, part.file

    return sorted(parts, key=place)


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


def discard_parts(directory: str, progress: Progress) -> None:
    """Remove the parts after their export is verified; plan and records stay.

    The manifest is marked first, so that a call after a killed one removes the remaining parts.

    Raises:
        InputError: the directory holds no complete corpus.
        OutputError: a file cannot be written or removed.
    """
    root = storage.located(directory)
    with locked(root):
        manifest = read_encoded(root, discarded=True)
        if not manifest.discarded:
            marked = replace(manifest, discarded=True).files()
            storage.write(join(root, MANIFEST), marked[MANIFEST])
        for part in manifest.parts:
            storage.remove(join(root, part.file))
    progress.log(
        f"encode: {root}: its {len(manifest.parts):,} parts are removed: the export is verified"
    )
