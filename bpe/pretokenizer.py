"""Pre-tokenizers: how a text is cut before pairs are counted or merged. No merge crosses a cut.

Each name is a hand-written scanner of the core over one version of Unicode
(``bpe._native.UNICODE_VERSION``), in linear time. Any other regular expression can be given by
value, in the syntax of the package ``regex`` and over the Unicode of that package. Most run in the
core, too, as a table (`bpe.regex.table`). What a table cannot say, such as a backreference, runs
in ``regex``: 10 to 100 times slower, and within a time limit (`bpe.regex.search`).
"""

from __future__ import annotations

import difflib
import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache, partial
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

import regex

from bpe._arrow import utf8
from bpe._native import PRETOKENIZERS as NATIVE
from bpe._native import PatternTable, scan
from bpe.errors import PretokenizerError, listed
from bpe.names import PRETOKENIZERS as PRETOKENIZERS  # noqa: PLC0414 - callers name it
from bpe.normalizer import check_normalizer, normalize
from bpe.regex.search import TimedSearch
from bpe.regex.table import never_split_tables, pattern_table

if TYPE_CHECKING:
    from bpe._native import NativePattern

# What else people call them, without punctuation.
_ALIASES: dict[str, tuple[str, ...]] = {
    "gpt2": ("gpt3", "r50k", "p50k", "davinci"),
    "cl100k": ("gpt35", "gpt35turbo", "gpt4", "gpt4turbo"),
    "o200k": ("gpt4o", "gpt41", "gpt5", "o1", "o3", "gptoss"),
    "llama3": ("llama31", "llama32", "llama33"),
    "qwen2": ("qwen", "qwen25", "qwen3"),
    "words": ("whitespace",),
}

PATTERNS: dict[str, str] = {name: pattern for name, pattern, _ in NATIVE if pattern}
"""The regular expression of each name but ``none``, in the syntax of the package ``regex``."""

LOSSY = frozenset(name for name, _, lossy in NATIVE if lossy)
"""The names of those that drop what their pattern does not match."""


