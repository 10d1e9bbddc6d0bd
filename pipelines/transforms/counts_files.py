"""Counts to a directory of files, and back."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import apache_beam as beam

from bpe._native import merge_runs
from bpe.counts.files import read_part, run_from_ipc
from bpe.counts.manifest import MAX_SHARDS, Totals
from pipelines import storage
from pipelines.batches import count_pairs, pretoken_bytes
from pipelines.count.directory import read_counts_manifest
from pipelines.count.steps import count_job, count_plan, write_manifest, write_shard
from pipelines.elements import pack, unpack, with_storage
from pipelines.errors import ConfigError, InputError
from pipelines.failures import job_errors
from pipelines.output.directory import prepare
from pipelines.settings import SHARDS, CountSettings, OutputSettings
from pipelines.storage import join
from pipelines.transforms.counting import Cutting, gathered
from pipelines.transforms.elements import require_global_window

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from bpe.counts.manifest import CountsPart
    from pipelines.count.steps import CountJob

_PART = re.compile(r"-(\d{5})-of-(\d{5})\.parquet$")


@dataclass(eq=False, kw_only=True)
class WriteCounts(Cutting, beam.PTransform):  # type: ignore[misc]  # Beam has no types
    """Writes ``(pre-token, count)`` as a directory of counts; yields its manifest, one dict.

    Counts of one pre-token are added up. ``bpe train --counts``, ``bpe.PretokenCounts.load`` and
    `ReadCounts` read the directory. Counts do not say how text was cut, so it is said again here;
    training and encoding go by it.

    Example::

        counts | WriteCounts("counts", pretokenizer="gpt2", special_tokens=["<|endoftext|>"])

    Args:
        path: a directory that is empty, or not there yet.
        pretokenizer, pattern, normalizer, never_split, special_tokens: how the text was cut, as
            `CountPretokens` has them.
        documents: that were counted, an int or a side input (``AsSingleton``); 0 if not known.
        text_bytes: of their text in UTF-8, the same; None for the bytes of all pre-tokens.
        prune_below: pre-tokens that occur fewer times are dropped; the manifest says what that was.
        shards: files to write.
        overwrite: replace what an earlier job left in the directory.

    Raises:
        ConfigError: an argument is wrong.
    """

    path: str = field(kw_only=False)
    documents: Any = 0
    text_bytes: Any = None
    prune_below: int = 1
    shards: int = SHARDS
    overwrite: bool = False

    def __post_init__(self) -> None:
        beam.PTransform.__init__(self)
        self._output = OutputSettings(directory=self.path, overwrite=self.overwrite)
        if not 1 <= self.shards <= MAX_SHARDS:
            raise ConfigError(f"shards {self.shards} is not between 1 and {MAX_SHARDS}")
        with job_errors():
            self._job = count_job(
                self.settings(),
                self._output,
                CountSettings(prune_below=self.prune_below, shards=self.shards),
            )

    def expand(self, counts: beam.PCollection[tuple[bytes, int]]) -> Any:
        """Merge the counts by shard, write the shards and the manifest."""
        require_global_window(counts, "WriteCounts writes one directory")
        begin = counts.pipeline
        prepared = (
            begin
            | "Start" >> beam.Create([None], reshuffle=False)
            | "Prepare directory" >> beam.Map(with_storage(_prepare), self._output, self._job)
        )
        parts = gathered(
            counts, shards=self.shards, label="WriteCounts", every_shard=True
        ) | "Write shards" >> beam.FlatMap(
            with_storage(_write_shard), self._job, beam.pvalue.AsSingleton(prepared)
        ).with_output_types(bytes)
        return (
            begin
            | "End" >> beam.Create([None], reshuffle=False)
            | "Write manifest"
            >> beam.Map(
                with_storage(_write_manifest),
                self._job,
                beam.pvalue.AsIter(parts),
                self.documents,
                self.text_bytes,
            ).with_output_types(dict[str, Any])
        )


def _prepare(_: None, output: OutputSettings, job: CountJob) -> None:
    prepare(output, count_plan(job))


def _write_shard(element: tuple[int, bytes], job: CountJob, _: None) -> Iterator[bytes]:
    run = run_from_ipc(element[1])
    try:
        totals = Totals(bytes=pretoken_bytes(run), pretokens=run.total())
    except OverflowError as error:
        raise InputError(f"{error}: the counts do not fit 64 bits") from error
    yield pack(totals)
    yield from map(pack, write_shard(*element, job))


def _write_manifest(
    _: None, job: CountJob, results: Iterable[bytes], documents: int, text_bytes: int | None
) -> dict[str, Any]:
    found = [unpack(result) for result in results]
    if text_bytes is not None:
        found = [replace(one, bytes=0) if isinstance(one, Totals) else one for one in found]
    return write_manifest([*found, Totals(documents=documents, bytes=text_bytes or 0)], job)


@dataclass(eq=False, kw_only=True)
class ReadCounts(beam.PTransform):  # type: ignore[misc]
    """Reads a directory of counts as ``(pre-token, count)``, each pre-token once.

    The shards are read in parallel, and every file is checked against the manifest. What the
    manifest says beside (pre-tokenizer, special tokens, totals) is not in the elements: say it
    again where they are trained on.

    Example::

        pipeline | ReadCounts("counts") | TrainTokenizer(vocab_size=32_000, pretokenizer="gpt2")

    Args:
        path: a directory that `WriteCounts` or ``bpe count`` wrote, or a watch is writing.

    Raises:
        ConfigError: the path is empty.
    """

    path: str = field(kw_only=False)

    def __post_init__(self) -> None:
        beam.PTransform.__init__(self)
        if not self.path:
            raise ConfigError("ReadCounts: the path is empty: name a directory of counts")

    def display_data(self) -> dict[str, Any]:
        """What a runner's page shows."""
        return {"path": self.path}

    def expand(self, begin: beam.pvalue.PBegin) -> Any:
        """List the shards, deal them to workers, and yield their pre-tokens."""
        return (
            begin
            | "Directory" >> beam.Create([self.path], reshuffle=False)
            | "List shards" >> beam.FlatMap(with_storage(_shards)).with_output_types(bytes)
            | "Deal shards" >> beam.Reshuffle()
            | "Read" >> beam.FlatMap(with_storage(_read_shard)).with_output_types(tuple[bytes, int])
        )


def _shards(directory: str) -> Iterator[bytes]:
    """The files of each shard: several where a watch counts each input by itself."""
    manifest = read_counts_manifest(directory)
    if manifest.scale != 1:
        raise InputError(
            f"{directory}: these counts are weighted, in units of 1/{manifest.scale}, which plain "
            "counts cannot say: read the directories they were made of, or use bpe train --counts"
        )
    root = storage.located(directory)
    shards: dict[tuple[int, int], list[CountsPart]] = {}
    for part in manifest.parts:
        match = _PART.search(part.file)
        if match is None:
            raise InputError(f"{directory}: {part.file!r} is not the name of a shard: count again")
        shards.setdefault((int(match[1]), int(match[2])), []).append(part)
    for (shard, of), parts in shards.items():
        yield pack((root, shard, of, tuple(parts)))


def _read_shard(element: bytes) -> Iterator[tuple[bytes, int]]:
    root, shard, shards, parts = unpack(element)
    runs = []
    for part in parts:
        path = join(root, part.file)
        data = storage.read_if_there(path)
        if data is None:
            raise InputError(f"{path} is missing, the manifest names it: count again")
        runs.append(read_part(data, part, shard=shard, shards=shards, where=path))
    yield from count_pairs(merge_runs(runs))
