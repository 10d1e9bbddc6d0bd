"""Count documents, without Beam: the functions that the steps of `pipelines.count.job` call.

A counter returns the sorted counts of each shard as Arrow IPC bytes: a message. The messages of a
shard add up to the same counts in any order, and each shard has one file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from bpe._codec import to_jsonable
from bpe._native import add_counts
from bpe.counting import PretokenCounter
from bpe.counts.files import counts_from_ipc, counts_to_ipc
from bpe.counts.manifest import DeadLetters, Totals
from bpe.run_counting import RunCounter
from bpe.special_tokens import check_special_tokens
from pipelines.corpus.documents.block import use_good_rows
from pipelines.corpus.groups import by_group
from pipelines.corpus.mix import sources_of
from pipelines.corpus.reading import Reading, SplitReader, text_bytes
from pipelines.errors import ConfigError, InputError
from pipelines.metrics import add_to_metrics
from pipelines.output.directory import plan_of_run
from pipelines.output.names import RUNS, SOURCE, TOKENIZER, Plan, group_folder
from pipelines.readable import readable
from pipelines.settings import MAX_GROUPS, CountSettings
from pipelines.storage import join
from pipelines.tokenizer_files import load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from bpe import Tokenizer
    from bpe._native import SortedCounts
    from bpe.counts import CutRuns, Runs
    from bpe.counts.manifest import CountsPart
    from bpe.counts.pruning import Losses
    from bpe.pretokenizer import Pretokenizer
    from pipelines.corpus.documents import Block
    from pipelines.corpus.files import InputFile
    from pipelines.corpus.splits import Split
    from pipelines.failures import FailureChannel
    from pipelines.progress import SlotWriter

AnyCounter = PretokenCounter | RunCounter
FLUSH_BYTES = 256 << 20  # of a counter in memory
# Where order is tracked, a document's place is its file's number and its place in the file.
FILE_BITS, PLACE_BITS = 22, 40


@dataclass(frozen=True, kw_only=True)
class CountJob(Reading):
    """Everything a worker must know to count; small, and picklable.

    Attributes:
        pretokenizer: the pre-tokenizer that cuts text.
        special_tokens: special tokens, which are cut out of the text first and not counted.
        counting: the settings of counts.
        runs: the settings by which runs are found, whose tokenizer is in the directory; None to
            count pre-tokens.
        generation: the generation in names of files, as for `bpe.counts.manifest.shard_file`.
        sources: the sources of a mix, which are counted apart; empty without a mix.
        run: the id of the job's run; empty if the job has no run.
    """

    pretokenizer: Pretokenizer
    special_tokens: tuple[str, ...] = ()
    counting: CountSettings = field(default_factory=CountSettings)
    runs: Runs | None = None
    generation: int = 0
    sources: tuple[str, ...] = ()
    run: str = ""

    def __post_init__(self) -> None:
        check_special_tokens(self.special_tokens)
        if self.runs is not None and self.counting.track_order:
            raise ConfigError("`track_order` does not work with runs: superwords use other ties")
        if self.sources and self.counting.group_by is not None:
            raise ConfigError(
                f"`group_by` {self.counting.group_by} does not go with `mix`, whose sources are "
                "counted apart: count by the field with bpe count, then train on these counts"
            )

    @property
    def group_by(self) -> str | None:
        """Return the name of the groups, for folders: a field, or `SOURCE`; None without groups."""
        return SOURCE if self.sources else self.counting.group_by

    @property
    def drained(self) -> int:
        """Return the number of messages of a counter: one for each shard.

        If long runs are cut, a last message has the pairs of tokens in the cut runs.
        """
        is_cut = self.runs is not None and self.runs.max_run is not None
        return self.counting.shards + is_cut

    @property
    def unit(self) -> str:
        """Return the unit that is counted: ``pre-token`` or ``run``."""
        return "pre-token" if self.runs is None else "run"

    def planned(self) -> CountJob:
        """Return the job with the generation that its first step planned.

        Raises:
            OutputError: another job has taken the directory over.
        """
        generation = plan_of_run(self.directory, self.run).generation if self.run else 0
        return replace(self, generation=generation)

    def tokenizer(self) -> Tokenizer | None:
        """Read the tokenizer of the runs from the directory; None if pre-tokens are counted.

        Raises:
            InputError: the tokenizer cannot be read, or is another tokenizer.
        """
        return None if self.runs is None else tokenizer_of_runs(self.directory, self.runs)

    def counter(self, tokenizer: Tokenizer | None) -> AnyCounter:
        """Return a new counter of runs or pre-tokens.

        Args:
            tokenizer: the result of `tokenizer`.
        """
        if self.runs is None or tokenizer is None:
            return PretokenCounter(
                self.pretokenizer,
                special_tokens=self.special_tokens,
                track_order=self.counting.track_order,
            )
        return RunCounter(
            tokenizer, merge_pattern=self.runs.merge_pattern, max_run=self.runs.max_run
        )

    def of_group(self, group: str) -> CountJob:
        """Return the job of a group in its own directory, or of all documents in this one."""
        if self.group_by is None:
            return self
        directory = join(self.directory, group_folder(self.group_by, group))
        counting = replace(self.counting, group_by=None)
        return replace(self, directory=directory, counting=counting, sources=(), run="")

    def plan_of(self, *, splits: int = 0, files: Sequence[InputFile] = ()) -> Plan:
        """Return the plan of the count; names of dead letters have the number of ``splits``."""
        settings = {
            **self.pretokenizer.settings,
            "special_tokens": list(self.special_tokens),
            **to_jsonable(self.counting),
            "group_by": self.group_by,
            RUNS: to_jsonable(self.runs),
            "sources": to_jsonable(sources_of(files, self.sources)) if self.sources else None,
            **self.settings.to_json(),
        }
        return Plan(
            kind="counts",
            parts=(self.counting.shards, splits),
            settings={name: value for name, value in settings.items() if value is not None},
        )


def tokenizer_of_runs(directory: str, runs: Runs) -> Tokenizer:
    """Load the tokenizer in a directory of counts of runs.

    Raises:
        InputError: the tokenizer cannot be read, or is another tokenizer.
    """
    path, remedy = join(directory, TOKENIZER), "put that one back, or count the runs again"
    try:
        tokenizer = load_tokenizer(path)
    except InputError as error:
        raise InputError(f"{error}: {remedy}") from error
    if tokenizer.text_sha256 != runs.tokenizer:
        raise InputError(f"{path} is not the tokenizer whose runs are counted there: {remedy}")
    return tokenizer


@dataclass(frozen=True)
class Shard:
    """A shard that is written, or the pairs of tokens in cut runs, which have no file.

    Attributes:
        number: the number of the shard.
        occurrences: the sum of all counts, those of dropped pre-tokens included.
        part: the entry of the file in a manifest.
        losses: the losses by pruning.
        cut: the pairs in cut runs.
    """

    number: int
    occurrences: int = 0
    part: CountsPart | None = None
    losses: Losses | None = None
    cut: CutRuns | None = None


@dataclass(frozen=True)
class InGroup:
    """A result of one group; the group is ``""`` if all documents are counted together."""

    group: str
    result: Shard | Totals


class Counters:
    """Counters for the groups of a bundle, and the totals of each group in the current split.

    Args:
        job: the settings of counting, with the groups.
        tokenizer: as for `CountJob.counter`.
    """

    def __init__(self, job: CountJob, tokenizer: Tokenizer | None) -> None:
        self._job = job
        self._tokenizer = tokenizer
        self._counters: dict[str, AnyCounter] = {}
        self._totals: dict[str, Totals] = {}

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the counts take."""
        return sum(one.nbytes for one in self._counters.values())

    def add(self, block: Block, set_aside: SetAside, *, source: str) -> None:
        """Count the documents of a block, and set aside the documents that cannot be counted.

        Args:
            block: the block of documents.
            set_aside: called for each bad document with the block, the row and the reason.
            source: the name of the source of the documents.

        Raises:
            InputError: there are too many groups.
        """
        groups: Iterable[tuple[str, Block]] = [(source if self._job.sources else "", block)]
        if self._job.counting.group_by is not None:
            groups = by_group(block)
        for group, documents in groups:
            if group not in self._counters:
                check_groups([*self._counters, group], self._job)
                self._counters[group] = self._job.counter(self._tokenizer)
            texts = documents.texts
            columns = (texts, _places(documents)) if self._job.counting.track_order else (texts,)
            counted = count_texts(columns, self._counters[group], partial(set_aside, documents))
            add_to_metrics(pretokens_counted=counted.pretokens, text_bytes_counted=counted.bytes)
            self._totals[group] = self._totals.get(group, Totals()) + counted

    def drained(self) -> Iterator[tuple[tuple[str, int], bytes]]:
        """Empty all counters; yield ((group, shard), message) for the shards with counts.

        The pairs in cut runs have a message even if there are none: a lost one is missed.
        """
        counters, self._counters = self._counters, {}
        for group, counts in sorted(counters.items()):
            for shard, drained in enumerate(counts.drain(self._job.counting.shards)):
                if len(drained) or shard == self._job.counting.shards:
                    yield (group, shard), counts_to_ipc(drained)

    def finish_split(self, format_: str) -> Iterator[InGroup]:
        """Yield the totals of each group since the last call; ``format_`` is the files' format."""
        totals, self._totals = self._totals, {}
        for group, total in sorted(totals.items()):
            yield InGroup(group, replace(total, formats={format_: total.documents}))