@dataclass(frozen=True)
class Pretokenizer:
    r"""A way to cut text: a name or regular expressions, and what comes before.

    Text between special tokens is first normalized. Matches of ``never_split`` become pieces, and
    the rest is cut.

    Text between the matches of a regular expression is kept as pieces too (*isolated* in Hugging
    Face's ``Split``). Empty matches are ignored.

    Example:
        >>> Pretokenizer("gpt2").split("Hello world")
        [b'Hello', b' world']
        >>> Pretokenizer(pattern=r"\d").split("ab12c")
        [b'ab', b'1', b'2', b'c']
        >>> Pretokenizer("words", normalizer=("lowercase",)).split("To BE")
        [b'to', b'be']

    Attributes:
        name: one of :data:`PRETOKENIZERS`, or None with a pattern.
        pattern: a regular expression in the syntax of the package ``regex``, or None with a name.
            Or several: each cuts the pieces of the one before, and may be a name of
            :data:`PRETOKENIZERS`.
        normalizer: steps of :data:`bpe.normalizer.NORMALIZERS`, in order.
        never_split: names of :data:`NEVER_SPLIT` (``url``, ``email``) or regular expressions.

    Raises:
        PretokenizerError: both or neither of name and pattern are given, a name is unknown, or a
            pattern does not compile.
    """

    name: str | None = None
    pattern: str | tuple[str, ...] | None = None
    _: KW_ONLY
    normalizer: tuple[str, ...] = ()
    never_split: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if (self.name is None) == (self.pattern in (None, ())):
            raise PretokenizerError(
                "a pre-tokenizer is either a name or a pattern; "
                f"given: name={self.name!r}, pattern={self.pattern!r}"
            )
        name, pattern = _one_spelling(self.name, self.pattern)
        if pattern is None and name not in PRETOKENIZERS:
            raise PretokenizerError(
                f"unknown pre-tokenizer {name!r}{did_you_mean(str(name))}; valid: "
                f"{', '.join(PRETOKENIZERS)}, or give a regular expression as the pattern"
            )
        vars(self).update(name=name, pattern=pattern)
        for step in self.patterns:
            if step == pattern or step not in PRETOKENIZERS:
                compiled(step)
        vars(self).update(
            normalizer=check_normalizer(self.normalizer),
            never_split=check_never_split(self.never_split),
        )

    @classmethod
    def of(
        cls,
        name: str | Pretokenizer | None,
        pattern: str | Sequence[str] | None,
        *,
        normalizer: Sequence[str] = (),
        never_split: Sequence[str] = (),
    ) -> Pretokenizer:
        """From a pattern if given, else from a name, which can so be a default.

        A Pretokenizer in place of the name is returned unchanged.
        """
        if isinstance(name, Pretokenizer):
            if pattern is None and not normalizer and not never_split:
                return name
            raise PretokenizerError(
                f"{name!r} is complete: give no pattern, normalizer or never_split with it"
            )
        if pattern is not None and not isinstance(pattern, str):
            pattern = tuple(pattern) or None
        return cls(
            name if pattern is None else None,
            pattern,
            normalizer=check_normalizer(normalizer),
            never_split=check_never_split(never_split),
        )

    @property
    def settings(self) -> dict[str, Any]:
        """Return all settings, as manifests and plans have them."""
        return {
            "pretokenizer": self.name,
            "pattern": list(self.pattern) if isinstance(self.pattern, tuple) else self.pattern,
            "normalizer": list(self.normalizer) or None,
            "never_split": list(self.never_split) or None,
        }

    def __str__(self) -> str:
        """Short, for messages."""
        words = [self.name] if self.name else [f"pattern {step!r}" for step in self.patterns]
        words += [f"normalizer {step}" for step in self.normalizer]
        words += [f"never split {pattern!r}" for pattern in self.never_split]
        return ", ".join(words)

    @property
    def patterns(self) -> tuple[str, ...]:
        """Return the patterns; empty if it has a name."""
        return (self.pattern,) if isinstance(self.pattern, str) else self.pattern or ()

    @property
    def is_native(self) -> bool:
        """True if the core cuts normalized text."""
        return bool(self.native)

    @property
    def native(self) -> list[NativePattern]:
        """Return the core's form: tables of what is never split, then names and tables.

        Empty if Python cuts: where no table can say one of the patterns.
        """
        whole = [never_split_tables(NEVER_SPLIT.get(one, one)) for one in self.never_split]
        patterns = [*whole, *(native for _, native in self._steps)]
        return [pattern for pattern in patterns if pattern] if all(patterns) else []

    @property
    def _steps(self) -> list[tuple[str, str | PatternTable | None]]:
        """Return what cuts in turn, and the core's form of each: a name, a table, or none."""
        names = () if isinstance(self.pattern, str) else PRETOKENIZERS
        return [
            (step, step if step in names else pattern_table(step))
            for step in self.patterns or (str(self.name),)
        ]

    @property
    def lossless(self) -> bool:
        """True if the pieces joined are the text."""
        steps = self.pattern if isinstance(self.pattern, tuple) else (self.name,)
        return not self.normalizer and LOSSY.isdisjoint(steps)

    def normalize(self, text: bytes) -> bytes:
        """Return the text after all steps of the normalizer.

        Args:
            text: bytes without special tokens; malformed UTF-8 stays unchanged.
        """
        return normalize(text, self.normalizer)

    def is_never_split(self, pretoken: bytes) -> bool:
        """Return whether a pattern of ``never_split`` matches all of a pre-token.

        Raises:
            PatternTimeoutError: a pattern backtracks too long.
        """
        if not self.never_split:
            return False
        text = pretoken.decode("utf-8", "surrogateescape")
        return any(
            _compiled(pattern).fullmatch(text)
            if pattern in NEVER_SPLIT  # ours are linear
            else TimedSearch(len(pretoken)).run(pattern, partial(compiled(pattern).fullmatch, text))
            for pattern in self.never_split
        )

    def spans(self, text: bytes) -> list[tuple[int, int]]:
        """Return the pieces of a text as byte offsets (begin, end), in order.

        Args:
            text: normalized; any bytes. A malformed byte is a character that is neither letter,
                number, mark nor space.

        Raises:
            PretokenizerError: a pattern of ``never_split`` matches only because of its
                surroundings.
            PatternTimeoutError: a pattern backtracks too long.
        """
        if native := self.native:
            return _scanned(native, text)
        spans, position = list[tuple[int, int]](), 0
        characters = text.decode("utf-8", "surrogateescape")
        matches = _matches(characters, self.never_split, TimedSearch(len(text)))
        for begin, end in _byte_spans(characters, matches):
            spans += [*_shifted(self._cut(text[position:begin]), position), (begin, end)]
            position = end
        return [*spans, *_shifted(self._cut(text[position:]), position)]

    def split(self, text: str | bytes) -> list[bytes]:
        """Return the pieces of a text after normalization, as bytes.

        Raises:
            EncodingError: a str holds a lone surrogate, which has no UTF-8, or a pattern
                backtracks too long (PatternTimeoutError).
        """
        data = self.normalize(utf8(text))
        return [data[begin:end] for begin, end in self.spans(data)]

    def _cut(self, text: bytes) -> list[tuple[int, int]]:
        search = TimedSearch(len(text))
        spans = [(0, len(text))]
        for pattern, step in self._steps:
            spans = [
                span
                for begin, end in spans
                for span in _shifted(
                    _scanned([step], text[begin:end])
                    if step
                    else _isolated(pattern, text[begin:end], search),
                    begin,
                )
            ]
        return spans


