"""Comparing tokenizers, without Beam: the steps of `pipelines.compare.job`, and their result."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from bpe.errors import BadTextsError
from pipelines import storage
from pipelines.compare.measures import (
    USED_GROUPS,
    Difference,
    GroupSums,
    GroupTotals,
    Measures,
    Meter,
    describe_example,
    measure_block,
    without_used,
)
from pipelines.corpus.documents.block import use_good_rows, without
from pipelines.corpus.documents.types import parse_type
from pipelines.corpus.reading import SplitReader, check_failures
from pipelines.count.steps import drained
from pipelines.encode.kept import find_kept
from pipelines.errors import ConfigError, InputError
from pipelines.metrics import counter
from pipelines.output.names import dead_letters_in, read_json_object
from pipelines.settings import EncodeSettings
from pipelines.storage import join
from pipelines.tokenizer_files import sent_tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from bpe import Tokenizer
    from bpe.counting import PretokenCounter
    from pipelines.compare.measures import PieceCutter
    from pipelines.compare.tokenizers import TokenizerFile
    from pipelines.corpus.documents import Block, KeptColumn
    from pipelines.corpus.inputs import InputFile
    from pipelines.corpus.reading import Reading
    from pipelines.corpus.splits import FileRange, Split
    from pipelines.count.steps import CountJob
    from pipelines.failures import Failures

BY_FILE = "file"
EXAMPLES = 20
MAX_GROUPS = 100_000
TOTAL = "*"  # the key of the whole corpus; those of groups are empty or begin with =
KIND = "comparison"
VERSION = 2
_SHOWN_FAILURES = 10


@dataclass(frozen=True, kw_only=True)
class CompareJob:
    """Everything a worker must know to compare; small, and picklable.

    Attributes:
        directory: where the job keeps its files while it runs.
        tokenizers_sha256: of the ``tokenizer.json`` of each tokenizer in it (hex).
        reading: how splits are read.
        by: the groups: None, ``file``, or a column.
        cutter: cuts the pieces that are counted.
        counting: how they are counted.
        names: of the tokenizers.
        used: whether to keep which ids occur in each group.
        examples: pieces to show; 0 to count none.
    """

    directory: str
    tokenizers_sha256: tuple[str, ...]
    reading: Reading
    by: str | None
    cutter: PieceCutter
    counting: CountJob
    names: tuple[str, ...]
    used: bool = True
    examples: int = EXAMPLES


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What is compared, and over what: small, for the worker that writes the result.

    Attributes:
        tokenizers: their files and names.
        inputs: the name and the size of each file of the corpus.
    """

    tokenizers: tuple[TokenizerFile, ...]
    inputs: tuple[tuple[str, int], ...]


def group_column(files: Sequence[InputFile], by: str | None) -> tuple[KeptColumn, ...]:
    """The column whose values are the groups; none where they are not of a column."""
    if by is None or by == BY_FILE:
        return ()
    if by == "id":
        raise ConfigError("`by` id: each document has its own: name a column with few values")
    try:
        columns = find_kept(files, EncodeSettings(keep=(by,)))
    except (ConfigError, InputError) as error:
        raise type(error)(str(error).replace("`keep`", "`by`")) from error
    kind = parse_type(columns[0].type)
    if pa.types.is_nested(kind) or pa.types.is_binary(kind):
        raise ConfigError(f"`by` {by}: its values are {kind}: name a column of text or numbers")
    return columns


def tokenizer_names(tokenizers: int) -> tuple[str, ...]:
    """The names of the files of so many tokenizers in the directory of a job."""
    return tuple(f"tokenizer-{number}.json" for number in range(tokenizers))


def tokenizers_of(job: CompareJob) -> tuple[Tokenizer, ...]:
    """Load the job's tokenizers, in a worker.

    Raises:
        InputError: one cannot be read, or is another by now.
    """
    return load_sent(job.directory, job.tokenizers_sha256)


def load_sent(directory: str, tokenizers_sha256: tuple[str, ...]) -> tuple[Tokenizer, ...]:
    """Load the tokenizers that lie in the directory of a comparison.

    Args:
        directory: of the job.
        tokenizers_sha256: of each (hex).

    Raises:
        InputError: one cannot be read, or is another by now.
    """
    names = tokenizer_names(len(tokenizers_sha256))
    return tuple(
        sent_tokenizer(join(directory, name), sha256=sha256)
        for name, sha256 in zip(names, tokenizers_sha256, strict=True)
    )


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
        with SplitReader(split, job.reading, failures.stopped) as reader:
            for block in reader:
                encoded = self._encode(block, partial(reader.set_row_aside, block))
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

    def _encode(self, block: Block, set_aside: Callable[[int, str], None]) -> _Encoded:
        """Encode a block with all tokenizers, but for the texts that one of them cannot encode."""
        column = block.kept[0] if block.kept else block.file_indexes
        lists, bad = use_good_rows((block.texts,), self._lists, set_aside)
        return _Encoded(texts=without(block.texts, bad), lists=lists, column=without(column, bad))

    def _lists(self, texts: pa.Array) -> list[pa.ListArray]:
        """The ids of each tokenizer.

        Raises:
            BadTextsError: a tokenizer cannot encode some texts; their reasons name it.
        """
        lists = []
        for name, tokenizer in zip(self._job.names, self._tokenizers, strict=True):
            try:
                lists.append(tokenizer.encode_arrow(texts))
            except BadTextsError as error:  # noqa: PERF203 - which of them
                reasons = {row: f"{name}: {reason}" for row, reason in error.reasons.items()}
                raise BadTextsError(str(error), reasons=reasons) from None
        return lists


