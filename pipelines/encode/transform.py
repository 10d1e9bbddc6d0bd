"""Documents to Parquet parts of token ids.

A split is read, encoded and written inside one step; only descriptors of splits and of finished
parts pass between steps. Each split has a part of its own, under a name that the plan fixes, so a
bundle that is run again writes the same file again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import apache_beam as beam
from apache_beam.utils.shared import Shared

from pipelines.elements import StorageDoFn, pack, unpack
from pipelines.encode.parts import finished_part
from pipelines.encode.steps import (
    check_tokens,
    count_written,
    encode_split,
    plan_encoding,
    prepare_encoding,
    tokenizer_of,
    write_manifest,
)
from pipelines.encode.tokenizer_files import load_tokenizer
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
    from pipelines.encode.steps import EncodeJob, Encoding


class _EncodeSplit(StorageDoFn):
    def __init__(self, job: EncodeJob, failures: Failures) -> None:
        super().__init__()
        self._job = job
        self._failures = failures
        self._shared = Shared()
        self._tokenizer: Tokenizer | None = None

    def setup(self) -> None:
        super().setup()
        with self._failures.reported():
            job = self._job
            self._tokenizer = self._shared.acquire(
                lambda: tokenizer_of(job), tag=job.tokenizer_sha256
            )

    def process(self, element: bytes) -> Iterator[tuple[None, bytes]]:
        if self._tokenizer is None or self._failures.stopped():
            return
        split: Split = unpack(element)
        done = None
        with self._failures.reported():
            done = finished_part(
                self._job.directory, split, fingerprint=self._job.fingerprint(split)
            )
            if done is None:
                done = self._encode(split, self._tokenizer)
                count_written(done)
            else:
                counter("parts_resumed").inc()
                counter("documents_kept").inc(done.contents.documents)
                counter("bytes_kept").inc(split.size)
                with SlotWriter(self._job.reading.counters_path, split.part) as slot:
                    slot.keep(documents=done.contents.documents, bytes=split.size)
        if done is not None:
            yield None, pack(done)

    def _encode(self, split: Split, tokenizer: Tokenizer) -> FinishedPart:
        try:
            return encode_split(split, self._job, tokenizer, self._failures)
        except OutputError:
            # A job that was left behind on a cluster may have made this part meanwhile, ended, and
            # taken our temporary file for one of a writer that was killed.
            fingerprint = self._job.fingerprint(split)
            if (done := finished_part(self._job.directory, split, fingerprint=fingerprint)) is None:
                raise
            return done


class _WriteManifest(StorageDoFn):
    def __init__(self, job: EncodeJob, failures: Failures) -> None:
        super().__init__()
        self._job = job
        self._failures = failures

    def process(self, element: tuple[None, Iterable[bytes]]) -> Iterator[dict[str, Any]]:
        if self._failures.stopped():
            return
        manifest = None
        with self._failures.reported():
            manifest = write_manifest(map(unpack, element[1]), self._job)
        if manifest is not None:
            yield manifest


def add_encoding(
    pipeline: beam.Pipeline, encoding: Encoding, failures: Failures
) -> beam.PCollection[dict[str, Any]]:
    """Add a prepared job to a pipeline; the one element of the result is the manifest."""
    return (
        pipeline
        | "Splits" >> beam.Create(map(pack, encoding.splits), reshuffle=False)
        | "Deal splits" >> beam.Reshuffle()
        | "Encode splits" >> beam.ParDo(_EncodeSplit(encoding.job, failures))
        | "Group parts" >> beam.GroupByKey()
        | "Write manifest" >> beam.ParDo(_WriteManifest(encoding.job, failures))
    )


@takes(InputSettings, EncodeSettings)
class EncodeToParquet(beam.PTransform):  # type: ignore[misc]
    """Encodes a corpus into a directory of Parquet parts; yields its manifest, one dict.

    Example::

        p | EncodeToParquet(inputs=["docs/*.jsonl"], tokenizer="tokenizer.json", output="ids")
    p | EncodeToParquet(
            inputs=["docs/*.jsonl"], tokenizer="tokenizer.json", output="packed",
            append_token="<|endoftext|>", pack=2048,
        )

    Args:
        inputs: files, directories or patterns.
        tokenizer: a tokenizer file, as `bpe.Tokenizer.load` takes it.
        output: a directory that is empty, or not there yet.
        overwrite: replace what an earlier job left in the directory.
        resume: keep the parts that an earlier run of the same job finished.
        **arguments: options, as below.

    Raises:
        JobError: what is given is wrong, at construction; what is found is, when it is applied.
    """

    def __init__(
        self,
        *,
        inputs: Sequence[str],
        tokenizer: str,
        output: str,
        overwrite: bool = False,
        resume: bool = False,
        **arguments: Any,
    ) -> None:
        super().__init__()
        reading, rows = split_arguments(arguments, InputSettings, EncodeSettings)
        self._inputs = InputSettings.of(inputs, **reading)
        self._encoding = EncodeSettings(**rows)
        self._output = OutputSettings(directory=output, overwrite=overwrite, resume=resume)
        self._tokenizer = tokenizer
        check_tokens(load_tokenizer(tokenizer), self._encoding)

    def expand(self, begin: beam.pvalue.PBegin) -> beam.PCollection[dict[str, Any]]:
        """Plan the job, prepare the directory, and add the steps."""
        if not isinstance(begin, beam.pvalue.PBegin):
            raise ConfigError(
                "EncodeToParquet reads its inputs itself: apply it to the pipeline, "
                "p | EncodeToParquet(...)"
            )
        encoding = plan_encoding(
            inputs=self._inputs,
            tokenizer=self._tokenizer,
            output=self._output,
            encoding=self._encoding,
        )
        prepare_encoding(encoding, self._output)
        return add_encoding(begin.pipeline, encoding, Failures())
