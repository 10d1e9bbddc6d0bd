"""The job of `bpe compare`: its plan, its only stage, and the function of the command."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bpe._codec import from_jsonable, to_jsonable
from bpe.counting import PretokenCounter
from bpe.errors import BadTextsError
from pipelines import storage
from pipelines.compare.pieces import Difference, PieceCutter, add_differences
from pipelines.compare.result import EXAMPLES, comparison, read_comparison
from pipelines.compare.tokenizers import ComparedTokenizer, load
from pipelines.compare.totals import Meter, add_up, sums_of, totals_schema
from pipelines.corpus.documents import ReadOptions
from pipelines.corpus.documents.block import use_good_rows
from pipelines.corpus.documents.types import parse_type
from pipelines.corpus.reading import Reading, SplitReader, check_failures
from pipelines.count.steps import FLUSH_BYTES, added_up, shard_messages
from pipelines.elements import OncePerProcess
from pipelines.encode.passthrough import find_passthrough
from pipelines.errors import ConfigError, InputError
from pipelines.failures import job_errors
from pipelines.metrics import add_to_metrics
from pipelines.output.directory import plan_of_run
from pipelines.output.names import Plan, dead_letters_in, json_bytes
from pipelines.planned import CorpusRequest, Planned, deflated, planned_splits, run_once
from pipelines.progress import UNSEEN
from pipelines.settings import SHARDS, OutputSettings
from pipelines.spill import SpillWriter, read_segment
from pipelines.stage.job import are_here, temporary_work
from pipelines.stage.record import StoredFile
from pipelines.stage.stage import Made, Unit
from pipelines.storage import join, replacing
from pipelines.tokenizer_files import sent_tokenizer, tokenizer_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from bpe import Tokenizer
    from pipelines.corpus.documents import Block, PassthroughColumn
    from pipelines.corpus.files import InputFile
    from pipelines.planned import Done
    from pipelines.progress import Progress, SlotWriter
    from pipelines.settings import Execution, InputSettings
    from pipelines.stage.record import Record
    from pipelines.stage.stage import Stage

RESULT = "comparison.json"
BY_FILE = "file"
MAX_GROUPS = 100_000
_TOTALS = SHARDS  # the segment of the totals by group, after those of counted pieces
_SHOWN_FAILURES = 10


@dataclass(frozen=True, kw_only=True)
class CompareRequest(CorpusRequest):
    """A comparison, as the Beam graph carries it; and its stage, whose units are the splits.

    A split gives totals and counted pieces, which the fold adds up.

    Attributes:
        tokenizers: two or more; the graph carries them, since workers may not see their files.
        by: ``file``, or a field or column whose values are groups.
        examples: the number of pieces to show; with 0, pieces are not counted.
        comparers: the loaded tokenizers, once in each process.
    """

    tokenizers: tuple[ComparedTokenizer, ...]
    by: str | None = None
    examples: int = EXAMPLES
    comparers: OncePerProcess = field(default_factory=OncePerProcess)
    name = "compare"
    last_file = RESULT

    @classmethod
    def of(
        cls,
        *,
        inputs: InputSettings,
        tokenizers: Sequence[ComparedTokenizer],
        directory: str,
        **more: Any,
    ) -> CompareRequest:
        """Make a request with loaded tokenizers.

        Raises:
            InputError: a tokenizer cannot be read.
            ConfigError: a tokenizer's pre-tokenizer is not known.
        """
        texts = [tokenizer_json(load(file), file.path).encode() for file in tokenizers]
        return cls(
            inputs=inputs,
            output=OutputSettings(directory=directory),
            tokenizers=tuple(tokenizers),
            sent=deflated({f"tokenizer-{number}.json": text for number, text in enumerate(texts)}),
            **more,
        )

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Return the only stage: the comparison of each split."""
        return (self,)

    def plan(self) -> Planned:
        """Find the inputs and plan the job; nothing is written.

        Raises:
            InputError: there are no inputs.
            ConfigError: a setting is wrong.
        """
        found = self.find()
        splits, column = self.split(found), _group_column(found.files, self.by)
        files = self.worker_files().items()
        settings = {
            "tokenizers": {name: hashlib.sha256(text).hexdigest() for name, text in files},
            "options": to_jsonable(ReadOptions.of(self.inputs, keep=column)),
            "by": column[0].name if column else self.by,
            "inputs": [{"name": file.name, "size": file.size} for file in found.files],
        }
        plan = Plan(kind="comparison", parts=(len(splits),), settings=settings)
        return self.planned(found, splits, plan)

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
        comparer = self.comparers.get(self.run, lambda: _Comparer(self))
        pieces = PretokenCounter(comparer.cutter.counted)
        totals = totals_schema(len(self.tokenizers)).empty_table()
        used = [np.zeros(len(one.tokens), bool) for one in comparer.tokenizers]
        names = {piece.file_index: piece.name for piece in unit.work.pieces}
        file = f"pieces-{unit.number:05d}"
        with (
            replacing(join(self.directory, file)) as sink,
            SplitReader(unit.work, comparer.reading, stopped, slot=slot) as reader,
        ):
            spill = SpillWriter(sink)

            def drain() -> None:
                for shard, message in shard_messages(pieces.drain(SHARDS)):
                    spill.write(shard, message)

            for block in reader:
                set_aside = partial(reader.set_row_aside, block)
                columns = (block.texts, comparer.groups(block, names))
                lists, (texts, groups) = use_good_rows(columns, comparer.lists, set_aside)
                totals = add_up((totals, comparer.meter.measure(texts, lists, groups)))
                comparer.check_groups(totals)
                for marks, ids in zip(used, lists, strict=True):
                    marks[pc.list_flatten(ids).to_numpy()] = True
                if self.examples:
                    comparer.cutter.add(texts, pieces)
                    if pieces.nbytes > FLUSH_BYTES:
                        drain()
            reader.finish()
            drain()
            bits = [np.packbits(marks).tobytes().hex() for marks in used]
            spill.write(_TOTALS, json_bytes({"totals": totals.to_pydict(), "used": bits}))
            spill.finish()
        sums = sums_of(totals)
        tokens = sum(sums[f"{number}.tokens"] for number in range(len(self.tokenizers)))
        add_to_metrics(documents_compared=sums["documents"], tokens_compared=tokens)
        return Made(
            files=(StoredFile(file=file, **vars(sink.written())),),
            totals={"documents": sums["documents"], "failures": reader.bad_records},
        )

    def fold(self, records: Sequence[Record]) -> None:
        """Add the totals up, find the pieces that differ most, and write the result.

        Raises:
            RecordError: over all splits, more bad records than the job may set aside.
            ConfigError: there are too many groups.
        """
        comparer = self.comparers.get(self.run, lambda: _Comparer(self))
        schema = totals_schema(len(self.tokenizers))
        totals, used = schema.empty_table(), [0 for _ in self.tokenizers]
        paths = [join(self.directory, record.files[0].file) for record in records]
        for path in paths:
            (data,) = read_segment(path, _TOTALS)
            of_split = json.loads(data)
            totals = add_up((totals, pa.table(of_split["totals"], schema)))
            used = [one | int(bits, 16) for one, bits in zip(used, of_split["used"], strict=True)]
        comparer.check_groups(totals)
        found = [Difference() for _ in self.tokenizers[1:]]
        for shard in range(SHARDS):
            if messages := [one for path in paths for one in read_segment(path, shard)]:
                counts = added_up(messages)
                add_differences(found, counts, comparer.tokenizers, examples=self.examples)
        failures = sum(record.totals["failures"] for record in records)
        documents = sum(record.totals["documents"] for record in records)
        result = comparison(
            self.tokenizers,
            comparer.tokenizers,
            inputs=comparer.inputs,
            by=comparer.by,
            totals=totals,
            used=[one.bit_count() for one in used],
            differences=found if self.examples else (),
            failures=failures,
            bad_records=_shown_failures(comparer.reading, failures, documents),
        )
        storage.write(join(self.directory, RESULT), json_bytes(result))

    def finish(self) -> str:
        """Return the path of the result in the directory of the job."""
        return join(self.directory, RESULT)

    def summarize(self, planned: Planned, done: Done | None) -> dict[str, Any]:  # noqa: ARG002
        """Return the result as JSON values."""
        return read_comparison(self.finish())