_MODELS = {model: name for name, models in _ALIASES.items() for model in models}


def did_you_mean(name: str) -> str:
    """Return a suggestion for an unknown pre-tokenizer; empty if no name is similar.

    >>> did_you_mean("gpt-4"), did_you_mean("r50k_base"), did_you_mean("nothing like it")
    (" (did you mean 'cl100k'?)", " (did you mean 'gpt2'?)", '')
    """
    key = re.sub(r"_base$|[^a-z0-9]", "", name.lower())
    near = difflib.get_close_matches(key, PRETOKENIZERS, 1, cutoff=0.7)
    meant = key if key in PRETOKENIZERS else _MODELS.get(key) or "".join(near)
    return f" (did you mean {meant!r}?)" if meant else ""


def _one_spelling(
    name: str | None, pattern: str | tuple[str, ...] | None
) -> tuple[str | None, str | tuple[str, ...] | None]:
    """Name and pattern in one spelling, so that equal pre-tokenizers are equal values.

    Raises:
        PretokenizerError: one of several patterns is empty or not a str.
    """
    if pattern is None or isinstance(pattern, str):
        return name, pattern
    for step in pattern:
        if not isinstance(step, str) or not step:
            raise PretokenizerError(f"one of the patterns is {step!r}, not a regular expression")
    if len(pattern) > 1:
        return name, tuple(pattern)
    return (pattern[0], None) if pattern[0] in PRETOKENIZERS else (None, pattern[0])


def _scanned(pretokenizer: list[NativePattern], text: bytes) -> list[tuple[int, int]]:
    flat = memoryview(scan(pretokenizer, text)).cast("q").tolist()
    return list(zip(flat[::2], flat[1::2], strict=True))


def _shifted(spans: list[tuple[int, int]], by: int) -> list[tuple[int, int]]:
    return [(begin + by, end + by) for begin, end in spans] if by else spans


