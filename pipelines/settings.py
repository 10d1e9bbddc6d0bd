"""What a job is asked to do: frozen, validated when made, shared by command line and Python."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, fields
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, get_args

from pipelines.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from typing_extensions import Unpack

    from bpe.models import Model
    from bpe.pretokenize import Pretokenizer

Format = Literal["auto", "text", "lines", "jsonl", "parquet"]
FORMATS: tuple[str, ...] = get_args(Format)
IdType = Literal["auto", "uint16", "uint32"]
ID_TYPES: tuple[str, ...] = get_args(IdType)
Staging = Literal["auto", "wheel", "sdist", "none"]
STAGINGS: tuple[str, ...] = get_args(Staging)
PackRemainder = Literal["keep", "drop"]
PACK_REMAINDERS: tuple[str, ...] = get_args(PackRemainder)
# A row must fit one Parquet page, whose size is a signed 32-bit number; ids are stored in 4 bytes.
MAX_ROW_TOKENS = 1 << 28
MAX_PACK = 1 << 20
MAX_RECORD = 1 << 30
LARGEST_RECORD = 2_000_000_000
MAX_SEED = (1 << 63) - 1
SHARDS = 16  # of counts


class InputArguments(TypedDict, total=False):
    """How inputs are read, as keyword arguments; `InputSettings` says what they mean."""

    format: Format
    text_field: str
    id_field: str | None
    split_size: int | None
    max_failures: int
    max_record_size: int


class EncodeArguments(TypedDict, total=False):
    """What rows hold, as keyword arguments; `EncodeSettings` says what they mean."""

    prepend_token: str | None
    append_token: str | None
    max_tokens: int | None
    pack: int | None
    pack_remainder: PackRemainder
    allow_special: Sequence[str]
    dropout: float
    dropout_seed: int
    keep: Sequence[str]
    id_type: IdType


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
        max_record_size: bytes of text (jsonl: of the line) that a record may have; a longer one is
            bad, and is passed over in bounded memory, whatever a compressed file unpacks to.
    """

    patterns: tuple[str, ...]
    format: Format = "auto"
    text_field: str = "text"
    id_field: str | None = None
    split_size: int | None = None
    max_failures: int = 0
    max_record_size: int = MAX_RECORD

    def __post_init__(self) -> None:
        if not self.patterns:
            raise ConfigError("no input: give at least one `input` file, directory or pattern")
        if "" in self.patterns:
            raise ConfigError("`input` is empty: name a file, a directory or a pattern")
        if self.format not in FORMATS:
            raise ConfigError(f"format {self.format!r} is unknown: use one of {', '.join(FORMATS)}")
        if not self.text_field:
            raise ConfigError("`text_field` is empty: name the field that holds the text")
        if self.split_size is not None and self.split_size < 1:
            raise ConfigError(f"`split_size` {self.split_size} is not a positive number of bytes")
        if self.max_failures < 0:
            raise ConfigError(f"`max_failures` {self.max_failures} is negative: use 0 or more")
        if not 1 <= self.max_record_size <= LARGEST_RECORD:
            raise ConfigError(
                f"`max_record_size` {self.max_record_size} is not between 1 and {LARGEST_RECORD} "
                "(one value of a Parquet file holds no more)"
            )

    @classmethod
    def of(cls, patterns: Sequence[str], **arguments: Unpack[InputArguments]) -> InputSettings:
        """From arguments as a program gives them: any sequence of patterns."""
        return cls(patterns=several("inputs", patterns), **arguments)


@dataclass(frozen=True, kw_only=True)
class OutputSettings:
    """Where a job writes, and what it does with what is there already."""

    directory: str
    overwrite: bool = False
    resume: bool = False

    def __post_init__(self) -> None:
        if not self.directory:
            raise ConfigError("`output` is empty: name a directory")
        if self.overwrite and self.resume:
            raise ConfigError("`overwrite` and `resume` exclude each other: choose one")


@dataclass(frozen=True, kw_only=True)
class PretokenSettings:
    """How text is cut before it is counted or trained on.

    Attributes:
        pretokenizer: a name of ``bpe.PRETOKENIZERS``; not used where ``pattern`` is given.
        pattern: a regular expression (``regex`` package syntax) in its place, or several, applied
            one after the other, or None.
        normalizer: steps of ``bpe.NORMALIZERS``, applied before text is cut.
        never_split: names of ``bpe.NEVER_SPLIT`` or regular expressions: what they match is whole.
        special_tokens: cut out of the text, never counted, given reserved ids.
    """

    pretokenizer: str = "gpt2"
    pattern: str | tuple[str, ...] | None = None
    normalizer: tuple[str, ...] = ()
    never_split: tuple[str, ...] = ()
    special_tokens: tuple[str, ...] = ()

    @property
    def cut(self) -> Pretokenizer:
        """All but the special tokens, as one value.

        Raises:
            bpe.PretokenizerError: a name is unknown, or a pattern does not compile.
        """
        from bpe.pretokenize import Pretokenizer  # noqa: PLC0415 - `--help` does not wait for bpe

        return Pretokenizer.of(
            self.pretokenizer,
            self.pattern,
            normalizer=self.normalizer,
            never_split=self.never_split,
        )


