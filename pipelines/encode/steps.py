"""Encode documents without Beam; the steps of `pipelines.encode.job` call these functions."""

from __future__ import annotations

import hashlib
import sys
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bpe._codec import to_jsonable
from bpe.errors import BadTextsError
from bpe.files import fingerprint
from bpe.splitmix import numbers_at
from bpe.tokenizer import CacheUse
from pipelines.corpus.documents.block import use_good_rows
from pipelines.corpus.documents.types import type_text
from pipelines.corpus.files import check_columns
from pipelines.corpus.keys import document_keys, seed64
from pipelines.corpus.reading import Reading, SplitReader, text_bytes
from pipelines.encode.manifest import (
    EncodedHeader,
    EncodedManifest,
    Part,
    Source,
    TokenizerFile,
    Totals,
    ranges_of,
)
from pipelines.encode.rows import NOTHING, Sums, row_schema, rows_of, with_ends
from pipelines.encode.tokens import arrow_encoder, end_ids, id_type, unknown_id
from pipelines.metrics import add_to_metrics
from pipelines.output.names import TOKENIZER, Plan
from pipelines.parquet_writer import RowWriter
from pipelines.readable import readable
from pipelines.settings import MAX_ROW_TOKENS
from pipelines.stage.record import StoredFile
from pipelines.stage.stage import Made
from pipelines.storage import join, replacing
from pipelines.tokenizer_files import sent_tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from bpe import Tokenizer
    from bpe.counts.manifest import DeadLetters
    from pipelines.corpus.documents import Block
    from pipelines.corpus.splits import Split
    from pipelines.encode.drift import Gauge
    from pipelines.progress import SlotWriter
    from pipelines.settings import EncodeSettings

# The version of a part and of its record, in its fingerprint. Raise it when the same settings make
# others than before: `--resume` writes such parts again.
LAYOUT = 8


@dataclass(frozen=True, kw_only=True)
class EncodeJob(EncodedHeader, Reading):
    """Everything a worker must know to encode a split; small, and picklable.

    Attributes:
        directory: the directory of the output, which has the tokenizer.
        parts: the number of parts.
        run: the id of the job's run; empty for a job that only makes parts again.
        generation: the number of jobs that have appended to the directory before.
    """

    parts: int
    run: str = ""
    generation: int = 0

    @classmethod
    def of(cls, manifest: EncodedManifest, directory: str) -> EncodeJob:
        """Return the job that made an encoded corpus, to make its parts again."""
        parts = len(manifest.parts)
        return cls(**manifest.head, directory=directory, parts=parts, max_failures=sys.maxsize)

    @property
    def plan(self) -> Plan:
        """Return the plan of the job, but for its inputs."""
        settings = {**self.plan_settings, "vocab_size": self.tokenizer.vocab_size}
        return Plan(kind="encoded", parts=(self.parts,), settings=settings, run=self.run)

    @property
    def plan_settings(self) -> dict[str, Any]:
        """Return all settings that decide the bytes of a part, as JSON values, except its split."""
        return {
            "layout": LAYOUT,
            "schema": [f"{one.name}: {type_text(one.type)}" for one in self.schema],
            "tokenizer": self.tokenizer.sha256,
            "id_type": self.id_type,
            **self.settings.to_json(),
            **self.rows.to_json(),
        }

    @property
    def schema(self) -> pa.Schema:
        """Return the schema of the rows of all parts."""
        passthrough = (column.field for column in self.settings.keep)
        return row_schema(self.id_type, self.rows.parquet_encoding, passthrough)

    def manifest(self, parts: tuple[Part, ...]) -> EncodedManifest:
        """Return the manifest of parts, which are in order."""
        begun = (one for part in parts for one in part.inputs if one.start == 0)
        return EncodedManifest(
            **self.head,
            totals=Totals.of_parts(parts),
            inputs=tuple(
                Source(
                    name=one.name,
                    size=one.file_size,
                    format=one.format,
                    compression=one.compression,
                    source=one.source,
                )
                for one in begun
            ),
            parts=parts,
            generation=self.generation,
        )

    def fingerprint(self, split: Split) -> str:
        """Return the SHA-256 (hex) of all values that decide the bytes of the part of a split."""
        return fingerprint([split.part, split.parts, ranges_of(split), self.plan_settings])


