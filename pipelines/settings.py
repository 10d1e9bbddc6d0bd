"""What a job is asked to do: frozen, validated when made, shared by command line and Python."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal, get_args

from pipelines.errors import ConfigError

Format = Literal["auto", "text", "lines", "jsonl", "parquet"]
FORMATS: tuple[str, ...] = get_args(Format)


@dataclass(frozen=True, kw_only=True)
class InputSettings:
    """Which documents a job reads.

    Attributes:
        patterns: files, directories or globs, local or of any scheme Beam's filesystems know.
        format: how a file holds documents; ``auto`` decides for each file by its name.
        text_field: the field (jsonl) or column (parquet) that holds the text.
        id_field: the field that holds the document's id; None takes ``id`` where a record has
            one, and the document's place (``name:position``) where it has not.
        split_size: target bytes of input a split; None follows the corpus (about 1/64 of it,
            between 8 and 256 MiB).
        max_failures: bad records the job may set aside; one more ends it.
    """

    patterns: tuple[str, ...]
    format: Format = "auto"
    text_field: str = "text"
    id_field: str | None = None
    split_size: int | None = None
    max_failures: int = 0

    def __post_init__(self) -> None:
        if not self.patterns:
            raise ConfigError("no input: give at least one --input file, directory or pattern")
        if "" in self.patterns:
            raise ConfigError("--input is empty: name a file, a directory or a pattern")
        if self.format not in FORMATS:
            raise ConfigError(f"format {self.format!r} is unknown: use one of {', '.join(FORMATS)}")
        if not self.text_field:
            raise ConfigError("--text-field is empty: name the field that holds the text")
        if self.split_size is not None and self.split_size < 1:
            raise ConfigError(f"--split-size {self.split_size} is not a positive number of bytes")
        if self.max_failures < 0:
            raise ConfigError(f"--max-failures {self.max_failures} is negative: use 0 or more")


@dataclass(frozen=True, kw_only=True)
class OutputSettings:
    """Where a job writes, and what it does with what is there already."""

    directory: str
    overwrite: bool = False
    resume: bool = False

    def __post_init__(self) -> None:
        if not self.directory:
            raise ConfigError("--output is empty: name a directory")
        if self.overwrite and self.resume:
            raise ConfigError("--overwrite and --resume exclude each other: choose one")


@dataclass(frozen=True, kw_only=True)
class PretokenSettings:
    """How text is cut before it is counted or trained on.

    Attributes:
        pretokenizer: a name of ``bpe.PRETOKENIZERS``; not used where ``pattern`` is given.
        pattern: a regular expression (``regex`` package syntax) in its place, or None.
        special_tokens: cut out of the text, never counted, given reserved ids.
    """

    pretokenizer: str = "gpt2"
    pattern: str | None = None
    special_tokens: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CountsInput:
    """Counts to train on: a directory of ``bpe count``, each count times ``weight``."""

    directory: str
    weight: int = 1

    def __post_init__(self) -> None:
        if not self.directory:
            raise ConfigError("--counts is empty: name a directory made by bpe count")
        if self.weight < 1:
            raise ConfigError(
                f"--counts {self.directory}: the weight {self.weight} is not a whole number "
                "from 1 upwards"
            )


@dataclass(frozen=True, kw_only=True)
class TrainSettings:
    """The vocabulary to train.

    Attributes:
        vocab_size: tokens in the vocabulary: special tokens, the 256 bytes, and one for each
            merge that makes a new string.
        ties: the rule that picks among equally frequent pairs, one of ``bpe.TIES``.
        min_frequency: a pair that occurs fewer times is never merged.
    """

    vocab_size: int
    ties: str = "bytes-min"
    min_frequency: int = 1


@dataclass(frozen=True, kw_only=True)
class Execution:
    """Which runner does the work and with how many workers.

    Attributes:
        runner: a Beam runner; ``DirectRunner`` is this process (``FnApiRunner``, pinned).
        workers: threads or processes of the local runner; 0 means one for each core.
        beam_args: handed to Beam unchanged (what stands after ``--``).
    """

    runner: str = "DirectRunner"
    workers: int = 0
    beam_args: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.workers < 0:
            raise ConfigError(f"--workers {self.workers} is negative: use 0 for one a core")

    @property
    def worker_count(self) -> int:
        """The number of local workers: what was asked for, or the cores this process may use."""
        return self.workers or cores()


def cores() -> int:
    """The cores this process may use, where the system can tell; else those of the machine."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
