"""Each file that arrived to a shard set of counts of its own; sets brought together in larger ones.

A set is a whole counts directory below ``sets/``; an entry of the log says which inputs it is of.
Sets of one level are added up to one of the next when there are `FAN_IN` of them, so that there
are never many, and each count is copied a number of times that grows with the logarithm of all.
"""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from bpe.counts import combine
from bpe.counts.files import run_to_ipc
from bpe.counts.manifest import CountedInput, CountsPart, Totals
from pipelines import storage
from pipelines.count.directory import load_counts
from pipelines.count.steps import CountJob, count_split, merged, write_manifest, write_shard
from pipelines.encode.parts import DeadLetters
from pipelines.output.names import MANIFEST, manifest_bytes
from pipelines.storage import join
from pipelines.watch import log
from pipelines.watch.log import SETS, digest_id
from pipelines.watch.work import Task, Work, dead_letters_json, splits_of

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from bpe.counts import PretokenCounts
    from pipelines.corpus.inputs import InputFile
    from pipelines.corpus.reading import Reading
    from pipelines.corpus.splits import Split
    from pipelines.failures import Failures
    from pipelines.watch.arrivals import Arrivals
    from pipelines.watch.log import Entry

_LOGGER = logging.getLogger(__name__)
FAN_IN = 16
_AT_ONCE = 8  # sets of a level that are made before anything else has its turn
_LARGE = 64 << 20  # bytes of a file whose set has all shards


@dataclass(frozen=True, kw_only=True)
class CountTask(Task):
    """What a worker must know to count files as they arrive.

    Attributes:
        job: as in a batch; its directory is the one that is watched.
        reading: how files are read.
    """

    job: CountJob
    reading: Reading

    @override
    def work(self, arrivals: Arrivals, failures: Failures, run: str | None) -> CountWork:
        return CountWork(self, arrivals=arrivals, failures=failures, run=run)


class CountWork(Work):
    """Counts files; the arguments are those of `Work`."""

    def __init__(
        self, task: CountTask, *, arrivals: Arrivals, failures: Failures, run: str | None
    ) -> None:
        self._job = task.job
        self._reading = task.reading
        self._log = log.LogReader(task.directory)
        super().__init__(task, arrivals=arrivals, failures=failures, run=run)

    @override
    def entries(self) -> Iterable[Entry]:
        return sorted(self._log.read().values(), key=holds_last)

    @override
    def entries_for(self, name: str) -> Iterable[Entry]:
        return [entry for entry in self.entries() if _holds(entry, name)]

    @override
    def nothing(self, key: str) -> Entry:
        return {
            "key": key,
            "revision": 0,
            "failed": None,
            "bad": 0,
            "set": None,
            "level": 0,
            "totals": asdict(Totals()),
            "dead_letters": [],
        }

    @override
    def make(self, file: InputFile, key: str) -> Entry:
        entry = {**self.nothing(key), "set": key}
        try:
            totals = self._count(file, key, entry["dead_letters"])
        except Exception:
            self.discard(entry)
            raise
        return {**entry, "bad": totals.failures, "totals": asdict(totals)}

    def _count(self, file: InputFile, key: str, letters: list[Any]) -> Totals:
        """Write the set of a file, and its dead letters, which are told as they are there."""
        shards = self._job.shards if file.size >= _LARGE else 1
        job = replace(self._job, directory=set_path(self.directory, key), shards=shards)
        runs: dict[int, list[bytes]] = {shard: [] for shard in range(shards)}
        totals = Totals()
        counts = job.counter()
        for split in splits_of(file, key, self._task.split_size):
            for result in count_split(split, job, self._reading, self._failures, counts):
                if isinstance(result, Totals):
                    totals += result
                    if result.failures:
                        letters += self._dead_letters(split, result.failures)
                else:
                    runs[result[0]].append(result[1])
        for shard, run in enumerate(counts.drain(shards)):
            runs[shard].append(run_to_ipc(run))
        results: list[Any] = [totals]
        for shard, several in runs.items():
            results += write_shard(shard, merged(several), job)
        write_manifest(results, job, files=[CountedInput(name=file.name, size=file.size)])
        return totals

    def _dead_letters(self, split: Split, records: int) -> list[Any]:
        file = split.dead_letters_file
        written = storage.digest(join(self.directory, file))
        return dead_letters_json(DeadLetters.of(file, records=records, written=written))


def set_path(directory: str, key: str) -> str:
    """Where the shard set of this key lies."""
    return join(directory, SETS, key)


