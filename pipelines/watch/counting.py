"""Each file that arrived to a shard set of counts of its own; sets brought together in larger ones.

A set is a whole counts directory below ``sets/``; an entry of the log says which inputs it is of.
Sets of one level are added up to one of the next when there are `FAN_IN` of them, so that there
are never many, and each count is copied a number of times that grows with the logarithm of all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from bpe.counts import combine
from bpe.counts.files import run_to_ipc
from bpe.counts.manifest import CountedInput, CountsPart, Totals
from bpe.errors import CountsError
from pipelines import storage
from pipelines.counting import CountJob, count_split, merged, write_manifest, write_shard
from pipelines.errors import JobError
from pipelines.output import DEAD_LETTERS, MANIFEST, json_bytes
from pipelines.storage import join
from pipelines.train import load_counts
from pipelines.watch import log
from pipelines.watch.encoding import splits_of
from pipelines.watch.log import SETS, digest_id
from pipelines.watch.work import Known, Taken, Work

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bpe.counts import PretokenCounts
    from pipelines.inputs import InputFile
    from pipelines.reading import Reading
    from pipelines.runners import Failures
    from pipelines.watch.arrivals import Arrivals
    from pipelines.watch.log import Entry

FAN_IN = 16
_LARGE = 64 << 20  # bytes of a file whose set has all shards


@dataclass(frozen=True, kw_only=True)
class CountWatch:
    """What a worker must know to count files as they arrive; small, and picklable.

    Attributes:
        job: as in a batch; its directory is the one that is watched.
        reading: how files are read.
        format: of the files, or ``auto``.
        split_size: of large files, or None.
    """

    job: CountJob
    reading: Reading
    format: str
    split_size: int | None = None


class CountWork(Work):
    """Counts files.

    Args:
        watch: what is asked for.
        arrivals: the files.
        failures: says when to stop.
        alone: whether no other process takes files.
    """

    def __init__(
        self, watch: CountWatch, *, arrivals: Arrivals, failures: Failures, alone: bool
    ) -> None:
        self._watch = watch
        self._cache: dict[str, Entry] = {}
        super().__init__(
            directory=watch.job.directory,
            arrivals=arrivals,
            asked=watch.format,
            max_failures=watch.reading.max_failures,
            failures=failures,
            alone=alone,
        )

    @override
    def entries(self) -> Iterable[tuple[str, Entry]]:
        found = log.read_log(self.directory, self._cache)
        return sorted(found.items(), key=lambda item: (item[1]["revision"], item[0]))

    @override
    def find(self, name: str, key: str) -> Entry | None:
        found = self._holding(name)
        return found[-1][1] if found else None

    @override
    def nothing(self, key: str) -> Entry:
        return {
            "key": key,
            "revision": 0,
            "replaces": [],
            "failed": None,
            "bad": 0,
            "set": None,
            "level": 0,
            "totals": _totals(Totals()),
            "dead_letters": [],
        }

    @override
    def make(self, file: InputFile, key: str) -> Entry:
        shards = self._watch.job.shards if file.size >= _LARGE else 1
        job = replace(self._watch.job, directory=set_path(self.directory, key), shards=shards)
        runs: dict[int, list[bytes]] = {shard: [] for shard in range(shards)}
        totals = Totals()
        letters = []
        counts = job.counter()
        for split in splits_of(file, key, self._watch.split_size):
            for result in count_split(split, job, self._watch.reading, self._failures, counts):
                if isinstance(result, Totals):
                    totals += result
                else:
                    runs[result[0]].append(result[1])
            name = f"{DEAD_LETTERS}/{split.file_name('jsonl')}"
            path = join(self.directory, *name.split("/"))
            if totals.failures and storage.exists(path):
                written = storage.digest(path)
                records = storage.read(path).count(b"\n")
                letters.append(
                    {
                        "file": name,
                        "records": records,
                        "bytes": written.bytes,
                        "sha256": written.sha256,
                    }
                )
        for shard, run in enumerate(counts.drain(shards)):
            runs[shard].append(run_to_ipc(run))
        storage.make_directory(job.directory)
        results: list[Any] = [totals]
        for shard, several in runs.items():
            results += write_shard(shard, merged(several), job)
        write_manifest(results, job, files=[CountedInput(name=file.name, size=file.size)])
        return {
            **self.nothing(key),
            "bad": totals.failures,
            "set": key,
            "totals": _totals(totals),
            "dead_letters": letters,
        }

    @override
    def commit(self, entry: Entry, key: str, before: Known | None) -> None:
        if before is None:
            log.write_entry(self.directory, key, entry)
            return
        with log.changing(self.directory):
            self._replace(entry, key)

    def _replace(self, entry: Entry, key: str) -> None:
        """Let an entry appear in place of what its input was before."""
        (source,) = entry["inputs"]
        held = self._holding(source["name"])
        (id_, then) = held[-1]
        entry["revision"] = then["revision"] + 1
        if len(held) == len(then["inputs"]) == 1:
            entry["replaces"] = [id_]
            log.write_entry(self.directory, key, entry)
            if len(self._holding(source["name"])) == 1:
                with self._lock:
                    self._bad -= then["bad"]
                log.remove_entry(self.directory, id_)
                remove_set(self.directory, then)
                self._remove_letters(then)
                return
            # Another process has added it up just now. An id has one entry for good.
            log.remove_entry(self.directory, key)
            key = digest_id(key, id_)
        # Counts that were added up cannot be taken apart.
        self.discard(entry)
        with self._lock:
            self._bad -= entry["bad"]
        noted = [(old, one) for old, one in held if one["failed"] is not None]
        reason = "it was changed after it was counted: the counts are of what it held before"
        entry.update(self.nothing(entry["key"]), failed=reason, revision=entry["revision"])
        entry["replaces"] = [old for old, _ in noted]
        log.write_entry(self.directory, key, entry)
        for old, one in noted:
            log.remove_entry(self.directory, old)
            self._remove_letters(one)

    def _holding(self, name: str) -> list[tuple[str, Entry]]:
        return [item for item in self.entries() if _holds(item[1], name)]

    @override
    def discard(self, entry: Entry) -> None:
        remove_set(self.directory, entry)
        self._remove_letters(entry)

    def _remove_letters(self, entry: Entry) -> None:
        for letters in entry["dead_letters"]:
            storage.remove(join(self.directory, *letters["file"].split("/")))

    @override
    def id_of(self, name: str, key: str) -> str:
        return key

    @override
    def taken(self, entry: Entry) -> Taken:
        totals = entry["totals"]
        return Taken(
            name=entry["inputs"][0]["name"],
            documents=totals["documents"],
            bytes=totals["bytes"],
            tokens=totals["pretokens"],
            failures=entry["bad"],
            problem=entry["failed"],
        )


def set_path(directory: str, key: str) -> str:
    """Where the shard set of this key lies."""
    return join(directory, SETS, key)


def remove_set(directory: str, entry: Entry) -> None:
    """Remove the shard set of an entry, its manifest first."""
    if entry["set"] is None:
        return
    storage.remove_directory(set_path(directory, entry["set"]))


def clean(directory: str) -> None:
    """Remove sets and dead letters that no entry names: what a killed job left."""
    entries = log.read_log(directory)
    for id_ in log.entry_names(directory):
        if id_ not in entries:
            log.remove_entry(directory, id_)  # another one replaces it
    sets = {entry["set"] for entry in entries.values()}
    for key in log.set_names(directory):
        if key not in sets:
            storage.remove_directory(set_path(directory, key))
    letters = {one["file"] for entry in entries.values() for one in entry["dead_letters"]}
    for found in storage.entries(join(directory, DEAD_LETTERS)):
        file = f"{DEAD_LETTERS}/{found.name}"
        if found.kind == "file" and log.is_part(found.name) and file not in letters:
            storage.remove(join(directory, DEAD_LETTERS, found.name))


def compact(directory: str, job: CountJob, cache: dict[str, Entry]) -> None:
    """Add up sets of one level, where there are enough; one process at a time may do so.

    Where order is tracked nothing is: the order is that of the names of the inputs, and one whose
    name stands between two others may be still to come.
    """
    if job.track_order:
        return
    with log.changing(directory):
        levels: dict[int, list[tuple[str, Entry]]] = {}
        for id_, entry in sorted(log.read_log(directory, cache).items()):
            if entry["set"] is not None:
                levels.setdefault(entry["level"], []).append((id_, entry))
        for level, found in sorted(levels.items()):
            if len(found) >= FAN_IN:
                _merge(directory, job, level, found[:FAN_IN])


def _merge(directory: str, job: CountJob, level: int, found: list[tuple[str, Entry]]) -> None:
    entries = [entry for _, entry in found]
    ids = {id_ for id_, _ in found}
    key = digest_id(*(id_ for id_, _ in found))
    try:
        counts = combine([(load_counts(set_path(directory, one["set"])), 1) for one in entries])
    except (JobError, CountsError):
        if _is_replaced(directory, ids, by=key):
            return  # they are looked at again
        raise
    write_set(set_path(directory, key), counts, job)
    entry = {
        "key": key,
        "revision": max(one["revision"] for one in entries),
        "replaces": [id_ for id_, _ in found],
        "failed": None,
        "bad": sum(one["bad"] for one in entries),
        "set": key,
        "level": level + 1,
        "totals": _totals(counts.totals),
        "dead_letters": [letters for one in entries for letters in one["dead_letters"]],
        "inputs": [source for one in entries for source in one["inputs"]],
    }
    log.write_entry(directory, key, entry)
    if _is_replaced(directory, ids, by=key):
        log.remove_entry(directory, key)
        remove_set(directory, entry)
        return
    for id_, one in found:
        log.remove_entry(directory, id_)
        remove_set(directory, one)


def _is_replaced(directory: str, ids: set[str], *, by: str) -> bool:
    """Whether a worker in another process has replaced one of these entries meanwhile."""
    others = (entry for id_, entry in log.read_log(directory).items() if id_ != by)
    return any(ids & set(entry["replaces"]) for entry in others) or not ids <= set(
        log.entry_names(directory)
    )


def write_set(directory: str, counts: PretokenCounts, job: CountJob) -> None:
    """Write counts as a directory of shards; its manifest comes last."""
    of_set = replace(job, directory=directory)
    storage.make_directory(directory)
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
    storage.write(join(directory, MANIFEST), json_bytes(head))


def _holds(entry: Entry, name: str) -> bool:
    return any(source["name"] == name for source in entry["inputs"])


def _totals(totals: Totals) -> dict[str, int]:
    return {
        "documents": totals.documents,
        "bytes": totals.bytes,
        "pretokens": totals.pretokens,
        "failures": totals.failures,
    }
