"""Find the files that an appending job takes: files that no earlier job took.

The first job of a directory makes generation 0; each job that appends makes the next generation.
The plan stores the names and versions of the files taken (`pipelines.corpus.splits.write_splits`).
The manifest names the complete generations: any other generation is of a job that was killed.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.corpus.inputs import find_inputs, summary_of
from pipelines.corpus.splits import earlier_pieces, versions_of
from pipelines.errors import InputError
from pipelines.output.names import BASE, read_plan

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pipelines.corpus.files import InputFile
    from pipelines.corpus.inputs import Inputs
    from pipelines.settings import AppendSettings, InputSettings
    from pipelines.storage import Version


def find_arrived(
    directory: str,
    generation: int | None,
    inputs: InputSettings,
    settings: AppendSettings,
    *,
    fixed: Collection[str] = (),
    by_job: bool = False,
) -> Inputs:
    """Return the complete files that are new, or that changed since a job took them.

    A changed file is taken again, together with all files that share a unit of work with that file.

    Args:
        directory: the output directory.
        generation: the last generation in the manifest; None if there is no manifest.
        inputs: patterns of files.
        settings: the rule that says when a file is complete.
        fixed: names of files that cannot be taken again.
        by_job: whether all files that one job took are one unit of work.

    Raises:
        InputError: the inputs cannot be listed; the list of files taken is missing; or a file that
            shares a unit of work with a changed file is gone.
    """
    earlier, base = None, ""
    if generation is not None:
        earlier = earlier_pieces(directory, generation)
        if earlier is None:
            raise InputError(
                f"{directory}: nobody can tell which files were taken: hidden files of this "
                "directory are missing: put them back, or begin again with `overwrite`"
            )
        base = base_of(directory, earlier)
    found = find_inputs(inputs, below=base)
    known = {} if earlier is None else versions_of(earlier)
    now, settled, waiting = time.time(), settings.settled_after, dict[str, str]()
    files: dict[str, InputFile] = {}
    outdated: list[str] = []
    for file in found.files:
        if file.name not in known or not _is_as(file, known[file.name]):
            if file.name in fixed:
                outdated.append(file.name)
            elif file.version is not None and now - file.version.modified / 1e9 < settled:
                waiting[file.path] = f"changed less than {settled:g} s ago"
            else:
                files[file.name] = file
    changed = sorted(files.keys() & known.keys())
    if earlier is not None and changed:
        again = _sharing_units(earlier, changed, by_job=by_job).difference(fixed)
        if gone := again - {file.name for file in found.files}:
            raise InputError(
                f"{min(gone)} is gone, and shares a unit of work with {changed[0]}, which changed: "
                "put it back, or begin again with `overwrite`"
            )
        files |= {file.name: file for file in found.files if file.name in again}
    return replace(
        found,
        files=tuple(file for file in found.files if file.name in files),
        passed_over=(*found.passed_over, *summary_of(waiting)),
        generation=0 if generation is None else generation + 1,
        earlier=earlier,
        outdated=tuple(outdated),
    )


def base_of(directory: str, pieces: pa.Table | None = None) -> str:
    """Return the folder that names of input files are relative to; empty if unknown.

    Args:
        directory: the output directory.
        pieces: the plans of the directory; None to read them here.
    """
    base = read_plan(directory).get(BASE)
    if isinstance(base, str):
        return base
    pieces = earlier_pieces(directory, 0) if pieces is None else pieces
    if pieces is None or not len(pieces):
        return ""
    row = pieces.select(["path", "name"]).slice(0, 1).to_pylist()[0]
    return os.fsdecode(row["path"]).removesuffix(row["name"])


def _is_as(file: InputFile, known: tuple[int, Version | None]) -> bool:
    size, version = known
    same = file.version is None or version is None or file.version.may_be(version)
    return file.size == size and same


def _sharing_units(pieces: pa.Table, names: Sequence[str], *, by_job: bool) -> set[str]:
    """Return these files and all files that share a unit of work with one of them.

    A file that a job takes again leaves its old unit together with all files of the unit, so that
    no other unit follows from these.
    """
    unit = ["generation"] if by_job else ["generation", "part"]
    of_names = pieces.filter(pc.is_in(pieces["name"], pa.array(names, pa.string())))
    return set(pieces.join(of_names.select(unit), unit, join_type="left semi")["name"].to_pylist())
