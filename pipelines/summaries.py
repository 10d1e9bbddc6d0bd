"""What a job says about itself when it is done."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class _Summary:
    def as_dict(self) -> dict[str, Any]:
        """Everything, as JSON values."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class CountSummary(_Summary):
    """Counts that were made.

    Attributes:
        output: their directory.
        documents: that were counted.
        bytes: of their text, in UTF-8.
        pretokens: occurrences.
        distinct_pretokens: different ones.
        failures: bad records that were set aside.
        parts: Parquet files.
        output_bytes: their size.
        seconds: the job took.
        resumed: whether an earlier run had finished them.
    """

    output: str
    documents: int
    bytes: int
    pretokens: int
    distinct_pretokens: int
    failures: int
    parts: int
    output_bytes: int
    seconds: float
    resumed: bool = False


@dataclass(frozen=True, kw_only=True)
class TrainSummary(_Summary):
    """A tokenizer that was trained.

    Attributes:
        output: the directory of ``tokenizer.json`` and ``training.json``.
        documents: of the counts.
        bytes: of their text, in UTF-8.
        pretokens: occurrences.
        distinct_pretokens: different ones.
        failures: bad records that were set aside in counting.
        vocab_size: tokens.
        merges: merges.
        initial_tokens: the corpus in single bytes.
        tokens: the corpus in tokens of this vocabulary.
        stopped: why training ended.
        sha256: of ``tokenizer.json`` (hex).
        seconds: the job took, counting included.
    """

    output: str
    documents: int
    bytes: int
    pretokens: int
    distinct_pretokens: int
    failures: int
    vocab_size: int
    merges: int
    initial_tokens: int
    tokens: int
    stopped: str
    sha256: str
    seconds: float

    @property
    def bytes_per_token(self) -> float | None:
        """How well the vocabulary compresses the text it was trained on; None without text."""
        return self.initial_tokens / self.tokens if self.tokens else None

    def as_dict(self) -> dict[str, Any]:
        """Everything, as JSON values."""
        return {**asdict(self), "bytes_per_token": self.bytes_per_token}


@dataclass(frozen=True, kw_only=True)
class EncodeSummary(_Summary):
    """A corpus that was encoded.

    Attributes:
        output: its directory.
        documents: rows.
        bytes: of the text, in UTF-8.
        tokens: token ids.
        failures: bad records that were set aside.
        parts: Parquet files.
        resumed_parts: of these, how many an earlier run had finished.
        output_bytes: the size of the Parquet files.
        id_type: ``uint16`` or ``uint32``.
        seconds: the job took.
    """

    output: str
    documents: int
    bytes: int
    tokens: int
    failures: int
    parts: int
    resumed_parts: int
    output_bytes: int
    id_type: str
    seconds: float

    @property
    def bytes_per_token(self) -> float | None:
        """How well the tokenizer compresses this corpus; None without tokens."""
        return self.bytes / self.tokens if self.tokens else None

    def as_dict(self) -> dict[str, Any]:
        """Everything, as JSON values."""
        return {**asdict(self), "bytes_per_token": self.bytes_per_token}


@dataclass(frozen=True, kw_only=True)
class VerifySummary(_Summary):
    """An output that was found to be right.

    Attributes:
        directory: that holds it.
        kind: ``counts`` or ``encoded``.
        documents: rows, or documents counted.
        bytes: of the text, in UTF-8.
        tokens: token ids, or occurrences of pre-tokens.
        failures: bad records that were set aside.
        parts: Parquet files.
        compared: whether it was compared with its inputs too.
        seconds: it took.
    """

    directory: str
    kind: str
    documents: int
    bytes: int
    tokens: int
    failures: int
    parts: int
    compared: bool
    seconds: float
