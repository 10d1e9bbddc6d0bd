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
        documents: that were counted, trained on or encoded.
        bytes: of their text, in UTF-8.
        failures: bad records that were set aside.
        seconds: it took, what was done on the way included.
        formats: documents by the format of the files that held them.
        passed_over: files that the patterns match and that were not read, by reason.
    """

    documents: int
    bytes: int
    failures: int
    seconds: float
    formats: Mapping[str, int] = field(default_factory=dict)
    passed_over: tuple[PassedOver, ...] = ()

    @property
    def phases(self) -> Mapping[str, _Summary]:
        """The summaries of what was done on the way, by name."""
        return {}

    def as_dict(self) -> dict[str, Any]:
        """Everything, as JSON values; what is computed from the rest as well."""
        kinds = vars(type(self)).items()
        computed = [
            name for name, value in kinds if isinstance(value, property) and name != "phases"
        ]
        phases = {name: one.as_dict() for name, one in self.phases.items()}
        return {**asdict(self), **{name: getattr(self, name) for name in computed}, **phases}


@dataclass(frozen=True, kw_only=True)
class CountSummary(_Summary):
    """Counts that were made.

    Attributes:
        output: their directory.
        unit: what was counted: ``pre-token`` or ``run``.
        pretokens: occurrences.
        distinct_pretokens: different ones; of several sets, the sum over these.
        parts: Parquet files.
        output_bytes: their size.
        resumed: whether an earlier run had finished them.
        inputs: files that they are of.
        new_inputs: of these, those that this job took.
        outdated: files that changed after their counts were added up with others.
        set_aside: files that cannot be read, of a job that appends, and why.
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
    """A tokenizer that was trained.

    Attributes:
        output: the directory of ``tokenizer.json`` and ``training.json``.
        counts: the directories of what was trained on.
        pretokens: occurrences; None where superwords were added to a tokenizer of words that has
            no ``training.json``.
        distinct_pretokens: different ones, or None.
        vocab_size: tokens.
        merges: merges.
        initial_bytes: the words that were trained on, in bytes.
        initial_tokens: the same in single symbols.
        tokens: the same in tokens of this vocabulary. With superwords, it is known only where they
            come on top of words that were trained here, none of which were dropped, and an upper
            bound where runs were dropped or cut.
        superwords: merges across words; None where none were learnt.
        run_tokens: the runs that these were learnt from, in tokens of words.
        run_tokens_left: the same with superwords.
        stopped: why training ended.
        sha256: of ``tokenizer.json`` (hex).
        dialect: why Hugging Face's libraries cannot read ``tokenizer.json``; None where they can.
        weighted: whether counts were taken otherwise than once each.
        scale: numbers of pre-tokens and tokens are in units of ``1 / scale``; above 1 only where
            weights are fractions.
        resumed_counts: whether an earlier run had finished the counts of the corpus.
        mix: the counts that were added up, with weights and shares.
        words: the tokenizer of words that was trained first, where superwords were learnt.
        runs: the counts of its runs.
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
    weighted: bool = False
    scale: int = 1
    resumed_counts: bool = False
    mix: tuple[MixedSource, ...] = ()
    words: TrainSummary | None = None
    runs: CountSummary | None = None

    @property
    def phases(self) -> Mapping[str, TrainSummary | CountSummary]:
        """Words and runs, on the way to superwords."""
        named = {"words": self.words, "runs": self.runs}
        return {name: one for name, one in named.items() if one is not None}

    @property
    def bytes_per_token(self) -> float | None:
        """The compression of the text it was trained on; None without text."""
        return self.initial_bytes / self.tokens if self.tokens else None


@dataclass(frozen=True, kw_only=True)
class EncodeSummary(_Summary):
    """A corpus that was encoded.

    Attributes:
        output: its directory.
        tokens: ids of them.
        unknown_tokens: of these, ids of the unknown token.
        sources: sums by source, where inputs have names.
        duplicate_ids: documents whose id another document has.
        parts: Parquet files.
        resumed_parts: of these, how many an earlier run had finished.
        output_bytes: the size of the Parquet files.
        id_type: ``uint16`` or ``uint32``.
        not_applied: what the tokenizer's file asks for that was left out (`bpe.Tokenizer`).
        inputs: files that it is of.
        new_inputs: of these, those that this job took.
        set_aside: files that cannot be read, of a job that appends, and why.
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
        """The compression of this corpus; None without tokens."""
        return self.bytes / self.tokens if self.tokens else None


@dataclass(frozen=True, kw_only=True)
class ExportSummary(_Summary):
    """Training data that was made of ids.

    Attributes:
        output: the directory.
        sources: the directories of ids, by name.
        format: of the files.
        rows: that were written.
        tokens: ids of documents in them.
        validation_documents: those held out; None where none was asked for.
        validation_tokens: their ids; None likewise.
        padding_tokens: ids of the pad token that fill rows; they are none of the ``tokens``.
        dropped_tokens: ids that are in no row.
        dropped_documents: documents of which nothing is in a row.
        row_length: ids of a full packed row; None where rows are not packed.
        taken: what was taken of each source for training.
        files: that hold rows.
        output_bytes: their size.
        made_units: units of work that this run did.
        resumed_units: units that an earlier run had done.
        warnings: what the user may not have meant.
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
        """The share of the packed rows that ids of documents fill; None where there are none."""
        size = self.rows * (self.row_length or 0)
        return self.tokens / size if size else None


@dataclass(frozen=True, kw_only=True)
class VerifySummary(_Summary):
    """An output that was found to be right.

    Attributes:
        directory: that holds it.
        kind: ``counts``, ``encoded`` or ``export``, of which ``bytes`` are those of its files.
        unit: what ``tokens`` are: ``token``, or of counts ``pre-token`` or ``run``.
        tokens: token ids, or occurrences of pre-tokens or runs.
        unknown_tokens: of token ids, those of the unknown token.
        parts: Parquet files.
        compared: whether it was compared with what it was made of too.
        lossless: of token ids, whether they decode to the text itself; where the tokenizer loses
            some of it, the ids were compared alone. None for counts and exports.
        manifest_checksum: whether the manifest has one. Without, only what parts and inputs say
            again was checked.
    """

    directory: str
    kind: str
    tokens: int
    parts: int
    compared: bool
    manifest_checksum: bool
    unit: str = "token"
    unknown_tokens: int = 0
    lossless: bool | None = None
