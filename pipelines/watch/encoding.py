"""Each file that arrived to Parquet parts of its own."""

from __future__ import annotations

import contextlib
import logging
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from typing_extensions import override

from pipelines import storage
from pipelines.corpus.documents import KeptColumn
from pipelines.encode.kept import find_kept
from pipelines.encode.manifest import EncodedManifest, part_of
from pipelines.encode.steps import count_written, encode_split, tokenizer_of
from pipelines.errors import ConfigError
from pipelines.output.names import MANIFEST, TOKENIZER, manifest_bytes
from pipelines.settings import EncodeSettings
from pipelines.storage import join
from pipelines.watch import log
from pipelines.watch.arrivals import state
from pipelines.watch.drift import Baseline, Gauge
from pipelines.watch.work import Task, Work, dead_letters_json, splits_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bpe import Tokenizer
    from pipelines.corpus.inputs import InputFile
    from pipelines.encode.parts import FinishedPart
    from pipelines.encode.steps import EncodeJob
    from pipelines.failures import Failures
    from pipelines.watch.arrivals import Arrivals
    from pipelines.watch.log import Entry

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class EncodeTask(Task):
    """What a worker must know to encode files as they arrive.

    Attributes:
        job: as in a batch; its number of parts means nothing.
        baseline: the counts that tell unseen pre-tokens, or None.
    """

    job: EncodeJob
    baseline: str | None = None

    @override
    def work(self, arrivals: Arrivals, failures: Failures, run: str | None) -> EncodeWork:
        return EncodeWork(self, arrivals=arrivals, failures=failures, run=run)


class EncodeWork(Work):
    """Encodes files; the arguments are those of `Work`."""

    def __init__(
        self, task: EncodeTask, *, arrivals: Arrivals, failures: Failures, run: str | None
    ) -> None:
        self._job = task.job
        self._tokenizer: Tokenizer = tokenizer_of(task.job)
        baseline = None if task.baseline is None else Baseline(task.baseline)
        self._gauge = Gauge(self._tokenizer, baseline)
        self._manifest: tuple[int, float] | None = None
        super().__init__(task, arrivals=arrivals, failures=failures, run=run)

    @override
    def entries(self) -> Iterable[Entry]:
        # The manifest may be a newer one when it is read, never an older one.
        self._manifest = self._state_of_manifest()
        found = log.read_log(self.directory).values()
        return log.newest(log.read_compacted(self.directory), found).values()

    def _state_of_manifest(self) -> tuple[int, float] | None:
        now = state(join(self.directory, MANIFEST))
        return None if now is None else (now.size_in_bytes, now.last_updated_in_seconds)

    @override
    def entries_for(self, name: str) -> Iterable[Entry]:
        found = log.entries_for(self.directory, name)
        if not found and self._state_of_manifest() != self._manifest:
            self.load()  # it was moved there meanwhile, perhaps
        return sorted(found, key=log.rank)

    @override
    def nothing(self, key: str) -> Entry:
        return {
            "key": key,
            "revision": 0,
            "failed": None,
            "bad": 0,
            "measured": self._gauge.measure().to_json(),
            "parts": [],
            "dead_letters": [],
        }

    @override
    def make(self, file: InputFile, key: str) -> Entry:
        self._check_kept(file)
        measure = self._gauge.measure()
        done: list[FinishedPart] = []
        try:
            for split in splits_of(file, key, self._task.split_size):
                part = encode_split(
                    split, self._job, self._tokenizer, self._failures, observe=measure.add
                )
                count_written(part)
                done.append(part)
        except Exception:
            self.discard(self._entry(key, done))
            raise
        return {**self._entry(key, done), "measured": measure.finish().to_json()}

    def _entry(self, key: str, done: list[FinishedPart]) -> Entry:
        letters = [one for part in done for one in dead_letters_json(part.contents.dead_letters)]
        return {
            **self.nothing(key),
            "bad": sum(one["records"] for one in letters),
            "parts": [_part(part) for part in done],
            "dead_letters": letters,
        }

    def _check_kept(self, file: InputFile) -> None:
        """Refuse a file that has not the columns that pass through."""
        keep = self._job.reading.options.keep
        if keep:
            names = tuple(f"{column.name}:{column.type}" for column in keep)
            find_kept([file], EncodeSettings(keep=names))


def begin_encoded(job: EncodeJob, tokenizer: str) -> None:
    """Write what a watched corpus has before any file has arrived; ``tokenizer`` is JSON."""
    storage.write(join(job.directory, TOKENIZER), tokenizer.encode("utf-8"))
    empty = EncodedManifest.of(
        (),
        tokenizer_sha256=job.tokenizer_sha256,
        vocab_size=job.vocab_size,
        id_type=job.id_type,
        reading=job.reading.options,
        rows=job.rows,
    )
    value = {**empty.to_json(), log.WATCH: []}
    storage.write(join(job.directory, MANIFEST), manifest_bytes(value))


def clean(directory: str) -> None:
    """Remove parts and dead letters that no entry names, and entries whose parts are not there.

    A killed job leaves the first. A job elsewhere that has lost its command may write an entry just
    when its parts are taken away: the input is encoded again.
    """
    there = set(log.files_in(directory))
    kept = log.compact(directory).values()
    gone = there - {file for entry in kept for file in log.files_of(entry)}
    for file in gone:
        storage.remove(join(directory, file))
    there = set(log.files_in(directory))
    kept = log.compact(directory).values()
    lost = [entry for entry in kept if not there.issuperset(log.files_of(entry))]
    for entry in lost:
        _LOGGER.warning("%s: its parts are not there any more", entry["inputs"][0]["name"])
    log.drop(directory, lost)


def settled_columns(
    files: Sequence[InputFile], encoding: EncodeSettings, then: object
) -> tuple[KeptColumn, ...]:
    """The columns that pass through, with the types that they have for good.

    Args:
        files: that are there when the job begins for the first time.
        encoding: names the columns.
        then: what an earlier run of the job settled, as JSON; None where there was none.

    Raises:
        ConfigError: a type is not given, and no file tells it.
    """
    if not encoding.keep:
        return ()
    if isinstance(then, list):
        with contextlib.suppress(KeyError, TypeError):
            columns = tuple(KeptColumn(**column) for column in then)
            if [one.name for one in columns] == [name.split(":")[0] for name in encoding.keep]:
                return columns
    if not files and any(":" not in name for name in encoding.keep):
        raise ConfigError(
            f"`keep` {encoding.keep[0]}: no file is there yet that tells its type: give it, as in "
            "`keep` 'NAME:string'"
        )
    return find_kept(files, encoding)


def _part(part: FinishedPart) -> dict[str, object]:
    return asdict(part_of(part))
