"""Check counts against their manifest, and against their input.

Every file is read in full and compared with the manifest: size and SHA-256.
Given the inputs, they are counted again, into temporary files, and each shard is compared.
"""

from __future__ import annotations

import functools
import operator
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from bpe.counts import CutRuns
from bpe.counts.files import counts_table
from bpe.counts.manifest import CountsManifest, Totals
from pipelines import storage
from pipelines.corpus.inputs import Inputs
from pipelines.corpus.reading import Reading, reading_of
from pipelines.count.check_parts import (
    check_tokenizers,
    shard_of,
    stored_files,
    stored_sets,
    stored_shards,
)
from pipelines.count.job import CountRequest
from pipelines.count.steps import CountJob
from pipelines.errors import InputError, VerificationError
from pipelines.output.check_files import check_file
from pipelines.output.names import TOKENIZER
from pipelines.planned import run_once
from pipelines.settings import CountSettings, OutputSettings
from pipelines.storage import join
from pipelines.verify.base import Check
from pipelines.verify.inputs import Stated, match_inputs
from pipelines.verify.made_again import first_difference

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipelines.count.sets import CountsSet
    from pipelines.settings import InputSettings
    from pipelines.verify.base import Verification


class CheckCounts(Check):
    """The check of all files; each unit is a file of counts or of dead letters."""

    def pieces(self) -> Iterator[tuple[tuple[str, int, str], int]]:
        """Yield the files, each with its size in bytes."""
        for file in stored_files(self.output, stored_sets(self.output)):
            yield file, file[1]

    def check(self, file: tuple[str, int, str], /, **_: Any) -> dict[str, Any]:
        """Compare the size and the SHA-256 of a file with the manifest."""
        check_file(*file)
        return {}


def _compare_shards(
    root: str, counted: Sequence[CountsSet], sets: Sequence[CountsSet], unit: str
) -> None:
    """Compare each shard with the same shard counted again.

    Raises:
        VerificationError: a shard differs; the message names the first row.
    """
    shards = len(counted[0].manifest.parts)
    both = map(stored_shards, (counted, sets))
    for shard, parts in enumerate(zip(*both, strict=True)):
        again, before = (counts_table(shard_of(some, shard, shards)) for some in parts)
        if again.equals(before):
            continue
        rows = min(len(again), len(before))
        places = (
            first_difference(again[name][:rows], before[name][:rows])
            for name in before.column_names
        )
        row = min((at for at in places if at is not None), default=rows)
        stated, found = (
            repr(table.slice(row, 1).to_pylist()[0]) if row < len(table) else "no more"
            for table in (before, again)
        )
        raise VerificationError(
            f"{root}, shard {shard} of {shards}: in byte order, the {unit} of row {row} is "
            f"{stated}; counting again gives {found}: the input was changed, or read otherwise: "
            "count again"
        )


@dataclass(frozen=True, kw_only=True)
class CountAgain(CountRequest):
    """The job that counts the inputs of existing counts again.

    Attributes:
        counted: the directory of the existing counts.
        group_field: the field that groups the counts; a record without this field is bad.
    """

    counted: str
    group_field: str | None

    @property
    def reading(self) -> Reading:
        """Return the settings of reading splits."""
        return reading_of(self.inputs, self.directory, group_by=self.group_field)

    def find(self) -> Inputs:
        """Return the files that were counted before.

        Raises:
            VerificationError: the inputs are not the files that were counted.
            InputError: the inputs cannot be listed.
        """
        sets = stored_sets(self.counted)
        files = match_inputs(
            *(self.counted, self.inputs, _stated(sets)),
            set_aside=[aside for one in sets for aside in one.set_aside],
        )
        return Inputs(files=tuple(files))

    def worker_files(self) -> dict[str, bytes]:
        """Return the tokenizer file if runs were counted; else no file."""
        names = [TOKENIZER] if self.job.runs else []
        return {name: storage.read(join(self.counted, name)) for name in names}


def _stated(sets: Sequence[CountsSet]) -> list[Stated]:
    """Return the input files of all sets, in the order of the corpus."""
    inputs = [file for one in sets for file in one.manifest.inputs]
    sources = {
        file.name: one.name
        for one in sets[0].sources
        for first, end in one.inputs
        for file in sets[0].manifest.inputs[first:end]
    }
    return [Stated(one.name, one.size, sources.get(one.name)) for one in inputs]