@dataclass(frozen=True, kw_only=True)
class CountSettings:
    """What counts hold, and in how many files.

    Attributes:
        track_order: keep where each pre-token was first seen, for ties ``first-seen``.
        prune_below: pre-tokens that occur fewer times are dropped.
        shards: files of counts.
    """

    track_order: bool = False
    prune_below: int = 1
    shards: int = SHARDS


_WEIGHTS = "use a whole number (3), a decimal (0.5) or a fraction (1/3)"


@dataclass(frozen=True, kw_only=True)
class CountsInput:
    """Counts to train on: a directory of ``bpe count``, each count times ``weight``, exactly."""

    directory: str
    weight: Fraction | int = 1

    def __post_init__(self) -> None:
        if not self.directory:
            raise ConfigError("`counts` is empty: name a directory made by bpe count")
        if self.weight <= 0:
            raise ConfigError(
                f"`counts` {self.directory}: the weight {self.weight} is not above 0: {_WEIGHTS}"
            )

    @classmethod
    def parse(cls, text: str) -> CountsInput:
        """From ``DIR`` or ``DIR:WEIGHT``; a local directory of that whole name is meant first.

        Raises:
            ConfigError: the weight is no number above 0.
        """
        match = re.fullmatch(r"(.+):([^/:]*|[0-9]+/[0-9]+)", text, re.DOTALL)
        if match is None or Path(text).is_dir():
            return cls(directory=text)
        directory, weight = match.groups()
        if not re.fullmatch(r"-?[0-9]{1,19}(\.[0-9]{1,19}|/0*[1-9][0-9]{0,18})?", weight):
            raise ConfigError(
                f"`counts` {text}: the weight {weight!r} is not a number: {_WEIGHTS} "
                f"(for a directory of that name, write {text}:1)"
            )
        return cls(directory=directory, weight=Fraction(weight))


@dataclass(frozen=True, kw_only=True)
class TrainSettings:
    """The vocabulary to train; one of the two limits is given.

    Attributes:
        vocab_size: tokens in the vocabulary: special tokens, the alphabet (the 256 bytes, or the
            characters), and one for each merge that makes a new string; None for no limit.
        max_merges: merges at most; None for no limit.
        ties: the rule that picks among equally good pairs, one of ``bpe.TIES``.
        min_frequency: a pair that occurs fewer times is never merged.
        prune_below: pre-tokens that occur fewer times are dropped before.
        model: what a pre-token consists of; None for bytes.
        initial_alphabet: characters that have tokens in any case.
    """

    vocab_size: int | None = None
    max_merges: int | None = None
    ties: str = "bytes-min"
    min_frequency: int = 1
    prune_below: int = 1
    model: Model | None = None
    initial_alphabet: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.vocab_size is None and self.max_merges is None:
            raise ConfigError("the training has no limit: give `vocab_size`, `max_merges` or both")


