"""Each file that arrived to shards of counts of its own; counts of many inputs added up.

Counts of about as many inputs are added up when there are `FAN_IN` of them, so that there are never
many, and each count is copied a number of times that grows with the logarithm of all.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from bpe._codec import encode
from bpe.counts import Totals
from bpe.counts.files import run_to_ipc
from pipelines import storage
from pipelines.count.directory import added_up, set_of
from pipelines.count.steps import (
    CountJob,
    count_split,
    counted_inputs,
    manifest_of,
    merged,
    write_shard,
)
from pipelines.output.entries import (
    COUNTS_KIND,
    Entry,
    digest_id,
    read_log,
    standing,
    write_entry,
    write_folded,
)
from pipelines.output.names import TOKENIZER
from pipelines.storage import join

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from bpe import Tokenizer
    from bpe.counts.manifest import CountedInput, DeadLetters
    from pipelines.corpus.inputs import InputFile
    from pipelines.corpus.reading import Reading
    from pipelines.corpus.splits import Split
    from pipelines.failures import Failures
    from pipelines.output.names import Kind
    from pipelines.watch.work import Made, Make

FAN_IN = 16
_AT_ONCE = 8  # times that counts are added up before anything else has its turn
_LARGE = 64 << 20  # bytes of a file whose counts have all shards


@dataclass(frozen=True, kw_only=True)
class Counting:
    """Makes counts of files; a `pipelines.watch.work.Handler`.

    Attributes:
        job: as in a batch.
        reading: how files are read.
        text: the tokenizer whose runs are counted, as JSON; empty where there is none.
    """

    job: CountJob
    reading: Reading
    text: str = ""
    name: ClassVar[str] = "count"
    kind: ClassVar[Kind] = "counts"

    @property
    def unit(self) -> str:
        """What is counted."""
        return self.job.unit

    @property
    def directory(self) -> str:
        """Of the output."""
        return self.job.directory

    def begin(self, *, goes_on: bool) -> None:
        """Write a manifest that says how text is cut, and that all counts are in the log.

        Before it, the tokenizer whose runs are counted, which may have been lost.
        """
        job = self.job
        if self.text:
            storage.write(join(self.directory, TOKENIZER), self.text.encode("utf-8"))
        if goes_on:
            return
        head = {
            "kind": COUNTS_KIND,
            **job.pretokenizer.settings,
            "special_tokens": list(job.special_tokens),
            "track_order": job.track_order,
            **({} if job.runs is None else {"runs": encode(job.runs)}),
        }
        write_folded(self.directory, Entry(head, ()))

    def open(self, failures: Failures) -> Make:
        """What counts an input, in a worker; of one that cannot be read, no document."""
        return functools.partial(self._make, self.job.tokenizer(), failures)

    def _make(
        self,
        tokenizer: Tokenizer | None,
        failures: Failures,
        key: str,
        file: InputFile,
        splits: Sequence[Split],
        letters: Sequence[DeadLetters],
    ) -> Made:
        shards = self.job.shards if file.size >= _LARGE else 1
        job = replace(self.job, key=key, shards=shards)
        runs: dict[int, list[bytes]] = {shard: [] for shard in range(job.drained)}
        results: list[Any] = [*letters, Totals(failures=sum(one.records for one in letters))]
        counts = job.counter(tokenizer)
        for split in splits:
            for result in count_split(split, job, self.reading, failures, counts):
                if isinstance(result, tuple):
                    runs[result[0]].append(result[1])
                else:
                    results.append(result)
        for shard, run in enumerate(counts.drain(shards)):
            runs[shard].append(run_to_ipc(run))
        files = counted_inputs([file] if splits else [])
        return _written(job, {one: merged(runs[one]) for one in runs}, results, files), None

    def merge(self, before: Entry, log: Mapping[str, Entry]) -> Entry:
        """Add up counts where there are enough.

        Where order is tracked nothing is added up: the order is that of the names of the inputs,
        and one whose name stands between two others may be still to come.
        """
        for entries in () if self.job.track_order else _groups(standing((), log).entries):
            entry = self._added_up(entries)
            holds = standing((), read_log(self.directory, dict(log))).entries
            if all(one.id in holds for one in entries):
                write_entry(self.directory, entry)
            else:  # a worker has taken one of these inputs again
                for part in entry.manifest["parts"]:
                    storage.remove(join(self.directory, part["file"]))
        return before

    def _added_up(self, entries: Sequence[Entry]) -> Entry:
        sets = [set_of(self.directory, entry) for entry in entries]
        counts = added_up(sets)
        dead = [letters for one in sets for letters in one.manifest.dead_letters]
        job = replace(self.job, key=digest_id(*(entry.id for entry in entries)))
        runs = {shard: run_to_ipc(run) for shard, run in enumerate(counts.run.split(job.shards))}
        taken = sorted((one for entry in entries for one in entry.taken), key=lambda one: one.name)
        results = [counts.totals, *dead, *filter(None, [counts.cut])]
        return Entry(_written(job, runs, results, counts.inputs), tuple(taken))

    def max_pending(self, inputs: int) -> int:  # noqa: ARG002 - as many as do not make a group
        """None: `merge` does nothing where there are not enough."""
        return 0

    def entries(self) -> Sequence[Entry]:
        """All counts."""
        return list(standing((), read_log(self.directory)).entries.values())

    def totals(self, entries: Iterable[Entry]) -> Totals:
        """Sums over entries."""
        sets = [set_of(self.directory, entry) for entry in entries]
        return sum((one.manifest.totals for one in sets), Totals())


def _groups(entries: Mapping[str, Entry]) -> Iterator[list[Entry]]:
    """Entries to be added up: those whose number of inputs has as many digits, to base 16."""
    levels: dict[int, list[Entry]] = {}
    for entry in entries.values():
        if all(one.failed is None for one in entry.taken):  # it may be made good
            levels.setdefault(len(f"{len(entry.taken):x}"), []).append(entry)
    for _, found in sorted(levels.items()):
        last = min(len(found), _AT_ONCE * FAN_IN) - FAN_IN
        for first in range(0, last + 1, FAN_IN):
            yield found[first : first + FAN_IN]


def _written(
    job: CountJob, runs: Mapping[int, bytes], results: Sequence[Any], files: Sequence[CountedInput]
) -> dict[str, Any]:
    """The manifest of shards that are written here, with totals and dead letters."""
    parts = [part for shard, run in runs.items() for part in write_shard(shard, run, job)]
    manifest: dict[str, Any] = json.loads(
        manifest_of([*results, *parts], job, files=files).to_json()
    )
    return manifest
