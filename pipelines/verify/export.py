"""Is an export what its ``export.json`` says, and what its encoded corpus says?

Every file is read in full: its size and SHA-256, and its rows, as its format stores them. Given the
encoded corpus, the ids of each part are compared with its Parquet rows, and so are the borders of
rows and the ids of documents where the format stores them.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from pipelines import storage
from pipelines.encode.manifest import fingerprint_of, read_encoded
from pipelines.errors import InputError, StoppedError, VerificationError
from pipelines.export.format import ExportJob, StoredPart
from pipelines.export.formats import FORMATS
from pipelines.export.source import PartSource
from pipelines.export.steps import chosen_parts, leftovers
from pipelines.output.check_files import Finding, check_file, named_file
from pipelines.output.names import EXPORT, fingerprint
from pipelines.progress import SlotWriter
from pipelines.storage import join
from pipelines.verify.encoded import StatedParts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt
    import pyarrow as pa

    from pipelines.encode.manifest import Part
    from pipelines.encode.rows import Ids
    from pipelines.export.manifest import ExportedFile, ExportManifest
    from pipelines.export.rows import Rows


@dataclass(frozen=True, kw_only=True)
class VerifyExportJob:
    """Everything a worker must know to check a part; small, and picklable.

    Attributes:
        export: the job that wrote it.
        compare: whether the encoded corpus is read again, and compared.
    """

    export: ExportJob
    compare: bool

    @property
    def directory(self) -> str:
        """Of the export."""
        return self.export.directory

    def with_counters(self, counters_path: str | None) -> VerifyExportJob:
        """The same, whose workers tell their progress to a file of slots, one for each part."""
        return replace(self, export=replace(self.export, counters_path=counters_path))


@dataclass(frozen=True, kw_only=True)
class ExportCheck:
    """A part to check.

    Attributes:
        number: in the order of ``export.json``.
        stored: where its rows stand.
        files: whose size and SHA-256 are checked with it.
        source: the part of the encoded corpus, to compare it with.
    """

    number: int
    stored: StoredPart
    files: tuple[ExportedFile, ...]
    source: Part | None

    @property
    def size(self) -> int:
        """Bytes of its files."""
        return sum(file.bytes for file in self.files)


@dataclass(frozen=True, kw_only=True)
class VerifyingExport:
    """A verification of an export, planned.

    Attributes:
        job: for the workers.
        manifest: the fingerprint of ``export.json``.
        parts: to check.
        stated: what they are to add up to.
        splits: none: a part is compared with its own.
    """

    job: VerifyExportJob
    manifest: str
    parts: tuple[ExportCheck, ...]
    stated: StatedParts
    splits: tuple[()] = ()


def plan_export(
    directory: str, manifest: ExportManifest, *, encoded: str | None = None
) -> VerifyingExport:
    """Check an export but for its parts, and plan the checks of the parts.

    Args:
        directory: that holds it.
        manifest: what it must be.
        encoded: the directory of the encoded corpus, to compare the ids too.

    Raises:
        VerificationError: something is not as it must be.
        InputError: the encoded corpus cannot be read.
    """
    root = storage.located(directory)
    job = ExportJob(
        source="" if encoded is None else storage.located(encoded),
        directory=root,
        encoded=manifest.encoded,
        settings=manifest.settings,
    )
    _check_names(root, manifest)
    _check_index(job, manifest)
    sources = None if encoded is None else _sources(encoded, manifest)
    return VerifyingExport(
        job=VerifyExportJob(export=job, compare=encoded is not None),
        manifest=fingerprint(manifest.to_json()),
        parts=tuple(_checks(root, manifest, sources)),
        stated=StatedParts(numbers=_numbers(manifest), error=_wrong_total(manifest)),
    )


def _check_names(root: str, manifest: ExportManifest) -> None:
    for entry in storage.entries(root):
        if storage.is_temporary(entry.name) is not None:
            raise VerificationError(
                f"{join(root, entry.name)} is half written: a job is at work here, or was killed"
            )
    for name in leftovers(root, manifest):
        raise VerificationError(
            f"{join(root, name)} is not named in {EXPORT}: repeat bpe export with `resume`, which "
            "removes what is left of an earlier run"
        )
    names = [one.file for one in manifest.listed]
    if len(set(names)) < len(names):
        raise VerificationError(f"{join(root, EXPORT)} names a file twice")


def _check_index(job: ExportJob, manifest: ExportManifest) -> None:
    for one in manifest.index:
        check_file(join(job.directory, one.file), one.bytes, one.sha256)
    made = FORMATS[manifest.settings.to].index(manifest.parts, job)
    stated = {one.file: one.sha256 for one in manifest.index}
    if {name: hashlib.sha256(data).hexdigest() for name, data in made.items()} != stated:
        raise VerificationError(
            f"{job.directory}: the index does not list the files that {EXPORT} names"
        )


def _sources(encoded: str, manifest: ExportManifest) -> tuple[Part, ...]:
    source = read_encoded(encoded)
    if fingerprint_of(source) != manifest.encoded.manifest_sha256:
        raise VerificationError(
            f"{encoded} is not what was exported: its manifest is another: name the directory that "
            "was given to bpe export, or export again"
        )
    sources = chosen_parts(source, manifest.settings)
    parts = [(part.file, part.sha256, part.rows, part.tokens) for part in sources]
    stated = [(one.source, one.source_sha256, one.rows, one.tokens) for one in manifest.parts]
    if parts != stated:
        raise VerificationError(f"{encoded} has other parts than {EXPORT} names")
    return sources


def _checks(
    root: str, manifest: ExportManifest, sources: tuple[Part, ...] | None
) -> Iterator[ExportCheck]:
    rows = tokens = 0
    count = len(manifest.parts)
    for number, part in enumerate(manifest.parts):
        joined = manifest.joined
        yield ExportCheck(
            number=number,
            stored=StoredPart(
                directory=root,
                part=part,
                files=joined or part.files,
                rows_before=rows if joined else 0,
                tokens_before=tokens if joined else 0,
            ),
            files=joined[number::count] if joined else part.files,
            source=None if sources is None else sources[number],
        )
        if part.tokens:  # others are in no file
            rows, tokens = rows + part.rows, tokens + part.tokens


def _numbers(manifest: ExportManifest) -> dict[str, int]:
    totals = manifest.totals
    return {
        "parts": len(manifest.parts),
        "documents": totals.documents,
        "bytes": totals.bytes,
        "tokens": totals.tokens,
        "unknown_tokens": 0,
        "failures": 0,
    }


def _wrong_total(manifest: ExportManifest) -> VerificationError | None:
    sums = {
        name: sum(getattr(part, name) for part in manifest.parts) for name in ("rows", "tokens")
    }
    sums["bytes"] = sum(file.bytes for file in manifest.files)
    for name, found in sums.items():
        if (stated := getattr(manifest.totals, name)) != found:
            return VerificationError(
                f"the total of {name} in {EXPORT} is {stated}, its parts add up to {found}"
            )
    return None


def check_exported(
    check: ExportCheck, job: VerifyExportJob, *, stopped: Callable[[], bool]
) -> Finding:
    """Check the files of a part, and its rows.

    Args:
        check: the part.
        job: what it is a part of.
        stopped: asked between portions, whether nobody needs the result any more.

    Raises:
        StoppedError: nobody needs the result any more.
    """
    error = None
    try:
        for file in check.files:
            check_file(join(job.directory, file.file), file.bytes, file.sha256)
        _check_rows(check, job, stopped=stopped)
    except (VerificationError, InputError) as caught:
        error = caught
    return Finding(number=check.number, error=error)


def _check_rows(check: ExportCheck, job: VerifyExportJob, *, stopped: Callable[[], bool]) -> None:
    part, files = check.stored.part, check.stored.files
    place = ", ".join(join(job.directory, file.file) for file in files)
    if not part.tokens:
        return
    if not files:
        raise VerificationError(f"{EXPORT} names no file of {part.source}")
    with SlotWriter(job.export.counters_path, check.number) as slot:
        try:
            rows = _Exported(check, job.export, slot, stopped=stopped)
            if check.source is None:
                rows.read_all()
            else:
                _compare(rows, check.source, job.export, place, stopped=stopped)
        except (ValueError, OSError) as error:
            if isinstance(error, (VerificationError, InputError)):
                raise
            raise VerificationError(f"{place}: {' '.join(str(error).split())}") from error
        found = {"tokens": rows.tokens}
        if job.export.settings.to != "bin":  # which has no borders
            found["rows"] = rows.rows
        for name, number in found.items():
            if number != getattr(part, name):
                raise VerificationError(
                    f"{place}: there are {number} {name} of {part.source}, {EXPORT} says "
                    f"{getattr(part, name)}"
                )
        slot.update(documents=part.rows, bytes=check.size)


class _Exported:
    """The rows of a part, read back, of which ids are taken in portions of any size.

    Args:
        check: the part.
        job: the export.
        slot: told how much is read.
        stopped: whether nobody needs the result any more.

    Attributes:
        rows: that were read so far, where the format has borders.
        tokens: ids that were read so far.
    """

    def __init__(
        self,
        check: ExportCheck,
        job: ExportJob,
        slot: SlotWriter,
        *,
        stopped: Callable[[], bool],
    ) -> None:
        self._portions = FORMATS[job.settings.to].read(check.stored, job)
        self._check, self._slot, self._stopped = check, slot, stopped
        self._vocab_size, self._id_size = job.encoded.vocab_size, job.id_type.itemsize
        self._ids: Ids = np.zeros(0, job.id_type)
        self._lengths: list[npt.NDArray[np.int64]] = []
        self._names: list[pa.StringArray] = []
        self.rows = self.tokens = 0

    def _next(self) -> Rows | None:
        if self._stopped():
            raise StoppedError
        if (some := next(self._portions, None)) is None:
            return None
        for id_ in some.ids[(some.ids < 0) | (some.ids >= self._vocab_size)]:
            raise ValueError(f"the id {id_} is none of the vocabulary's {self._vocab_size}")
        self.tokens += len(some.ids)
        self.rows += 0 if some.lengths is None else len(some.lengths)
        size = min(self.tokens * self._id_size, self._check.size)
        self._slot.update(documents=self.rows, bytes=size)
        return some

    def read_all(self) -> None:
        """Read what is left."""
        while self._next() is not None:
            pass

    def take(self, count: int) -> Ids:
        """The next ids; fewer at the end."""
        portions, size = [self._ids], len(self._ids)
        while size < count and (some := self._next()) is not None:
            portions.append(some.ids)
            size += len(some.ids)
            if some.lengths is not None:
                self._lengths.append(some.lengths)
            if some.names is not None:
                self._names.append(some.names)
        ids = np.concatenate(portions)
        self._ids = ids[count:]
        return ids[:count]

    def lengths(self) -> npt.NDArray[np.int64]:
        """Of all rows that were taken."""
        return np.concatenate([np.zeros(0, np.int64), *self._lengths])

    def names(self) -> list[str]:
        """The ids of their documents."""
        return [name for some in self._names for name in some.to_pylist()]


def _compare(
    rows: _Exported, part: Part, job: ExportJob, place: str, *, stopped: Callable[[], bool]
) -> None:
    """Compare a part with its Parquet rows.

    Raises:
        VerificationError: it differs.
        InputError: the Parquet file is not that of the manifest.
    """
    path, with_id = join(job.source, part.file), job.settings.with_id
    with named_file(job.source, part.file, part.bytes, part.sha256) as file:
        source = PartSource(file, path=path, part=part, with_id=with_id, stopped=stopped)
        lengths, row = [np.zeros(0, np.int64)], 0
        names: list[str] = []
        for some in source.rows():
            ids = rows.take(len(some.ids))
            sizes = some.lengths if some.lengths is not None else lengths[0]
            if not np.array_equal(ids, some.ids):
                same = (
                    len(ids)
                    if (ids == some.ids[: len(ids)]).all()
                    else int(np.argmax(ids != some.ids[: len(ids)]))
                )
                wrong = row + int(np.searchsorted(np.cumsum(sizes), same, side="right"))
                raise VerificationError(f"{place}: row {wrong} of {path} has other ids")
            row += len(sizes)
            lengths.append(sizes)
            names += [] if some.names is None else some.names.to_pylist()
    rows.take(1)  # what is left: nothing, or empty rows
    rows.read_all()
    if job.settings.to != "bin" and not np.array_equal(rows.lengths(), np.concatenate(lengths)):
        raise VerificationError(f"{place}: the borders of rows are not those of {path}")
    if with_id and rows.names() != names:
        raise VerificationError(f"{place}: the ids of documents are not those of {path}")
