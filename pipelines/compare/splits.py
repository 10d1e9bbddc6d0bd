"""The stage of a comparison: encode the documents of a split with each tokenizer."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from bpe._codec import from_jsonable
from bpe.counting import PretokenCounter
from bpe.errors import BadTextsError
from pipelines import storage
from pipelines.compare.pieces import Difference, PieceCutter, add_differences
from pipelines.compare.result import Subject, check_groups, comparison, shown_failures
from pipelines.compare.totals import WHOLE, ComparisonTotals, Meter, described
from pipelines.corpus.documents.block import use_good_rows, without
from pipelines.corpus.reading import Reading, SplitReader
from pipelines.count.steps import FLUSH_BYTES, added_up, shard_messages
from pipelines.elements import OncePerProcess
from pipelines.metrics import add_to_metrics
from pipelines.output.directory import plan_of_run
from pipelines.output.names import json_bytes
from pipelines.planned import planned_splits
from pipelines.settings import SHARDS
from pipelines.spill import SpillWriter, read_segment
from pipelines.stage.record import StoredFile
from pipelines.stage.stage import Made, Unit
from pipelines.storage import join, replacing
from pipelines.tokenizer_files import sent_tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from bpe import Tokenizer
    from pipelines.corpus.splits import FileRange
    from pipelines.progress import SlotWriter
    from pipelines.stage.record import Record

RESULT = "comparison.json"
BY_FILE = "file"
_TOTALS = SHARDS  # the segment of the totals by group, after those of counted pieces


def tokenizer_names(tokenizers: int) -> tuple[str, ...]:
    """Return the file names of the tokenizers in the directory of a job."""
    return tuple(f"tokenizer-{number}.json" for number in range(tokenizers))


@dataclass(frozen=True, kw_only=True)
class CompareSplits:
    """The stage of a comparison: a split gives totals and counted pieces, which the fold adds up.

    Attributes:
        directory: the temporary directory of the job.
        run: the id of the run that wrote plan and splits there.
        max_failures: the bad records that the whole job may set aside.
        examples: the number of pieces to show; with 0, pieces are not counted.
        tokenizers: loaded once per process.
    """

    directory: str
    run: str
    max_failures: int
    examples: int
    tokenizers: OncePerProcess = field(default_factory=OncePerProcess)
    name: str = "compare"

    def subject(self) -> Subject:
        """Return the subject from the plan of this run.

        Raises:
            OutputError: the plan in the directory is another job's.
        """
        return from_jsonable(Subject, plan_of_run(self.directory, self.run)["settings"])

    def units(self) -> Iterator[Unit]:
        """Return the units, one per split."""
        for split in planned_splits(self.directory, self.run):
            yield Unit(
                name=f"split-{split.part:05d}",
                fingerprint=self.run,
                number=split.part,
                bytes=split.size,
                work=split,
            )

    def make(self, unit: Unit, *, slot: SlotWriter, stopped: Callable[[], bool]) -> Made:
        """Encode a split; write a file of counted pieces and one of totals by group."""
        comparer = self._comparer()
        subject, pieces = comparer.subject, PretokenCounter(comparer.cutter.counted)
        totals = ComparisonTotals()
        sources = {piece.file_index: piece for piece in unit.work.pieces}
        file = f"pieces-{unit.number:05d}"
        reading = self._reading(subject)
        with (
            replacing(join(self.directory, file)) as sink,
            SplitReader(unit.work, reading, stopped, slot=slot) as reader,
        ):
            spill = SpillWriter(sink)

            def drain() -> None:
                for shard, message in shard_messages(pieces.drain(SHARDS)):
                    spill.write(shard, message)

            for block in reader:
                set_aside = partial(reader.set_row_aside, block)
                lists, bad = use_good_rows((block.texts,), comparer.lists, set_aside)
                texts = without(block.texts, bad)
                column = without(
                    block.passthrough[0] if block.passthrough else block.file_indexes, bad
                )
                groups = _groups(column, subject, sources)
                totals.add(comparer.meter.measure(texts, lists, *groups))
                check_groups(subject.by, len(totals.numbers) - 1)
                if self.examples:
                    comparer.cutter.add(texts, pieces)
                    if pieces.nbytes > FLUSH_BYTES:
                        drain()
            dead = reader.finish()
            drain()
            spill.write(_TOTALS, json_bytes(totals.to_record()))
            spill.finish()
        whole = described(totals, WHOLE, comparer.tokenizers)
        tokens = sum(one["tokens"] for one in whole["tokenizers"])
        add_to_metrics(documents_compared=whole["documents"], tokens_compared=tokens)
        failures = 0 if dead is None else dead.records
        return Made(
            files=(StoredFile.of(file, sink.written()),),
            totals={"documents": whole["documents"], "failures": failures},
        )

    def fold(self, records: Sequence[Record]) -> None:
        """Add the totals up, find the pieces that differ most, and write the result.

        Raises:
            RecordError: over all splits, more bad records than the job may set aside.
            ConfigError: there are too many groups.
        """
        comparer = self._comparer()
        tokenizers = comparer.tokenizers
        totals = ComparisonTotals()
        paths = [join(self.directory, record.files[0].file) for record in records]
        for path in paths:
            (data,) = read_segment(path, _TOTALS)
            totals.add(ComparisonTotals.from_record(json.loads(data)))
        check_groups(comparer.subject.by, len(totals.numbers) - 1)
        found = [Difference() for _ in tokenizers[1:]]
        for shard in range(SHARDS):
            if messages := [one for path in paths for one in read_segment(path, shard)]:
                add_differences(found, added_up(messages), tokenizers, examples=self.examples)
        failures = sum(record.totals["failures"] for record in records)
        reading = self._reading(comparer.subject)
        documents = sum(record.totals["documents"] for record in records)
        result = comparison(
            *(comparer.subject, tokenizers, totals),
            differences=found if self.examples else (),
            failures=failures,
            bad_records=shown_failures(reading, failures, documents),
        )
        storage.write(join(self.directory, RESULT), json_bytes(result))

    def _reading(self, subject: Subject) -> Reading:
        return Reading(
            directory=self.directory, settings=subject.options, max_failures=self.max_failures
        )

    def _comparer(self) -> _Comparer:
        subject = self.subject()
        key = " ".join((self.run, *subject.tokenizers_sha256))
        return self.tokenizers.get(key, lambda: _Comparer(subject, self.directory))


class _Comparer:
    """Encoders of all compared tokenizers, one set per process."""

    def __init__(self, subject: Subject, directory: str) -> None:
        self.subject = subject
        names = tokenizer_names(len(subject.tokenizers_sha256))
        self.tokenizers: tuple[Tokenizer, ...] = tuple(
            sent_tokenizer(join(directory, name), sha256=sha256)
            for name, sha256 in zip(names, subject.tokenizers_sha256, strict=True)
        )
        self.cutter = PieceCutter(one.pretokenizer for one in self.tokenizers)
        self.meter = Meter(self.tokenizers)

    def lists(self, texts: pa.Array) -> list[pa.ListArray]:
        """Return the ids of some texts by each tokenizer.

        Raises:
            BadTextsError: a tokenizer cannot encode some texts; each reason names the tokenizer.
        """
        lists = []
        for file, tokenizer in zip(self.subject.tokenizers, self.tokenizers, strict=True):
            try:
                lists.append(tokenizer.encode_arrow(texts))
            except BadTextsError as error:  # noqa: PERF203 - which of them
                reasons = {row: f"{file.name}: {reason}" for row, reason in error.reasons.items()}
                raise BadTextsError(str(error), reasons=reasons) from None
        return lists


def _groups(
    column: pa.Array, subject: Subject, sources: Mapping[int, FileRange]
) -> tuple[list[str], np.ndarray[Any, Any]]:
    """Return the keys of the groups and each document's index into them; without groups, none."""
    if subject.by is None:
        return [], np.zeros(0, np.int64)
    coded = column.dictionary_encode(null_encoding="encode")
    if subject.by == BY_FILE and not subject.options.keep:
        names = [sources[index].name for index in coded.dictionary.to_pylist()]
    else:
        names = coded.dictionary.cast(pa.large_string()).to_pylist()
    keys = ["" if name is None else f"={name}" for name in names]
    return keys, coded.indices.to_numpy().astype(np.int64)
