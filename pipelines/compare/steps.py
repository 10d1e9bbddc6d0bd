"""Comparing tokenizers over splits, without Beam: the steps of `pipelines.compare.transform`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from bpe.errors import UnknownCharacterError
from pipelines.compare.measures import GroupSums, GroupTotals, Measures, Meter, measure_block
from pipelines.compare.pieces import Difference, find_differences
from pipelines.compare.plan import BY_FILE
from pipelines.corpus.documents import BadRecord
from pipelines.corpus.documents.block import without
from pipelines.corpus.reading import SplitReader
from pipelines.count.steps import drained
from pipelines.errors import ConfigError
from pipelines.metrics import counter

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from bpe import Tokenizer
    from bpe.counter import PretokenCounter
    from pipelines.compare.plan import CompareJob
    from pipelines.corpus.documents import Block
    from pipelines.corpus.splits import FileRange, Split
    from pipelines.failures import Failures

MAX_GROUPS = 100_000
TOTAL = "*"  # the key of the whole corpus; those of groups are empty or begin with =


@dataclass(frozen=True, kw_only=True)
class Totals:
    """The totals of one group, or with the key ``TOTAL`` of the corpus."""

    key: str
    totals: GroupTotals


@dataclass(frozen=True, kw_only=True)
class SplitFailures:
    """How many bad records a split has."""

    part: int
    records: int


class SplitComparer:
    """Encodes the documents of splits with each of several tokenizers, and adds up what comes out.

    Args:
        job: what to do.
        tokenizers: that are compared.
    """

    def __init__(self, job: CompareJob, tokenizers: Sequence[Tokenizer]) -> None:
        self._job = job
        self._tokenizers = tokenizers
        self._meters = [Meter(tokenizer) for tokenizer in tokenizers]

    def run(
        self, split: Split, failures: Failures, pieces: PretokenCounter
    ) -> Iterator[tuple[int, bytes] | dict[str, GroupTotals] | SplitFailures]:
        """Compare over one split.

        Args:
            split: to read.
            failures: where the job ends.
            pieces: counts the pieces of the texts.

        Yields:
            (shard, run) each time the counter is emptied; at the end the totals by the key of
            their group, and the number of bad records where there are any.

        Raises:
            RecordError: one bad record more than the job may set aside.
            InputError: a file cannot be read.
        """
        job = self._job
        whole, groups = GroupSums(used=True), GroupSums(used=job.used)
        whole.add({TOTAL: GroupTotals(measures=(Measures(),) * len(self._tokenizers))})
        sources = {piece.file_index: piece for piece in split.pieces}
        with SplitReader(split, job.reading, failures) as reader:
            for block in reader:
                encoded = self._encode(block)
                for row, reason in encoded.bad:
                    raw = block.texts[row].as_buffer().to_pybytes()
                    source = sources[block.file_indexes[row].as_py()]
                    reader.set_aside(BadRecord.of(source, block.places[row].as_py(), reason, raw))
                whole.add(self._measured(encoded, [TOTAL], np.zeros(len(encoded.texts), np.int64)))
                if job.by is not None:
                    groups.add(self._measured(encoded, *_groups(encoded.column, job, sources)))
                    check_groups(job.by, len(groups.totals))
                if job.examples:
                    job.cutter.add(encoded.texts, pieces)
                    if pieces.nbytes > job.counting.flush_bytes:
                        yield from drained(pieces, job.counting)
            dead = reader.finish()
        compared = whole.totals[TOTAL]
        counter("documents_compared").inc(compared.documents)
        counter("tokens_compared").inc(sum(one.tokens for one in compared.measures))
        yield whole.totals | groups.totals
        if dead is not None:
            yield SplitFailures(part=split.part, records=dead.records)

    def _measured(
        self, encoded: _Encoded, keys: list[str], codes: np.ndarray[Any, Any]
    ) -> dict[str, GroupTotals]:
        return measure_block(
            encoded.texts, encoded.lists, meters=self._meters, groups=keys, codes=codes
        )

    def _encode(self, block: Block) -> _Encoded:
        """Encode a block with all tokenizers, but for what one of them has no tokens for."""
        column = block.kept[0] if block.kept else block.file_indexes
        lists, rows = self._lists(block.texts)
        if not rows:
            return _Encoded(texts=block.texts, lists=lists, column=column)
        texts = without(block.texts, rows)
        return _Encoded(
            texts=texts,
            lists=self._lists(texts)[0],
            column=without(column, rows),
            bad=tuple((row, self._reason(block.texts.slice(row, 1))) for row in rows),
        )

    def _lists(self, texts: pa.Array) -> tuple[list[pa.ListArray], list[int]]:
        """The ids of each tokenizer, or the rows that one of them cannot encode."""
        tried = [_encoded(tokenizer, texts) for tokenizer in self._tokenizers]
        lists = [one for one in tried if isinstance(one, pa.Array)]
        errors = [one for one in tried if isinstance(one, UnknownCharacterError)]
        return lists, sorted({row for error in errors for row in error.rows})

    def _reason(self, text: pa.Array) -> str:
        for name, tokenizer in zip(self._job.names, self._tokenizers, strict=True):
            if isinstance(error := _encoded(tokenizer, text), UnknownCharacterError):
                return f"{name}: {str(error).removeprefix('row 0: ')}"
        raise AssertionError("a text has characters without a token in some company only")


def _encoded(tokenizer: Tokenizer, texts: pa.Array) -> pa.ListArray | UnknownCharacterError:
    try:
        return tokenizer.encode_arrow(texts)
    except UnknownCharacterError as error:
        return error


@dataclass(frozen=True, kw_only=True)
class _Encoded:
    """Documents of a block, their ids by tokenizer, what groups them, and rows left out."""

    texts: pa.Array
    lists: list[pa.ListArray]
    column: pa.Array
    bad: tuple[tuple[int, str], ...] = ()


def _groups(
    column: pa.Array, job: CompareJob, sources: Mapping[int, FileRange]
) -> tuple[list[str], np.ndarray[Any, Any]]:
    """The keys of the groups, and the number of that of each document."""
    coded = column.dictionary_encode(null_encoding="encode")
    if job.by == BY_FILE and not job.reading.options.keep:
        names = [sources[index].name for index in coded.dictionary.to_pylist()]
    else:
        names = coded.dictionary.cast(pa.large_string()).to_pylist()
    return list(map(group_key, names)), coded.indices.to_numpy().astype(np.int64)


def check_groups(by: str | None, number: int) -> None:
    """Refuse a column that has too many values.

    Raises:
        ConfigError: it has.
    """
    if number > MAX_GROUPS:
        raise ConfigError(
            f"`by` {by}: more than {MAX_GROUPS:,} values: name a column with fewer, such as the "
            "language"
        )


def group_key(name: str | None) -> str:
    """The name of a group as a key that sorts, with one for no value."""
    return "" if name is None else f"={name}"


def group_name(key: str) -> str | None:
    """The name that `group_key` made a key of."""
    return key[1:] if key else None


def differences_of(
    run: bytes, job: CompareJob, tokenizers: Sequence[Tokenizer]
) -> tuple[Difference, ...]:
    """How each further tokenizer differs from the first over the pieces of one shard."""
    return tuple(find_differences(run, tokenizers, examples=job.examples))
