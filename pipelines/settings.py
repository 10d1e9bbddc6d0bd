"""What a job is asked to do: frozen, validated when made.

The command line, job files, Python and docs/commands.md go by the declarations here. A command
declares the options that are its own alone, such as ``--tokenizer``, where it is written
(`pipelines.cli.command.own_option`).
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from pipelines.errors import ConfigError
from pipelines.formats import (
    WITH_COLUMNS,
    FileFormat,
    documents_described,
    suffixes_described,
)
from pipelines.option import (
    Group,
    changed,
    check_declared,
    option,
    parse_exact_share,
    percent,
    several,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bpe.models import Model
    from bpe.pretokenizer import Pretokenizer

Format = Literal["auto"] | FileFormat
FORMATS: tuple[str, ...] = ("auto", *get_args(FileFormat))
IdType = Literal["auto", "uint16", "uint32"]
ParquetEncoding = Literal["byte-stream-split", "plain"]
Staging = Literal["auto", "none"]
CompleteWhen = Literal["settled", "marker"]
PackRemainder = Literal["keep", "drop", "pad"]
Packing = Literal["concatenate", "best-fit"]
AddedColumn = Literal["document_ids", "position_ids", "cu_seqlens"]
ADDED_COLUMNS: tuple[AddedColumn, ...] = get_args(AddedColumn)
ShareOf = Literal["bytes", "pretokens", "tokens"]
SHARES_OF: tuple[str, ...] = get_args(ShareOf)
# A row must fit one Parquet page, whose size is a signed 32-bit number; ids are stored in 4 bytes.
MAX_ROW_TOKENS = 1 << 28
MAX_PACK = 1 << 20
MAX_RECORD = 1 << 30
LARGEST_RECORD = 2_000_000_000
MAX_SEED = (1 << 63) - 1
ExportFormat = Literal["parquet", "bin", "megatron", "mds", "litdata"]
BinHeader = Literal["none", "llm.c"]
SHARD_SIZE = 64 << 20  # of an export whose format has shards of a size
MAX_SHARD_SIZE = 1 << 31  # their offsets are numbers of 32 bits, and a last row may lie behind it
SHARDS = 16  # of counts

# As the library has them (tests compare): `--help` does not wait for bpe.
PRETOKENIZERS = ("gpt2", "cl100k", "o200k", "llama3", "qwen2", "words", "spaces", "bert", "none")
NORMALIZERS = (
    *("nfc", "nfd", "nfkc", "nfkd", "lowercase"),
    *("strip-accents", "strip-nonspacing", "clean-text", "space-han"),
    *("mark-spaces", "prepend-mark", "ensure-mark", "ensure-first-mark"),
)
NO_NORMALIZER = "none"
MERGE_PATTERN = r"\p{L}"
TIES = ("bytes-min", "bytes-max", "gpt2-max", "id-min", "huggingface", "first-seen")
PAIR_COUNTS = ("overlapping", "disjoint")
MODELS = ("bpe", "wordpiece", "sentencepiece-bpe")
SYMBOLS = ("bytes", "characters")
# That shells complete; any that Beam knows will do.
RUNNERS = (
    *("DirectRunner", "DataflowRunner", "FlinkRunner"),
    *("PortableRunner", "PrismRunner", "SparkRunner"),
)


@dataclass(frozen=True, kw_only=True)
class InputSettings:
    """Which documents a job reads; a place is ``name:position`` where a record has no id."""

    _GROUP: ClassVar[Group] = "Input"

    patterns: tuple[str, ...] = option(
        name="input",
        metavar="[NAME=]PATTERN",
        help="File, directory or glob (quote it) to read; repeatable. A local path, or a URL: "
        "s3://, gs://, abfs://, hdfs:// or any scheme that fsspec supports. NAME (letters, "
        "digits, '-', '_') says of which source the files are; a path that begins like that "
        "is written ./a=b.",
    )
    format: Format = option(
        "auto",
        metavar="NAME",
        help=f"How files divide into documents. {documents_described()}; auto: by file "
        f"extension ({suffixes_described()}; all others text), without README and LICENSE "
        "files; a directory or glob that mixes records and text is an error, and so are names "
        "of records that are not read (.csv, .jsonl.bak). Compressed files (.jsonl.gz, "
        ".json.zst, .txt.bz2, .xz) are decompressed.",
    )
    text_field: str | tuple[str, ...] = option(
        "text",
        metavar="[NAME=]FIELD",
        help="Field or column of the text; of all inputs or of the source NAME "
        f"({', '.join(WITH_COLUMNS)}); repeatable. With dots, a field inside objects or structs "
        "(data.text), unless a field has that whole name.",
    )
    id_field: str | tuple[str, ...] | None = option(
        None,
        metavar="[NAME=]FIELD",
        default_is="id if present, otherwise file name and position",
        advanced=True,
        help="Field or column of the document's id, written as for --text-field.",
    )
    max_record_size: int = option(
        MAX_RECORD,
        kind="size",
        minimum=1,
        maximum=LARGEST_RECORD,
        metavar="SIZE",
        default_is="1GiB",
        advanced=True,
        help="Maximum record size after decompression. Longer records are bad records "
        "(--max-failures), and are skipped in bounded memory.",
    )
    split_size: int | None = option(
        None,
        kind="size",
        minimum=1,
        metavar="SIZE",
        default_is="1/64 of the corpus, between 8MiB and 256MiB",
        advanced=True,
        help="Size of a split, the input that a worker processes at a time, such as 64MiB.",
    )
    max_failures: int = option(
        0,
        minimum=0,
        metavar="N",
        help="Tolerate up to N bad records: they are written to dead-letters/. More fail the "
        "job: at once in a split, over all splits before its output is complete.",
    )

    def __post_init__(self) -> None:
        if not self.patterns:
            raise ConfigError("no input: give at least one `input` file, directory or pattern")
        if any(not pattern for _, pattern in self.named_patterns):
            raise ConfigError("`input` is empty: name a file, a directory or a pattern")
        check_declared(self)
        self.text_fields()
        self.id_fields()

    @property
    def named_patterns(self) -> tuple[tuple[str, str], ...]:
        """The source of each pattern, empty where it has no name, and the pattern itself."""
        return tuple(map(split_name, self.patterns))

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of the sources, in the order of the patterns."""
        return tuple(dict.fromkeys(name for name, _ in self.named_patterns if name))

    def text_fields(self) -> dict[str, str]:
        """The field of the text, by source; that of all others at the empty name.

        Raises:
            ConfigError: it is empty, given twice, or of a source that no pattern names.
        """
        return {"": "text", **self._fields("text_field", self.text_field)}

    def id_fields(self) -> dict[str, str]:
        """The field of the id likewise, as far as one is given.

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
        """From arguments as a program gives them: any sequence of patterns."""
        return cls(patterns=several("inputs", patterns), **arguments)


@dataclass(frozen=True, kw_only=True)
class OutputSettings:
    """Where a job writes, and what it does with what is there already."""

    _GROUP: ClassVar[Group] = "Output"

    directory: str = option(
        name="output", metavar="DIR", help="Output directory; created if missing."
    )
    overwrite: bool = option(False, help="Replace the output of an earlier job in DIR.")
    resume: bool = option(
        False,
        help="Continue an interrupted run of this job. Complete counts and parts are kept; a "
        "count that was interrupted starts over.",
    )

    def __post_init__(self) -> None:
        if not self.directory:
            raise ConfigError("`output` is empty: name a directory")
        if self.overwrite and self.resume:
            raise ConfigError("`overwrite` and `resume` exclude each other: choose one")


@dataclass(frozen=True, kw_only=True)
class PretokenSettings:
    """How text is cut before it is counted or trained on.

    A pattern takes the place of the pre-tokenizer; several are applied one after the other.
    """

    _GROUP: ClassVar[Group] = "Text"

    pretokenizer: str = option(
        "gpt2",
        choices=PRETOKENIZERS,
        metavar="NAME",
        help="How to split text into pre-tokens, across which no pair is merged. gpt2, cl100k "
        "(GPT-4), o200k (GPT-4o), llama3, qwen2: as for these models; words: split on "
        "whitespace and discard it; spaces: split on U+0020 only, and discard it; bert: like "
        "words, with each punctuation mark split off; none: do not split.",
    )
    pattern: str | tuple[str, ...] | None = option(
        None,
        metavar="REGEX",
        help="Regular expression to use instead of --pretokenizer; repeatable. Its syntax is that "
        "of the regex package. Expressions and names are applied in order. Expressions that "
        "need backtracking, such as backreferences, are many times slower.",
    )
    normalizer: tuple[str, ...] = option(
        (),
        choices=(*NORMALIZERS, NO_NORMALIZER),
        metavar="NAME",
        advanced=True,
        help="Normalize text before it is split. Repeatable, applied in order. none: no "
        "normalization, overriding presets and configuration files.",
    )
    never_split: tuple[str, ...] = option(
        (),
        metavar="PATTERN",
        advanced=True,
        help="Never split text that matches this: url, email, or a regular expression; repeatable.",
    )
    special_tokens: tuple[str, ...] = option(
        (),
        name="special_token",
        metavar="TOKEN",
        help="Token with its own id, such as '<|endoftext|>'. Text is split around it, and it "
        "is not counted; repeatable.",
    )

    def __post_init__(self) -> None:
        check_declared(self)

    @property
    def cut(self) -> Pretokenizer:
        """All but the special tokens, as one value.

        Raises:
            bpe.errors.PretokenizerError: a name is unknown, or a pattern does not compile.
        """
        from bpe.pretokenizer import Pretokenizer  # noqa: PLC0415 - `--help` does not wait for bpe

        return Pretokenizer.of(
            self.pretokenizer,
            self.pattern,
            normalizer=self.normalizer,
            never_split=self.never_split,
        )


def _prune_below() -> Any:
    return option(
        1,
        group="Text",
        minimum=1,
        metavar="N",
        advanced=True,
        help="Drop pre-tokens that occur fewer than N times in the corpus. The output records how "
        "much was dropped.",
    )


@dataclass(frozen=True, kw_only=True)
class CountSettings:
    """What counts hold, and in how many files."""

    _GROUP: ClassVar[Group] = "Output"

    track_order: bool = option(
        False,
        advanced=True,
        help="Also record where each pre-token first occurs. --ties first-seen needs it.",
    )
    prune_below: int = _prune_below()
    shards: int = option(
        SHARDS,
        minimum=1,
        maximum=99_999,
        metavar="N",
        advanced=True,
        help="Number of Parquet files of counts.",
    )
    group_by: str | None = option(
        None,
        metavar="NAME",
        help="Keep the counts of each value of this field or column (a language, say) in a "
        "directory of its own, DIR/NAME=VALUE; with dots as for --text-field. A record without "
        "a string or number there is a bad record.",
    )
    max_groups: int = option(
        1000,
        minimum=1,
        maximum=99_999,
        metavar="N",
        advanced=True,
        help="Most values that the field of --group-by may have; more end the job.",
    )

    def __post_init__(self) -> None:
        check_declared(self)
        if self.group_by == "":
            raise ConfigError("`group_by` is empty: name a field")


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """Which adjacent tokens are a run, of which superwords are learnt."""

    _GROUP: ClassVar[Group] = "Text"

    merge_pattern: str = option(
        MERGE_PATTERN,
        metavar="REGEX",
        advanced=True,
        help="With runs: only pre-tokens that this regular expression matches somewhere become "
        "parts of a run, and so of a superword. By default, they hold a letter.",
    )
    max_run: int | None = option(
        None,
        minimum=2,
        metavar="N",
        default_is="no limit",
        advanced=True,
        help="With runs: cut longer runs into pieces of N tokens. Pairs across a cut are not "
        "counted. The output records how much that may change.",
    )

    def __post_init__(self) -> None:
        check_declared(self)


_WEIGHTS = "use a whole number (3), a decimal (0.5), a fraction (1/3) or a share of the mix (60%)"


@dataclass(frozen=True, kw_only=True)
class CountsInput:
    """Counts to train on: a directory of ``bpe count``, each count times ``weight``, exactly.

    Attributes:
        directory: of the counts.
        weight: the factor.
        share: of the mix, from 0 to 1, instead of a weight: `pipelines.train.train` chooses it.
        source: of a mix of the corpus that these are the counts of; empty for other counts.
    """

    directory: str
    weight: Fraction | int = 1
    share: Fraction | None = None
    source: str = ""

    def __post_init__(self) -> None:
        if not self.directory:
            raise ConfigError("`counts` is empty: name a directory made by bpe count")
        if self.weight <= 0:
            raise ConfigError(
                f"`counts` {self.directory}: the weight {self.weight} is not above 0: {_WEIGHTS}"
            )
        if self.share is not None and not 0 < self.share <= 1:
            raise ConfigError(
                f"`counts` {self.directory}: the share {percent(self.share)} is not above 0 and "
                "at most 100%"
            )

    @property
    def title(self) -> str:
        """What the record of a training calls them."""
        return self.source or self.directory

    @classmethod
    def parse(cls, text: str) -> CountsInput:
        """From ``DIR``, ``DIR:WEIGHT`` or ``DIR:SHARE%``; a local directory of that name is meant.

        Raises:
            ConfigError: the weight is no number above 0.
        """
        match = re.fullmatch(r"(.+):([^/:]*|[0-9]+/[0-9]+)", text, re.DOTALL)
        if match is None or Path(text).is_dir():
            return cls(directory=text)
        directory, weight = match.groups()
        if re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,19})?%", weight):
            return cls(directory=directory, share=Fraction(weight.removesuffix("%")) / 100)
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
        model: what a pre-token consists of; None for bytes. `ModelSettings` says it in options.
    """

    _GROUP: ClassVar[Group] = "Vocabulary"

    vocab_size: int | None = option(
        None,
        minimum=1,
        metavar="N",
        help="Maximum vocabulary size: special tokens, the 256 bytes (or all characters), and "
        "merges.",
    )
    max_merges: int | None = option(
        None,
        minimum=0,
        metavar="N",
        advanced=True,
        help="Maximum number of merges; instead of, or in addition to, --vocab-size.",
    )
    ties: str = option(
        "bytes-min",
        choices=TIES,
        metavar="RULE",
        help="Which of several equally frequent pairs to merge first. bytes-min, bytes-max: "
        "the smallest or greatest pair of byte strings; gpt2-max: the greatest pair of strings "
        "in GPT-2's printable alphabet; id-min: the pair with the smallest ids; huggingface: "
        "as Hugging Face's trainer does (the same merges if no special token occurs in the "
        "corpus); first-seen: the pair that occurs first in the corpus.",
    )
    pair_counts: str = option(
        "overlapping",
        choices=PAIR_COUNTS,
        metavar="HOW",
        advanced=True,
        help="How often a pair of equal symbols occurs in a row of them. overlapping: at every "
        "position (aaaa holds (a, a) three times); disjoint: as often as a merge joins it (two "
        "times), as the trainers of SuperBPE and BoundlessBPE count.",
    )
    min_frequency: int = option(1, minimum=1, metavar="N", help="Minimum count of a pair to merge.")
    prune_below: int = _prune_below()
    extend: str | None = option(
        None,
        metavar="FILE",
        help="Extend this byte-level tokenizer: keep its ids and merges, and learn more. "
        "tokenizer.json, a .tiktoken file, or the name of a published vocabulary. Text is "
        "split as it splits it, and its special tokens stay. --vocab-size is the size of the "
        "result, --max-merges the number of new merges.",
    )
    superwords: int | None = option(
        None,
        minimum=1,
        metavar="N",
        help="Learn up to N superwords (SuperBPE): tokens that cross word boundaries, on top of "
        "the vocabulary of words, which --vocab-size and --max-merges describe.",
    )
    boundless: bool = option(
        False,
        help="Let superwords compete with merges of words (BoundlessBPE). "
        "The vocabulary keeps the size of that of words.",
    )
    prune_runs_below: int = option(
        1,
        minimum=1,
        metavar="N",
        advanced=True,
        help="With --superwords and --boundless: drop runs, of which superwords are learnt, "
        "that occur fewer than N times in the corpus. The output records how much was dropped.",
    )
    model: Model | None = None
    initial_alphabet: tuple[str, ...] = option(
        (),
        several=False,
        metavar="CHARACTERS",
        advanced=True,
        help="Characters that become tokens even if the corpus does not contain them.",
    )

    character_coverage: float | None = option(
        None,
        kind="share",
        metavar="SHARE",
        default_is="99.95% for sentencepiece-bpe, else 100%",
        advanced=True,
        help="Share of all characters that get tokens, the most frequent ones, such as 99.95% "
        "or 0.9995. The others become bytes (sentencepiece-bpe) or the unknown token.",
    )

    def __post_init__(self) -> None:
        check_declared(self)
        if self.superwords is not None and self.boundless:
            raise ConfigError(
                "`superwords` and `boundless` exclude each other: superwords come on top of the "
                "vocabulary of words, or compete with it: choose one"
            )
        if self.prune_runs_below != 1 and not self.crosses_words:
            raise ConfigError("`prune_runs_below` goes with `superwords` or `boundless`")
        if self.vocab_size is None and self.max_merges is None and not self.crosses_words:
            raise ConfigError("the training has no limit: give `vocab_size`, `max_merges` or both")

    @property
    def crosses_words(self) -> bool:
        """Whether superwords are learnt."""
        return self.superwords is not None or self.boundless

    @property
    def is_of_superwords(self) -> bool:
        """Whether nothing else is learnt: the words are those of the tokenizer extended."""
        return self.crosses_words and self.vocab_size is None and self.max_merges is None

    @property
    def words(self) -> TrainSettings:
        """The same without superwords, which must have a limit of its own."""
        return replace(self, superwords=None, boundless=False, prune_runs_below=1)

    def superwords_on(self, words: str) -> TrainSettings:
        """The same for superwords alone.

        Args:
            words: the file of the tokenizer of words, which is extended.
        """
        return TrainSettings(
            superwords=self.superwords,
            boundless=self.boundless,
            ties=self.ties,
            pair_counts=self.pair_counts,
            min_frequency=self.min_frequency,
            prune_runs_below=self.prune_runs_below,
            extend=words,
        )


