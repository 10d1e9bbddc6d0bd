"""Plan and run the job of `bpe compare`."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from bpe._codec import to_jsonable
from pipelines import storage
from pipelines.compare.result import EXAMPLES, Input, Subject, read_comparison
from pipelines.compare.splits import BY_FILE, RESULT, CompareSplits, tokenizer_names
from pipelines.compare.tokenizers import ComparedTokenizer, load
from pipelines.corpus.documents import ReadOptions
from pipelines.corpus.documents.types import parse_type
from pipelines.encode.passthrough import find_passthrough
from pipelines.errors import ConfigError, InputError
from pipelines.failures import job_errors
from pipelines.output.names import Plan, json_bytes
from pipelines.planned import CorpusRequest, Planned, deflated, run_once
from pipelines.progress import UNSEEN
from pipelines.settings import EncodeSettings, OutputSettings
from pipelines.stage.work import are_here, temporary_work
from pipelines.storage import join
from pipelines.tokenizer_files import tokenizer_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipelines.corpus.documents import PassthroughColumn
    from pipelines.corpus.files import InputFile
    from pipelines.planned import Done
    from pipelines.progress import Progress
    from pipelines.settings import Execution, InputSettings
    from pipelines.stage.stage import Stage


@dataclass(frozen=True, kw_only=True)
class CompareRequest(CorpusRequest):
    """A comparison, as the Beam graph carries it.

    Attributes:
        tokenizers: two or more; the graph carries them, since workers may not see their files.
        by: ``file``, or a field or column whose values are groups.
        examples: the number of pieces to show; with 0, pieces are not counted.
    """

    tokenizers: tuple[ComparedTokenizer, ...]
    by: str | None = None
    examples: int = EXAMPLES
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
            sent=deflated(dict(zip(tokenizer_names(len(texts)), texts, strict=True))),
            **more,
        )

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Return the only stage: the comparison of each split."""
        return (
            CompareSplits(
                directory=self.directory,
                run=self.run,
                max_failures=self.inputs.max_failures,
                examples=self.examples,
            ),
        )

    def plan(self) -> Planned:
        """Find the inputs and plan the job; nothing is written.

        Raises:
            InputError: there are no inputs.
            ConfigError: a setting is wrong.
        """
        found = self.find()
        splits, column = self.split(found), _group_column(found.files, self.by)
        texts = self.worker_files().values()
        subject = Subject(
            tokenizers=self.tokenizers,
            tokenizers_sha256=tuple(hashlib.sha256(text).hexdigest() for text in texts),
            options=ReadOptions.of(self.inputs, keep=column),
            by=column[0].name if column else self.by,
            inputs=tuple(Input(name=file.name, size=file.size) for file in found.files),
        )
        plan = Plan(kind="comparison", parts=(len(splits),), settings=to_jsonable(subject))
        return self.planned(found, splits, plan)

    def finish(self) -> str:
        """Return the path of the result in the directory of the job."""
        return join(self.directory, RESULT)

    def summarize(self, planned: Planned, done: Done | None) -> dict[str, Any]:  # noqa: ARG002
        """Return the result as JSON values."""
        return read_comparison(join(self.directory, RESULT))


def _group_column(files: Sequence[InputFile], by: str | None) -> tuple[PassthroughColumn, ...]:
    """Return the column whose values are the groups; empty for groups by file and for none."""
    if by is None or by == BY_FILE:
        return ()
    if by == "id":
        raise ConfigError("`by` id: each document has its own: name a column with few values")
    try:
        columns = find_passthrough(files, EncodeSettings(keep=(by,)))
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
