"""The options that several commands share, and the settings made from their values."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

import click

from bpe.names import NORMALIZERS, PRETOKENIZERS
from pipelines.cli.logs import is_json
from pipelines.option import Settings, advanced, option

if TYPE_CHECKING:
    from bpe import Tokenizer
    from pipelines.cli.layers import Values
    from pipelines.progress import Progress

# As bpe has them (a test compares); bpe is not imported for `--help`.
PRESETS = ("byte-level", "interview", "notebook", "word-tutorial", "words")
OF_CUT = ("pretokenizer", "pattern", "normalizer", "never_split")  # but for special tokens
# Of commands that have no runner.
NO_RUNNER = ("runner", "workers", "stage", "shared_path", "beam_args")


@dataclass(frozen=True, kw_only=True)
class Config(Settings, group="Where it runs"):
    """The file of defaults.

    Attributes:
        config: YAML file of defaults, by option name; repeatable. Later files override earlier
            ones, and the command line overrides all.
    """

    config: tuple[str, ...] = option((), metavar="FILE")


@dataclass(frozen=True, kw_only=True)
class Preset(Settings, group="Vocabulary"):
    """The preset: defaults that neither the command line nor a file gives.

    Attributes:
        preset: Description of BPE to follow (docs/systems.md). --config and other options
            override it.
    """

    preset: str | None = option(None, choices=PRESETS, metavar="NAME")


@dataclass(frozen=True, kw_only=True)
class JsonResult(Settings, group="Messages"):
    """In which form to print the result.

    Attributes:
        json: Print the result as JSON.
    """

    json: bool = option(False)


@dataclass(frozen=True, kw_only=True)
class Messages(JsonResult):
    """The amount and form of messages.

    Attributes:
        quiet: No progress on stderr.
        log_format: Format of messages on stderr. text: human-readable; json: one object per line,
            errors included.
    """

    quiet: bool = option(False, short="q")
    log_format: Literal["text", "json"] = advanced("text", metavar="NAME")


@dataclass(frozen=True, kw_only=True)
class VocabularyPath(Settings, group="Input"):
    """The folder of published vocabularies.

    Attributes:
        vocabulary_path: Folder in which to look first for a published vocabulary.
    """

    vocabulary_path: str | None = advanced(None, metavar="DIR")


@dataclass(frozen=True, kw_only=True)
class FileSettings(Settings, group="Text"):
    """The pre-tokenizer and special tokens, for tokenizer files that do not name them.

    Attributes:
        pretokenizer: Pre-tokenizer, for a file that does not record it (.tiktoken, vocab.json).
        pattern: Regular expression to use instead of --pretokenizer; repeatable, applied in order.
        normalizer: Normalization, for a file that does not record it; repeatable, applied in order.
        never_split: Text that is never split, for a file that does not record it: url, email or a
            regular expression; repeatable.
        special_tokens: Special token, for a file that does not record it; repeatable. Omit the id
            if the file contains the token or the vocabulary is a published one.
    """

    pretokenizer: str | None = advanced(
        None, choices=PRETOKENIZERS, excludes=("pattern",), metavar="NAME", default_is="the file's"
    )
    pattern: tuple[str, ...] | None = advanced(None, metavar="REGEX")
    normalizer: tuple[str, ...] = advanced((), choices=NORMALIZERS, metavar="NAME")
    never_split: tuple[str, ...] = advanced((), metavar="REGEX")
    special_tokens: tuple[str, ...] = advanced((), name="special_token", metavar="TOKEN[=ID]")


def tokenizer_path(values: Values) -> str:
    """Return the file that ``--tokenizer`` names, or that of the published vocabulary it names.

    Raises:
        bpe.errors.TokenizerFileError: that is not on this machine.
    """
    from bpe.formats import published

    name: str = values["tokenizer"]
    known = published.of_name(name)
    return name if known is None else str(published.find(known, values["vocabulary_path"]))


def load_tokenizer(values: Values, path: str) -> Tokenizer:
    """Load the tokenizer of a file or a complete directory, by the options of the command."""
    from bpe import Tokenizer
    from pipelines.tokenizer_files import load_tokenizer

    read = partial(
        Tokenizer.load,
        special_tokens=_special_ids(values["special_token"]),
        vocabulary_path=values.get("vocabulary_path"),
        **{name: values[name] for name in OF_CUT},
    )
    return load_tokenizer(path, read)


def _special_ids(given: tuple[str, ...]) -> dict[str, int | None] | None:
    """Ids by token; None where none is given."""
    ids: dict[str, int | None] = {}
    for text in given:
        match = re.fullmatch(r"(.+)=([0-9]{1,10})", text, re.DOTALL)
        content, id_ = (match[1], int(match[2])) if match else (text, None)
        if content in ids:
            raise click.UsageError(f"--special-token {content!r} is given twice: leave one out")
        ids[content] = id_
    return ids or None


def progress(values: Values) -> Progress:
    """Return the display of progress: stderr, unless ``--quiet``."""
    from pipelines.progress import UNSEEN, progress_on
    from pipelines.progress.shown import JsonProgress

    if values["quiet"]:
        return UNSEEN
    return JsonProgress(sys.stderr) if is_json() else progress_on(sys.stderr)