PARITY_TIES, PARITY_MIN_FREQUENCY = "gpt2-max", 2  # of the authors' program; as bpe.parity has them


@dataclass(frozen=True, kw_only=True)
class ParitySettings:
    """Parity-aware training: directories of counts are groups, which choose merges in turn.

    Attributes:
        parity: whether they do.
    """

    _GROUP: ClassVar[Group] = "Vocabulary"

    parity: bool = option(
        False,
        help="Parity-aware BPE: each directory of --counts is a group, such as a language (in "
        "bpe run, each value of --group-by); at each step, the group that is compressed worst "
        f"chooses the pair. The defaults are then --ties {PARITY_TIES} and --min-frequency "
        f"{PARITY_MIN_FREQUENCY}.",
    )
    dev_counts: tuple[str, ...] = option(
        (),
        metavar="DIR",
        default_is="the group with the fewest bytes per token in the text to train on",
        advanced=True,
        help="Counts of held-out text of the same groups (--parity): the group with the most "
        "tokens there is compressed worst; repeatable.",
    )
    global_merges: int = option(
        0,
        minimum=0,
        metavar="N",
        advanced=True,
        help="First choose N merges by the counts of all groups together (--parity).",
    )
    window: int | None = option(
        None,
        minimum=1,
        metavar="N",
        default_is="none",
        advanced=True,
        help="Pass over a group that chose more than its share, times --alpha, of the last N "
        "merges (--parity); the authors use 100.",
    )
    alpha: float = option(
        2.0,
        minimum=1,
        metavar="NUMBER",
        advanced=True,
        help="How many times its share of the --window a group may choose.",
    )

    def __post_init__(self) -> None:
        check_declared(self)
        if self.parity:
            return
        for name in ("dev_counts", "global_merges", "window"):
            if getattr(self, name):
                raise ConfigError(f"`{name}` needs `parity`")


