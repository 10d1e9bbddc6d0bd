"""Pre-tokenizers: how a text is cut before pairs are counted or merged. No merge crosses a cut.

The named ones are hand-written scanners of the core over one version of Unicode
(:data:`UNICODE_VERSION`), in linear time. Any other regular expression can be given by value; it
runs through the package ``regex``, one to two orders of magnitude slower, over the Unicode of that
package, and for as long as its backtracking takes.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

from bpe._native import SCHEMES, UNICODE_VERSION, scan
from bpe._text import utf8
from bpe.errors import PretokenizerError
from bpe.never_split import check_never_split, compiled, is_whole, wholes
from bpe.normalize import check_normalizer, normalize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

__all__ = ["PATTERNS", "PRETOKENIZERS", "UNICODE_VERSION", "Pretokenizer"]

PRETOKENIZERS: tuple[str, ...] = SCHEMES
"""The names of the pre-tokenizers."""

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
    # These lose text: what they do not match is dropped, white space or U+0020 alone.
    "words": r"\S+",
    "spaces": r"[^ ]+",
    "bert": r"[!-/:-@\[-`{-~\p{P}]|[^\s!-/:-@\[-`{-~\p{P}]+",
}
"""The regular expression that each name stands for; ``none``, the whole text, needs none."""

LOSSY = frozenset({"words", "spaces", "bert"})
"""The pre-tokenizers that drop what their pattern does not match."""


@dataclass(frozen=True)
class Pretokenizer:
    r"""A way to cut a text: a name, or regular expressions by value; and what is done before.

    A text, or what lies between two special tokens of it, is normalized; what a pattern of
    ``never_split`` matches becomes a piece of its own; all else is cut.

    What a regular expression does not match is kept, as pieces of its own between the matches
    (Hugging Face's ``Split`` calls this *isolated*); matches of length zero are ignored.

    Example:
        >>> Pretokenizer("gpt2").split("Hello world")
        [b'Hello', b' world']
        >>> Pretokenizer(pattern=r"\d").split("ab12c")
        [b'ab', b'1', b'2', b'c']
        >>> Pretokenizer("words", normalizer=("lowercase",)).split("To BE")
        [b'to', b'be']

    Attributes:
        name: one of :data:`PRETOKENIZERS`, or None with a pattern.
        pattern: a regular expression in the syntax of the package ``regex``, or None with a name;
            or several, each cutting the pieces that those before it left, where a name of
            :data:`PRETOKENIZERS` stands for that pre-tokenizer.
        normalizer: steps of :data:`bpe.NORMALIZERS`, in the order in which they are applied.
        never_split: names of ``bpe.NEVER_SPLIT`` (``url``, ``email``) or regular expressions.

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
        if isinstance(pattern, str):
            compiled(pattern)
        elif pattern is not None:
            for step in pattern:
                if step not in PRETOKENIZERS:
                    compiled(step)
        elif name not in PRETOKENIZERS:
            raise PretokenizerError(
                f"unknown pre-tokenizer {name!r}{did_you_mean(str(name))}; valid: "
                f"{', '.join(PRETOKENIZERS)}, or give a regular expression as the pattern"
            )
        for field, value in (
            ("name", name),
            ("pattern", pattern),
            ("normalizer", check_normalizer(self.normalizer)),
            ("never_split", check_never_split(self.never_split)),
        ):
            object.__setattr__(self, field, value)

    @classmethod
    def of(
        cls,
        name: str | Pretokenizer | None,
        pattern: str | Sequence[str] | None,
        *,
        normalizer: Sequence[str] = (),
        never_split: Sequence[str] = (),
    ) -> Pretokenizer:
        """The pattern if there is one, else the name: for a name that is only a default.

        A pre-tokenizer in place of the name is itself, unless something else is given.
        """
        if isinstance(name, Pretokenizer):
            if pattern is None and not normalizer and not never_split:
                return name
            raise PretokenizerError(f"{name!r} says everything: give nothing beside it")
        if pattern is not None and not isinstance(pattern, str):
            pattern = tuple(pattern) or None
        return cls(
            name if pattern is None else None,
            pattern,
            normalizer=tuple(check_normalizer(normalizer)),
            never_split=tuple(check_never_split(never_split)),
        )

    @property
    def settings(self) -> dict[str, Any]:
        """Everything about it, as manifests and plans say it."""
        return {
            "pretokenizer": self.name,
            "pattern": list(self.pattern) if isinstance(self.pattern, tuple) else self.pattern,
            "normalizer": list(self.normalizer) or None,
            "never_split": list(self.never_split) or None,
        }

    def __str__(self) -> str:
        """In few words, for messages."""
        words = [self.name] if self.name else [f"pattern {step!r}" for step in self.patterns]
        words += [f"normalizer {step}" for step in self.normalizer]
        words += [f"never split {pattern!r}" for pattern in self.never_split]
        return ", ".join(words)

    @property
    def patterns(self) -> tuple[str, ...]:
        """The pattern or patterns; none where it has a name."""
        return (self.pattern,) if isinstance(self.pattern, str) else self.pattern or ()

    @property
    def is_native(self) -> bool:
        """Whether the core cuts normalized text itself."""
        return self.name is not None and not self.never_split

    @property
    def scheme(self) -> str:
        """The name as the core takes it; empty where Python cuts."""
        return self.name if self.name is not None and self.is_native else ""

    @property
    def lossless(self) -> bool:
        """Whether the pieces put together are the text."""
        steps = self.pattern if isinstance(self.pattern, tuple) else (self.name,)
        return not self.normalizer and LOSSY.isdisjoint(steps)

    def normalize(self, text: bytes) -> bytes:
        """The text that is cut: this one after all steps of the normalizer.

        Args:
            text: any bytes without special tokens; malformed UTF-8 stays as it is.
        """
        return normalize(text, self.normalizer)

    def is_whole(self, pretoken: bytes) -> bool:
        """Whether a pattern of ``never_split`` matches all of a pre-token: nothing cuts it."""
        return bool(self.never_split) and is_whole(
            pretoken.decode("utf-8", "surrogateescape"), self.never_split
        )

    def whole_spans(self, text: bytes) -> Iterator[tuple[int, int]]:
        """Where a normalized text matches ``never_split``: byte offsets, in order.

        Raises:
            PretokenizerError: a pattern matches only for what is around it.
        """
        return _byte_spans(text, lambda string: wholes(string, self.never_split))

    def spans(self, text: bytes) -> list[tuple[int, int]]:
        """Where the pieces of a text lie: byte offsets (begin, end), in order.

        Args:
            text: normalized; any bytes. Where no well-formed UTF-8 starts, one byte is a character
                that is neither letter, number, mark nor space.

        Raises:
            PretokenizerError: a pattern of ``never_split`` matches only for what is around it.
        """
        if not self.never_split:
            return self._cut(text)
        spans = []
        position = 0
        for begin, end in self.whole_spans(text):
            spans += _shifted(self._cut(text[position:begin]), position)
            spans.append((begin, end))
            position = end
        return spans + _shifted(self._cut(text[position:]), position)

    def split(self, text: str | bytes) -> list[bytes]:
        """The pieces of a text after normalization, as bytes.

        Raises:
            EncodingError: a str holds a lone surrogate, which no UTF-8 expresses.
        """
        data = self.normalize(utf8(text))
        return [data[begin:end] for begin, end in self.spans(data)]

    def _cut(self, text: bytes) -> list[tuple[int, int]]:
        if self.name is not None:
            return _named(self.name, text)
        if isinstance(self.pattern, str):
            return _isolated(self.pattern, text)
        spans = [(0, len(text))] if text else []
        for step in self.pattern or ():
            cut = _named if step in PRETOKENIZERS else _isolated
            spans = [
                span for begin, end in spans for span in _shifted(cut(step, text[begin:end]), begin)
            ]
        return spans


_MODELS = {
    **dict.fromkeys(("gpt3", "r50k", "p50k", "davinci"), "gpt2"),
    **dict.fromkeys(("gpt35", "gpt35turbo", "gpt4", "gpt4turbo"), "cl100k"),
    **dict.fromkeys(("gpt4o", "gpt41", "gpt5", "o1", "o3", "gptoss"), "o200k"),
    **dict.fromkeys(("llama31", "llama32", "llama33"), "llama3"),
    **dict.fromkeys(("qwen", "qwen25", "qwen3"), "qwen2"),
    "whitespace": "words",
}


def did_you_mean(name: str) -> str:
    """What to say of the name of a pre-tokenizer that is none; empty where none is near.

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
    """Name and pattern such that equal pre-tokenizers are equal values.

    Raises:
        PretokenizerError: one of several patterns is none.
    """
    if pattern is None or isinstance(pattern, str):
        return name, pattern
    for step in pattern:
        if not isinstance(step, str) or not step:
            raise PretokenizerError(f"one of the patterns is {step!r}, no regular expression")
    if len(pattern) > 1:
        return name, tuple(pattern)
    return (pattern[0], None) if pattern[0] in PRETOKENIZERS else (None, pattern[0])


def _named(name: str, text: bytes) -> list[tuple[int, int]]:
    flat = memoryview(scan(name, text)).cast("q").tolist()
    return list(zip(flat[::2], flat[1::2], strict=True))


def _shifted(spans: list[tuple[int, int]], by: int) -> list[tuple[int, int]]:
    return [(begin + by, end + by) for begin, end in spans] if by else spans


def _isolated(pattern: str, text: bytes) -> list[tuple[int, int]]:
    """The matches and what lies between them, in bytes."""

    def cut(characters: str) -> Iterator[tuple[int, int]]:
        begin = 0
        for match in compiled(pattern).finditer(characters):
            if match.end() > match.start():
                if match.start() > begin:
                    yield begin, match.start()
                yield match.span()
                begin = match.end()
        if begin < len(characters):
            yield begin, len(characters)

    return list(_byte_spans(text, cut))


def _byte_spans(
    text: bytes, find: Callable[[str], Iterable[tuple[int, int]]]
) -> Iterator[tuple[int, int]]:
    """The spans that ``find`` finds in the text as characters, in bytes; they must ascend."""
    characters = text.decode("utf-8", "surrogateescape")
    spans = find(characters)
    if len(characters) == len(text):
        yield from spans
        return
    character = byte = 0
    for begin, end in spans:
        first = byte + len(characters[character:begin].encode("utf-8", "surrogateescape"))
        byte = first + len(characters[begin:end].encode("utf-8", "surrogateescape"))
        character = end
        yield first, byte
