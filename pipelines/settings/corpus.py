"""The settings of a job's inputs, output, pre-tokens and appending."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from bpe.names import NORMALIZERS, PRETOKENIZERS
from pipelines.errors import ConfigError
from pipelines.formats import FileFormat
from pipelines.option import (
    Natural,
    Seconds,
    Settings,
    Size,
    advanced,
    list_of,
    option,
)
from pipelines.settings.shares import split_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bpe.pretokenizer import Pretokenizer

Format = Literal["auto"] | FileFormat
MAX_RECORD = 1 << 30
LARGEST_RECORD = 2_000_000_000
NO_NORMALIZER = "none"


@dataclass(frozen=True, kw_only=True)
class InputSettings(Settings, group="Input"):
    """The documents that a job reads; one without an id has ``name:position`` as its id.

    Attributes:
        patterns: File, directory or glob (quote it) to read; repeatable. s3:// and other stores
            work too. NAME= names the source; write a path that contains = as ./a=b.
        format: How files divide into documents. text: one per file; lines: one per line; jsonl,
            parquet: one per record; auto: by file extension (jsonl: .jsonl .ndjson .json; parquet:
            .parquet .pq; all others text), without README and LICENSE files. Compressed files (.gz,
            .zst, .bz2, .xz) are decompressed.
        text_field: Field or column of the text (jsonl, parquet); repeatable. NAME= limits this to
            one source. A dot leads into objects or structs: data.text.
        id_field: Field or column of the document's id, written as for --text-field.
        max_record_size: Maximum size of a record, decompressed. Longer records are bad records.
        split_size: Size of a split: the input that a worker processes at a time.
        max_failures: Tolerate up to N bad records: they go to dead-letters/ of the output, if there
            is one. One more ends the job.
    """

    patterns: tuple[str, ...] = option(name="input", metavar="[NAME=]PATTERN")
    format: Format = option("auto", metavar="NAME")
    text_field: str | tuple[str, ...] = option("text", metavar="[NAME=]FIELD")
    id_field: str | tuple[str, ...] | None = advanced(
        None, metavar="[NAME=]FIELD", default_is="id if present, otherwise file name and position"
    )
    max_record_size: Size = advanced(MAX_RECORD, maximum=LARGEST_RECORD, default_is="1GiB")
    split_size: Size | None = advanced(
        None, default_is="1/64 of the corpus, from 8MiB to 256MiB (over 27 TB: more)"
    )
    max_failures: Natural = option(0)

    def __post_init__(self) -> None:
        if not self.patterns:
            raise ConfigError("no input: give at least one `input` file, directory or pattern")
        if any(not pattern for _, pattern in self.named_patterns):
            raise ConfigError("`input` is empty: name a file, a directory or a pattern")
        super().__post_init__()
        self.text_fields()
        self.id_fields()

    @property
    def named_patterns(self) -> tuple[tuple[str, str], ...]:
        """Return the source of each pattern, empty where it has no name, and the pattern itself."""
        return tuple(map(split_name, self.patterns))

    @property
    def sources(self) -> tuple[str, ...]:
        """Return the names of the sources, in the order of the patterns."""
        return tuple(dict.fromkeys(name for name, _ in self.named_patterns if name))

    def text_fields(self) -> dict[str, str]:
        """Return the field of the text by source; the empty name stands for all other sources.

        Raises:
            ConfigError: a field is empty, given twice, or of a source that no pattern names.
        """
        return {"": "text", **self._fields("text_field", self.text_field)}

    def id_fields(self) -> dict[str, str]:
        """Return the field of the id by source, as `text_fields` does; empty if none is given.

        Raises:
            ConfigError: as `text_fields`.
        """
        return self._fields("id_field", self.id_field or ())

    def _fields(self, option: str, given: str | tuple[str, ...]) -> dict[str, str]:
        sources, found = self.sources, dict[str, str]()
        for text in (given,) if isinstance(given, str) else given:
            name, value = split_name(text) if sources else ("", text)
            if not value:
                raise ConfigError(f"`{option}` is empty: name the field that holds it")
            if name and name not in sources:
                raise ConfigError(
                    f"`{option}` {text}: no `input` is named {name}: the sources are "
                    f"{', '.join(sources)}"
                )
            if name in found:
                of = f"of {name}" if name else "of all inputs"
                raise ConfigError(f"`{option}` {of} is given twice: once is enough")
            found[name] = value
        return found

    @classmethod
    def of(cls, patterns: Sequence[str], **arguments: Any) -> InputSettings:
        """Return the settings for any sequence of patterns."""
        return cls(patterns=list_of("inputs", patterns), **arguments)


@dataclass(frozen=True, kw_only=True)
class OutputSettings(Settings, group="Output"):
    """The output directory of a job, and the treatment of its contents.

    Attributes:
        directory: Output directory; created if missing.
        overwrite: Replace the output of an earlier job in DIR.
        resume: Continue an interrupted run of this job. Complete parts and counts are kept; an
            interrupted count starts over.
    """

    directory: str = option(name="output", metavar="DIR")
    overwrite: bool = option(False)
    resume: bool = option(False, excludes=("overwrite",))

    def __post_init__(self) -> None:
        if not self.directory:  # an argument of every job, of another name
            raise ConfigError("`output` is empty: name a directory")
        super().__post_init__()


@dataclass(frozen=True, kw_only=True)
class PretokenSettings(Settings, group="Text"):
    """The cutting of text before it is counted or trained on.

    A pattern takes the place of the pre-tokenizer; several are applied one after the other.

    Attributes:
        pretokenizer: How to split text into pre-tokens. gpt2, cl100k (GPT-4), o200k (GPT-4o),
            llama3, qwen2: as for these models; words: on whitespace, which is dropped; spaces: on
            U+0020, which is dropped; bert: like words, with punctuation split off; none: no split.
        pattern: Regular expression to use instead of --pretokenizer; repeatable, applied in order.
            It is of the regex package, or the name of a pre-tokenizer. Expressions that need
            backtracking are many times slower.
        normalizer: Normalize text before it is split; repeatable, applied in order. none overrides
            presets and configuration files.
        never_split: Never split text that matches this: url, email, or a regular expression;
            repeatable.
        special_tokens: Token with its own id, such as '<|endoftext|>'; repeatable. Text is split
            around the token, which is not counted.
    """

    pretokenizer: str | None = option(
        None, choices=PRETOKENIZERS, excludes=("pattern",), metavar="NAME", default_is="gpt2"
    )
    pattern: str | tuple[str, ...] | None = option(None, metavar="REGEX")
    normalizer: tuple[str, ...] = advanced(
        (), choices=(*NORMALIZERS, NO_NORMALIZER), metavar="NAME"
    )
    never_split: tuple[str, ...] = advanced((), metavar="PATTERN")
    special_tokens: tuple[str, ...] = option((), name="special_token", metavar="TOKEN")

    def __post_init__(self) -> None:
        super().__post_init__()
        if NO_NORMALIZER in self.normalizer:
            if len(self.normalizer) > 1:
                raise ConfigError(
                    "`normalizer` none goes with no other: leave out the others, or it"
                )
            object.__setattr__(self, "normalizer", ())

    @property
    def gives_cut(self) -> bool:
        """True if an option says how text is cut, be it as by default."""
        return any((self.pretokenizer, self.pattern, self.normalizer, self.never_split))

    @property
    def cut(self) -> Pretokenizer:
        """Return all but the special tokens, as one value.

        Raises:
            bpe.errors.PretokenizerError: a name is unknown, or a pattern does not compile.
        """
        from bpe.pretokenizer import Pretokenizer  # noqa: PLC0415 - `--help` does not wait for bpe

        return Pretokenizer.of(
            self.pretokenizer or "gpt2",
            self.pattern,
            normalizer=self.normalizer,
            never_split=self.never_split,
        )


@dataclass(frozen=True, kw_only=True)
class AppendSettings(Settings, group="Appending"):
    """The choice to take only files that the directory has not yet; times in seconds.

    Attributes:
        append: Take only new and changed files; begin DIR if it is empty. A file that cannot be
            read is set aside until it changes.
        prune: With --append: remove the parts of files that changed. Exports of removed parts
            cannot be resumed.
        watch: Append every so many seconds until a signal ends it; implies --append.
        stop_after: With --watch: stop after this many seconds.
        settle: With --append: seconds that a file must stay unchanged before it is read.
    """

    append: bool = option(False)
    prune: bool = advanced(False, needs="append | watch")
    watch: Seconds | None = option(None, minimum=0.1, default_is="append once")
    stop_after: Seconds | None = advanced(None, needs="watch", default_is="never")
    settle: Seconds | None = advanced(
        None, needs="append | watch", default_is="5 with --watch, else 0"
    )

    @property
    def appends(self) -> bool:
        """True if the job appends."""
        return self.append or self.watch is not None

    @property
    def settled_after(self) -> float:
        """Seconds that a file must stay unchanged."""
        return self.settle if self.settle is not None else 0.0 if self.watch is None else 5.0
