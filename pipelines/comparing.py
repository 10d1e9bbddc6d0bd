"""Comparing tokenizers over a corpus, without Beam: what the steps of `pipelines.compare` do."""

from __future__ import annotations

import hashlib
import pickle
import re
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from bpe import PRETOKENIZERS, Tokenizer
from bpe.errors import UnknownCharacterError
from pipelines import storage
from pipelines.counting import CountJob, drained
from pipelines.documents import BadRecord, KeptColumn, ReadOptions
from pipelines.documents.block import without
from pipelines.documents.types import parse_type
from pipelines.encoding import load_tokenizer
from pipelines.errors import ConfigError, InputError
from pipelines.inputs import find_inputs
from pipelines.kept import find_kept
from pipelines.measures import (
    USED_GROUPS,
    GroupSums,
    GroupTotals,
    Measures,
    Meter,
    measure_block,
)
from pipelines.output import DEAD_LETTERS
from pipelines.pieces import Difference, PieceCutter, find_differences
from pipelines.reading import Reading, SplitReader
from pipelines.runners import counter
from pipelines.settings import EncodeSettings
from pipelines.splits import plan_splits
from pipelines.storage import join

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from bpe.counter import PretokenCounter
    from pipelines.documents import Block
    from pipelines.inputs import InputFile
    from pipelines.runners import Failures
    from pipelines.settings import InputSettings
    from pipelines.splits import FileRange, Split

BY_FILE = "file"
EXAMPLES = 20
MAX_GROUPS = 100_000
TOTAL = "*"  # the key of the whole corpus; those of groups are empty or begin with =
_TOKENIZERS = "tokenizers.pickle"


@dataclass(frozen=True, kw_only=True)
class TokenizerFile:
    """A tokenizer to compare.

    Attributes:
        name: how it is called in the result.
        path: of its file.
        pretokenizer: how it cuts text, where the file does not say it; None where it does.
    """

    name: str
    path: str
    pretokenizer: str | None = None

    @classmethod
    def parse(cls, text: str) -> TokenizerFile:
        """From ``[NAME=]FILE[:PRETOKENIZER]``; a name is letters, digits, ``.``, ``_`` and ``-``.

        Raises:
            ConfigError: there is no file in it.
        """
        match = re.fullmatch(r"([\w.-]+)=(.+)", text, re.DOTALL)
        name, rest = (match[1], match[2]) if match else ("", text)
        path, colon, suffix = rest.rpartition(":")
        if not (colon and path and suffix in PRETOKENIZERS):
            path, suffix = rest, ""
        if not path:
            raise ConfigError("a tokenizer is empty: name a file")
        return cls(name=name, path=path, pretokenizer=suffix or None)


def parse_tokenizers(texts: Sequence[str]) -> tuple[TokenizerFile, ...]:
    """Tokenizers as a command line names them; those without a name get one from their path.

    Raises:
        ConfigError: there are fewer than two, or two have one name.
    """
    if len(texts) < 2:
        raise ConfigError("name two tokenizers to compare, or more")
    files = [TokenizerFile.parse(text) for text in texts]
    short = [_short_name(file.path) for file in files]
    for i, file in enumerate(files):
        if not file.name:
            name = short[i] if short.count(short[i]) == 1 else file.path
            alone = [other.path for other in files].count(file.path) == 1
            files[i] = replace(file, name=name if alone else texts[i])
    names = [file.name for file in files]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(
                f"two tokenizers are called {name}: give them names, as in old={files[0].path}"
            )
    return tuple(files)


def _short_name(path: str) -> str:
    """The file's name, or its folder's where all files of the kind have the same name."""
    parts = PurePosixPath(path.replace("\\", "/"))
    if parts.name in ("tokenizer.json", "vocab.json") and parts.parent.name:
        return parts.parent.name
    return parts.stem or path


@dataclass(frozen=True, kw_only=True)
class CompareJob:
    """Everything a worker must know to compare; small, and picklable.

    Attributes:
        directory: where the job keeps its files while it runs.
        tokenizers_sha256: of the file of the tokenizers in it (hex).
        reading: how splits are read.
        by: the groups: None, ``file``, or a column.
        cutter: cuts the pieces that are counted.
        counting: how they are counted.
        names: of the tokenizers.
        used: whether to keep which ids occur in each group.
        examples: pieces to show; 0 to count none.
    """

    directory: str
    tokenizers_sha256: str
    reading: Reading
    by: str | None
    cutter: PieceCutter
    counting: CountJob
    names: tuple[str, ...]
    used: bool = True
    examples: int = EXAMPLES


