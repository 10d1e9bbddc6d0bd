"""Counting documents, without Beam: what the steps of `pipelines.count.job` do.

What leaves a counter are sorted runs by shard, as Arrow IPC bytes. Runs of a shard add up in any
order to the same run, and a run has one file.
"""

from __future__ import annotations

import functools
import json
import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from bpe._native import merge_runs
from bpe.counting import PretokenCounter
from bpe.counts.files import counts_part, run_from_ipc, run_to_ipc, shard_bytes
from bpe.counts.manifest import (
    CountedInput,
    CountsManifest,
    CountsPart,
    DeadLetters,
    Totals,
    check_shards,
    shard_file,
)
from bpe.counts.pruning import Losses, prune
from bpe.special_tokens import check_special_tokens
from pipelines import storage
from pipelines.corpus.inputs import describe_inputs
from pipelines.corpus.reading import Reading, SplitReader, check_failures, text_bytes
from pipelines.errors import ConfigError, InputError, JobError
from pipelines.metrics import counter
from pipelines.output.directory import remove_temporaries
from pipelines.output.names import Plan
from pipelines.settings import SHARDS
from pipelines.storage import join

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from bpe._native import CountRun
    from bpe.pretokenizer import Pretokenizer
    from pipelines.corpus.documents import Block
    from pipelines.corpus.inputs import InputFile
    from pipelines.corpus.splits import Split
    from pipelines.failures import Failures
    from pipelines.settings import CountSettings, OutputSettings, PretokenSettings

Result = CountsPart | Losses | Totals | DeadLetters  # of the steps, for the manifest
FLUSH_BYTES = 256 << 20  # of a counter in memory
# Where order is tracked, a document's place is its file's number and its place in the file.
FILE_BITS, _PLACE_BITS = 22, 40


@dataclass(frozen=True, kw_only=True)
class CountJob:
    """Everything a worker must know to count; small, and picklable.

    Attributes:
        directory: the output directory.
        pretokenizer: how text is cut.
        special_tokens: cut out of the text before, and not counted.
        track_order: keep where each pre-token was first seen.
        prune_below: pre-tokens that the whole corpus has fewer times are dropped.
        shards: files of counts.
        key: in their names, as `bpe.counts.manifest.shard_file` takes it.
        flush_bytes: a counter that holds more is emptied.
    """

    directory: str
    pretokenizer: Pretokenizer
    special_tokens: tuple[str, ...] = ()
    track_order: bool = False
    prune_below: int = 1
    shards: int = SHARDS
    key: str = ""
    flush_bytes: int = FLUSH_BYTES

    def __post_init__(self) -> None:
        check_special_tokens(self.special_tokens)
        check_shards(self.shards)
        if self.prune_below < 1:
            raise ConfigError(f"prune_below is {self.prune_below}: use 1 (keep all) or more")

    @property
    def settings(self) -> dict[str, Any]:
        """What the counts depend on, beside their inputs and what is dropped; JSON values."""
        return {
            **self.pretokenizer.settings,
            "special_tokens": list(self.special_tokens),
            "track_order": self.track_order,
            "shards": self.shards,
        }

    def counter(self) -> PretokenCounter:
        """A new counter."""
        return PretokenCounter(
            self.pretokenizer, special_tokens=self.special_tokens, track_order=self.track_order
        )


def count_split(
    split: Split, job: CountJob, reading: Reading, failures: Failures, counts: PretokenCounter
) -> Iterator[tuple[int, bytes] | Totals | DeadLetters]:
    """Count the documents of a split into ``counts``.

    Yields:
        (shard, run) each time the counter is emptied; at the end the totals of the split, and its
        dead letters if there are any.

    Raises:
        RecordError: one bad record more than the job may set aside.
        InputError, OutputError: a file cannot be read or written.
    """
    size = pretokens = 0
    with SplitReader(split, reading, failures) as reader:
        for block in reader:
            pretokens += count_block(block, job, counts)
            size += text_bytes(block.texts)
            if counts.nbytes > job.flush_bytes:
                yield from drained(counts, job)
        dead = reader.finish()
    counter("pretokens_counted").inc(pretokens)
    counter("text_bytes_counted").inc(size)
    yield Totals(
        documents=reader.documents,
        bytes=size,
        pretokens=pretokens,
        failures=reader.bad_records,
        formats={split.pieces[0].format: reader.documents},  # a split has one
    )
    if dead is not None:
        yield dead


def count_block(block: Block, job: CountJob, counts: PretokenCounter) -> int:
    """Count the documents of a block; returns the number of their pre-tokens."""
    return counts.add(block.texts, _places(block) if job.track_order else None)


def _places(block: Block) -> pa.Int64Array:
    """Where each document stands in the corpus: numbers that ascend with its order.

    Raises:
        InputError: a file is too long for them.
    """
    if len(block) and pc.max(block.places).as_py() >> _PLACE_BITS:
        raise InputError(
            f"{block.name}: a document begins after 2^{_PLACE_BITS} bytes, which is too far to "
            "record its order: divide the file, or use other ties than first-seen"
        )
    files = pc.shift_left(block.file_indexes.cast(pa.int64()), _PLACE_BITS)
    return pc.add(files, block.places)


def drained(counts: PretokenCounter, job: CountJob) -> Iterator[tuple[int, bytes]]:
    """Empty a counter into one run a shard; shards that have none are left out."""
    return shard_messages(counts.drain(job.shards))