@dataclass(frozen=True, kw_only=True)
class EncodedBlock:
    """The documents of a block with their token ids, in columns of equal length.

    Attributes:
        texts: the texts of the documents.
        plain: the token ids of each text (list of the job's type of ids).
        rows: the rows of the documents, with the ids put at the ends of each text.
    """

    texts: pa.Array
    plain: pa.ListArray
    rows: pa.RecordBatch


class SplitEncoder:
    """An encoder of the blocks of one split.

    Args:
        tokenizer: the tokenizer.
        split: the split of the blocks.
        job: the job of the split.

    Attributes:
        cache_use: hits and misses of the tokenizer's cache of words so far.
    """

    def __init__(self, tokenizer: Tokenizer, split: Split, job: EncodeJob) -> None:
        self.cache_use = CacheUse()
        self._schema, self._dropout = job.schema, job.rows.dropout
        self._ends = end_ids(tokenizer, job.rows)
        self._encode_arrow = arrow_encoder(tokenizer, job.rows, job.id_type)
        self._seeds = {
            piece.file_index: file_seed(job.rows.dropout_seed, piece.name) for piece in split.pieces
        }

    def encode(self, block: Block, set_aside: Callable[[int, str], object]) -> EncodedBlock:
        """Encode the documents of a block.

        Args:
            block: the documents.
            set_aside: called with the row and the reason for each document that is too long for a
                row, or cannot be encoded.
        """
        own = (block.texts, block.places, block.file_indexes, block.ids, document_keys(block))
        columns: tuple[pa.Array, ...] = (*own, *block.passthrough)
        plain, good = use_good_rows(columns, self._encode, set_aside)
        texts, _, _, ids, keys, *passthrough = good
        input_ids = with_ends(plain, **self._ends)
        rows = rows_of(
            self._schema, ids=ids, passthrough=passthrough, keys=keys, input_ids=input_ids
        )
        return EncodedBlock(texts=texts, plain=plain, rows=rows)

    def _encode(
        self, texts: pa.Array, places: pa.Int64Array, files: pa.Int32Array, *_: pa.Array
    ) -> pa.ListArray:
        seeds = document_seeds(self._seeds, files=files, places=places) if self._dropout else None
        ids = self._encode_arrow(texts, seeds=seeds, cache_use=self.cache_use)
        ends = sum(end is not None for end in self._ends.values())
        lengths = pc.add(pc.list_value_length(ids), ends)
        if too_long := pc.indices_nonzero(pc.greater(lengths, MAX_ROW_TOKENS)).to_pylist():
            reasons = {
                row: f"its {lengths[row]} tokens do not fit a row of Parquet (at most "
                f"{MAX_ROW_TOKENS}): divide the document"
                for row in too_long
            }
            raise BadTextsError("too many tokens", reasons=reasons)
        return ids


def file_seed(seed: int, name: str) -> int:
    """Return the number from which the seeds of the documents of a file are derived."""
    return int(seed64(f"{seed} {name}"))


def document_seeds(
    seeds: Mapping[int, int], *, files: pa.Int32Array, places: pa.Int64Array
) -> pa.UInt64Array:
    """Return the seed of each document: the SplitMix64 number of its file's seed and its place.

    A seed of a document depends on the setting of the seed, the name of the file and the place in
    the file alone: for place 5, the seed is
    ``bpe.dropout.row_seeds(seed of the file, 1, first=5)``.

    Args:
        seeds: the `file_seed` of each file, by the number of the file.
        files: the number of the file of each document.
        places: the place in its file at which each document begins.
    """
    numbers, of = np.unique(files.to_numpy(), return_inverse=True)
    start = np.array([seeds[int(number)] for number in numbers], np.uint64)[of]
    return pa.array(numbers_at(places.to_numpy(), start=start))


def encode_split(
    split: Split,
    job: EncodeJob,
    tokenizer: Tokenizer,
    stopped: Callable[[], bool],
    *,
    observe: Callable[[EncodedBlock], object] | None = None,
    slot: SlotWriter | None = None,
    again: bool = False,
) -> Made:
    """Read and encode one split, and write its part.

    Args:
        split: the split to read.
        job: the job of the split.
        tokenizer: the tokenizer of the job.
        stopped: called between blocks; returns whether to stop early.
        observe: called with each encoded block.
        slot: receives the progress; None for the slot of the split.
        again: as for `write_part`.

    Raises:
        RecordError: the split has more bad records than the job may set aside.
        InputError, OutputError: a file cannot be read or written.
    """
    encoder = SplitEncoder(tokenizer, split, job)
    with SplitReader(split, job, stopped, slot=slot) as reader:

        def rows() -> Iterator[tuple[pa.RecordBatch, int]]:
            for block in reader:
                encoded = encoder.encode(block, partial(reader.set_row_aside, block))
                if observe is not None:
                    observe(encoded)
                yield encoded.rows, text_bytes(encoded.texts)

        made = write_part(split, job, tokenizer, rows(), finish=reader.finish, again=again)
    add_to_metrics(cache_hits=encoder.cache_use.hits, cache_misses=encoder.cache_use.misses)
    return made


