"""The runs that a job counts: those of a tokenizer, by which text is cut too."""

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


@dataclass(frozen=True, kw_only=True)
class RunsOf:
    """The runs of a tokenizer's tokens.

    Attributes:
        path: of its file, for messages.
        tokenizer: whose tokens are parts of runs.
        found: how they are found, as the counts say it.
    """

    path: str
    tokenizer: Tokenizer
    found: Runs

    @classmethod
    def of(cls, tokenizer: str | Tokenizer, settings: RunSettings) -> RunsOf:
        """From a tokenizer, or the path of its file.

        Raises:
            InputError: it cannot be read.
            bpe.errors.CountsError: it has no runs, or a setting is wrong.
        """
        path = tokenizer if isinstance(tokenizer, str) else "the tokenizer"
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
        """The tokenizer as it goes to workers.

        Raises:
            InputError: no tokenizer.json holds it.
        """
        return tokenizer_json(self.tokenizer, self.path)

    def pretokens(self, asked: PretokenSettings) -> PretokenSettings:
        """Return the settings by which the tokenizer cuts text.

        Args:
            asked: how it is to be cut; runs leave nothing to ask for.

        Raises:
            ConfigError: something is asked for.
        """
        if asked != PretokenSettings():
            raise ConfigError(
                f"`runs` are of the tokens of {self.path}, which says how text is cut: leave out "
                "the options of the pre-tokenizer and special tokens"
            )
        return replace(
            pretokens_of(self.tokenizer), special_tokens=tuple(self.tokenizer.special_tokens)
        )