def _isolated(pattern: str, text: bytes, search: TimedSearch) -> list[tuple[int, int]]:
    """Return the matches of ``regex`` and the text between them, as byte offsets."""
    characters = text.decode("utf-8", "surrogateescape")

    def find(*, timeout: float) -> array[int]:
        matches = compiled(pattern).finditer(characters, timeout=timeout)
        spans = (match.span() for match in matches if match.start() < match.end())
        return array("q", chain([0], chain.from_iterable(spans), [len(characters)]))

    bounds = pairwise(search.run(pattern, find))
    return list(_byte_spans(characters, ((begin, end) for begin, end in bounds if begin < end)))


def _byte_spans(characters: str, spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Spans of characters, ascending, as byte offsets."""
    if characters.isascii():
        yield from spans
        return
    character = byte = 0
    for begin, end in spans:
        first = byte + len(characters[character:begin].encode("utf-8", "surrogateescape"))
        byte = first + len(characters[begin:end].encode("utf-8", "surrogateescape"))
        character = end
        yield first, byte


NEVER_SPLIT: dict[str, str] = {
    # Up to whitespace, a quote or an angle bracket; without punctuation at the end.
    "url": r"""(?i:(?:https?|ftp)://|www\.)[^\s<>"]*[^\s<>"'.,;:!?()\[\]{}]""",
    # ASCII addresses with a dot in the domain. The lookbehind keeps it linear.
    "email": r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]++@[A-Za-z0-9-]++(?:\.[A-Za-z0-9-]++)+",
}
"""Patterns by name."""


@lru_cache(maxsize=64)
def compiled(pattern: str) -> regex.Pattern[str]:
    """Return a regular expression of the package ``regex``.

    Raises:
        PretokenizerError: it does not compile.
    """
    try:
        return regex.compile(pattern)
    except regex.error as error:
        raise PretokenizerError(f"the pattern {pattern!r} does not compile: {error}") from error


def check_never_split(patterns: Iterable[str]) -> tuple[str, ...]:
    """Return the patterns as a tuple.

    Raises:
        PretokenizerError: they are one str, or one does not compile or matches the empty string.
    """
    checked = listed(patterns, "never_split is", error=PretokenizerError)
    for pattern in checked:
        if not isinstance(pattern, str) or not pattern:
            raise PretokenizerError(
                f"never_split holds {pattern!r}: give {', '.join(NEVER_SPLIT)} or a regular "
                "expression"
            )
        if _compiled(pattern).fullmatch(""):
            raise PretokenizerError(
                f"the never_split pattern {pattern!r} matches the empty string; it must consume at "
                "least one character"
            )
    return checked


def _matches(text: str, patterns: Sequence[str], search: TimedSearch) -> Iterator[tuple[int, int]]:
    """Yield the matches in a text, leftmost first; at one place, the first pattern wins.

    Empty matches are ignored.

    Yields:
        (begin, end), in characters.

    Raises:
        PretokenizerError: a pattern does not match its own match alone (lookaround).
        PatternTimeoutError: a pattern backtracks too long.
    """
    position = 0

    def next_match(pattern: str) -> regex.Match[str] | None:
        def find(*, timeout: float) -> regex.Match[str] | None:
            found = _compiled(pattern).finditer(text, position, timeout=timeout)
            return next((match for match in found if match.end() > match.start()), None)

        return search.run(pattern, find)

    matches = {pattern: next_match(pattern) for pattern in patterns}
    while True:
        for pattern, match in matches.items():
            if match is not None and match.start() < position:
                matches[pattern] = next_match(pattern)
        best = min(
            ((match.start(), i, match) for i, match in enumerate(matches.values()) if match),
            default=None,
        )
        if best is None:
            return
        match = best[2]
        alone = partial(match.re.fullmatch, match.group())
        if search.run(match.re.pattern, alone) is None:
            raise PretokenizerError(
                f"never_split {match.re.pattern!r} matches {match.group()!r:.60} only because of "
                "its surroundings (lookaround): the match alone must match too"
            )
        yield match.span()
        position = match.end()


def _compiled(pattern: str) -> regex.Pattern[str]:
    return compiled(NEVER_SPLIT.get(pattern, pattern))
