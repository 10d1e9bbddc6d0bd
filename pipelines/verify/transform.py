"""The parts of an encoded corpus, checked on any runner: a part is an element.

Every part is checked, also after one that is wrong: the error names the first one in the order of
the manifest, whatever worker comes to it first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import apache_beam as beam
from apache_beam.utils.shared import Shared

from pipelines.elements import pack, unpack
from pipelines.encode.tokenizer_files import sent_tokenizer
from pipelines.errors import InputError, JobError, VerificationError
from pipelines.metrics import counter
from pipelines.output.names import TOKENIZER
from pipelines.storage import join
from pipelines.verify.encoded import check_part

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from bpe import Tokenizer
    from pipelines.failures import Failures
    from pipelines.verify.encoded import PartCheck, Verifying, VerifyJob

CHECKED = "parts_verified"

# Parts that were checked, parts that are wrong, and of these the first: its number and its error.
_Findings = tuple[int, int, int, bytes]


class _CheckPart(beam.DoFn):  # type: ignore[misc]  # Beam has no types
    def __init__(self, job: VerifyJob, failures: Failures) -> None:
        self._job = job
        self._failures = failures
        self._shared = Shared()
        self._tokenizer: Tokenizer | None = None

    def setup(self) -> None:
        sha256 = self._job.tokenizer_sha256
        with self._failures.reported():
            self._tokenizer = self._shared.acquire(
                lambda: sent_tokenizer(join(self._job.directory, TOKENIZER), sha256=sha256),
                tag=sha256,
            )

    def process(self, element: bytes) -> Iterator[tuple[None, _Findings]]:
        if self._tokenizer is None or self._failures.stopped():
            return
        part: PartCheck = unpack(element)
        findings = None
        with self._failures.reported():
            findings = self._findings(part, self._tokenizer)
            counter(CHECKED).inc()
            counter("documents_read").inc(part.part.documents)
            counter("bytes_read").inc(part.size(compare=self._job.compare))
        if findings is not None:
            yield None, findings

    def _findings(self, part: PartCheck, tokenizer: Tokenizer) -> _Findings:
        try:
            check_part(part, self._job, tokenizer, stopped=self._failures.stopped)
        except (VerificationError, InputError) as error:
            return 1, 1, part.number, pack(error)
        return 1, 0, 0, b""


class _AddFindings(beam.CombineFn):  # type: ignore[misc]
    """Adds up findings; of several parts that are wrong, the first one stays."""

    def create_accumulator(self) -> _Findings:
        return 0, 0, 0, b""

    def add_input(self, accumulator: _Findings, findings: _Findings) -> _Findings:
        return _sum(accumulator, findings)

    def merge_accumulators(self, accumulators: Iterable[_Findings]) -> _Findings:
        total = self.create_accumulator()
        for findings in accumulators:
            total = _sum(total, findings)
        return total

    def extract_output(self, accumulator: _Findings) -> _Findings:
        return accumulator


def _sum(one: _Findings, other: _Findings) -> _Findings:
    first = min((each[2:] for each in (one, other) if each[1]), default=(0, b""))
    return one[0] + other[0], one[1] + other[1], *first


class _Conclude(beam.DoFn):  # type: ignore[misc]
    def __init__(self, parts: int, failures: Failures) -> None:
        self._parts = parts
        self._failures = failures

    def process(self, element: tuple[None, _Findings]) -> Iterator[int]:
        if self._failures.stopped():
            return
        with self._failures.reported():
            yield conclude(element[1], self._parts)


def conclude(findings: _Findings, parts: int) -> int:
    """The number of parts, where all of them were checked and are right.

    Raises:
        VerificationError, InputError: of the first part that is wrong; it says how many are.
        JobError: the runner lost some.
    """
    checked, wrong, _, packed = findings
    if wrong:
        error: JobError = unpack(packed)
        if wrong == 1:
            raise error
        raise type(error)(f"{error} (the first of {wrong:,} parts that are wrong, of {parts:,})")
    if checked != parts:
        raise JobError(f"the runner checked {checked} parts of {parts}: use another runner")
    return checked


def add_verifying(
    pipeline: beam.Pipeline, verifying: Verifying, failures: Failures
) -> beam.PCollection[Any]:
    """Add the checks of all parts to a pipeline; the one element of the result is their number."""
    return (
        pipeline
        | "Parts" >> beam.Create(map(pack, verifying.parts), reshuffle=False)
        | "Deal parts" >> beam.Reshuffle()
        | "Check parts" >> beam.ParDo(_CheckPart(verifying.job, failures))
        | "Add findings" >> beam.CombinePerKey(_AddFindings())
        | "Conclude" >> beam.ParDo(_Conclude(len(verifying.parts), failures))
    )
