"""The runs of a tokenizer that a job counts; the tokenizer cuts the text too."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bpe.run_counting import runs_of
from pipelines.errors import ConfigError
from pipelines.extension import pretokens_of
from pipelines.settings import PretokenSettings, RunSettings
from pipelines.tokenizer_files import load_tokenizer, tokenizer_json

if TYPE_CHECKING:
    from bpe import Tokenizer
    from bpe.counts import Runs

_NO_FILE = "the tokenizer"  # as messages name it


@dataclass(frozen=True, kw_only=True)
class RunsOf:
    """The runs of a tokenizer's tokens.

    Attributes:
        path: the tokenizer's file; empty if it is of no file.
        tokenizer: the tokenizer; the parts of a run are its tokens.
        found: the settings by which runs are found, as the manifest of counts has them.
    """

    path: str
    tokenizer: Tokenizer
    found: Runs

    @classmethod
    def of(cls, tokenizer: str | Tokenizer, settings: RunSettings) -> RunsOf:
        """Return the runs of a tokenizer, which may be the path of a file.

        Raises:
            InputError: the file cannot be read.
            bpe.errors.CountsError: the tokenizer has no runs, or a setting is wrong.
        """
        path = tokenizer if isinstance(tokenizer, str) else ""
        if isinstance(tokenizer, str):
            tokenizer = load_tokenizer(tokenizer)
        return cls(
            path=path,
            tokenizer=tokenizer,
            found=runs_of(
                tokenizer, merge_pattern=settings.merge_pattern, max_run=settings.max_run
            ),
        )

    def json(self) -> str:
        """Return the tokenizer as the JSON text that is sent to workers.

        Raises:
            InputError: a tokenizer.json cannot hold the tokenizer.
        """
        return tokenizer_json(self.tokenizer, self.path or _NO_FILE)

    def pretokens(self, asked: PretokenSettings) -> PretokenSettings:
        """Return the settings by which the tokenizer cuts text.

        Args:
            asked: the settings of the job, which must be the defaults.

        Raises:
            ConfigError: a setting is not the default.
        """
        if asked != PretokenSettings():
            raise ConfigError(
                f"`runs` are of the tokens of {self.path or _NO_FILE}, which says how text is cut: "
                "leave out the options of the pre-tokenizer and special tokens"
            )
        return replace(
            pretokens_of(self.tokenizer), special_tokens=tuple(self.tokenizer.special_tokens)
        )
