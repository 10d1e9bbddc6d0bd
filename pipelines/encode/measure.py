"""How many tokens documents have, and so which of them a mix takes.

A split encodes its documents, and writes to a file (`pipelines.encode.spilled`) for each its hash,
its place and the number of its tokens; sums by ranges of hashes pass between steps. When all splits
are measured, the sums say in which range of a source the last document lies that the mix takes.
Only the documents of that range are read and sorted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bpe._codec import decode, encode
from pipelines import storage
from pipelines.corpus.mix import ChosenSource, Mix, Owners, asked_of
from pipelines.corpus.reading import SplitReader
from pipelines.encode.encoder import SplitEncoder
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
from pipelines.errors import InputError, JobError
from pipelines.option import percent
from pipelines.output.names import CHOSEN, MIX, json_bytes, measure_file, read_json_object
from pipelines.storage import join, replacing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from fractions import Fraction

    import numpy.typing as npt

    from bpe import Tokenizer
    from pipelines.corpus.splits import Split
    from pipelines.encode.encoder import EncodedBlock
    from pipelines.encode.steps import EncodeJob
    from pipelines.failures import Failures

BINS = 256  # ranges of hashes that each source has sums of
HELD_BYTES = 256 << 20
_TOKENS = "tokens"
_SCHEMA = pa.schema([*KEY_COLUMNS, pa.field(_TOKENS, pa.int64())])


@dataclass(frozen=True, kw_only=True)
class _Header:
    """What a file of measured documents is of: the fields are those of `MeasuredSplit`."""

    fingerprint: str
    bins: tuple[int, ...]
    documents: tuple[int, ...]
    tokens: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class MeasuredSplit:
    """A split whose documents are measured.

    Attributes:
        split: that was read.
        bins: ranges of hashes that it has documents of: `BINS` for each source, one after another.
        documents: in each of these.
        tokens: of these.
    """

    split: Split
    bins: tuple[int, ...]
    documents: tuple[int, ...]
    tokens: tuple[int, ...]


def measure_split(
    split: Split,
    job: EncodeJob,
    tokenizer: Tokenizer,
    failures: Failures,
    *,
    run_bytes: int = RUN_BYTES,
) -> MeasuredSplit:
    """Read and encode one split, and write how many tokens its documents have.

    Records that are no documents count, but are not set aside: that is done when the documents that
    are taken are encoded.

    Memory: ``run_bytes`` of numbers, and a block.

    Args:
        split: what to read.
        job: how; nothing is chosen yet.
        tokenizer: of the job.
        failures: where the job ends.
        run_bytes: that are held before they are sorted and written.

    Raises:
        RecordError: one bad record more than the job may set aside.
        InputError, OutputError: a file cannot be read or written.
    """
    encoder = SplitEncoder(tokenizer, split, layout=job.layout(tokenizer), measures=True)
    owners, destinations = Owners(job.sources), BINS * len(job.sources)
    documents, tokens = np.zeros(destinations, np.int64), np.zeros(destinations, np.int64)
    with (
        SplitReader(split, job.reading, failures, measures=True) as reader,
        replacing(_path(job, split)) as sink,
    ):
        spilled = SpillWriter(sink, _SCHEMA, destinations, run_bytes=run_bytes)
        for block in reader:
            measured, to = _measured(encoder.encode(block, lambda _: None), owners)
            spilled.add(measured, to)
            np.add.at(documents, to, 1)
            np.add.at(tokens, to, measured.column(_TOKENS).to_numpy())
        bins = np.flatnonzero(documents)
        result = MeasuredSplit(
            split=split,
            bins=tuple(bins.tolist()),
            documents=tuple(documents[bins].tolist()),
            tokens=tuple(tokens[bins].tolist()),
        )
        spilled.finish(
            _Header(
                fingerprint=job.measure_fingerprint(split),
                bins=result.bins,
                documents=result.documents,
                tokens=result.tokens,
            )
        )
    return result


def _measured(
    encoded: EncodedBlock, owners: Owners
) -> tuple[pa.RecordBatch, npt.NDArray[np.int64]]:
    """The documents of a block as they are written, and the destination of each."""
    if encoded.hashes is None:
        raise ValueError("nothing says the hashes of the documents")
    tokens = pc.list_value_length(encoded.documents.input_ids).cast(pa.int64())
    columns = [encoded.hashes, encoded.file_indexes, encoded.places, tokens]
    to = owners.of(encoded.file_indexes.to_numpy()) * BINS
    to += range_of(encoded.hashes.to_numpy(), BINS)
    return pa.record_batch(columns, schema=_SCHEMA), to


def _path(job: EncodeJob, split: Split) -> str:
    return join(job.directory, measure_file(split.part, split.parts))


def finished_measure(split: Split, job: EncodeJob) -> MeasuredSplit | None:
    """What an earlier run measured, read in full; None where it must be done again.

    Args:
        split: that it is of.
        job: that measures it.
    """
    header = finished_header(_path(job, split), _Header, BINS * len(job.sources))
    if header is None or header.fingerprint != job.measure_fingerprint(split):
        return None
    return MeasuredSplit(
        split=split, bins=header.bins, documents=header.documents, tokens=header.tokens
    )


def choose(
    measured: Sequence[MeasuredSplit], job: EncodeJob, *, held_bytes: int = HELD_BYTES
) -> Mix:
    """Which documents the mix takes.

    Args:
        measured: all splits, in any order.
        job: that measured them.
        held_bytes: of documents to hold at a time.

    Raises:
        InputError: a source has too few tokens, or a file of measured documents is damaged.
        JobError: the runner lost a split.
    """
    ordered = sorted(measured, key=lambda one: one.split.part)
    if not ordered or [one.split.part for one in ordered] != list(range(job.measured)):
        raise JobError(
            f"the runner returned {len(measured)} measured splits of {job.measured}: use another "
            "runner; what is there can be kept with `resume`"
        )
    shape = (len(job.sources), BINS)
    documents, tokens = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    for one in ordered:
        bins = np.array(one.bins, np.int64)
        documents.ravel()[bins] += np.array(one.documents, np.int64)
        tokens.ravel()[bins] += np.array(one.tokens, np.int64)
    shares = list(job.rows.shares.values())
    available = tokens.sum(axis=1).tolist()
    budget = _budget(job, shares, available)
    chosen = []
    for number, (source, share) in enumerate(zip(job.sources, shares, strict=True)):
        asked = asked_of(budget, share)
        is_whole = asked == available[number]  # also what has no tokens, whatever its hash
        sizes, enough = (tokens, asked) if not is_whole else (documents, documents[number].sum())
        bin_ = int(np.searchsorted(np.cumsum(sizes[number]), enough))
        destination = number * BINS + bin_
        paths = [_path(job, one.split) for one in ordered if destination in one.bins]
        enough -= int(sizes[number, :bin_].sum())
        last = _last(paths, bin_, number, job, enough, held_bytes, of_documents=is_whole)
        chosen.append(
            ChosenSource(
                name=source.name,
                inputs=source.inputs,
                share=str(share),
                asked=asked,
                tokens=int(tokens[number, :bin_].sum()) + last.tokens,
                documents=int(documents[number, :bin_].sum()) + last.documents,
                available_tokens=available[number],
                available_documents=int(documents[number].sum()),
                last_hash=f"{last.hash:016x}",
                last_file=last.file,
                last_place=last.place,
            )
        )
    return Mix(budget=budget, sources=tuple(chosen))


def _budget(job: EncodeJob, shares: Sequence[Fraction], available: Sequence[int]) -> int:
    """The tokens to take in all: those asked for, or as many as all sources allow.

    Raises:
        InputError: a source has too few.
    """
    names = [source.name for source in job.sources]
    most = [tokens / share for tokens, share in zip(available, shares, strict=True)]
    greatest = int(min(most))
    asked = job.rows.token_budget
    if asked is None and greatest:
        return greatest
    scarcest = most.index(min(most))
    name, share = names[scarcest], shares[scarcest]
    has = f"source {name} of the mix has {available[scarcest]:,} tokens"
    if asked is None or not greatest:
        raise InputError(f"{has}, too few for its share: give it more `input`, or leave it out")
    if asked > greatest:
        raise InputError(
            f"{has}, and its share of `token_budget` {asked:,} ({percent(share)}) is "
            f"{asked_of(asked, share):,}: use {greatest:,} or less, a smaller share, or give it "
            "more `input` (with another budget or other shares, `resume` keeps what was counted)"
        )
    return asked


@dataclass(frozen=True)
class _Last:
    """The last document that is taken, and how many of its range of hashes are."""

    hash: int
    file: int
    place: int
    tokens: int
    documents: int


def _last(
    paths: Sequence[str],
    bin_: int,
    source: int,
    job: EncodeJob,
    asked: int,
    held_bytes: int,
    *,
    of_documents: bool,
) -> _Last:
    """The document with which a range of hashes has as many tokens, or documents, as asked for.

    Memory: ``held_bytes``. Of documents with one hash, of which there may be any number, only sums
    are held.

    Args:
        paths: of the splits that have documents there, in the order of the corpus.
        bin_: the number of the range.
        source: the number of the source.
        job: that measured the splits.
        asked: how many, from 1.
        held_bytes: to hold at a time.
        of_documents: whether documents are asked for, not tokens.
    """
    destination, destinations = source * BINS + bin_, BINS * len(job.sources)
    blobs = [(path, entries_of(path, destination, destinations)) for path in paths]
    ranges = max(-(-sum(int(entries["memory"].sum()) for _, entries in blobs) // held_bytes), 1)
    tokens = documents = 0  # before those at hand

    def tables(number: int) -> Iterator[tuple[npt.NDArray[Any], ...]]:
        for path, entries in blobs:
            for table in in_range(path, entries, BINS * ranges, bin_ * ranges + number):
                yield tuple(table[name].to_numpy() for name in (KEY, FILE, PLACE, _TOKENS))

    for number in range(ranges):
        hashes, sums, counts = _by_hash((keys, sizes) for keys, _, _, sizes in tables(number))
        ends = documents + np.cumsum(counts) if of_documents else tokens + np.cumsum(sums)
        if not len(ends) or ends[-1] < asked:
            tokens, documents = tokens + int(sums.sum()), documents + int(counts.sum())
            continue
        at = int(np.searchsorted(ends, asked))
        tokens, documents = tokens + int(sums[:at].sum()), documents + int(counts[:at].sum())
        # Those of one hash come in the order of the corpus, as splits and documents in them do.
        for keys, files, places, sizes in tables(number):
            equal = keys == hashes[at]
            of_hash = np.cumsum(sizes[equal])
            ends = documents + 1 + np.arange(len(of_hash)) if of_documents else tokens + of_hash
            if not len(ends) or ends[-1] < asked:
                tokens, documents = tokens + int(sizes[equal].sum()), documents + len(ends)
                continue
            last = int(np.searchsorted(ends, asked))
            return _Last(
                hash=int(hashes[at]),
                file=int(files[equal][last]),
                place=int(places[equal][last]),
                tokens=tokens + int(of_hash[last]),
                documents=documents + last + 1,
            )
    raise InputError(
        f"{join(job.directory, MIX)}: the files of measured documents contradict each other: "
        "run the job again with `overwrite`"
    )


def _by_hash(
    tables: Iterable[tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]],
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The distinct hashes of documents in ascending order, their tokens and their number.

    Args:
        tables: hashes of documents, and their tokens.
    """
    keys, tokens, counts = np.zeros(0, np.uint64), np.zeros(0, np.int64), np.zeros(0, np.int64)
    held: list[tuple[npt.NDArray[Any], ...]] = []
    size = 0
    for hashes, sizes in tables:
        held.append((hashes, sizes, np.ones(len(hashes), np.int64)))
        size += len(hashes)
        if size > max(len(keys), 1 << 16):
            keys, tokens, counts = _summed([(keys, tokens, counts), *held])
            held, size = [], 0
    return _summed([(keys, tokens, counts), *held])


def _summed(
    held: Sequence[tuple[npt.NDArray[Any], ...]],
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    keys, tokens, counts = (np.concatenate(column) for column in zip(*held, strict=True))
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    firsts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)])
    if not len(firsts):
        return keys, tokens, counts
    return (
        ordered[firsts],
        np.add.reduceat(tokens[order], firsts),
        np.add.reduceat(counts[order], firsts),
    )


def write_chosen(mix: Mix, job: EncodeJob) -> None:
    """Store which documents a mix takes, for the steps that follow.

    Raises:
        OutputError: it cannot be written.
    """
    data = json_bytes({"run": job.run, "mix": encode(mix)})
    storage.write(join(job.directory, CHOSEN), data)


def read_chosen(directory: str, run: str) -> Mix | None:
    """Which documents the mix of a run takes; None where that is not chosen yet."""
    value = read_json_object(join(directory, CHOSEN))
    if value is None or value.get("run") != run:
        return None
    return decode(Mix, value["mix"])


def remove_measures(directory: str) -> None:
    """Remove what was measured, and what was chosen, below an output directory."""
    storage.remove(join(directory, CHOSEN))
    remove_spilled(directory, MIX)
