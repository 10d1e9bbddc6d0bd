"""The check of counts in a directory: each part, and their sums, against the manifest."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from bpe._inputs_file import inputs_file_names
from bpe._native import merge_runs
from bpe.counts import check_agreement
from bpe.counts.files import run_table
from bpe.counts.manifest import CountsPart  # noqa: TC001 - decoded by its annotation
from bpe.counts.pretokens import shifted
from bpe.errors import CountsError
from pipelines import storage
from pipelines.count.directory import read_counts_sets
from pipelines.count.sets import read_part_file
from pipelines.errors import InputError, VerificationError
from pipelines.output.check_files import check_file, check_names
from pipelines.output.names import DEAD_LETTERS, TOKENIZER, read_plan
from pipelines.storage import join
from pipelines.tokenizer_files import load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bpe._native import SortedCounts
    from bpe.counts.manifest import DeadLetters
    from pipelines.count.sets import CountsSet

_MAX_COUNT = (1 << 63) - 1


@dataclass(frozen=True, kw_only=True)
class SetTotals:
    """The totals that the parts of a set must add up to.

    Attributes:
        manifest: the file that names the parts.
        pretokens: occurrences that were counted.
        pruned: occurrences of them that were dropped.
    """

    manifest: str
    pretokens: int
    pruned: int


@dataclass(frozen=True, kw_only=True)
class StoredPart:
    """A part of counts to check; small, and picklable.

    Attributes:
        directory: of the counts.
        part: what the manifest says of it.
        totals: what the parts of its set must add up to.
        shard: its number in its set.
        shards: parts of its set.
        order_span: places of documents in its set, where order is tracked.
        first_place: in the corpus, of the first document of its set.
    """

    directory: str
    part: CountsPart
    totals: SetTotals
    shard: int
    shards: int
    order_span: int | None
    first_place: int


def stored_sets(directory: str) -> list[CountsSet]:
    """The sets of a counts directory, whose manifests agree.

    Raises:
        VerificationError: a manifest is missing or damaged, or they do not agree.
    """
    try:
        first, *others = sets = read_counts_sets(directory)
        for other in others:
            titles = (first.path, other.path)
            check_agreement(first.manifest, other.manifest, titles=titles)
    except (CountsError, InputError) as error:
        raise VerificationError(str(error)) from error
    return sets


def check_tokenizers(directory: str, sets: Sequence[CountsSet]) -> None:
    """Refuse counts of runs without the tokenizer of the runs; those of groups too.

    Counts that no job wrote may have none.

    Args:
        directory: of the counts.
        sets: that are in it.

    Raises:
        VerificationError: one is missing, damaged or another.
    """
    if (runs := sets[0].manifest.runs) is None:
        return
    remedy = "put back the tokenizer whose runs were counted, or count again"
    checked: set[str] = set()  # of the same bytes is the same tokenizer
    for folder in dict.fromkeys([directory, *(one.directory for one in sets)]):
        path = join(folder, TOKENIZER)
        if not storage.exists(path):
            if read_plan(directory):
                raise VerificationError(f"{path} is missing: {remedy}")
            continue
        if (digest := storage.digest(path).sha256) in checked:
            continue
        try:
            tokenizer = load_tokenizer(path)
        except InputError as error:
            raise VerificationError(f"{error}: {remedy}") from error
        if tokenizer.text_sha256 != runs.tokenizer:
            raise VerificationError(
                f"{path} is not the tokenizer whose runs are counted there: {remedy}"
            )
        checked.add(digest)


def stored_parts(sets: Sequence[CountsSet]) -> list[StoredPart]:
    """The parts of all sets."""
    parts: list[StoredPart] = []
    place = 0
    for one in sets:
        span, prune = one.manifest.order_span, one.manifest.prune
        totals = SetTotals(
            manifest=one.path,
            pretokens=one.manifest.totals.pretokens,
            pruned=prune.occurrences if prune else 0,
        )
        parts += [
            StoredPart(
                directory=one.directory,
                part=part,
                totals=totals,
                shard=shard,
                shards=len(one.manifest.parts),
                order_span=span,
                first_place=place,
            )
            for shard, part in enumerate(one.manifest.parts)
        ]
        place += (span or 0) if one.group_by is None else 0  # groups are of one corpus
    return parts


def read_stored(stored: StoredPart) -> tuple[SortedCounts, int]:
    """The run of a part, checked against its manifest, and the sum of its counts.

    Raises:
        VerificationError: the file is missing, damaged, of another run, or holds what it must not.
    """
    path = join(stored.directory, stored.part.file)
    try:
        run = read_part_file(path, stored.part, shard=stored.shard, shards=stored.shards)
    except (CountsError, InputError) as error:
        raise VerificationError(str(error)) from error
    span = stored.order_span
    if (run.documents is None) != (span is None):
        raise VerificationError(
            f"{path} {'lacks' if run.documents is None else 'has'} the columns of order, the "
            f"manifest says order_span={span}: count again"
        )
    if span is not None and len(run):
        last = pc.max(run_table(run)["first_document"]).as_py()
        if last >= span:
            raise VerificationError(f"{path}: a document has place {last}, order_span is {span}")
    try:
        return run, run.total()
    except OverflowError as error:
        raise VerificationError(f"{path}: {error}: 64 bits cannot hold the counts") from error


def parts_by_shard(parts: Iterable[StoredPart], shards: int) -> list[list[StoredPart]]:
    """The parts that hold counts of each shard; a set of other shards, of all of them."""
    found: list[list[StoredPart]] = [[] for _ in range(shards)]
    for part in parts:
        for shard in (part.shard,) if part.shards == shards else range(shards):
            found[shard].append(part)
    return found


def shard_of(parts: Iterable[StoredPart], shard: int, shards: int) -> SortedCounts:
    """The counts of a shard, in the parts that `parts_by_shard` gives for it.

    Raises:
        VerificationError: a part is not what its manifest says.
    """
    runs = []
    for part in parts:
        run = shifted(read_stored(part)[0], part.first_place)
        runs.append(run if part.shards == shards else run.split(shards)[shard])
    return merge_runs(runs)


def check_totals(sums: Iterable[tuple[SetTotals, int]]) -> None:
    """Compare the totals of sets with what their parts add up to.

    Args:
        sums: of each part, what those of its set must add up to, and the sum of its counts.

    Raises:
        VerificationError: they differ, or are more than 64 bits hold.
    """
    found = Counter[SetTotals]()
    for one, count in sums:
        found[one] += count
    for one, total in found.items():
        if total + one.pruned != one.pretokens:
            dropped = f" and {one.pruned} pruned" if one.pruned else ""
            raise VerificationError(
                f"{one.manifest}: the counts add up to {total}{dropped}, the totals say "
                f"{one.pretokens} pre-tokens"
            )
    if found.total() > _MAX_COUNT:
        raise VerificationError("the counts add up to more than 2^63 - 1: 64 bits cannot hold them")


def stored_letters(directory: str, sets: Sequence[CountsSet]) -> list[DeadLetters]:
    """The dead letters of all sets; refuse files that no manifest of counts names.

    Args:
        directory: of the counts.
        sets: that are in it.

    Raises:
        VerificationError: there is such a file, or other bad records than the manifest says.
    """
    failures = sum(one.manifest.totals.failures for one in sets)
    letters = [letters for one in sets for letters in one.manifest.dead_letters]
    dead = {one.file for one in letters}
    if failures and not letters and read_plan(directory):  # of a release that did not name them
        dead = _unnamed_letters(directory, failures)
    if sets[0].group_by is not None:
        for one in sets:
            names = {part.file for part in one.manifest.parts}
            check_names(one.directory, "counts", named=names)
    expected = {
        part.file for one in sets if one.group_by is None for part in one.manifest.parts
    }.union(*(inputs_file_names(one.manifest.inputs) for one in sets))
    check_names(directory, "counts", named=expected | dead, appended=sets[0].appended)
    return letters


def _unnamed_letters(directory: str, failures: int) -> set[str]:
    """Dead letters that are there, and together hold the bad records that the manifest counts."""
    folder = join(directory, DEAD_LETTERS)
    dead = {f"{DEAD_LETTERS}/{entry.name}" for entry in storage.entries(folder)}
    records = sum(storage.read(join(directory, name)).count(b"\n") for name in dead)
    if records != failures:
        raise VerificationError(
            f"{folder} holds {records} bad records, the manifest says {failures}: count again"
        )
    return dead


def check_counts(directory: str) -> None:
    """Check a counts directory in this process, one file after the other.

    Raises:
        VerificationError: something is not as it must be, or there is no manifest.
    """
    root = storage.located(directory)
    sets = stored_sets(root)
    check_tokenizers(root, sets)
    for letters in stored_letters(root, sets):
        check_file(join(root, letters.file), letters.bytes, letters.sha256)
    check_totals((stored.totals, read_stored(stored)[1]) for stored in stored_parts(sets))