def shard_messages(runs: Iterable[CountRun]) -> Iterator[tuple[int, bytes]]:
    """(shard, Arrow IPC) of each run that is not empty; runs are given in the order of shards."""
    for shard, run in enumerate(runs):
        if len(run):
            yield shard, run_to_ipc(run)


def merged(runs: list[bytes]) -> bytes:
    """Add up runs of one shard.

    Raises:
        InputError: a count passes 2^63 - 1.
    """
    if len(runs) == 1:
        return runs[0]
    try:
        return run_to_ipc(merge_runs([run_from_ipc(run) for run in runs]))
    except OverflowError as error:
        raise InputError(f"{error}: the counts of this corpus do not fit 64 bits") from error


def write_shard(shard: int, run: bytes, job: CountJob) -> Iterator[CountsPart | Losses]:
    """Write the file of a shard; yield what it is, and what it lost to pruning."""
    counts = run_from_ipc(run)
    if job.prune_below > 1:
        counts, losses = prune(counts, job.prune_below)
        yield losses
    data = shard_bytes(counts)
    storage.write(join(job.directory, shard_file(shard, job.shards, job.key)), data)
    counter("distinct_pretokens_written").inc(len(counts))
    counter("parquet_bytes_written").inc(len(data))
    counter("parts_written").inc()
    yield counts_part(data, rows=len(counts), shard=shard, shards=job.shards, key=job.key)


def manifest_of(
    results: Iterable[Result],
    job: CountJob,
    *,
    files: Sequence[CountedInput] = (),
    splits: int | None = None,
) -> CountsManifest:
    """The manifest of counts, once everything is there.

    Args:
        results: the parts, what they lost, and the totals and dead letters of all splits or
            bundles, in any order.
        job: that made them.
        files: that were read.
        splits: how many totals there must be, where that is known.

    Raises:
        JobError: the runner lost something.
    """
    parts: list[CountsPart] = []
    totals: list[Totals] = []
    lost: list[Losses] = []
    dead: list[DeadLetters] = []
    for result in results:
        if isinstance(result, CountsPart):
            parts.append(result)
        elif isinstance(result, Losses):
            lost.append(result)
        elif isinstance(result, DeadLetters):
            dead.append(result)
        else:
            totals.append(result)
    if len(parts) != job.shards or (splits is not None and len(totals) != splits):
        raise JobError(
            f"the runner returned {len(parts)} shards of {job.shards} and the totals of "
            f"{len(totals)} splits of {splits}: use another runner"
        )
    return CountsManifest(
        pretokenizer=job.pretokenizer,
        special_tokens=job.special_tokens,
        order_span=len(files) << _PLACE_BITS if job.track_order else None,
        totals=sum(totals, Totals()),
        inputs=tuple(files),
        dead_letters=tuple(sorted(dead, key=lambda letters: letters.file)),
        parts=tuple(sorted(parts, key=lambda part: part.file)),
        prune=functools.reduce(operator.add, lost).pruned(job.prune_below) if lost else None,
    )


def write_manifest(
    results: Iterable[Result],
    job: CountJob,
    *,
    reading: Reading | None = None,
    files: Sequence[CountedInput] = (),
    splits: int | None = None,
    check: Callable[[], object] = tuple,
) -> dict[str, Any]:
    """Check that everything is there, and write the manifest.

    Args:
        results: as `manifest_of` takes them.
        job: that made them.
        reading: where files were read: says how many bad records there may be.
        files: that were read.
        splits: how many totals there must be, where that is known.
        check: called before anything is written or removed.

    Raises:
        RecordError: over all splits, more bad records than the job may set aside.
        JobError: the runner lost something.
    """
    manifest = manifest_of(results, job, files=files, splits=splits)
    if reading is not None:
        check_failures(
            manifest.totals.failures,
            reading,
            [letters.file for letters in manifest.dead_letters],
            documents=manifest.totals.documents,
        )
    check()
    remove_temporaries(job.directory)
    for name, data in manifest.files().items():
        storage.write(join(job.directory, name), data)
    value: dict[str, Any] = json.loads(manifest.to_json())
    return value


def counted_inputs(files: Iterable[InputFile]) -> tuple[CountedInput, ...]:
    """The inputs as the manifest names them."""
    return tuple(CountedInput(name=file.name, size=file.size) for file in files)


def count_job(
    pretokens: PretokenSettings,
    output: OutputSettings,
    settings: CountSettings,
) -> CountJob:
    """The job that these settings mean.

    Raises:
        bpe.BpeError: the pre-tokenizer, the special tokens or the number of shards is wrong.
    """
    return CountJob(
        directory=storage.located(output.directory),
        pretokenizer=pretokens.cut,
        special_tokens=pretokens.special_tokens,
        track_order=settings.track_order,
        prune_below=settings.prune_below,
        shards=settings.shards,
    )


def count_plan(
    job: CountJob,
    *,
    splits: int = 0,
    reading: Reading | None = None,
    files: Sequence[InputFile] = (),
) -> Plan:
    """What makes two counts the same job; ``splits`` is in the names of dead letters."""
    return Plan(
        kind="counts",
        parts=(job.shards, splits),
        settings={
            **job.settings,
            "prune_below": job.prune_below,
            **(reading.options.to_json() if reading else {}),
        },
        inputs=describe_inputs(files),
    )