class _Comparer:
    """The settings of a planned comparison, and its tokenizers, loaded."""

    def __init__(self, request: CompareRequest) -> None:
        directory = request.directory
        settings = plan_of_run(directory, request.run).settings
        self.by: str | None = settings["by"]
        self.inputs: list[dict[str, Any]] = settings["inputs"]
        self.reading = Reading(
            directory=directory,
            settings=from_jsonable(ReadOptions, settings["options"]),
            max_failures=request.inputs.max_failures,
        )
        self.tokenizers: list[Tokenizer] = [
            sent_tokenizer(join(directory, name), sha256=sha256)
            for name, sha256 in settings["tokenizers"].items()
        ]
        self._names = [file.name for file in request.tokenizers]
        self.cutter = PieceCutter(one.pretokenizer for one in self.tokenizers)
        self.meter = Meter(self.tokenizers)

    def lists(self, texts: pa.Array, *_: pa.Array) -> list[pa.ListArray]:
        """Return the ids of some texts by each tokenizer.

        Raises:
            BadTextsError: a tokenizer cannot encode some texts; each reason names the tokenizer.
        """
        lists = []
        for name, tokenizer in zip(self._names, self.tokenizers, strict=True):
            try:
                lists.append(tokenizer.encode_arrow(texts))
            except BadTextsError as error:  # noqa: PERF203 - which of them
                reasons = {row: f"{name}: {reason}" for row, reason in error.reasons.items()}
                raise BadTextsError(str(error), reasons=reasons) from None
        return lists

    def groups(self, block: Block, files: Mapping[int, str]) -> pa.Array:
        """Return the group of each document, in words; null without one, or without groups."""
        if self.by is None:
            return pa.nulls(len(block), pa.large_string())
        column = (block.passthrough or (block.file_indexes,))[0].dictionary_encode()
        names = column.dictionary.cast(pa.large_string())
        if not block.passthrough:
            names = pa.array(map(files.get, column.dictionary.to_pylist()), names.type)
        return names.take(column.indices)

    def check_groups(self, totals: pa.Table) -> None:
        """Check the number of groups.

        Raises:
            ConfigError: the column has too many values.
        """
        if len(totals) > MAX_GROUPS:
            raise ConfigError(
                f"`by` {self.by}: more than {MAX_GROUPS:,} values: name a column with fewer, such "
                "as the language"
            )