@dataclass(frozen=True, kw_only=True)
class RowSettings:
    """How documents become rows of token ids; the manifest says it, and `bpe verify` does it again.

    Attributes:
        prepend_token: a special token put before the ids of each document, or None.
        append_token: a special token put behind them, or None.
        max_tokens: ids a row has at most: longer documents are cut into chunks; None for no limit.
        pack: ids that each row has, of consecutive documents; None for a row a document.
        pack_remainder: what becomes of the ids of a split that do not fill a row: ``keep`` makes
            them a shorter last row, ``drop`` leaves them out.
        allow_special: special tokens that are recognised in documents, or ``("all",)``.
        dropout: how often a merge is dropped (BPE-dropout), 0 to 1.
        dropout_seed: where the random numbers begin; each document has its own, made of this, the
            name of its file and its place in it.

    Raises:
        ConfigError: a value is out of range, or two exclude each other.
    """

    prepend_token: str | None = None
    append_token: str | None = None
    max_tokens: int | None = None
    pack: int | None = None
    pack_remainder: PackRemainder = "keep"
    allow_special: tuple[str, ...] = ()
    dropout: float = 0.0
    dropout_seed: int = 0

    def __post_init__(self) -> None:
        for option, size, most in (
            ("`max_tokens`", self.max_tokens, MAX_ROW_TOKENS),
            ("`pack`", self.pack, MAX_PACK),
        ):
            if size is not None and not 1 <= size <= most:
                raise ConfigError(f"{option} {size} is not between 1 and {most}")
        if self.pack is not None and self.max_tokens is not None:
            raise ConfigError(
                "`pack` and `max_tokens` exclude each other: packed rows have one length, "
                "whatever documents they are of: choose one"
            )
        if self.pack_remainder not in PACK_REMAINDERS:
            raise ConfigError(
                f"`pack_remainder` {self.pack_remainder!r} is unknown: use one of "
                f"{', '.join(PACK_REMAINDERS)}"
            )
        if self.pack_remainder != "keep" and self.pack is None:
            raise ConfigError(
                f"`pack_remainder` {self.pack_remainder} goes with `pack` N: without it, nothing "
                "remains"
            )
        if not 0 <= self.dropout <= 1:  # not a number is neither
            raise ConfigError(f"`dropout` {self.dropout} is not a rate between 0 and 1")
        if not 0 <= self.dropout_seed <= MAX_SEED:
            raise ConfigError(f"`dropout_seed` {self.dropout_seed} is not between 0 and 2^63 - 1")
        if self.dropout_seed and not self.dropout:
            raise ConfigError("`dropout_seed` goes with `dropout` P: without it, nothing is random")

    def to_json(self) -> dict[str, Any]:
        """The settings as JSON values."""
        values = {field.name: getattr(self, field.name) for field in fields(RowSettings)}
        return {**values, "allow_special": list(self.allow_special)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> RowSettings:
        """What `to_json` made.

        Raises:
            KeyError, TypeError, ConfigError: it is something else.
        """
        return RowSettings(**{**value, "allow_special": tuple(value["allow_special"])})


@dataclass(frozen=True, kw_only=True)
class EncodeSettings(RowSettings):
    """What rows of token ids hold.

    Attributes:
        keep: fields (jsonl) or columns (parquet) that pass through, each ``NAME`` or ``NAME:TYPE``.
        id_type: of the ids; ``auto`` is ``uint16`` where every id of the vocabulary fits.
    """

    keep: tuple[str, ...] = ()
    id_type: IdType = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.id_type not in ID_TYPES:
            raise ConfigError(
                f"`id_type` {self.id_type!r} is unknown: use one of {', '.join(ID_TYPES)}"
            )
        for name in self.keep:
            if not name:
                raise ConfigError("`keep` is empty: name a field or column")
            if self.keep.count(name) > 1:
                raise ConfigError(f"`keep` {name} is given twice: once is enough")

    @classmethod
    def of(cls, **arguments: Unpack[EncodeArguments]) -> EncodeSettings:
        """From arguments as a program gives them: any sequences of names."""
        for name in ("keep", "allow_special"):
            if name in arguments:
                arguments[name] = several(name, arguments[name])
        return cls(**arguments)  # type: ignore[arg-type]  # sequences are tuples by now

    @property
    def rows(self) -> RowSettings:
        """How documents become rows, without what they hold beside ids."""
        return RowSettings.from_json(self.to_json())


@dataclass(frozen=True, kw_only=True)
class Execution:
    """Which runner does the work and with how many workers.

    Attributes:
        runner: a Beam runner; ``DirectRunner`` is this process (``FnApiRunner``, pinned).
        workers: threads or processes of the local runner; 0 means one for each core.
        beam_args: handed to Beam unchanged (what stands after ``--``).
        stage: how workers of other environments get this package: ``wheel``, ``sdist``, ``none``
            where they have it, ``auto`` to go by Beam's options.
        package: a wheel or sdist of this package, in place of one that is built; empty for none.
        shared_paths: local directories that workers elsewhere see under the same names.
    """

    runner: str = "DirectRunner"
    workers: int = 0
    beam_args: tuple[str, ...] = ()
    stage: Staging = "auto"
    package: str = ""
    shared_paths: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.stage not in STAGINGS:
            raise ConfigError(f"`stage` {self.stage!r} is unknown: use {', '.join(STAGINGS)}")
        if self.package and self.stage == "none":
            raise ConfigError("`package` and `stage` none exclude each other: leave one out")
        if self.workers < 0:
            raise ConfigError(f"`workers` {self.workers} is negative: use 0 for one a core")

    @property
    def worker_count(self) -> int:
        """The number of local workers: what was asked for, or the cores this process may use."""
        return self.workers or cores()


def cores() -> int:
    """The cores this process may use, where the system can tell; else those of the machine."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def several(name: str, values: Sequence[str]) -> tuple[str, ...]:
    """The values of an argument that takes several; one string is none of them.

    Raises:
        ConfigError: it is one string.
    """
    if isinstance(values, str):
        raise ConfigError(f"{name} is one string: give a list, [{values!r}]")
    return tuple(values)