def verify_counts(job: Verification) -> dict[str, Any]:
    """Check counts against their manifest and, where they are given, their inputs.

    Returns:
        Totals of the counts, for `VerifySummary`.

    Raises:
        VerificationError: the counts are wrong.
        JobError: the counts cannot be checked.
    """
    root = job.directory
    sets = stored_sets(root)
    check_tokenizers(root, sets)
    again = None if job.inputs is None else _recount_job(job, sets, job.inputs)
    if again is not None:
        again.plan()  # before all else: whether these are the inputs
    check = CheckCounts(output=root, reads=again is None)
    files = stored_files(root, sets)
    size = sum(size for _, size, _ in files)
    job.run(check, pieces=len(files), size=size)
    if again is not None:
        run_once(again, execution=job.execution, progress=job.progress)
        (counted,) = stored_sets(again.directory)
        _compare_shards(root, [counted], sets, again.job.unit)
        _compare(root, sets, counted.manifest)
    if not sets[0].appended:
        job.refuse_another(sets, stored_sets(root))
    totals = sum((one.manifest.totals for one in sets), Totals())
    return {
        "parts": sum(len(one.manifest.parts) for one in sets),
        "documents": totals.documents,
        "bytes": totals.bytes,
        "unit": "pre-token" if sets[0].manifest.runs is None else "run",
        "tokens": totals.pretokens,
        "failures": totals.failures,
        "formats": totals.formats,
    }


def _recount_job(job: Verification, sets: Sequence[CountsSet], inputs: InputSettings) -> CountAgain:
    """Return the job that counts the inputs again.

    Raises:
        InputError: rare pre-tokens of each group were dropped, so counts cannot be compared.
    """
    root, first, directory = job.directory, sets[0].manifest, join(job.work, "counts")
    pruned = first.prune  # counts that were appended to have none
    if pruned and sets[0].group_by is not None:
        raise InputError(
            f"{root}: rare pre-tokens of each group were dropped, so the sum of all groups is "
            "not what its input gives: verify without `input`"
        )
    if first.scale != 1:
        raise VerificationError(
            f"{root}: these counts are weighted, in units of 1/{first.scale}: they can be compared "
            "with no input; verify those they were made of"
        )
    return CountAgain(
        inputs=replace(inputs, max_failures=sys.maxsize),
        output=OutputSettings(directory=directory),
        counted=root,
        group_field=sets[0].group_field,
        job=CountJob(
            directory=directory,
            pretokenizer=first.pretokenizer,
            special_tokens=first.special_tokens,
            settings=CountSettings(
                track_order=first.order_span is not None,
                prune_below=pruned.below if pruned else 1,
                shards=len(first.parts),
            ),
            runs=first.runs,
        ),
    )


def _compare(root: str, sets: Sequence[CountsSet], again: CountsManifest) -> None:
    """Compare the totals of manifests: documents, pre-tokens, bad records, dropped and cut ones.

    The greatest count of a pair over all sets is between the maximum and the sum of the sets' own.

    Raises:
        VerificationError: counting again gives other totals.
    """
    stated, now = sum((one.manifest.totals for one in sets), Totals()), again.totals
    for what, before, after in (
        ("documents", stated.documents, now.documents),
        ("pre-tokens", stated.pretokens, now.pretokens),
        ("bad records", stated.failures, now.failures),
        ("dropped pre-tokens", sets[0].manifest.prune, again.prune),
    ):
        if before != after:
            raise VerificationError(
                f"{root}: the manifest says {what}: {before}; counting again gives {after}"
            )
    if again.cut is None:
        return
    cuts = [one.manifest.cut for one in sets if one.manifest.cut is not None]
    total = functools.reduce(operator.add, cuts, CutRuns(pairs=0, max_pair=0))
    most = max((one.max_pair for one in cuts), default=0)
    if total.pairs != again.cut.pairs or not most <= again.cut.max_pair <= total.max_pair:
        raise VerificationError(
            f"{root}: the manifest says that the runs that were cut have {total}; counting again "
            f"gives {again.cut}"
        )