def encode_arrived(
    split: Split,
    job: EncodeJob,
    tokenizer: Tokenizer,
    stopped: Callable[[], bool],
    *,
    gauge: Gauge,
    slot: SlotWriter | None = None,
) -> Made:
    """Encode the readable files of a split.

    The totals list the files set aside, and the measured fit of the tokenizer. Arguments and
    errors are those of `encode_split`; ``gauge`` measures the fit.
    """

    def made(some: Split) -> Made:
        for column in job.settings.keep:
            check_columns(some.pieces, f"`keep` {column.name}")
        measure = gauge.measure()
        part = encode_split(
            *(some, job, tokenizer, stopped),
            observe=lambda block: measure.add(block.texts, block.plain.flatten().to_numpy()),
            slot=slot,
        )
        return replace(part, totals={**part.totals, "measured": to_jsonable(measure.finish())})

    part, aside = readable(split, made, directory=job.directory, stopped=stopped)
    return replace(part, totals={**part.totals, "set_aside": to_jsonable(aside)})


def write_part(
    split: Split,
    job: EncodeJob,
    tokenizer: Tokenizer,
    rows: Iterable[tuple[pa.RecordBatch, int]],
    *,
    finish: Callable[[], DeadLetters | None] = lambda: None,
    again: bool = False,
) -> Made:
    """Write the part of a split; the result has the totals that `Part.of_unit` reads.

    Args:
        split: the split of the part.
        job: the job that makes the part.
        tokenizer: the tokenizer of the job.
        rows: all rows, in order, in batches, each with the bytes of its texts.
        finish: called after the last rows; returns the file of the bad records.
        again: True if the part is only compared: not durable, and not in Beam's metrics.

    Raises:
        OutputError: the file cannot be written; also the errors of ``rows``.
    """
    sums, unknown = NOTHING, unknown_id(tokenizer)
    path, encoding = join(job.directory, split.file), job.rows.parquet_encoding
    with (
        replacing(path, durable=not again) as sink,
        RowWriter(sink, job.schema, encoding=encoding) as writer,
    ):
        for batch, size in rows:
            sums += Sums.of(batch, text_bytes=size, unknown=unknown)
            writer.add(batch)
        dead = finish()
        writer.close()
    files = [StoredFile(file=split.file, **vars(sink.written()))]
    if dead is not None:
        files.append(StoredFile(file=dead.file, bytes=dead.bytes, sha256=dead.sha256))
    if not again:
        add_to_metrics(
            documents_encoded=sums.documents,
            text_bytes_encoded=sums.text_bytes,
            tokens_written=sums.tokens,
            unknown_tokens_written=sums.unknown,
            parquet_bytes_written=files[0].bytes,
            parts_written=1,
        )
    return Made(
        files=tuple(files),
        totals={
            **vars(sums),
            "fingerprint": job.fingerprint(split),
            "inputs": ranges_of(split),
            "dead_letters": to_jsonable(dead),
        },
    )


def encode_job(
    tokenizer: Tokenizer,
    data: bytes,
    *,
    encoding: EncodeSettings,
    **more: Any,
) -> EncodeJob:
    """Return the job with these settings.

    Args:
        tokenizer: the tokenizer.
        data: the ``tokenizer.json`` of the tokenizer.
        encoding: the settings of the rows.
        **more: the other fields of `EncodeJob`.

    Raises:
        ConfigError: the requested type of ids does not hold the greatest id.
    """
    return EncodeJob(
        tokenizer=TokenizerFile(
            sha256=hashlib.sha256(data).hexdigest(), vocab_size=tokenizer.max_id + 1
        ),
        id_type=id_type(tokenizer, encoding),
        rows=encoding.rows,
        **more,
    )


def tokenizer_of(job: EncodeJob) -> Tokenizer:
    """Load the job's tokenizer, in a worker.

    Raises:
        InputError: the tokenizer cannot be read, or was replaced by another.
    """
    return sent_tokenizer(join(job.directory, TOKENIZER), sha256=job.tokenizer.sha256)