@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """What words consist of, before and after merging; None where the model has its own default."""

    _GROUP: ClassVar[Group] = "Vocabulary"

    model: str = option(
        "bpe",
        choices=MODELS,
        metavar="NAME",
        help="How pairs are chosen. bpe: the most frequent pair; wordpiece: the pair with the "
        "greatest count(ab) / (count(a) count(b)), starting from characters; "
        "sentencepiece-bpe: the most frequent pair of characters, with spaces as U+2581, byte "
        "fallback, and SentencePiece's order of ids.",
    )
    symbols: str | None = option(
        None,
        choices=SYMBOLS,
        metavar="KIND",
        default_is="bytes; characters for wordpiece and sentencepiece-bpe",
        advanced=True,
        help="Symbols of a word before the first merge: bytes or characters.",
    )
    end_of_word: str | None = option(
        None,
        metavar="TEXT",
        default_is="</w>",
        advanced=True,
        help="Symbol appended to the characters of each word; '' for none.",
    )
    unknown_token: str | None = option(
        None,
        metavar="TOKEN",
        default_is="none; [UNK] for wordpiece, <unk> for sentencepiece-bpe",
        advanced=True,
        help="Special token for characters that are not in the vocabulary (wordpiece: for "
        "entire words). Without it, such characters are errors.",
    )