def _shown_failures(reading: Reading, failures: int, documents: int) -> list[dict[str, Any]]:
    """Return place and reason of the first bad records.

    Raises:
        RecordError: there are more than ``max_failures``.
    """
    if not failures:
        return []
    files = dead_letters_in(reading.directory)
    check_failures(failures, reading, files, documents=documents)
    paths = (join(reading.directory, file) for file in files)
    letters = (json.loads(line) for path in paths for line in storage.read(path).splitlines())
    names = ("file", "unit", "place", "reason")
    return [{name: one[name] for name in names} for one in islice(letters, _SHOWN_FAILURES)]


def _group_column(files: Sequence[InputFile], by: str | None) -> tuple[PassthroughColumn, ...]:
    """Return the column whose values are the groups; empty for groups by file and for none."""
    if by is None or by == BY_FILE:
        return ()
    if by == "id":
        raise ConfigError("`by` id: each document has its own: name a column with few values")
    try:
        columns = find_passthrough(files, (by,))
    except (ConfigError, InputError) as error:
        raise type(error)(str(error).replace("`keep`", "`by`")) from error
    kind = parse_type(columns[0].type)
    if pa.types.is_nested(kind) or pa.types.is_binary(kind):
        raise ConfigError(f"`by` {by}: its values are {kind}: name a column of text or numbers")
    return columns


def compare(
    *,
    inputs: InputSettings,
    tokenizers: Sequence[ComparedTokenizer],
    execution: Execution,
    by: str | None = None,
    examples: int = EXAMPLES,
    output: str | None = None,
    progress: Progress = UNSEEN,
) -> dict[str, Any]:
    """Compare the token ids of several tokenizers on a corpus; return the result as JSON values.

    Args:
        inputs: the corpus.
        tokenizers: two or more.
        execution: the runner and its options.
        by: ``file``, or a field or column whose values are groups.
        examples: the number of pieces to show on which two tokenizers differ most; with 0, pieces
            are not counted.
        output: a file to write the result to. Workers on other machines need it, because they
            keep their temporary files in its folder.
        progress: is called with the work done so far.

    Raises:
        JobError: something is wrong; the class says what.
    """
    with job_errors():
        here = are_here(execution)
        if not here and output is None:
            raise ConfigError(
                f"`runner` {execution.runner}: its workers write the result to a file: give "
                "`output` FILE.json on a filesystem that they share with this machine"
            )
        place = "" if here or output is None else storage.located(output).rpartition("/")[0]
        with temporary_work("compare", place) as directory:
            request = CompareRequest.of(
                inputs=inputs, tokenizers=tokenizers, directory=directory, by=by, examples=examples
            )
            result: dict[str, Any] = run_once(request, execution=execution, progress=progress)
        if output is not None:
            storage.write(storage.located(output), json_bytes(result))
    return result
