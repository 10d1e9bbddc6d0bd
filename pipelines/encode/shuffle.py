"""A shuffle of the documents of a corpus through files, in bounded memory.

Each document has a key of 64 random bits, made of the seed, the name of its file and its place
there. The shuffled corpus is all documents in the order of their keys, and parts cut the range of
keys into equal ranges. So the order depends on the seed and the corpus alone, not on splits, parts
or workers.

A split encodes its documents into one shuffle file (`pipelines.encode.spilled`), of which each part
is a destination. When all splits are done, a part reads its documents in all files and sorts them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bpe.counts.manifest import DeadLetters
from pipelines import storage
from pipelines.corpus.reading import SplitReader
from pipelines.corpus.splits import default_split_size
from pipelines.encode.encoder import SplitEncoder, document_seeds, file_seed
from pipelines.encode.parts import ShuffledSplit
from pipelines.encode.rows import ID, INPUT_IDS, Documents
from pipelines.encode.spilled import (
    FILE,
    KEY,
    KEY_COLUMNS,
    PLACE,
    RUN_BYTES,
    SpillWriter,
    entries_of,
    finished_header,
    in_range,
    range_of,
    remove_spilled,
)
from pipelines.errors import InputError, StoppedError
from pipelines.metrics import counter
from pipelines.output.names import MAX_PARTS, SHUFFLE, shuffle_file
from pipelines.storage import Written, join, replacing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import numpy.typing as npt

    from bpe import Tokenizer
    from pipelines.corpus.inputs import InputFile
    from pipelines.corpus.splits import Split
    from pipelines.encode.encoder import EncodedBlock
    from pipelines.encode.rows import RowLayout
    from pipelines.encode.steps import EncodeJob
    from pipelines.failures import Failures

PART_BYTES = 256 << 20
COMPRESSED = 4  # bytes of text in a byte of a compressed or Parquet file, to plan parts
_SLICE_IDS = 1 << 20  # rows are made of so many ids at a time,
_SLICE_ROWS = 1 << 12  # or of so many documents
BYTES_PER_TOKEN = 4  # likewise, of a mix
_TEXT_BYTES = "text_bytes"
_KEEP = "keep."  # before the names of columns that pass through: none is that of another


@dataclass(frozen=True, kw_only=True)
class _Header:
    """What a shuffle file is of: the fields are those of `ShuffledSplit`."""

    fingerprint: str
    documents: int
    failures: int
    dead_letters: DeadLetters | None


def planned_parts(
    files: Iterable[InputFile], split_size: int | None, *, tokens: int | None = None
) -> int:
    """How many parts a shuffled corpus has: one for each ``split_size`` bytes of text, about.

    A compressed file, which is one split, is divided among parts as well.

    Args:
        files: the corpus.
        split_size: bytes; None follows the corpus, as for splits.
        tokens: that a mix takes of it, about; None where it takes all, or nobody knows.
    """
    text = sum(
        file.size * (COMPRESSED if file.compression != "none" or file.format == "parquet" else 1)
        for file in files
    )
    if tokens is not None:
        text = min(text, BYTES_PER_TOKEN * tokens)
    return min(max(-(-text // (split_size or default_split_size(text))), 1), MAX_PARTS)


def shuffle_split(
    split: Split,
    job: EncodeJob,
    tokenizer: Tokenizer,
    failures: Failures,
    *,
    observe: Callable[[EncodedBlock], object] | None = None,
    run_bytes: int = RUN_BYTES,
) -> ShuffledSplit:
    """Read and encode one split, and write its shuffle file.

    Memory: ``run_bytes`` of documents, and a block; sorting them takes as much again.

    Args:
        split: what to read.
        job: how.
        tokenizer: of the job.
        failures: where the job ends.
        observe: sees each block that was encoded.
        run_bytes: of documents that are held before they are sorted and written.

    Raises:
        RecordError: one bad record more than the job may set aside.
        InputError, OutputError: a file cannot be read or written.
    """
    layout = job.layout(tokenizer)
    encoder = SplitEncoder(tokenizer, split, layout=layout, mix=job.mix)
    seed = job.rows.shuffle or 0
    seeds = {piece.file_index: file_seed(seed, f"shuffle {piece.name}") for piece in split.pieces}
    with (
        SplitReader(split, job.reading, failures) as reader,
        replacing(shuffle_path(job, split.part)) as sink,
    ):
        runs = SpillWriter(sink, shuffle_schema(layout), job.destinations, run_bytes=run_bytes)
        documents = 0
        for block in reader:
            encoded = encoder.encode(block, reader.set_aside)
            if observe is not None:
                observe(encoded)
            documents += len(encoded.texts)
            runs.add(*_keyed(encoded, seeds, job, runs.schema))
        letters = reader.finish()
        bad_records = reader.bad_records
        header = _Header(
            fingerprint=job.fingerprint(split),
            documents=documents,
            failures=bad_records,
            dead_letters=letters,
        )
        runs.finish(header)
    use = encoder.cache_use
    counter("cache_hits").inc(use.hits)
    counter("cache_misses").inc(use.misses)
    return ShuffledSplit(
        split=split, documents=documents, failures=bad_records, dead_letters=letters
    )


def _keyed(
    encoded: EncodedBlock, seeds: dict[int, int], job: EncodeJob, schema: pa.Schema
) -> tuple[pa.RecordBatch, npt.NDArray[np.int64]]:
    """The documents of a block with their keys, and the destination of each."""
    documents = encoded.documents
    keys = document_seeds(seeds, files=encoded.file_indexes, places=encoded.places)
    destination = range_of(keys.to_numpy(), job.filled)
    if encoded.held_out is not None:
        destination += job.filled * encoded.held_out.to_numpy(zero_copy_only=False)
    columns = [
        keys,
        encoded.file_indexes,
        encoded.places,
        pc.binary_length(encoded.texts).cast(pa.int64()),
        documents.ids,
        documents.input_ids,
        *documents.kept,
    ]
    arrays = [column.cast(field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.record_batch(arrays, schema=schema), destination


def shuffle_schema(layout: RowLayout) -> pa.Schema:
    """The columns of documents on their way to their part."""
    return pa.schema(
        [
            *KEY_COLUMNS,
            pa.field(_TEXT_BYTES, pa.int64()),
            pa.field(ID, pa.string()),
            pa.field(INPUT_IDS, pa.list_(pa.type_for_alias(layout.id_type))),
            *(field.with_name(_KEEP + field.name) for field in layout.kept),
        ]
    )


def shuffle_path(job: EncodeJob, number: int) -> str:
    """The shuffle file of the split of this number."""
    directory = job.shuffle_directory or job.directory
    return join(directory, shuffle_file(number, job.splits, job.shuffle_key))


def finished_split(split: Split, job: EncodeJob) -> ShuffledSplit | None:
    """A shuffle file that an earlier run finished, read in full; None where it must be made again.

    Args:
        split: that it is of.
        job: that makes it.
    """
    header = finished_header(shuffle_path(job, split.part), _Header, job.destinations)
    if header is None or header.fingerprint != job.fingerprint(split):
        return None
    if (dead := header.dead_letters) is not None:
        # The name is made here: what a file says is never used as a path.
        try:
            found = storage.digest(join(job.directory, split.dead_letters_file))
        except (InputError, OSError):
            return None
        if found != Written(bytes=dead.bytes, sha256=dead.sha256):
            return None
    return ShuffledSplit(
        split=split,
        documents=header.documents,
        failures=header.failures,
        dead_letters=header.dead_letters,
    )


def shuffled_documents(
    part: Split,
    job: EncodeJob,
    layout: RowLayout,
    *,
    stopped: Callable[[], bool] = lambda: False,
    memory: int = PART_BYTES,
) -> Iterator[tuple[Documents, int]]:
    """The documents of a part in the order of their keys, with the bytes of their texts.

    Memory: about ``memory``, twice while documents are sorted. A part with more reads its blobs
    once for each of several narrower ranges of keys.

    Args:
        part: a split without pieces.
        job: whose shuffle files there are.
        layout: of the rows.
        stopped: asked between files, whether nobody needs the result any more.
        memory: bytes of documents to hold.

    Raises:
        InputError: a shuffle file is missing or damaged.
        StoppedError: nobody needs the result any more.
    """
    schema = shuffle_schema(layout)
    destination = job.destination(part)
    size = 0
    blobs: list[tuple[str, npt.NDArray[Any]]] = []
    for number in range(job.splits):
        path = shuffle_path(job, number)
        if len(entries := entries_of(path, destination, job.destinations)):
            blobs.append((path, entries))
            size += int(entries["memory"].sum())
    ranges = max(-(-size // memory), 1)
    for number in range(ranges):
        tables = [schema.empty_table()]
        for path, entries in blobs:
            if stopped():
                raise StoppedError
            tables += in_range(path, entries, job.filled * ranges, part.part * ranges + number)
        yield from _slices(in_order(pa.concat_tables(tables)))


def in_order(documents: pa.Table) -> pa.Table:
    """Documents sorted by key; where two have one, by file and place."""
    columns = (documents[name].combine_chunks().to_numpy() for name in (PLACE, FILE, KEY))
    return documents.take(pa.array(np.lexsort(tuple(columns)))).combine_chunks()


def _slices(documents: pa.Table) -> Iterator[tuple[Documents, int]]:
    """Portions that depend on the documents alone."""
    lengths = pc.list_value_length(documents[INPUT_IDS]).to_numpy().astype(np.int64)
    portion = np.cumsum(lengths) // _SLICE_IDS + np.arange(len(lengths)) // _SLICE_ROWS
    ends = [*(np.flatnonzero(np.diff(portion)) + 1).tolist(), len(lengths)]
    begin = 0
    for end in ends:
        if end > begin:
            some = documents.slice(begin, end - begin).combine_chunks()
            _, _, _, sizes, ids, input_ids, *kept = (
                column.combine_chunks() for column in some.columns
            )
            found = Documents(ids=ids, kept=tuple(kept), input_ids=input_ids)
            yield found, pc.sum(sizes).as_py()
        begin = end


def remove_shuffle_files(directory: str, key: str = "") -> None:
    """Remove the shuffle files of a job below a directory, and their folder if empty.

    Args:
        directory: where they are, most often that of the output.
        key: of a verification; empty for the job that writes the parts.
    """
    remove_spilled(directory, SHUFFLE, key)