CHAT_TEMPLATES = {
    "chatml": "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + "
    "message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|im_start|>assistant\\n' }}{% endif %}"
}
_TOKENS_OF_TEMPLATES = {"chatml": ("<|im_start|>", "<|im_end|>")}


def _role(what: str, *, advanced: bool = False) -> Any:
    """A special token by what models use it for."""
    help_ = f"Special token that {what}; recorded in tokenizer_config.json."
    return option(None, metavar="TOKEN", advanced=advanced, help=help_)


def _adds(role: str, place: str) -> Any:
    help_ = (
        f"Let tokenizers and transformers add the --{role} token {place} each text. bpe encode "
        f"adds none unless --{'prepend' if role == 'bos' else 'append'}-token {role} asks for it."
    )
    return option(False, advanced=True, help=help_)


@dataclass(frozen=True, kw_only=True)
class RoleSettings:
    """What a model uses special tokens for; each that is named here becomes a special token."""

    _GROUP: ClassVar[Group] = "Vocabulary"

    bos: str | None = _role("begins a text, such as '<s>'")
    eos: str | None = _role("ends a text, such as '<|endoftext|>'")
    pad: str | None = _role("fills the shorter texts of a batch", advanced=True)
    unk: str | None = _role("stands for what has no token", advanced=True)
    add_bos: bool = _adds("bos", "before")
    add_eos: bool = _adds("eos", "after")
    chat_template: str | None = option(
        None,
        metavar="FILE|NAME",
        advanced=True,
        help="Jinja template of a conversation, for transformers' apply_chat_template: a file, "
        f"or {', '.join(CHAT_TEMPLATES)}, whose tokens become special tokens.",
    )

    def __post_init__(self) -> None:
        check_declared(self)
        for role in ("bos", "eos"):
            if getattr(self, f"add_{role}") and getattr(self, role) is None:
                raise ConfigError(f"`add_{role}` needs `{role}` TOKEN: which token to add")

    def with_tokens(self, pretokens: PretokenSettings) -> PretokenSettings:
        """The same with the tokens of these settings among the special tokens, behind the others.

        Raises:
            ConfigError: a token is empty.
        """
        tokens = [self.bos, self.eos, self.pad, self.unk]
        tokens += _TOKENS_OF_TEMPLATES.get(self.chat_template or "", ())
        named = [token for token in tokens if token is not None]
        if "" in named:
            raise ConfigError("the token of a role is empty: leave the role out")
        special = dict.fromkeys((*pretokens.special_tokens, *named))
        # As given where nothing is added, so that a duplicate is reported.
        if len(special) == len(pretokens.special_tokens):
            return pretokens
        return replace(pretokens, special_tokens=tuple(special))


