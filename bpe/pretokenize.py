"""Pre-tokenisers: how a text is cut before pairs are counted or merged. No merge crosses a cut.

The named ones are hand-written scanners of the core over one version of Unicode
(:data:`UNICODE_VERSION`), in linear time. Any other regular expression can be given by value; it
runs through the package ``regex``, one to two orders of magnitude slower, over the Unicode of that
package, and for as long as its backtracking takes.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import regex

from bpe._native import SCHEMES, UNICODE_VERSION, scan
from bpe._text import utf8
from bpe.errors import PretokenizerError

__all__ = ["PATTERNS", "PRETOKENIZERS", "UNICODE_VERSION", "Pretokenizer"]

PRETOKENIZERS: tuple[str, ...] = SCHEMES
"""The names of the pre-tokenisers."""

_SUFFIXES = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_UPPER = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}"
_LOWER = r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"

PATTERNS: dict[str, str] = {
    # The pat_str of tiktoken 0.14's r50k_base, cl100k_base and o200k_base.
    "gpt2": (r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"),
    "cl100k": (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
        r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
    ),
    "o200k": (
        rf"[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]*[{_LOWER}]+{_SUFFIXES}?"
        rf"|[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]+[{_LOWER}]*{_SUFFIXES}?"
        rf"|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_SPACES}"
    ),
    # The Split patterns of the published tokenizer.json files.
    "llama3": (
        rf"{_SUFFIXES}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}"
        rf"| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_SPACES}"
    ),
    "qwen2": (
        rf"{_SUFFIXES}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}"
        rf"| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_SPACES}"
    ),
    # The only one that loses text: the white space between words is dropped.
    "words": r"\S+",
}
"""The regular expression that each name stands for; ``none``, the whole text, needs none."""


@functools.lru_cache(maxsize=64)
def _compiled(pattern: str) -> regex.Pattern[str]:
    try:
        return regex.compile(pattern)
    except regex.error as error:
        raise PretokenizerError(f"the pattern {pattern!r} does not compile: {error}") from error


@dataclass(frozen=True)
class Pretokenizer:
    r"""A way to cut a text: a name, or a regular expression by value.

    What a pattern does not match is kept, as pieces of its own between the matches (Hugging Face's
    ``Split`` calls this *isolated*); matches of length zero are ignored.

    Example:
        >>> Pretokenizer("gpt2").split("Hello world")
        [b'Hello', b' world']
        >>> Pretokenizer(pattern=r"\d").split("ab12c")
        [b'ab', b'1', b'2', b'c']

    Attributes:
        name: one of :data:`PRETOKENIZERS`, or None with a pattern.
        pattern: a regular expression in the syntax of the package ``regex``, or None with a name.

    Raises:
        PretokenizerError: both or neither are given, the name is unknown, or the pattern does not
            compile.
    """

    name: str | None = None
    pattern: str | None = None

    def __post_init__(self) -> None:
        if (self.name is None) == (self.pattern is None):
            raise PretokenizerError(
                "a pre-tokeniser is either a name or a pattern; "
                f"given: name={self.name!r}, pattern={self.pattern!r}"
            )
        if self.pattern is not None:
            _compiled(self.pattern)
        elif self.name not in PRETOKENIZERS:
            raise PretokenizerError(
                f"unknown pre-tokeniser {self.name!r}; valid: {', '.join(PRETOKENIZERS)}, "
                "or give a regular expression as the pattern"
            )

    @classmethod
    def of(cls, name: str | None, pattern: str | None) -> Pretokenizer:
        """The pattern if there is one, else the name: for a name that is only a default."""
        return cls(pattern=pattern) if pattern is not None else cls(name=name)

    @property
    def is_native(self) -> bool:
        """Whether the core cuts the text itself."""
        return self.name is not None

    @property
    def scheme(self) -> str:
        """The name as the core takes it; empty for a pattern."""
        return self.name or ""

    @property
    def lossless(self) -> bool:
        """Whether the pieces put together are the text: all but ``words``, which drops spaces."""
        return self.name != "words"

    def spans(self, text: bytes) -> list[tuple[int, int]]:
        """Where the pieces of a text lie: byte offsets (begin, end), in order.

        Args:
            text: any bytes. Where no well-formed UTF-8 starts, one byte is a character that is
                neither letter, number, mark nor space.
        """
        if self.pattern is not None:
            return _spans(_compiled(self.pattern), text)
        flat = memoryview(scan(self.scheme, text)).cast("q").tolist()
        return list(zip(flat[::2], flat[1::2], strict=True))

    def split(self, text: str | bytes) -> list[bytes]:
        """The pieces of a text, as bytes.

        Raises:
            EncodingError: a str holds a lone surrogate, which no UTF-8 expresses.
        """
        data = utf8(text)
        return [data[begin:end] for begin, end in self.spans(data)]


def _spans(pattern: regex.Pattern[str], data: bytes) -> list[tuple[int, int]]:
    """Byte spans of the matches and of what lies between them."""
    text = data.decode("utf-8", "surrogateescape")
    cuts = {0, len(text)}
    for match in pattern.finditer(text):
        if match.end() > match.start():
            cuts.update(match.span())
    spans = []
    begin = character = 0
    for cut in sorted(cuts - {0}):
        end = begin + len(text[character:cut].encode("utf-8", "surrogateescape"))
        spans.append((begin, end))
        begin, character = end, cut
    return spans