SetAside = Callable[["Block", int, str], None]


def check_groups(groups: Collection[str], job: CountJob) -> None:
    """Check the number of groups.

    Raises:
        InputError: there are more groups than the job may have.
    """
    if len(groups) > MAX_GROUPS:
        some = ", ".join(f"{one!r:.40}" for one in sorted(groups)[:3])
        raise InputError(
            f"the field {job.counting.group_by!r} has more than {MAX_GROUPS:,} values ({some}, …): "
            "name a field with fewer values in `group_by`"
        )


def count_split(
    split: Split,
    job: CountJob,
    failures: FailureChannel,
    counts: Counters,
    *,
    slot: SlotWriter | None = None,
) -> Iterator[tuple[tuple[str, int], bytes] | Totals | InGroup | DeadLetters]:
    """Count the documents of a split into ``counts``.

    Yields:
        ((group, shard), message) each time the counters are emptied; at the end the bad records of
        the split, the totals of each of its groups, and its dead letters if there are any.

    Raises:
        RecordError: one bad record more than the job may set aside.
        InputError, OutputError: a file cannot be read or written.
    """
    with SplitReader(split, job, failures.stopped, slot=slot) as reader:
        for block in reader:
            counts.add(block, reader.set_row_aside, source=split.source)
            if counts.nbytes > FLUSH_BYTES:
                yield from counts.drained()
        dead = reader.finish()
    format_ = split.pieces[0].format  # a split has one
    yield Totals(failures=reader.bad_records, formats={format_: 0})
    yield from counts.finish_split(format_)
    if dead is not None:
        yield dead


