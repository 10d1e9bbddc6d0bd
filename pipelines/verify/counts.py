"""Check counts against their manifest, and against their input.

Every file is read in full and compared with the manifest: size and SHA-256.
Given the inputs, they are counted again, into temporary files, and each shard is compared.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bpe._native import add_counts
from bpe.counts import CutRuns
from bpe.counts.files import counts_table
from bpe.errors import CountsError
from pipelines import storage
from pipelines.corpus.documents import ReadOptions
from pipelines.corpus.inputs import Inputs
from pipelines.count.check_parts import check_tokenizers, stored_files
from pipelines.count.directory import read_counts, read_shard
from pipelines.count.job import CountRequest
from pipelines.count.steps import CountJob
from pipelines.errors import InputError, VerificationError
from pipelines.output.names import TOKENIZER
from pipelines.output.state import check_file
from pipelines.planned import deflated, run_once
from pipelines.settings import CountSettings, OutputSettings
from pipelines.storage import join
from pipelines.verify.base import Check
from pipelines.verify.inputs import match_inputs
from pipelines.verify.made_again import first_difference

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bpe.counts.manifest import CountsManifest
    from pipelines.count.directory import StoredCounts
    from pipelines.settings import InputSettings
    from pipelines.verify.base import Verification


class CheckCounts(Check):
    """The check of all files; each unit is a file of counts or of dead letters."""

    def pieces(self) -> Iterator[tuple[tuple[str, int, str], int]]:
        """Yield the files, each with its size in bytes."""
        for file in stored_files(read_counts(self.output)):
            yield file, file[1]

    def check(self, file: tuple[str, int, str], /, **_: Any) -> dict[str, Any]:
        """Compare the size and the SHA-256 of a file with the manifest."""
        check_file(*file)
        return {}


def _compare_shards(stored: StoredCounts, counted: StoredCounts, unit: str) -> None:
    """Compare each shard with the same shard counted again.

    Raises:
        VerificationError: a shard differs; the message names the first row.
        bpe.errors.CountsError: a part does not agree with its manifest.
    """
    root, shards = stored.directory, len(counted.shards)
    for shard, files in enumerate(zip(counted.shards, stored.shards, strict=True)):
        again, before = (
            counts_table(add_counts(read_shard(some, shard, shards))) for some in files
        )
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
    """

    counted: str

    def find(self) -> Inputs:
        """Return the files that were counted before.

        Raises:
            VerificationError: the inputs are not the files that were counted.
            InputError: the inputs cannot be listed.
        """
        counts = read_counts(self.counted)
        files = match_inputs(
            *(self.counted, self.inputs, _stated(counts)), set_aside=counts.set_aside
        )
        return Inputs(files=tuple(files))


def _stated(counts: StoredCounts) -> list[tuple[str, int, str | None]]:
    """Return the input files, in the order of the corpus."""
    inputs = counts.manifest.inputs
    sources = {
        file.name: one.name
        for one in (counts.grouped.sources if counts.grouped else ())
        for first, end in one.inputs
        for file in inputs[first:end]
    }
    return [(one.name, one.size, sources.get(one.name)) for one in inputs]


def verify_counts(job: Verification) -> dict[str, Any]:
    """Check counts against their manifest and, where they are given, their inputs.

    Returns:
        Totals of the counts, for `VerifySummary`.

    Raises:
        VerificationError: the counts are wrong.
        JobError: the counts cannot be checked.
    """
    root = job.directory
    try:
        counts = read_counts(root)
        check_tokenizers(counts)
    except (CountsError, InputError) as error:
        raise VerificationError(str(error)) from error
    again = None if job.inputs is None else _recount_job(job, counts, job.inputs)
    if again is not None:
        again.plan()  # before all else: whether these are the inputs
    check = CheckCounts(output=root, reads=again is None)
    files = stored_files(counts)
    size = sum(size for _, size, _ in files)
    job.run(check, pieces=len(files), size=size)
    if again is not None:
        run_once(again, execution=job.execution, progress=job.progress)
        counted = read_counts(again.directory)
        _compare_shards(counts, counted, again.job.unit)
        _compare(counts, counted.manifest)
    if not counts.appended:
        job.refuse_another(counts, read_counts(root))
    totals = counts.manifest.totals
    return {
        "parts": len(counts.files),
        "documents": totals.documents,
        "bytes": totals.bytes,
        "unit": "pre-token" if counts.manifest.runs is None else "run",
        "tokens": totals.pretokens,
        "failures": totals.failures,
        "formats": totals.formats,
    }


def _recount_job(job: Verification, counts: StoredCounts, inputs: InputSettings) -> CountAgain:
    """Return the job that counts the inputs again.

    Raises:
        VerificationError: the counts are weighted.
    """
    root, manifest, directory = job.directory, counts.manifest, join(job.work, "counts")
    if manifest.scale != 1:
        raise VerificationError(
            f"{root}: these counts are weighted, in units of 1/{manifest.scale}: they can be "
            "compared with no input; verify those they were made of"
        )
    names = [TOKENIZER] if manifest.runs else []
    group_by = counts.grouped.field if counts.grouped else None
    return CountAgain(
        inputs=inputs,
        output=OutputSettings(directory=directory),
        counted=root,
        sent=deflated({name: storage.read(join(root, name)) for name in names}),
        job=CountJob(
            directory=directory,
            pretokenizer=manifest.pretokenizer,
            special_tokens=manifest.special_tokens,
            settings=ReadOptions.of(inputs, group_by=group_by),
            max_failures=sys.maxsize,
            counting=CountSettings(
                track_order=manifest.order_span is not None,
                prune_below=manifest.prune.below if manifest.prune else 1,
                shards=len(counts.shards),
                group_by=group_by,
            ),
            runs=manifest.runs,
        ),
    )


def _compare(counts: StoredCounts, again: CountsManifest) -> None:
    """Compare the totals of manifests: documents, pre-tokens, bad records, dropped and cut ones.

    The greatest count of a pair over all sets is between the maximum and the sum of the sets' own.

    Raises:
        VerificationError: counting again gives other totals.
    """
    root, manifest = counts.directory, counts.manifest
    stated, now = manifest.totals, again.totals
    for what, before, after in (
        ("documents", stated.documents, now.documents),
        ("pre-tokens", stated.pretokens, now.pretokens),
        ("bad records", stated.failures, now.failures),
        ("dropped pre-tokens", manifest.prune, again.prune),
    ):
        if before != after:
            raise VerificationError(
                f"{root}: the manifest says {what}: {before}; counting again gives {after}"
            )
    if again.cut is None:
        return
    total = manifest.cut or CutRuns(pairs=0, max_pair=0)
    most = max((one.cut.max_pair for one in counts.sets.values() if one.cut), default=0)
    if total.pairs != again.cut.pairs or not most <= again.cut.max_pair <= total.max_pair:
        raise VerificationError(
            f"{root}: the manifest says that the runs that were cut have {total}; counting again "
            f"gives {again.cut}"
        )