def clean(directory: str) -> None:
    """Remove sets and dead letters that no entry names, and entries whose sets are not there.

    A killed job leaves the first. A job elsewhere that has lost its command may write an entry just
    when its set is taken away: the input is counted again.
    """
    keys, files = log.set_names(directory), log.files_in(directory)
    reader = log.LogReader(directory)
    entries = reader.read()
    _clear(directory, reader)
    for key in set(keys) - {entry["set"] for entry in entries.values()}:
        log.remove_shards(directory, key)
    for file in set(files) - _letters(entries.values()):
        storage.remove(join(directory, file))
    for id_, entry in reader.read().items():
        is_one = entry["set"] is not None and not log.is_several(entry)
        if is_one and not storage.exists(join(set_path(directory, entry["set"]), MANIFEST)):
            _LOGGER.warning("%s: its counts are not there any more", entry["inputs"][0]["name"])
            log.remove_entry(directory, id_)


def fold(
    directory: str, job: CountJob, reader: log.LogReader, among: Container[str] | None = None
) -> None:
    """Add up sets of one level, where there are enough, and remove what does not stand any more.

    One process at a time may do so; others read, and write entries, meanwhile. Where order is
    tracked nothing is added up: the order is that of the names of the inputs, and one whose name
    stands between two others may be still to come.

    Args:
        directory: that is watched.
        job: the counts.
        reader: of its log.
        among: the entries that may be added up; None for all.
    """
    levels: dict[int, list[Entry]] = {}
    for id_, entry in reader.read().items():
        if entry["set"] is not None and (among is None or id_ in among):
            levels.setdefault(entry["level"], []).append(entry)
    for level, found in sorted(levels.items() if not job.track_order else ()):
        last = min(len(found), _AT_ONCE * FAN_IN) - FAN_IN
        for first in range(0, last + 1, FAN_IN):
            _add_up(directory, job, reader, level, found[first : first + FAN_IN])
    reader.read()
    _clear(directory, reader)


def _add_up(
    directory: str, job: CountJob, reader: log.LogReader, level: int, entries: list[Entry]
) -> None:
    key = digest_id(*map(log.entry_id, entries))
    counts = combine([(load_counts(set_path(directory, one["set"])), 1) for one in entries])
    write_set(set_path(directory, key), counts, job)
    if not {log.entry_id(one) for one in entries} <= reader.read().keys():
        log.remove_shards(directory, key)  # a worker has taken one of these inputs again
        return
    entry = {
        "key": key,
        "revision": max(one["revision"] for one in entries),
        "failed": None,
        "bad": sum(one["bad"] for one in entries),
        "set": key,
        "level": level + 1,
        "totals": asdict(counts.totals),
        "dead_letters": [letters for one in entries for letters in one["dead_letters"]],
        "inputs": [
            {"revision": one["revision"], **source} for one in entries for source in one["inputs"]
        ],
    }
    log.write_entry(directory, entry)


def _clear(directory: str, reader: log.LogReader) -> None:
    """Remove entries that others take the place of, and the files of those that are outdated."""
    stand = reader.read()
    keep = _letters(stand.values())
    for id_, entry in reader.all.items():
        if id_ not in stand:
            log.remove_entry(directory, id_)
        elif not log.is_outdated(stand[id_]) or id_ in reader.cleared:
            continue
        reader.cleared.add(id_)
        log.remove_files(directory, entry, keep=keep)


def _letters(entries: Iterable[Entry]) -> set[str]:
    return {file for entry in entries for file in log.files_of(entry)}


def write_set(directory: str, counts: PretokenCounts, job: CountJob) -> None:
    """Write counts as a directory of shards; its manifest comes last."""
    of_set = replace(job, directory=directory)
    results: list[CountsPart | Any] = [counts.totals]
    for shard, run in enumerate(counts.run.split(job.shards)):
        results += write_shard(shard, run_to_ipc(run), of_set)
    write_manifest(results, of_set, files=counts.inputs)


def write_head(directory: str, job: CountJob) -> None:
    """Write the manifest of a watched directory of counts: how its text is cut."""
    head = {
        "kind": log.COUNTS_KIND,
        "version": log.VERSION,
        **job.pretokenizer.settings,
        "special_tokens": list(job.special_tokens),
        "track_order": job.track_order,
        log.WATCH: True,
    }
    storage.write(join(directory, MANIFEST), manifest_bytes(head))


def holds_last(entry: Entry) -> tuple[bool, int, str]:
    """Of entries of one input, that of the input alone says what it was last; then the revision."""
    return not log.is_several(entry), entry["revision"], entry["key"]


def _holds(entry: Entry, name: str) -> bool:
    return any(source["name"] == name for source in entry["inputs"])
