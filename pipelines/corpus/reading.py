"""Read the documents of one split, as every job does.

Reading sets bad records aside, reports progress and metrics, and stops if another worker has
failed.
"""

from __future__ import annotations

import base64
import contextlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from bpe.counts.manifest import DeadLetters
from pipelines import storage
from pipelines.corpus.documents import BadRecord, ReadOptions, read_split
from pipelines.corpus.documents.stored import check_version
from pipelines.corpus.files import printable_name
from pipelines.corpus.groups import named_groups
from pipelines.errors import RecordError, StoppedError
from pipelines.metrics import add_to_metrics
from pipelines.output.names import DEAD_LETTERS
from pipelines.progress import many, printable
from pipelines.storage import join, replacing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa

    from pipelines.corpus.documents import Block
    from pipelines.corpus.splits import Split
    from pipelines.progress import SlotWriter
    from pipelines.storage import HashingFile


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Settings of reading the splits of a job; travels to the workers.

    Attributes:
        directory: the output directory, for dead letters.
        settings: how records become documents.
        max_failures: bad records the whole job may set aside.
    """

    directory: str
    settings: ReadOptions = field(default_factory=ReadOptions)
    max_failures: int = 0


@dataclass(kw_only=True)
class SplitReader(contextlib.ExitStack):
    """Iterates over the blocks of a split; a context manager that ends with `finish`.

    Args:
        split: the split to read.
        reading: the settings of reading.
        stopped: called between blocks; returns True if the job has stopped.
        slot: the slot for the progress of the unit; None if progress is not shown.

    Attributes:
        documents: number of documents so far.
        bad_records: number of bad records so far.
    """

    split: Split = field(kw_only=False)
    reading: Reading = field(kw_only=False)
    stopped: Callable[[], bool] = field(kw_only=False)
    slot: SlotWriter | None = None
    documents: int = 0
    bad_records: int = 0
    _input_bytes: int = 0
    _dead: HashingFile | None = None

    def __post_init__(self) -> None:
        super().__init__()

    def __iter__(self) -> Iterator[Block]:
        """Yield the blocks in order.

        Raises:
            RecordError: one bad record more than the job may set aside.
            InputError: a file cannot be read.
        """
        options = self.reading.settings
        for block in read_split(self.split, options):
            if self.stopped():
                raise StoppedError
            if options.groups:
                block = named_groups(block, options, self.split.pieces)  # noqa: PLW2901
            for bad in block.bad:
                self.set_aside(bad)
            self.documents += len(block)
            self._input_bytes += block.input_bytes
            add_to_metrics(documents_read=len(block), bytes_read=block.input_bytes)
            yield block
            if self.slot is not None:
                self.slot.update(documents=self.documents, bytes=self._input_bytes)

    def set_aside(self, bad: BadRecord) -> None:
        """Write a bad record to the split's dead letters.

        Raises:
            RecordError: the job may set no more bad records aside.
            ChangedFileError: the file is no longer the one that was planned.
        """
        self.bad_records += 1
        limit = self.reading.max_failures
        if self.bad_records > limit:
            for piece in self.split.pieces:
                if piece.path == bad.path:
                    check_version(piece)  # half a version is the reason, not the record
            raise RecordError(too_many(describe(bad), limit))
        if self._dead is None:
            path = join(self.reading.directory, self.split.dead_letters_file)
            self._dead = self.enter_context(replacing(path))
        self._dead.write(dead_letter(bad))
        add_to_metrics(dead_letters=1)

    def set_row_aside(self, block: Block, row: int, reason: str) -> None:
        """Set a document of a block aside; raises as `set_aside`."""
        self.set_aside(block.bad_row(row, reason, self.split.pieces))

    def finish(self) -> DeadLetters | None:
        """Close the file of dead letters and return its description; None if there is no file."""
        self.close()
        if self._dead is None:
            return None
        return DeadLetters(
            file=self.split.dead_letters_file,
            records=self.bad_records,
            **vars(self._dead.written()),
        )


def dead_letter(bad: BadRecord) -> bytes:
    """Return a bad record as a line of JSON, with ``raw_base64`` if it is not UTF-8 text."""
    line: dict[str, Any] = {
        "file": bad.name,
        "place": bad.place,
        "unit": bad.unit,
        "reason": bad.reason,
        "size": bad.size,
    }
    try:
        line["raw"] = bad.raw.decode("utf-8")
    except UnicodeDecodeError:
        line["raw_base64"] = base64.b64encode(bad.raw).decode("ascii")
    return json.dumps(line, ensure_ascii=False).encode("utf-8") + b"\n"


def text_bytes(texts: pa.Array) -> int:
    """Return the bytes of UTF-8 in a column of text."""
    return pc.sum(pc.binary_length(texts)).as_py() or 0


def describe(bad: BadRecord) -> str:
    """Describe a bad record and its position, in one line of valid Unicode."""
    path = printable(printable_name(bad.path))
    return f"{path}, record at {bad.unit} {bad.place}: {bad.reason}"


def too_many(first: str, limit: int) -> str:
    """Return the error message for one bad record too many; ``first`` describes a record."""
    if limit == 0:
        return f"{first}; bad records can be set aside with `max_failures` N"
    return f"{first}: this is more than the {limit} bad records that `max_failures` allows"


def check_failures(
    failures: int, reading: Reading, files: Sequence[str], *, documents: int
) -> None:
    """Check the number of bad records of the whole job.

    Args:
        failures: the number of bad records.
        reading: gives the number of bad records that are allowed.
        files: dead letters below the output directory; the error quotes the first record.
        documents: the number of documents.

    Raises:
        RecordError: there are too many bad records, or there are no documents but bad records.
    """
    allowed = failures <= reading.max_failures
    if not failures or (allowed and documents):
        return
    bad = many(failures, "bad record")
    if files:  # which may be gone in a watch
        line = json.loads(storage.read(join(reading.directory, files[0])).split(b"\n", 1)[0])
        bad += f", the first: {line['file']}, record at {line['unit']} {line['place']}: "
        bad += line["reason"]
    if not allowed:
        raise RecordError(too_many(bad, reading.max_failures))
    raise RecordError(
        f"no record is a document: {bad}; {join(reading.directory, DEAD_LETTERS)} has them all"
    )
