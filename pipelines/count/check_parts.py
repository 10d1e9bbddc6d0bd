"""Check each file of a counts directory against the manifest that names the file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bpe._inputs_file import inputs_file_names
from pipelines import storage
from pipelines.count.directory import read_counts
from pipelines.count.steps import tokenizer_of_runs
from pipelines.output.names import TOKENIZER, read_plan
from pipelines.output.state import check_file, check_names
from pipelines.storage import join

if TYPE_CHECKING:
    from pipelines.count.directory import StoredCounts


def check_tokenizers(counts: StoredCounts) -> None:
    """Check that counts of runs have the tokenizer of the runs, in each group too.

    Counts that no job wrote may have no tokenizer.

    Raises:
        InputError: a tokenizer is missing or damaged, or is another tokenizer.
    """
    if (runs := counts.manifest.runs) is None:
        return
    folders = (path.rpartition("/")[0] for path in counts.sets)
    for folder in dict.fromkeys([counts.directory, *folders]):
        if storage.exists(join(folder, TOKENIZER)) or read_plan(counts.directory):
            tokenizer_of_runs(folder, runs)


def stored_files(counts: StoredCounts) -> list[tuple[str, int, str]]:
    """Return path, size and SHA-256 (hex) of the parts, then of the dead letters, of all sets.

    Raises:
        VerificationError: there is a file that no manifest of counts names.
    """
    root, manifest = counts.directory, counts.manifest
    named = {letters.file for letters in manifest.dead_letters}
    for top in [counts.grouped] if counts.grouped else counts.sets.values():
        named |= inputs_file_names(top.inputs)
    for path, one in counts.sets.items():
        parts = {part.file for part in one.parts}
        if counts.grouped is None:
            named |= parts
        else:
            check_names(path.rpartition("/")[0], "counts", named=parts)
    check_names(root, "counts", named=named, appended=bool(counts.appended))
    return [
        *((path, part.bytes, part.sha256) for path, part in counts.files),
        *((join(root, one.file), one.bytes, one.sha256) for one in manifest.dead_letters),
    ]


def check_counts(directory: str) -> None:
    """Check a counts directory in this process, one file after the other.

    Raises:
        JobError, bpe.errors.CountsError: a file is wrong or missing, or there is no manifest.
    """
    counts = read_counts(directory)
    check_tokenizers(counts)
    for file in stored_files(counts):
        check_file(*file)
