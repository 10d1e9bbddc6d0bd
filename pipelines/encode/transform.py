"""Documents to Parquet parts of token ids.

The first step lists the inputs and plans; a split is read, encoded and written inside one step;
only descriptors of splits and of finished parts pass between steps. Each split has a part of its
own, under a name that the plan fixes, so a bundle that is run again writes the same file again. The
graph carries patterns and settings, and is of the same size for any corpus.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import apache_beam as beam
from apache_beam.utils.shared import Shared

from pipelines.elements import StorageDoFn, pack, unpack
from pipelines.encode.parts import finished_part
from pipelines.encode.steps import (
    EncodeRequest,
    begin_encoding,
    count_written,
    encode_split,
    job_of,
    tokenizer_of,
    write_manifest,
)
from pipelines.errors import ConfigError, OutputError
from pipelines.failures import Failures
from pipelines.metrics import counter
from pipelines.option import split_arguments, takes
from pipelines.progress import SlotWriter
from pipelines.settings import (
    EncodeSettings,
    InputSettings,
    OutputSettings,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from bpe import Tokenizer
    from pipelines.corpus.splits import Split
    from pipelines.encode.parts import FinishedPart
    from pipelines.encode.steps import EncodeJob


class _Plan(StorageDoFn):
    def __init__(self, request: EncodeRequest, failures: Failures) -> None:
        super().__init__()
        self._request = request
        self._failures = failures

    def process(self, _: object) -> Iterator[bytes]:
        splits: list[Split] = []
        with self._failures.reported():
            splits = begin_encoding(self._request)
        yield from map(pack, splits)


class _EncodeSplit(StorageDoFn):
    def __init__(self, request: EncodeRequest, failures: Failures) -> None:
        super().__init__()
        self._request = request
        self._failures = failures
        self._shared = Shared()
        self._tokenizer: Tokenizer | None = None

    def process(self, element: bytes) -> Iterator[tuple[None, bytes]]:
        if self._failures.stopped():
            return
        done = None
        with self._failures.reported():
            done = self._done(unpack(element))
        if done is not None:
            yield None, pack(done)

    def _done(self, split: Split) -> FinishedPart:
        job = job_of(self._request)
        self._tokenizer = self._shared.acquire(lambda: tokenizer_of(job), tag=job.tokenizer_sha256)
        done = finished_part(job.directory, split, fingerprint=job.fingerprint(split))
        if done is None:
            done = self._encode(split, job, self._tokenizer)
            count_written(done)
            return done
        counter("parts_resumed").inc()
        counter("documents_kept").inc(done.contents.documents)
        counter("bytes_kept").inc(split.size)
        with SlotWriter(job.reading.counters_path, split.part) as slot:
            slot.keep(documents=done.contents.documents, bytes=split.size)
        return done

    def _encode(self, split: Split, job: EncodeJob, tokenizer: Tokenizer) -> FinishedPart:
        try:
            return encode_split(split, job, tokenizer, self._failures)
        except OutputError:
            # A job that was left behind on a cluster may have made this part meanwhile, ended, and
            # taken our temporary file for one of a writer that was killed.
            done = finished_part(job.directory, split, fingerprint=job.fingerprint(split))
            if done is None:
                raise
            return done


class _WriteManifest(StorageDoFn):
    def __init__(self, request: EncodeRequest, failures: Failures) -> None:
        super().__init__()
        self._request = request
        self._failures = failures

    def process(self, element: tuple[None, Iterable[bytes]]) -> Iterator[dict[str, Any]]:
        if self._failures.stopped():
            return
        manifest = None
        with self._failures.reported():
            manifest = write_manifest(map(unpack, element[1]), job_of(self._request))
        if manifest is not None:
            yield manifest


class EncodeRequested(beam.PTransform):  # type: ignore[misc]
    """The steps of `EncodeCorpus`, for a request; errors are reported to ``failures``."""

    def __init__(self, request: EncodeRequest, failures: Failures) -> None:
        super().__init__()
        self._request = request
        self._failures = failures

    def display_data(self) -> dict[str, Any]:
        """What a runner's page shows."""
        request = self._request
        return {
            "inputs": ", ".join(request.inputs.patterns),
            "tokenizer": request.tokenizer or "in the graph",
            "output": request.output.directory,
        }

    def expand(self, begin: beam.pvalue.PBegin) -> beam.PCollection[dict[str, Any]]:
        """Plan, encode the splits, and write the manifest."""
        if not isinstance(begin, beam.pvalue.PBegin):
            raise ConfigError(
                "EncodeCorpus reads its inputs itself: apply it to the pipeline, "
                "p | EncodeCorpus(...); EncodeDocuments encodes a PCollection"
            )
        request, failures = self._request.started(), self._failures
        return (
            begin
            | "Start" >> beam.Create([None], reshuffle=False)
            | "Plan" >> beam.ParDo(_Plan(request, failures)).with_output_types(bytes)
            | "Deal splits" >> beam.Reshuffle()
            | "Encode splits"
            >> beam.ParDo(_EncodeSplit(request, failures)).with_output_types(tuple[None, bytes])
            | "Group parts" >> beam.GroupByKey()
            | "Write manifest"
            >> beam.ParDo(_WriteManifest(request, failures)).with_output_types(dict[str, Any])
        )


@takes(InputSettings, EncodeSettings)
class EncodeCorpus(EncodeRequested):
    """Encodes files into a directory of Parquet parts; yields its manifest, one dict.

    Nothing is read, listed or written before the pipeline runs. A runner that starts the job anew
    goes on with the files and splits of its first try.

    Example::

        p | EncodeCorpus(inputs=["docs/*.jsonl"], tokenizer="tokenizer.json", output="ids")
        p | EncodeCorpus(
            inputs=["docs/*.jsonl"], tokenizer="tokenizer.json", output="packed",
            append_token="<|endoftext|>", pack=2048,
        )

    Args:
        inputs: files, directories or patterns.
        tokenizer: a tokenizer file that workers see, as `bpe.Tokenizer.load` takes it, or a
            `bpe.Tokenizer`, which travels in the graph.
        output: a directory that is empty, or not there yet.
        overwrite: replace what an earlier job left in the directory.
        resume: keep the parts that an earlier run of the same job finished.
        **arguments: options, as below.

    Raises:
        ConfigError: an argument is wrong.
        InputError: the tokenizer given cannot be sent to workers.
    """

    def __init__(
        self,
        *,
        inputs: Sequence[str],
        tokenizer: str | Tokenizer,
        output: str,
        overwrite: bool = False,
        resume: bool = False,
        **arguments: Any,
    ) -> None:
        reading, rows = split_arguments(arguments, InputSettings, EncodeSettings)
        request = EncodeRequest.of(
            inputs=InputSettings.of(inputs, **reading),
            tokenizer=tokenizer,
            output=OutputSettings(directory=output, overwrite=overwrite, resume=resume),
            encoding=EncodeSettings(**rows),
        )
        super().__init__(request, Failures())
