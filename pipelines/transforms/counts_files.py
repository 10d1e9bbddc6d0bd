"""Counts to a directory of files, and back."""

from __future__ import annotations

import os
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import apache_beam as beam

from bpe._native import add_counts
from bpe.counts import require_pretokens
from bpe.counts.files import count_items, counts_from_ipc
from bpe.counts.manifest import Totals
from pipelines import storage
from pipelines.batches import totals_of
from pipelines.corpus.inputs import describe_inputs
from pipelines.count.directory import read_counts, read_shard
from pipelines.count.results import Counted, write_counted, write_shard
from pipelines.count.steps import CountJob
from pipelines.elements import call_once, pack, require_global_window, unpack, with_storage
from pipelines.errors import ConfigError, InputError
from pipelines.failures import job_errors
from pipelines.option import split_arguments, takes
from pipelines.output.directory import prepare
from pipelines.settings import CountSettings, OutputSettings, PretokenSettings
from pipelines.transforms.counting import checked_pretokens, gathered, shown_pretokens

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Elements have neither order nor fields.
_UNORDERED = ("track_order", "group_by")


@takes(PretokenSettings, CountSettings, leave_out=_UNORDERED)
class WriteCounts(beam.PTransform):  # type: ignore[misc]  # Beam has no types
    """Writes ``(pre-token, count)`` as a directory of counts; yields its manifest, one dict.

    Counts of one pre-token are added up. ``bpe train --counts``, ``bpe.PretokenCounts.load`` and
    `ReadCounts` read the directory. Counts do not say how text was cut, so it is said again here;
    training and encoding go by it. A runner that starts the job anew finds its own directory and
    goes on; where another job has taken it over, this one ends.

    Example::

        counts | WriteCounts("counts", pretokenizer="gpt2", special_tokens=["<|endoftext|>"])

    Args:
        path: a directory that is empty, or not there yet.
        documents: the number of counted documents, an int or a side input (``AsSingleton``); 0 if
            unknown.
        text_bytes: the size of their text in UTF-8, an int or a side input; None for the size of
            all pre-tokens.
        overwrite: replace what an earlier job left in the directory.
        **arguments: options, as below; those of the text as `CountPretokens` had them.

    Raises:
        ConfigError: an argument is wrong.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        documents: Any = 0,
        text_bytes: Any = None,
        overwrite: bool = False,
        **arguments: Any,
    ) -> None:
        super().__init__()
        self._totals = documents, text_bytes
        path = os.fspath(path)
        self._output = OutputSettings(directory=path, overwrite=overwrite)
        pretokens, counting = split_arguments(self, arguments)
        self._pretokens = checked_pretokens(pretokens)
        with job_errors():
            self._job = CountJob(
                directory=storage.located(path),
                pretokenizer=self._pretokens.cut,
                special_tokens=self._pretokens.special_tokens,
                counting=CountSettings(**counting),
            )
        self._output = replace(self._output, directory=self._job.directory)

    def display_data(self) -> dict[str, Any]:
        """Return the values that a runner's web UI shows."""
        return {"path": self._output.directory, **shown_pretokens(self._pretokens)}

    def expand(self, counts: beam.PCollection[tuple[bytes, int]]) -> Any:
        """Merge the counts by shard, write the shards and the manifest."""
        require_global_window(counts, "WriteCounts writes one directory")
        begin, job = counts.pipeline, replace(self._job, run=uuid.uuid4().hex)
        prepared = begin | "Prepare directory" >> call_once(_prepare, self._output, job)
        shards = gathered(
            counts, shards=job.counting.shards, label="WriteCounts"
        ) | "Write shards" >> beam.Map(
            with_storage(_write_shard), job, beam.pvalue.AsSingleton(prepared)
        ).with_output_types(bytes)
        results, types = beam.pvalue.AsIter(shards), dict[str, Any]
        return begin | "Write manifest" >> call_once(
            _write_manifest, job, results, *self._totals, types=types
        )


def _prepare(_: None, output: OutputSettings, job: CountJob) -> None:
    prepare(output, replace(job.plan_of(), inputs=describe_inputs(()), run=job.run))


def _write_shard(element: tuple[int, bytes], job: CountJob, _: None) -> bytes:
    job = job.planned()  # of another job by now: this one ends
    counts = counts_from_ipc(element[1])
    return pack((totals_of(counts), write_shard(element[0], counts, job)))


def _write_manifest(
    _: None,
    job: CountJob,
    results: Iterable[bytes],
    documents: int,
    text_bytes: int | None,
) -> dict[str, Any]:
    job = job.planned()  # likewise
    written = [unpack(result) for result in results]
    totals = sum((totals for totals, _ in written), Totals(documents=documents))
    if text_bytes is not None:
        totals = replace(totals, bytes=text_bytes)
    write_counted(Counted(totals=totals, groups={"": [shard for _, shard in written]}), job)
    return read_counts(job.directory).manifest.to_json()


class ReadCounts(beam.PTransform):  # type: ignore[misc]
    """Reads a directory of counts as ``(pre-token, count)``, each pre-token once.

    The shards are read in parallel, and every file is checked against the manifest. The
    elements do not have the pre-tokenizer, the special tokens and the totals of the manifest: give
    them again to `TrainTokenizer`.

    Example::

        pipeline | ReadCounts("counts") | TrainTokenizer(vocab_size=32_000, pretokenizer="gpt2")

    Args:
        path: a directory that `WriteCounts` or ``bpe count`` wrote, or a watch is writing.

    Raises:
        ConfigError: the path is empty.
    """

    def __init__(self, path: str) -> None:
        super().__init__()
        if not path:
            raise ConfigError("ReadCounts: the path is empty: name a directory of counts")
        self._path = path

    def display_data(self) -> dict[str, Any]:
        """Return the values that a runner's web UI shows."""
        return {"path": self._path}

    def expand(self, begin: beam.pvalue.PBegin) -> Any:
        """List the shards, distribute them to workers, and yield their pre-tokens."""
        return (
            begin
            | "Directory" >> beam.Create([self._path], reshuffle=False)
            | "List shards" >> beam.FlatMap(with_storage(_shards)).with_output_types(bytes)
            | "Reshuffle shards" >> beam.Reshuffle()
            | "Read" >> beam.FlatMap(with_storage(_read_shard)).with_output_types(tuple[bytes, int])
        )


def _shards(directory: str) -> Iterator[bytes]:
    """Yield the files of each shard; counts that were appended to have one in each set."""
    counts = read_counts(directory)
    manifest, shards = counts.manifest, counts.shards
    require_pretokens(
        manifest, title=directory, remedy="read counts of pre-tokens, or use bpe train"
    )
    if (scale := manifest.scale) != 1:
        raise InputError(
            f"{directory}: these counts are weighted, in units of 1/{scale}, which plain "
            "counts cannot say: read the directories they were made of, or use bpe train --counts"
        )
    for shard, files in enumerate(shards):
        yield pack((files, shard, len(shards)))


def _read_shard(element: bytes) -> Iterator[tuple[bytes, int]]:
    yield from count_items(add_counts(read_shard(*unpack(element))))