@dataclass(frozen=True, kw_only=True)
class _Encoded:
    """Documents of a block, their ids by tokenizer, and what groups them."""

    texts: pa.Array
    lists: list[pa.ListArray]
    column: pa.Array


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


def comparison(
    results: Iterable[Totals | tuple[Difference, ...] | SplitFailures],
    job: CompareJob,
    *,
    subject: Subject,
    tokenizers: Sequence[Tokenizer],
) -> dict[str, Any]:
    """Put the result together, as JSON values; the order of what comes in does not matter.

    Args:
        results: totals of groups, differences by shard, and bad records by split.
        job: what was done.
        subject: what was compared.
        tokenizers: loaded.

    Raises:
        RecordError: over all splits, more bad records than the job may set aside.
        ConfigError: there are too many groups.
        JobError: the runner lost something.
    """
    measures = (Measures(),) * len(tokenizers)
    groups: dict[str, GroupTotals] = {TOTAL: GroupTotals(measures=measures)}
    found = [Difference()] * (len(tokenizers) - 1)
    records = 0
    for result in results:
        if isinstance(result, SplitFailures):
            records += result.records
        elif isinstance(result, Totals):
            groups[result.key] = groups.get(result.key, GroupTotals()) + result.totals
        else:
            both = zip(found, result, strict=True)
            found = [one.joined(other, job.examples) for one, other in both]
    total = groups.pop(TOTAL)
    check_groups(job.by, len(groups))
    dead = _dead_letters(job, records, total.documents)
    ordered = sorted(groups.items(), key=lambda item: (-item[1].bytes, item[0]))
    if len(groups) > USED_GROUPS:  # it may be known of some of them
        ordered = [(key, without_used(of)) for key, of in ordered]
    return {
        "kind": KIND,
        "version": VERSION,
        "tokenizers": [
            {
                "name": named.name,
                "path": named.path,
                "vocab_size": len(tokenizer),
                "pretokenizer": str(tokenizer.pretokenizer),
                "model": type(tokenizer.model).__name__,
            }
            for named, tokenizer in zip(subject.tokenizers, tokenizers, strict=True)
        ],
        "inputs": [{"name": name, "size": size} for name, size in subject.inputs],
        "by": job.by,
        "failures": records,
        "bad_records": dead,
        "total": total.to_json(),
        "groups": [{"name": group_name(key), **of.to_json()} for key, of in ordered],
        "differences": [
            {
                "first": job.names[0],
                "second": job.names[i + 1],
                "pieces_with_fewer_tokens": one.fewer,
                "pieces_with_more_tokens": one.more,
                "pieces_with_as_many_tokens": one.same,
                "examples": [
                    describe_example(example, (tokenizers[0], tokenizers[i + 1]))
                    for example in one.examples
                ],
            }
            for i, one in enumerate(found)
            if job.examples
        ],
    }


def _dead_letters(job: CompareJob, records: int, documents: int) -> list[dict[str, Any]]:
    """The first bad records: where they are, and why they are bad."""
    if not records:
        return []
    files = dead_letters_in(job.directory)
    check_failures(records, job.reading, files, documents=documents)
    shown: list[dict[str, Any]] = []
    for file in files:
        for line in storage.read(join(job.directory, file)).splitlines():
            if len(shown) == _SHOWN_FAILURES:
                return shown
            letter = json.loads(line)
            shown.append({key: letter[key] for key in ("file", "unit", "place", "reason")})
    return shown


def is_comparison(path: str) -> bool:
    """Whether a file says that it is a comparison; its name ends with ``.json`` then."""
    value = read_json_object(path) if path.endswith(".json") else None
    return value is not None and value.get("kind") == KIND


def read_comparison(path: str) -> dict[str, Any]:
    """Read a file that ``bpe compare --output`` wrote.

    Raises:
        InputError: it cannot be read, or is none.
    """
    try:
        value = json.loads(storage.read(path))
    except ValueError as error:
        raise InputError(f"{path}: not a comparison: {error}") from error
    if not isinstance(value, dict) or value.get("kind") != KIND:
        raise InputError(f"{path}: not a comparison: bpe compare --output writes one")
    if value.get("version") != VERSION:
        raise InputError(
            f"{path}: a comparison of version {value.get('version')}, not {VERSION}: use the "
            "release of beam-bpe that wrote it, or compare again"
        )
    return value
