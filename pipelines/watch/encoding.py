"""Each file that arrived to Parquet parts of its own."""

from __future__ import annotations

import contextlib
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from typing_extensions import override

from pipelines import storage
from pipelines.documents import KeptColumn
from pipelines.encoding import encode_split, tokenizer_of
from pipelines.errors import ConfigError
from pipelines.kept import find_kept
from pipelines.manifest import part_of
from pipelines.output import DEAD_LETTERS, MANIFEST
from pipelines.parts import finished_part
from pipelines.settings import EncodeSettings
from pipelines.splits import Split, plan_splits
from pipelines.storage import join
from pipelines.watch import log
from pipelines.watch.drift import Gauge
from pipelines.watch.work import Known, Taken, Work, dead_letters_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bpe import Tokenizer
    from pipelines.encoding import EncodeJob
    from pipelines.inputs import InputFile
    from pipelines.parts import FinishedPart
    from pipelines.runners import Failures
    from pipelines.watch.arrivals import Arrivals
    from pipelines.watch.drift import Baseline
    from pipelines.watch.log import Entry


@dataclass(frozen=True, kw_only=True)
class EncodeWatch:
    """What a worker must know to encode files as they arrive; small, and picklable.

    Attributes:
        job: as in a batch; its number of parts means nothing.
        format: of the files, or ``auto``.
        split_size: of large files, or None.
        baseline: the counts that tell unseen pre-tokens, or None.
    """

    job: EncodeJob
    format: str
    split_size: int | None = None
    baseline: str | None = None


class EncodeWork(Work):
    """Encodes files.

    Args:
        watch: what is asked for.
        arrivals: the files.
        failures: says when to stop.
        alone: whether no other process takes files.
        baseline: tells unseen pre-tokens.
    """

    def __init__(
        self,
        watch: EncodeWatch,
        *,
        arrivals: Arrivals,
        failures: Failures,
        alone: bool,
        baseline: Baseline | None,
    ) -> None:
        self._watch = watch
        self._tokenizer: Tokenizer = tokenizer_of(watch.job)
        self._gauge = Gauge(self._tokenizer, baseline)
        self._manifest = storage.Written(bytes=-1, sha256="")
        super().__init__(
            directory=watch.job.directory,
            arrivals=arrivals,
            asked=watch.format,
            max_failures=watch.job.reading.max_failures,
            failures=failures,
            alone=alone,
        )

    @override
    def entries(self) -> Iterable[tuple[str, Entry]]:
        found = log.read_manifest(self.directory)
        return log.entries_of(found).items()

    @override
    def find(self, name: str, key: str) -> Entry | None:
        entry = log.read_entry(self.directory, log.entry_id(name))
        if entry is not None:
            return entry
        # Compacted meanwhile, perhaps.
        manifest = storage.digest(join(self.directory, MANIFEST))
        if manifest == self._manifest:
            return None
        self._manifest = manifest
        return dict(self.entries()).get(log.entry_id(name))

    @override
    def nothing(self, key: str) -> Entry:
        return {
            "key": key,
            "revision": 0,
            "replaces": [],
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
        done = []
        for split in splits_of(file, key, self._watch.split_size):
            part = finished_part(
                self.directory, split, fingerprint=self._watch.job.fingerprint(split)
            )
            if part is None:
                part = encode_split(
                    split,
                    self._watch.job,
                    self._tokenizer,
                    self._failures,
                    observe=measure.add,
                )
            done.append(part)
        letters = [one for part in done for one in dead_letters_json(part.contents.dead_letters)]
        return {
            **self.nothing(key),
            "bad": sum(one["records"] for one in letters),
            "measured": measure.finish().to_json(),
            "parts": [_part(part) for part in done],
            "dead_letters": letters,
        }

    def _check_kept(self, file: InputFile) -> None:
        """Refuse a file that has not the columns that pass through."""
        keep = self._watch.job.reading.options.keep
        if keep:
            names = tuple(f"{column.name}:{column.type}" for column in keep)
            find_kept([file], EncodeSettings(keep=names))

    @override
    def commit(self, entry: Entry, key: str, before: Known | None) -> None:
        (source,) = entry["inputs"]
        id_ = log.entry_id(source["name"])
        if before is None:
            log.write_entry(self.directory, id_, entry)
            return
        with log.changing(self.directory):
            then = self.find(source["name"], key) or dict(self.entries())[id_]
            entry["revision"] = then["revision"] + 1
            log.write_entry(self.directory, id_, entry)
        with self._lock:
            self._bad -= then["bad"]
        kept = set(_files(entry))
        for file in _files(then):
            if file not in kept:
                storage.remove(join(self.directory, *file.split("/")))

    @override
    def discard(self, entry: Entry) -> None:
        for file in _files(entry):
            storage.remove(join(self.directory, *file.split("/")))

    @override
    def id_of(self, name: str, key: str) -> str:
        return log.entry_id(name)

    @override
    def taken(self, entry: Entry) -> Taken:
        parts = entry["parts"]
        return Taken(
            name=entry["inputs"][0]["name"],
            documents=sum(part["documents"] for part in parts),
            bytes=sum(part["text_bytes"] for part in parts),
            tokens=sum(part["tokens"] for part in parts),
            failures=entry["bad"],
            problem=entry["failed"],
        )


def splits_of(file: InputFile, key: str, split_size: int | None) -> list[Split]:
    """The splits of one input; their files are named after it and its contents."""
    return [
        Split(part=split.part, parts=split.parts, pieces=split.pieces, stem=f"part-{key}")
        for split in plan_splits([file], split_size)
    ]


def clean(directory: str) -> None:
    """Remove parts and dead letters that no entry names: what a killed job left."""
    manifest = log.read_manifest(directory)
    named = {one["file"] for kind in ("parts", "dead_letters") for one in manifest[kind]}
    for folder in ("", DEAD_LETTERS):
        for entry in storage.entries(join(directory, folder) if folder else directory):
            file = f"{folder}/{entry.name}" if folder else entry.name
            if entry.kind == "file" and log.is_part(entry.name) and file not in named:
                storage.remove(join(directory, *file.split("/")))


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
            f"--keep {encoding.keep[0]}: no file is there yet that tells its type: give it, as in "
            "--keep 'NAME:string'"
        )
    return find_kept(files, encoding)


def _part(part: FinishedPart) -> dict[str, object]:
    return asdict(part_of(part))


def _files(entry: Entry) -> list[str]:
    return [one["file"] for kind in ("parts", "dead_letters") for one in entry[kind]]
