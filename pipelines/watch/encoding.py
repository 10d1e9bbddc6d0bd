"""Each file that arrived to Parquet parts of its own."""

from __future__ import annotations

import contextlib
import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from bpe._codec import decode
from bpe.counts import Totals
from pipelines.corpus.documents import KeptColumn
from pipelines.drift import Gauge
from pipelines.encode.kept import find_kept
from pipelines.encode.manifest import EncodedManifest, encoded_of, folded, read_watched
from pipelines.encode.steps import count_written, encode_split, tokenizer_of
from pipelines.errors import ConfigError
from pipelines.output.directory import write_files
from pipelines.output.entries import Entry, write_folded
from pipelines.settings import EncodeSettings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from bpe import Tokenizer
    from bpe.counts.manifest import DeadLetters
    from pipelines.corpus.inputs import InputFile
    from pipelines.corpus.splits import Split
    from pipelines.encode.steps import EncodeJob
    from pipelines.failures import Failures
    from pipelines.output.names import Kind
    from pipelines.watch.work import Made, Make

_WAIT = 64  # entries at least


@dataclass(frozen=True, kw_only=True)
class Encoding:
    """Makes token ids of files; a `pipelines.watch.work.Handler`.

    Attributes:
        job: as in a batch; its number of parts means nothing.
        tokenizer: its files, by name.
        baseline: the counts that tell unseen pre-tokens, or None.
    """

    job: EncodeJob
    tokenizer: Mapping[str, bytes]
    baseline: str | None = None
    name: ClassVar[str] = "encode"
    kind: ClassVar[Kind] = "encoded"
    unit: ClassVar[str] = "token"

    @property
    def directory(self) -> str:
        """Of the output."""
        return self.job.directory

    def begin(self, *, goes_on: bool) -> None:
        """Write the tokenizer, which may have been lost, and at first the manifest of no input."""
        write_files(self.directory, self.tokenizer)
        if not goes_on:
            write_folded(self.directory, Entry(self.job.manifest(()).to_json(), ()))

    def open(self, failures: Failures) -> Make:
        """What encodes an input, in a worker."""
        tokenizer = tokenizer_of(self.job)
        gauge = Gauge(tokenizer, self.baseline)
        return functools.partial(self._make, tokenizer, gauge, failures)

    def _make(
        self,
        tokenizer: Tokenizer,
        gauge: Gauge,
        failures: Failures,
        _key: str,
        file: InputFile,
        splits: Sequence[Split],
        letters: Sequence[DeadLetters],
    ) -> Made:
        if splits:
            self._check_kept(file)
        measure = gauge.measure()
        parts = []
        for split in splits:
            parts.append(
                encode_split(split, self.job, tokenizer, failures.stopped, observe=measure.add)
            )
            count_written(parts[-1])
        return self.job.manifest(parts, splits, letters).to_json(), measure.finish()

    def _check_kept(self, file: InputFile) -> None:
        """Refuse a file that has not the columns that pass through."""
        keep = self.job.reading.options.keep
        if keep:
            names = tuple(f"{column.name}:{column.type}" for column in keep)
            find_kept([file], EncodeSettings(keep=names))

    def merge(self, before: Entry, log: Mapping[str, Entry]) -> Entry:
        """Fold the log into ``manifest.json``."""
        now = folded(self.directory, before, log) if log else before
        if now.taken != before.taken:
            write_folded(self.directory, now)
        return now

    def max_pending(self, inputs: int) -> int:
        """The more inputs there are, the more it takes to write the manifest."""
        return max(_WAIT, inputs // 8)

    def entries(self) -> Sequence[Entry]:
        """All inputs, in one entry."""
        return [read_watched(self.directory)]

    def totals(self, entries: Iterable[Entry]) -> Totals:
        """Sums over entries."""
        manifests = [encoded_of(entry.to_json(), self.directory) for entry in entries]
        return sum((_totals(one) for one in manifests), Totals())


def _totals(manifest: EncodedManifest) -> Totals:
    sums = manifest.totals
    return Totals(sums.documents, sums.text_bytes, sums.tokens, sums.failures, manifest.formats)


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
        with contextlib.suppress(ValueError):
            columns = decode(tuple[KeptColumn, ...], then)
            if [one.name for one in columns] == [name.split(":")[0] for name in encoding.keep]:
                return columns
    if not files and any(":" not in name for name in encoding.keep):
        raise ConfigError(
            f"`keep` {encoding.keep[0]}: no file is there yet that tells its type: give it, as in "
            "`keep` 'NAME:string'"
        )
    return find_kept(files, encoding)