_SOURCE = "[A-Za-z0-9_-]{1,200}"  # a folder can be called so


def split_name(text: str) -> tuple[str, str]:
    """The name and the rest of ``NAME=REST``; an empty name and all of any other text.

    >>> split_name("web=a/*.txt"), split_name("./a=b"), split_name("s3://b/a=b")
    (('web', 'a/*.txt'), ('', './a=b'), ('', 's3://b/a=b'))
    """
    match = re.match(f"({_SOURCE})=", text)
    return ("", text) if match is None else (match[1], text[match.end() :])


def parse_shares(mix: Sequence[str]) -> dict[str, Fraction]:
    """The share of each source of a mix, by name, above 0 and up to 1; empty where there is none.

    Args:
        mix: ``NAME=SHARE`` of each.

    Raises:
        ConfigError: a name or share is wrong, a source is named twice, or shares do not add up.
    """
    if isinstance(mix, str) or not all(isinstance(text, str) for text in mix):
        raise ConfigError(f"`mix` is a list of NAME=SHARE, such as ['web=100%'], not {mix!r:.60}")
    shares: dict[str, Fraction] = {}
    for text in mix:
        name, share = split_name(text)
        if not name:
            raise ConfigError(
                f"`mix` {text!r:.60}: write NAME=SHARE, such as web=70%, with a name of up to 200 "
                "letters, digits, '_' and '-'"
            )
        if name in shares:
            raise ConfigError(f"`mix` {text}: {name} is given twice: once is enough")
        try:
            shares[name] = parse_exact_share(share)
        except ValueError as error:
            raise ConfigError(f"`mix` {text}: {error}") from None
    for name, value in shares.items():
        if not value:
            raise ConfigError(f"`mix` {name}=0: leave the source out")
    if shares and sum(shares.values()) != 1:
        total = percent(sum(shares.values(), Fraction()))
        raise ConfigError(f"the shares of `mix` add up to {total}, not to 100%")
    return shares


