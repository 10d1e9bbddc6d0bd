"""Shares: of sources in a mix, and of counts that are trained on."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pipelines.errors import ConfigError
from pipelines.option import (
    parse,
    percent,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


ShareOf = Literal["bytes", "pretokens", "tokens"]


_WEIGHTS = "use a whole number (3), a decimal (0.5), a fraction (1/3) or a share of the mix (60%)"


@dataclass(frozen=True, kw_only=True)
class CountsInput:
    """Counts to train on: a directory of ``bpe count``, each count times ``weight``, exactly.

    Attributes:
        directory: the directory of the counts.
        weight: the factor of each count.
        share: the share of the mix, from 0 to 1, which determines the weight; or None.
        source: the source of the corpus that was counted; empty for counts without sources.
        title: the name in the record of a training: the source, or the directory as given.
    """

    directory: str
    weight: Fraction | int = 1
    share: Fraction | None = None
    source: str = ""
    title: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "title", self.title or self.source or self.directory)
        if not self.directory:
            raise ConfigError("`counts` is empty: name a directory made by bpe count")
        value = self.weight if self.share is None else self.share
        if value <= 0:
            raise ConfigError(f"`counts` {self.directory}: {value} is not above 0: {_WEIGHTS}")

    @classmethod
    def parse(cls, text: str) -> CountsInput:
        """Parse ``DIR``, ``DIR:WEIGHT`` or ``DIR:SHARE%``; a local directory of this name wins.

        Raises:
            ConfigError: the weight is no number above 0.
        """
        match = re.fullmatch(r"(.+):([^/:]*|[0-9]+/[0-9]+)", text, re.DOTALL)
        if match is None or Path(text).is_dir():
            return cls(directory=text)
        directory, weight = match.groups()
        try:
            value = parse("exact share", weight)
        except ValueError:
            raise ConfigError(
                f"`counts` {text}: the weight {weight!r} is not a number above 0: {_WEIGHTS} "
                f"(for a directory of that name, write {text}:1)"
            ) from None
        if weight.endswith("%"):
            return cls(directory=directory, share=value)
        return cls(directory=directory, weight=value)


_SOURCE = "[A-Za-z0-9_-]{1,200}"  # a folder can be called so


def split_name(text: str) -> tuple[str, str]:
    """Return the name and the rest of ``NAME=REST``; an empty name and all of any other text.

    >>> split_name("web=a/*.txt"), split_name("./a=b"), split_name("s3://b/a=b")
    (('web', 'a/*.txt'), ('', './a=b'), ('', 's3://b/a=b'))
    """
    match = re.match(f"({_SOURCE})=", text)
    return ("", text) if match is None else (match[1], text[match.end() :])


def parse_shares(mix: Sequence[str]) -> dict[str, Fraction]:
    """Return the share of each source of a mix, by name, above 0 and up to 1; empty without a mix.

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
            shares[name] = parse("exact share", share)
        except ValueError as error:
            raise ConfigError(f"`mix` {text}: {error}") from None
    for name, value in shares.items():
        if not value:
            raise ConfigError(f"`mix` {name}=0: leave the source out")
    if shares and sum(shares.values()) != 1:
        total = percent(sum(shares.values(), Fraction()))
        raise ConfigError(f"the shares of `mix` add up to {total}, not to 100%")
    return shares