def count_arrived(
    split: Split,
    job: CountJob,
    failures: FailureChannel,
    tokenizer: Tokenizer | None,
    *,
    slot: SlotWriter | None = None,
) -> list[Any]:
    """Return the results of `count_split` for the readable files, and the files set aside."""

    def make(some: Split) -> list[Any]:
        counts = Counters(job, tokenizer)
        if not some.pieces:
            return [Totals()]
        counted = count_split(some, job, failures, counts, slot=slot)
        return [*counted, *counts.drained()]

    results, aside = readable(split, make, directory=job.directory, stopped=failures.stopped)
    return [*results, *aside]


def count_texts(
    columns: tuple[pa.Array, ...], counts: AnyCounter, set_aside: Callable[[int, str], object]
) -> Totals:
    """Count texts, and set aside the texts that cannot be counted.

    Args:
        columns: the texts and, if order is tracked, their places.
        counts: the counter.
        set_aside: called for each bad text with its row and the reason.

    Returns:
        The totals of the texts that were counted.
    """
    pretokens, (texts, *_) = use_good_rows(columns, counts.add, set_aside)
    return Totals(documents=len(texts), bytes=text_bytes(texts), pretokens=pretokens)


def _places(block: Block) -> pa.Int64Array:
    """Return the place of each document in the corpus: numbers in ascending order.

    Raises:
        InputError: a file is too long for these numbers.
    """
    if len(block) and pc.max(block.places).as_py() >> PLACE_BITS:
        raise InputError(
            f"{block.name}: a document begins after 2^{PLACE_BITS} bytes, which is too far to "
            "record its order: divide the file, or use other ties than first-seen"
        )
    files = pc.shift_left(block.file_indexes.cast(pa.int64()), PLACE_BITS)
    return pc.add(files, block.places)


def shard_messages(shards: Iterable[SortedCounts]) -> Iterator[tuple[int, bytes]]:
    """Yield (shard, message) for each shard that has counts; ``shards`` are in order."""
    for shard, counts in enumerate(shards):
        if len(counts):
            yield shard, counts_to_ipc(counts)


def added_up(messages: Iterable[bytes]) -> SortedCounts:
    """Add up the counts in messages.

    Raises:
        InputError: a count passes 2^63 - 1.
    """
    try:
        return add_counts([counts_from_ipc(one) for one in messages])
    except OverflowError as error:
        raise InputError(f"{error}: the counts of this corpus do not fit 64 bits") from error
