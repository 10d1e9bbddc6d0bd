"""Comparing tokenizers over a corpus: which ones, over what, and where the work is."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import pyarrow as pa

from bpe import PRETOKENIZERS
from pipelines import storage
from pipelines.compare.measures import USED_GROUPS
from pipelines.compare.pieces import PieceCutter
from pipelines.corpus.documents.types import parse_type
from pipelines.corpus.inputs import find_inputs
from pipelines.corpus.reading import Reading
from pipelines.corpus.splits import plan_splits
from pipelines.count.steps import CountJob
from pipelines.encode.kept import find_kept
from pipelines.encode.tokenizer_files import load_tokenizer, sent_tokenizer, tokenizer_json
from pipelines.errors import ConfigError, InputError
from pipelines.output.names import DEAD_LETTERS
from pipelines.settings import EncodeSettings
from pipelines.storage import join

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bpe import Tokenizer
    from pipelines.corpus.documents import KeptColumn
    from pipelines.corpus.inputs import InputFile
    from pipelines.corpus.splits import Split
    from pipelines.settings import InputSettings

BY_FILE = "file"
EXAMPLES = 20


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


@dataclass(frozen=True, kw_only=True)
class Comparing:
    """A job, planned.

    Attributes:
        job: for the workers.
        subject: what the result says of its own inputs.
        tokenizer_jsons: the tokenizers, as they go to the workers.
        files: the inputs.
        splits: the work.
    """

    job: CompareJob
    subject: Subject
    tokenizer_jsons: tuple[str, ...]
    files: tuple[InputFile, ...]
    splits: tuple[Split, ...]

    def watched(self, counters_path: str | None) -> Comparing:
        """The same job, whose workers tell their progress to a file of slots."""
        reading = replace(self.job.reading, counters_path=counters_path)
        return replace(self, job=replace(self.job, reading=reading))


def plan_comparing(
    *,
    inputs: InputSettings,
    tokenizers: Sequence[TokenizerFile],
    directory: str,
    by: str | None = None,
    examples: int = EXAMPLES,
) -> Comparing:
    """Find the inputs, load the tokenizers and plan the job; nothing is written.

    Raises:
        InputError: there are no inputs, or a tokenizer cannot be read.
        ConfigError: a setting is wrong.
    """
    loaded = tuple(map(_loaded, tokenizers))
    files = find_inputs(inputs).files
    column = _column(files, by)
    texts = tuple(
        tokenizer_json(tokenizer, file.path)
        for tokenizer, file in zip(loaded, tokenizers, strict=True)
    )
    cutter = PieceCutter(tokenizer.pretokenizer for tokenizer in loaded)
    job = CompareJob(
        directory=directory,
        tokenizers_sha256=tuple(hashlib.sha256(text.encode()).hexdigest() for text in texts),
        reading=Reading.of(inputs, directory, keep=column),
        by=by if by in (None, BY_FILE) else column[0].name,
        cutter=cutter,
        counting=CountJob(directory=directory, pretokenizer=cutter.counted),
        names=tuple(file.name for file in tokenizers),
        used=by != BY_FILE or len(files) <= USED_GROUPS,
        examples=examples,
    )
    return Comparing(
        job=job,
        subject=Subject(
            tokenizers=tuple(tokenizers),
            inputs=tuple((file.name, file.size) for file in files),
        ),
        tokenizer_jsons=texts,
        files=tuple(files),
        splits=tuple(plan_splits(files, inputs.split_size)),
    )


def _loaded(file: TokenizerFile) -> Tokenizer:
    try:
        return load_tokenizer(file.path, pretokenizer=file.pretokenizer)
    except InputError as error:
        if "`pretokenizer`" in str(error):
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
        raise ConfigError("`by` id: each document has its own: name a column with few values")
    try:
        columns = find_kept(files, EncodeSettings(keep=(by,)))
    except (ConfigError, InputError) as error:
        raise type(error)(str(error).replace("`keep`", "`by`")) from error
    kind = parse_type(columns[0].type)
    if pa.types.is_nested(kind) or pa.types.is_binary(kind):
        raise ConfigError(f"`by` {by}: its values are {kind}: name a column of text or numbers")
    return columns


def prepare_comparing(comparing: Comparing) -> None:
    """Write what workers need into the directory of a job.

    Raises:
        OutputError: it cannot be written.
    """
    job = comparing.job
    storage.make_directory(join(job.directory, DEAD_LETTERS))
    for name, text in zip(tokenizer_names(job), comparing.tokenizer_jsons, strict=True):
        storage.write(join(job.directory, name), text.encode())


def tokenizer_names(job: CompareJob) -> tuple[str, ...]:
    """The names of the tokenizers' files in the directory of a job."""
    return tuple(f"tokenizer-{number}.json" for number in range(len(job.tokenizers_sha256)))


def tokenizers_of(job: CompareJob) -> tuple[Tokenizer, ...]:
    """Load the job's tokenizers, in a worker.

    Raises:
        InputError: one cannot be read, or is another by now.
    """
    return tuple(
        sent_tokenizer(join(job.directory, name), sha256=sha256)
        for name, sha256 in zip(tokenizer_names(job), job.tokenizers_sha256, strict=True)
    )