@dataclass(frozen=True, kw_only=True)
class RowSettings:
    """How documents become rows of token ids; the manifest says it, and `bpe verify` does it again.

    What is not as by default goes into the fingerprint of a part: with another default, raise
    ``LAYOUT`` in encode/steps.py.

    Each document draws its random numbers from a seed of its own, made of ``dropout_seed``, the
    name of its file and its place in it.

    Raises:
        ConfigError: a value is out of range, or two exclude each other.
    """

    _GROUP: ClassVar[Group] = "Rows"

    prepend_token: str | None = option(
        None,
        metavar="TOKEN",
        help="Special token to prepend to the ids of each document, such as '<|bos|>'; or a "
        "role of the tokenizer's tokenizer_config.json: bos.",
    )
    append_token: str | None = option(
        None,
        metavar="TOKEN",
        help="Special token to append to the ids of each document, such as '<|endoftext|>'; or "
        "a role of the tokenizer's tokenizer_config.json: eos.",
    )
    allow_special: tuple[str, ...] = option(
        (),
        metavar="TOKEN",
        default_is="none: special tokens in documents are encoded as plain text",
        help="Special token to recognize in documents, or all; repeatable.",
    )
    dropout: float = option(
        0.0,
        minimum=0,
        maximum=1,
        metavar="P",
        help="Drop each merge with this probability (BPE-dropout).",
    )
    dropout_seed: int = option(
        0,
        minimum=0,
        maximum=MAX_SEED,
        metavar="N",
        advanced=True,
        help="Seed of --dropout. The same seed gives the same ids, however the corpus is split.",
    )
    parquet_encoding: ParquetEncoding = option(
        "byte-stream-split",
        metavar="NAME",
        advanced=True,
        help="How Parquet stores the ids. byte-stream-split: faster to write and to read, and "
        "smaller for most text. plain: for readers older than those in docs/rows.md.",
    )

    def __post_init__(self) -> None:
        check_declared(self)
        if self.dropout_seed and not self.dropout:
            raise ConfigError("`dropout_seed` goes with `dropout` P: without it, nothing is random")

    def to_json(self) -> dict[str, Any]:
        """What is not as by default, as JSON values."""
        return changed(self.rows)

    @property
    def rows(self) -> RowSettings:
        """How documents become rows, without what they hold beside ids."""
        return RowSettings(**{one.name: getattr(self, one.name) for one in fields(RowSettings)})


