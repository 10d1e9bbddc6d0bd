"""Summaries of finished jobs."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bpe.training_report import MixedSource
    from pipelines.corpus.inputs import PassedOver
    from pipelines.totals import DuplicateIds, SourceTotals, Taken


@dataclass(frozen=True, kw_only=True)
class _Summary:
    """Fields of every summary.

    Attributes:
        documents: the number of documents that were counted, trained on or encoded.
        bytes: the size of their text in UTF-8.
        failures: the number of bad records that were set aside.
        seconds: the duration of the job, earlier phases included.
        formats: the number of documents by the format of their file.
        passed_over: files that match the patterns but were not read, with the reason.
    """

    documents: int
    bytes: int
    failures: int
    seconds: float
    formats: Mapping[str, int] = field(default_factory=dict)
    passed_over: tuple[PassedOver, ...] = ()

    @property
    def phases(self) -> Mapping[str, _Summary]:
        """Return the summaries of earlier phases of the same job, by name."""
        return {}

    def as_dict(self) -> dict[str, Any]:
        """Return all fields and computed properties as JSON values."""
        kinds = vars(type(self)).items()
        computed = [
            name for name, value in kinds if isinstance(value, property) and name != "phases"
        ]
        phases = {name: one.as_dict() for name, one in self.phases.items()}
        return {**asdict(self), **{name: getattr(self, name) for name in computed}, **phases}


@dataclass(frozen=True, kw_only=True)
class CountSummary(_Summary):
    """The summary of counts.

    Attributes:
        output: the directory of the counts.
        unit: what was counted: ``pre-token`` or ``run``.
        pretokens: the number of occurrences of pre-tokens or runs.
        distinct_pretokens: the number of different pre-tokens or runs, summed over sets of counts.
        parts: the number of Parquet files.
        output_bytes: the size of the Parquet files.
        resumed: whether an earlier run had finished the counts.
        inputs: the number of files that are counted.
        new_inputs: the number of files that this job counted.
        outdated: files that changed after their counts were added to those of other files.
        set_aside: files that a job with ``--append`` cannot read, with the reason.
    """

    output: str
    unit: str
    pretokens: int
    distinct_pretokens: int
    parts: int
    output_bytes: int
    resumed: bool = False
    inputs: int = 0
    new_inputs: int = 0
    outdated: tuple[str, ...] = ()
    set_aside: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class TrainSummary(_Summary):
    """The summary of a training.

    Attributes:
        output: the directory of ``tokenizer.json`` and ``training.json``.
        counts: the directories of the counts.
        pretokens: the number of occurrences of pre-tokens; None if superwords were added to a
            tokenizer of words without ``training.json``.
        distinct_pretokens: the number of different pre-tokens; None in the same case.
        vocab_size: the number of tokens in the vocabulary.
        merges: the number of merges.
        initial_bytes: the size of all occurrences of pre-tokens, in bytes.
        initial_tokens: the size of all occurrences of pre-tokens, in single symbols.
        tokens: the size of all occurrences of pre-tokens, in tokens of the new vocabulary. With
            superwords: None unless the words were trained in the same job and none were dropped;
            an upper bound if runs were dropped or cut.
        superwords: the number of merges across words; None for a training without superwords.
        run_tokens: the size of all occurrences of runs, in tokens of words.
        run_tokens_left: the size of all occurrences of runs, in tokens with superwords.
        stopped: the reason why training ended.
        sha256: the SHA-256 of ``tokenizer.json`` (hex).
        dialect: the reason why Hugging Face's libraries cannot read ``tokenizer.json``, or None.
        scale: the divisor of all numbers of pre-tokens and tokens; above 1 if weights are
            fractions.
        mix: the sets of counts, with weights and shares.
        words: the training of the tokenizer of words before superwords, or None.
        runs: the counting of the runs of that tokenizer, or None.
    """

    output: str
    counts: tuple[str, ...]
    pretokens: int | None
    distinct_pretokens: int | None
    vocab_size: int
    merges: int
    initial_bytes: int
    initial_tokens: int
    tokens: int | None
    stopped: str
    sha256: str
    dialect: str | None
    superwords: int | None = None
    run_tokens: int | None = None
    run_tokens_left: int | None = None
    scale: int = 1
    mix: tuple[MixedSource, ...] = ()
    words: TrainSummary | None = None
    runs: CountSummary | None = None

    @property
    def phases(self) -> Mapping[str, TrainSummary | CountSummary]:
        """Return the summaries of words and runs, the phases before superwords."""
        named = {"words": self.words, "runs": self.runs}
        return {name: one for name, one in named.items() if one is not None}

    @property
    def bytes_per_token(self) -> float | None:
        """Return the bytes per token of the text of the training; None without text."""
        return self.initial_bytes / self.tokens if self.tokens else None


@dataclass(frozen=True, kw_only=True)
class EncodeSummary(_Summary):
    """The summary of an encoded corpus.

    Attributes:
        output: the directory of the ids.
        tokens: the number of ids.
        unknown_tokens: the number of ids of the unknown token.
        sources: totals by source; empty if inputs have no names.
        duplicate_ids: the documents that share an id with another document.
        parts: the number of Parquet files.
        resumed_parts: the number of Parquet files that an earlier run had finished.
        output_bytes: the size of the Parquet files.
        id_type: ``uint16`` or ``uint32``.
        not_applied: requests of the tokenizer's file that encoding leaves out (`bpe.Tokenizer`).
        inputs: the number of files that are encoded.
        new_inputs: the number of files that this job encoded.
        set_aside: files that a job with ``--append`` cannot read, with the reason.
    """

    output: str
    tokens: int
    unknown_tokens: int
    sources: Mapping[str, SourceTotals]
    duplicate_ids: DuplicateIds | None
    parts: int
    resumed_parts: int
    output_bytes: int
    id_type: str
    not_applied: tuple[str, ...] = ()
    inputs: int = 0
    new_inputs: int = 0
    set_aside: tuple[str, ...] = ()

    @property
    def bytes_per_token(self) -> float | None:
        """Return the bytes per token of the corpus; None without tokens."""
        return self.bytes / self.tokens if self.tokens else None


@dataclass(frozen=True, kw_only=True)
class ExportSummary(_Summary):
    """The summary of an export.

    Attributes:
        output: the directory of the training data.
        sources: the directories of ids, by name.
        format: the format of the files.
        rows: the number of rows.
        tokens: the number of ids in the rows, without padding.
        validation_documents: the number of documents held out; None without ``--validation``.
        validation_tokens: the number of ids held out; None without ``--validation``.
        padding_tokens: the number of ids of the pad token that fill rows.
        dropped_tokens: the number of ids that are in no row.
        dropped_documents: the number of documents that are in no row.
        row_length: the number of ids in a full packed row; None if rows are not packed.
        taken: the documents of each source that were chosen for training.
        files: the number of files with rows.
        output_bytes: the size of the files with rows.
        made_units: the number of units that this run made.
        resumed_units: the number of units that an earlier run had made.
        warnings: settings that the user may not have meant.
    """

    output: str
    sources: Mapping[str, str]
    format: str
    rows: int
    tokens: int
    validation_documents: int | None
    validation_tokens: int | None
    padding_tokens: int
    dropped_tokens: int
    dropped_documents: int
    row_length: int | None
    taken: tuple[Taken, ...]
    files: int
    output_bytes: int
    made_units: int
    resumed_units: int
    warnings: tuple[str, ...] = ()

    @property
    def fill(self) -> float | None:
        """Return the share of ids in packed rows that are no padding; None without such rows."""
        size = self.rows * (self.row_length or 0)
        return self.tokens / size if size else None


@dataclass(frozen=True, kw_only=True)
class VerifySummary(_Summary):
    """The summary of a verification that found no fault.

    Attributes:
        directory: the directory of the output.
        kind: ``counts``, ``encoded`` or ``export``; of an export, ``bytes`` is the size of its
            files.
        unit: the unit of ``tokens``: ``token``, or for counts ``pre-token`` or ``run``.
        tokens: the number of token ids, or of occurrences of pre-tokens or runs.
        unknown_tokens: the number of ids of the unknown token.
        parts: the number of Parquet files.
        compared: whether the output was also compared with its inputs.
        lossless: whether all ids decode to the text. False if the tokenizer loses some text: then
            only the ids were compared. None for counts and exports.
    """

    directory: str
    kind: str
    tokens: int
    parts: int
    compared: bool
    unit: str = "token"
    unknown_tokens: int = 0
    lossless: bool | None = None
