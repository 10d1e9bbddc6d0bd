"""Check each file of a counts directory against the manifest that names the file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bpe._inputs_file import inputs_file_names
from bpe._native import add_counts
from bpe.counts.files import read_part
from bpe.errors import CountsError
from pipelines import storage
from pipelines.count.directory import read_counts_sets
from pipelines.count.sets import manifest_of_sets
from pipelines.count.steps import tokenizer_of_runs
from pipelines.errors import InputError, VerificationError
from pipelines.output.check_files import check_file, check_names
from pipelines.output.names import TOKENIZER, read_plan
from pipelines.storage import join

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bpe._native import SortedCounts
    from bpe.counts.manifest import CountsPart
    from pipelines.count.sets import CountsSet


def stored_sets(directory: str) -> list[CountsSet]:
    """Return the sets of a counts directory, and check that their manifests agree.

    Raises:
        VerificationError: a manifest is missing or damaged, or two manifests do not agree.
    """
    try:
        sets = read_counts_sets(directory)
        manifest_of_sets(sets)  # which compares them
    except (CountsError, InputError) as error:
        raise VerificationError(str(error)) from error
    return sets


def check_tokenizers(directory: str, sets: Sequence[CountsSet]) -> None:
    """Check that counts of runs have the tokenizer of the runs, in each group too.

    Counts that no job wrote may have no tokenizer.

    Args:
        directory: the directory of the counts.
        sets: the sets in the directory.

    Raises:
        VerificationError: a tokenizer is missing or damaged, or is another tokenizer.
    """
    if (runs := sets[0].manifest.runs) is None:
        return
    for folder in dict.fromkeys([directory, *(one.directory for one in sets)]):
        if storage.exists(join(folder, TOKENIZER)) or read_plan(directory):
            try:
                tokenizer_of_runs(folder, runs)
            except InputError as error:
                raise VerificationError(str(error)) from error


def stored_shards(sets: Sequence[CountsSet]) -> list[tuple[tuple[str, CountsPart], ...]]:
    """Return the parts of each shard, one of each set, with the path of its file."""
    columns = (
        [(join(one.directory, part.file), part) for part in one.manifest.parts] for one in sets
    )
    return list(zip(*columns, strict=True))


def shard_of(parts: Iterable[tuple[str, CountsPart]], shard: int, shards: int) -> SortedCounts:
    """Return the counts of a shard from the parts that `stored_shards` gives for the shard.

    Raises:
        VerificationError: a part does not agree with its manifest.
    """
    try:
        return add_counts(
            [
                read_part(storage.read_if_there(path), part, shard=shard, shards=shards, where=path)
                for path, part in parts
            ]
        )
    except (CountsError, InputError) as error:
        raise VerificationError(str(error)) from error


def stored_files(directory: str, sets: Sequence[CountsSet]) -> list[tuple[str, int, str]]:
    """Return path, size and SHA-256 (hex) of the parts, then of the dead letters, of all sets.

    Args:
        directory: the directory of the counts.
        sets: the sets in the directory.

    Raises:
        VerificationError: there is a file that no manifest of counts names.
    """
    letters = [letters for one in sets for letters in one.manifest.dead_letters]
    named = {one.file for one in letters}
    for one in sets:
        parts = {part.file for part in one.manifest.parts}
        named |= set(inputs_file_names(one.manifest.inputs))
        if one.group_by is None:
            named |= parts
        else:
            check_names(one.directory, "counts", named=parts)
    check_names(directory, "counts", named=named, appended=sets[0].appended)
    return [
        *(
            (join(one.directory, part.file), part.bytes, part.sha256)
            for one in sets
            for part in one.manifest.parts
        ),
        *((join(directory, one.file), one.bytes, one.sha256) for one in letters),
    ]


def check_counts(directory: str) -> None:
    """Check a counts directory in this process, one file after the other.

    Raises:
        VerificationError: a file is wrong or missing, or there is no manifest.
    """
    root = storage.located(directory)
    sets = stored_sets(root)
    check_tokenizers(root, sets)
    for file in stored_files(root, sets):
        check_file(*file)