@dataclass(frozen=True, kw_only=True)
class EncodeSettings(RowSettings):
    """`RowSettings`, and what the command settles before workers begin: kept columns, id type.

    Ids are ``uint16`` where every id of the vocabulary fits.
    """

    _GROUP: ClassVar[Group] = "Rows"

    keep: tuple[str, ...] = option(
        (),
        metavar="NAME",
        help=f"Field or column ({', '.join(WITH_COLUMNS)}) to copy to the output; repeatable. "
        "NAME:TYPE, such as score:double or 'tags:list<string>', sets its type.",
    )
    id_type: IdType = option(
        "auto",
        metavar="TYPE",
        advanced=True,
        help="Type of the ids: uint16, uint32, or auto: uint16 if every id of the vocabulary fits.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in self.keep:
            if not name:
                raise ConfigError("`keep` is empty: name a field or column")
            if self.keep.count(name) > 1:
                raise ConfigError(f"`keep` {name} is given twice: once is enough")


@dataclass(frozen=True, kw_only=True)
class ExportSettings:
    """Which documents become rows of which shape, in which order and format.

    Raises:
        ConfigError: a value is out of range, or two exclude each other.
    """

    _GROUP: ClassVar[Group] = "Rows"

    to: ExportFormat = option(
        group="Output",
        metavar="FORMAT",
        help="Format of the files. parquet; bin: ids and nothing else (nanoGPT, llm.c); "
        "megatron: .bin with .idx (Megatron-LM, NeMo); mds: MosaicML's "
        "StreamingDataset; litdata: chunks for litdata's TokensLoader (LitGPT).",
    )
    validation: float = option(
        0.0,
        group="Documents",
        kind="share",
        metavar="SHARE",
        default_is="none",
        help="Hold out this share of the documents, such as 0.5%, for validation: those with a "
        "small `key`. They go to files of their own, and are never training rows.",
    )
    mix: tuple[str, ...] = option(
        (),
        group="Documents",
        metavar="NAME=SHARE",
        default_is="all documents",
        help="Take training documents so that this share of all tokens, such as 70% or 1/3, is "
        "of the source NAME; repeatable. The shares add up to 100%. A hash of the document's "
        "`key` orders those of each source, and the first are taken.",
    )
    token_budget: int | None = option(
        None,
        group="Documents",
        minimum=1,
        metavar="N",
        default_is="all documents; with --mix, the most for which none repeats",
        help="Take N training tokens, such as 10B. A source that has fewer than its share is "
        "taken several times. With several sources, --mix gives the shares.",
    )
    mix_seed: int = option(
        0,
        group="Documents",
        minimum=0,
        maximum=MAX_SEED,
        metavar="SEED",
        advanced=True,
        help="With --mix or --token-budget: another seed takes other documents.",
    )
    shuffle: int | None = option(
        None,
        group="Documents",
        minimum=0,
        maximum=MAX_SEED,
        metavar="SEED",
        default_is="the order of the sources",
        help="Shuffle the documents, before they are packed. The same seed gives the same "
        "order. Until the job ends, the ids lie in temporary files below DIR/.work.",
    )
    pack: int | None = option(
        None,
        minimum=1,
        maximum=MAX_PACK,
        metavar="N",
        default_is="a row a document",
        help="Fill rows of N ids with consecutive documents. At most one row for training and "
        "one for validation is shorter.",
    )
    packing: Packing = option(
        "concatenate",
        metavar="RULE",
        advanced=True,
        help="With --pack: concatenate: consecutive documents, cut where a row ends; best-fit: "
        "cut only documents longer than a row, and put each into the row that it fills best. "
        "Any of these rows may be short; --pack-remainder pad fills them.",
    )
    pack_remainder: PackRemainder = option(
        "keep",
        metavar="RULE",
        advanced=True,
        help="What to do with the ids that do not fill the last row. keep: write a shorter "
        "row; drop: leave them out, and count them in the manifest; pad: fill the row with "
        "--pad-token.",
    )
    pad_token: str | None = option(
        None,
        metavar="TOKEN",
        default_is="the role pad of the tokenizer's tokenizer_config.json",
        advanced=True,
        help="With --pack-remainder pad: special token, or role, that fills the row.",
    )
    max_tokens: int | None = option(
        None,
        minimum=1,
        maximum=MAX_ROW_TOKENS,
        metavar="N",
        help="Split longer documents into chunks of N ids; chunk_index numbers them from 0.",
    )
    add_column: tuple[AddedColumn, ...] = option(
        (),
        metavar="NAME",
        advanced=True,
        help="With --pack and --to parquet: column to add, for attention that ends at "
        "documents; repeatable. document_ids: for each id, the number of its document in the "
        "row; position_ids: its position in the document, from 0 in each row; cu_seqlens: "
        "where in the row documents begin, and the length of the row.",
    )
    header: BinHeader = option(
        "none",
        group="Output",
        metavar="NAME",
        advanced=True,
        help="With --to bin: header of each file. llm.c: 256 numbers of 32 bits, with the "
        "number of ids.",
    )
    with_id: bool = option(
        False,
        group="Output",
        advanced=True,
        help="With --to mds: also write the column id, the id of the document.",
    )
    shard_size: int = option(
        SHARD_SIZE,
        group="Output",
        kind="size",
        minimum=1,
        maximum=MAX_SHARD_SIZE,
        metavar="SIZE",
        default_is="64MiB",
        advanced=True,
        help="With --to mds and litdata: maximum size of a file. A row that is larger has a "
        "file of its own.",
    )
    parquet_encoding: ParquetEncoding = option(
        "byte-stream-split",
        group="Output",
        metavar="NAME",
        advanced=True,
        help="With --to parquet: how the ids are stored. byte-stream-split: faster to write "
        "and to read, and smaller for most text. plain: for readers older than those in "
        "docs/rows.md.",
    )

    def __post_init__(self) -> None:
        check_declared(self)
        for name, formats in _OF_FORMATS.items():
            default = type(self).__dataclass_fields__[name].default
            if getattr(self, name) != default and self.to not in formats:
                raise ConfigError(f"`{name}` goes with `to` {' or '.join(formats)}, not {self.to}")
        if self.pack is not None and self.max_tokens is not None:
            raise ConfigError(
                "`pack` and `max_tokens` exclude each other: packed rows have one length, "
                "whatever documents they are of: choose one"
            )
        for name, default in _OF_PACK.items():
            if self.pack is None and getattr(self, name) != default:
                raise ConfigError(f"`{name}` goes with `pack` N: other rows are of one document")
        if self.best_fit and self.pack_remainder == "drop":
            raise ConfigError(
                "`pack_remainder` drop does not work with `packing` best-fit, where any row may be "
                "short: use keep or pad"
            )
        if self.pad_token is not None and self.pack_remainder != "pad":
            raise ConfigError("`pad_token` goes with `pack_remainder` pad: nothing else is padded")
        if self.with_id and self.pack is not None:
            raise ConfigError(
                "`with_id` does not work with `pack`, where a row is of several documents: leave "
                "one out"
            )
        if len(set(self.add_column)) < len(self.add_column):
            raise ConfigError("`add_column`: a column is named twice: once is enough")
        share = self.validation
        if not isinstance(share, (int, float)) or isinstance(share, bool) or not 0 <= share < 1:
            raise ConfigError(
                f"`validation` {share!r}: give a share from 0 to below 1, such as 0.005 or 0.5%"
            )
        parse_shares(self.mix)
        if self.mix_seed and not self.chooses:
            raise ConfigError("`mix_seed` goes with `mix` or `token_budget`: without, all is taken")

    @property
    def best_fit(self) -> bool:
        """Whether documents are put into the rows that they fill best."""
        return self.packing == "best-fit"

    @property
    def joins(self) -> bool:
        """Whether a row may begin in one document and end in another, anywhere."""
        return self.pack is not None and not self.best_fit

    @property
    def chooses(self) -> bool:
        """Whether some training documents may be left out, or taken more than once."""
        return bool(self.mix) or self.token_budget is not None

    @property
    def shares(self) -> dict[str, Fraction]:
        """The share of each source of the mix, by name, from 0 to 1; empty where there is none."""
        return parse_shares(self.mix)


_OF_FORMATS = {
    "header": ("bin",),
    "with_id": ("mds",),
    "shard_size": ("mds", "litdata"),
    "parquet_encoding": ("parquet",),
    "add_column": ("parquet",),
}
_OF_PACK = {"packing": "concatenate", "pack_remainder": "keep", "pad_token": None, "add_column": ()}


@dataclass(frozen=True, kw_only=True)
class AppendSettings:
    """Whether a job takes only the files that its directory has not yet; times in seconds."""

    _GROUP: ClassVar[Group] = "Appending"

    append: bool = option(
        False,
        help="Take only files that DIR does not have yet, or that changed; begin DIR if it is "
        "empty. A file that cannot be read is set aside until it changes.",
    )
    prune: bool = option(
        False,
        advanced=True,
        help="With --append: remove the parts of files that changed. An export that began with "
        "them cannot be resumed then.",
    )
    watch: float | None = option(
        None,
        minimum=0.1,
        metavar="SECONDS",
        default_is="append once",
        help="Append every so many seconds until a signal ends it; implies --append.",
    )
    stop_after: float | None = option(
        None,
        minimum=0,
        advanced=True,
        metavar="SECONDS",
        default_is="never",
        help="With --watch: stop after this many seconds.",
    )
    complete_when: CompleteWhen = option(
        "settled",
        advanced=True,
        metavar="RULE",
        help="With --append: when a file is complete. settled: it has not changed for --settle "
        "SECONDS; marker: a file NAME.done exists. Hidden files and names such as NAME.tmp and "
        "NAME.part are never taken.",
    )
    settle: float | None = option(
        None,
        minimum=0,
        advanced=True,
        metavar="SECONDS",
        default_is="5 with --watch, else 0",
        help="With --append: seconds that a file must stay unchanged.",
    )

    def __post_init__(self) -> None:
        check_declared(self)
        for name in changed(self):
            if name == "stop_after" and self.watch is None:
                raise ConfigError("`stop_after` needs `watch` SECONDS")
            if not self.appends:
                raise ConfigError(f"`{name}` needs `append` or `watch` SECONDS")

    @property
    def appends(self) -> bool:
        """Whether the job appends."""
        return self.append or self.watch is not None

    @property
    def settled_after(self) -> float:
        """Seconds that a file must stay unchanged."""
        return self.settle if self.settle is not None else 0.0 if self.watch is None else 5.0


def _drift(default: Any, help_: str, metavar: str) -> Any:
    """A limit that goes with ``--append``."""
    never = {} if default is not None else {"default_is": "never"}
    help_ = f"With --append: {help_}"
    return option(default, minimum=0, metavar=metavar, advanced=True, help=help_, **never)


@dataclass(frozen=True, kw_only=True)
class DriftSettings:
    """How the fit of the tokenizer is measured, and when to warn."""

    _GROUP: ClassVar[Group] = "Appending"

    baseline: str | None = option(
        None,
        advanced=True,
        metavar="COUNTS",
        default_is="unseen pre-tokens are not measured",
        help="With --append: counts that the tokenizer was trained on, to detect unseen "
        "pre-tokens.",
    )
    warn_bytes_per_token: float = _drift(
        0.8, "warn below this share of the bytes per token in training.", "SHARE"
    )
    warn_single_bytes: float | None = _drift(
        None, "warn above this share of single-byte tokens.", "SHARE"
    )
    warn_unseen: float | None = _drift(
        None, "warn above N unseen pre-tokens in a million (--baseline).", "N"
    )

    def __post_init__(self) -> None:
        check_declared(self)
        if self.warn_unseen is not None and self.baseline is None:
            raise ConfigError(
                "`warn_unseen` needs `baseline` COUNTS: the counts that the tokenizer was trained "
                "on"
            )


@dataclass(frozen=True, kw_only=True)
class Execution:
    """Which runner does the work and with how many workers.

    Attributes:
        beam_args: passed to Beam unchanged (the arguments after ``--``).
    """

    _GROUP: ClassVar[Group] = "Where it runs"

    runner: str = option(
        "DirectRunner",
        suggestions=RUNNERS,
        metavar="NAME",
        help="Beam runner. DirectRunner runs in this process; FlinkRunner, SparkRunner, "
        "PrismRunner, PortableRunner and DataflowRunner take their options, such as "
        "--job_endpoint=HOST:PORT, after --.",
    )
    workers: int = option(
        0,
        minimum=0,
        maximum=1_000,
        metavar="N",
        default_is="one per core",
        help="Threads of the local runner.",
    )
    beam_args: tuple[str, ...] = ()
    stage: Staging = option(
        "auto",
        metavar="HOW",
        advanced=True,
        help="How remote workers get this package. auto: through Beam's options "
        "(--extra_package, --setup_file or your own image); without one of them, the job is "
        "refused. none: it is already installed there.",
    )
    shared_paths: tuple[str, ...] = option(
        (),
        name="shared_path",
        metavar="DIR",
        advanced=True,
        help="Local directory that remote workers see under the same path (NFS, a mounted "
        "volume); repeatable.",
    )

    storage_options: tuple[str, ...] = option(
        (),
        name="storage_option",
        metavar="KEY=VALUE",
        advanced=True,
        help="Option for remote storage, in addition to environment variables: an argument of "
        "pyarrow's filesystem, such as endpoint_override=URL, region=NAME or anonymous=true. "
        "SCHEME.KEY=VALUE applies to one scheme only; fsspec schemes need this form; "
        "repeatable.",
    )

    def __post_init__(self) -> None:
        check_declared(self)

    @property
    def worker_count(self) -> int:
        """The number of local workers: what was asked for, or the cores this process may use."""
        return self.workers or cores()


def cores() -> int:
    """The cores this process may use, where the system can tell; else those of the machine."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