@dataclass(frozen=True, kw_only=True)
class Comparing:
    """A job, planned.

    Attributes:
        job: for the workers.
        named: the files and names of the tokenizers.
        files: the inputs.
        splits: the work.
    """

    job: CompareJob
    named: tuple[TokenizerFile, ...]
    files: tuple[InputFile, ...]
    splits: tuple[Split, ...]

    def watched(self, counters_path: str | None) -> Comparing:
        """The same job, whose workers tell their progress to a file of slots."""
        reading = replace(self.job.reading, counters_path=counters_path)
        return replace(self, job=replace(self.job, reading=reading))


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


def plan_comparing(
    *,
    inputs: InputSettings,
    tokenizers: Sequence[TokenizerFile],
    directory: str,
    by: str | None = None,
    examples: int = EXAMPLES,
) -> Comparing:
    """Find the inputs, load the tokenizers and plan the job; nothing but ``directory`` is written.

    Raises:
        InputError: there are no inputs, or a tokenizer cannot be read.
        ConfigError: a setting is wrong.
    """
    loaded = tuple(map(_loaded, tokenizers))
    files = find_inputs(inputs)
    column = _column(files, by)
    data = pickle.dumps(loaded, protocol=pickle.HIGHEST_PROTOCOL)
    written = storage.write(join(directory, _TOKENIZERS), data)
    storage.make_directory(join(directory, DEAD_LETTERS))
    cutter = PieceCutter(tokenizer.pretokenizer for tokenizer in loaded)
    job = CompareJob(
        directory=directory,
        tokenizers_sha256=written.sha256,
        reading=Reading(
            directory=directory,
            options=ReadOptions(
                max_record_bytes=inputs.max_record_size,
                text_field=inputs.text_field,
                id_field=inputs.id_field,
                keep=column,
            ),
            max_failures=inputs.max_failures,
        ),
        by=by if by in (None, BY_FILE) else column[0].name,
        cutter=cutter,
        counting=CountJob(directory=directory, pretokenizer=cutter.counted),
        names=tuple(file.name for file in tokenizers),
        used=by != BY_FILE or len(files) <= USED_GROUPS,
        examples=examples,
    )
    return Comparing(
        job=job,
        named=tuple(tokenizers),
        files=tuple(files),
        splits=tuple(plan_splits(files, inputs.split_size)),
    )


def _loaded(file: TokenizerFile) -> Tokenizer:
    try:
        return load_tokenizer(file.path, pretokenizer=file.pretokenizer)
    except InputError as error:
        if "pretokenizer=" in str(error):
            raise ConfigError(
                f"{error}; name it behind a colon, as in {file.path}:cl100k, or write a "
                "tokenizer.json with bpe convert"
            ) from error
        raise


def _column(files: Sequence[InputFile], by: str | None) -> tuple[KeptColumn, ...]:
    """The column whose values are the groups; none where they are not of a column."""
    if by is None or by == BY_FILE:
        return ()
    if by == "id":
        raise ConfigError("--by id: each document has its own: name a column with few values")
    try:
        columns = find_kept(files, EncodeSettings(keep=(by,)))
    except (ConfigError, InputError) as error:
        raise type(error)(str(error).replace("--keep", "--by")) from error
    kind = parse_type(columns[0].type)
    if pa.types.is_nested(kind) or pa.types.is_binary(kind):
        raise ConfigError(f"--by {by}: its values are {kind}: name a column of text or numbers")
    return columns


def tokenizers_of(job: CompareJob) -> tuple[Tokenizer, ...]:
    """Load the job's tokenizers, in a worker.

    Raises:
        InputError: they cannot be read, or are others by now.
    """
    path = join(job.directory, _TOKENIZERS)
    data = storage.read(path)
    if hashlib.sha256(data).hexdigest() != job.tokenizers_sha256:
        raise InputError(f"{path} was changed while the job ran: start it again")
    loaded: tuple[Tokenizer, ...] = pickle.loads(data)  # noqa: S301 - of this job, by its hash
    return loaded


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
            f"--by {by}: more than {MAX_GROUPS:,} values: name a column with fewer, such as the "
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
