r"""Regular expressions between the package ``regex`` and Oniguruma, which Hugging Face uses.

The two agree on most patterns of pre-tokenizers, and differ silently on the rest: ``$`` is the end
of the text in one and of any line in the other, ``\w`` and ``\h`` are other sets, ``{1,3}+`` is
possessive in one and a repeated repetition in the other. What means the same in both passes,
anchors are rewritten, and everything else is refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NoReturn

from bpe.regex.syntax import (
    Anchor,
    Choice,
    Class,
    Group,
    Node,
    Repeat,
    Sequence,
    is_nullable,
    parse,
)

# Without flags, which are refused, "^" and "$" are of the whole text in Python.
_TO_HUGGINGFACE = {"^": r"\A", "$": r"\Z", r"\A": r"\A", r"\Z": r"\z"}
_FROM_HUGGINGFACE = {r"\A": r"\A", r"\Z": "$", r"\z": r"\Z", "$": r"(?:(?=\n)|\Z)"}

# The properties that are taken over: general categories, and the script of Chinese.
_CATEGORY = r"L[ultmo]?|M[nce]?|N[dlo]?|P[cdseifo]?|S[mcko]?|Z[slp]?|C[cf]?|Han"
_ESCAPE = re.compile(
    rf"\\(?:[pP]\{{(?:{_CATEGORY})\}}|x[0-7][0-9a-fA-F]|u[0-9a-fA-F]{{4}}|[sSdDrntf]|[^\w\s])"
)
_OPENINGS = ("(", "(?:", "(?i:", "(?>", "(?=", "(?!")
_QUANTIFIER = re.compile(r"[?*+][?+]?|\{\d+(?:,\d*)?\}")
_OPERATORS = ("&&", "--", "||", "~~")  # between sets, to `regex`
_ITEM = re.compile(rf"{_ESCAPE.pattern}|(?!&&|--|\|\||~~)[^\\\[\]]")
# A set within a set, to Oniguruma: its characters belong to the outer one. Not [:alpha:] of POSIX.
_INNER_SET = re.compile(rf"\[(?![\^:\-\]])((?:{_ITEM.pattern})+)\]")

# Ignoring case is not sure for other letters than ASCII, properties, or what is excluded.
_LIGATURE = re.compile(r"[sf\[][sfilt\[]")
_CASE_UNSURE = re.compile(r"[^\x00-\x7f]|\\[pPuSD]|^\[\^")


def to_huggingface(pattern: str) -> str:
    """Return the Oniguruma pattern with the same meaning as a pattern of ``regex``.

    Raises:
        ValueError: a part of the pattern cannot be carried over with certainty; the message
            names the part and its position.
    """
    return _Writer(pattern, _TO_HUGGINGFACE, nests=False).whole()


def from_huggingface(pattern: str) -> str:
    """Return the ``regex`` pattern for one of Oniguruma; raise as :func:`to_huggingface`."""
    return _Writer(pattern, _FROM_HUGGINGFACE, nests=True).whole()


class _Writer:
    """A writer of the patterns that mean the same in both syntaxes."""

    def __init__(self, pattern: str, anchors: Mapping[str, str], *, nests: bool) -> None:
        self._pattern = pattern
        self._anchors = anchors
        self._nests = nests  # whether a set may hold sets
        self._letters = ""  # elements of the branch whose case is ignored; "[" for a set

    def whole(self) -> str:
        node = parse(self._pattern, nests=self._nests)
        written = self._node(node)
        if is_nullable(node):
            raise ValueError(
                f"the pattern {self._pattern!r} can match the empty string; Hugging Face cuts the "
                "text at such a match"
            )
        return written

    def _fail(self, at: int) -> NoReturn:
        raise ValueError(
            f"{self._pattern[at : at + 4]!r} at character {at} of the pattern "
            f"{self._pattern!r} may differ between Python's regex and Hugging Face's Oniguruma"
        )

    def _node(self, node: Node) -> str:
        if isinstance(node, Sequence):
            return "".join(map(self._node, node.nodes))
        if isinstance(node, Choice):
            first, *others = node.nodes
            return "|".join([self._node(first), *map(self._next_branch, others)])
        if isinstance(node, Repeat):
            written = self._node(node.node)
            if not _QUANTIFIER.fullmatch(node.source) or is_nullable(node.node):
                self._fail(node.at)
            return written + node.source
        if isinstance(node, Group) and node.opening in _OPENINGS:
            return f"{node.opening}{self._node(node.node)})"
        if isinstance(node, Anchor) and node.source in self._anchors:
            return self._anchors[node.source]
        if not isinstance(node, Class):
            self._fail(node.at)
        return self._class(node)

    def _next_branch(self, node: Node) -> str:
        self._letters = ""
        return self._node(node)

    def _class(self, node: Class) -> str:
        written = self._set(node) if node.source[0] == "[" else node.source
        unknown = written[0] == "\\" and not _ESCAPE.fullmatch(written)
        if unknown or ("i" in node.flags and self._case_is_unsure(written)):
            self._fail(node.at)
        return written

    def _case_is_unsure(self, written: str) -> bool:
        """Return whether Oniguruma might match another text if it ignores the case of this element.

        ASCII text is safe with two exceptions: the letter i, which ``regex`` takes for U+0130 too,
        and letters that Oniguruma takes for a ligature (``ffl`` for U+FB04). Brackets and
        quantifiers between such letters are ignored, to err on the safe side.
        """
        self._letters += "[" if written[0] == "[" else written
        return bool(
            _CASE_UNSURE.search(written)
            or _LIGATURE.search(self._letters.lower())
            or (written != "." and re.fullmatch(written, "i", re.IGNORECASE))
        )

    def _set(self, node: Class) -> str:
        """Return the set with the characters of sets in it among its own."""
        written = "[^" if node.source.startswith("[^") else "["
        at, before, inner_items = len(written), "", 0
        while at < len(node.source) - 1:
            inner = _INNER_SET.match(node.source, at) if self._nests else None
            match = inner or _ITEM.match(node.source, at)
            if match is None:
                self._fail(node.at + at)
            at = match.end()
            if inner is not None:  # a hyphen at its border would be a range in the outer one
                inner_items += 1
                *_, last = _ITEM.findall(inner[1])
                if "-" in (before, last, node.source[at]):
                    self._fail(node.at)
            before = match[1] if inner else match[0]
            written += before
        if inner_items and any(operator in written for operator in _OPERATORS):
            self._fail(node.at)
        return written + "]"


def other_characters(pattern: str) -> str | None:
    r"""Return the class of all characters but those of a pattern of ``regex``, which matches one.

    Args:
        pattern: as :func:`from_huggingface` or ``re.escape`` returns it.

    >>> other_characters("[a-z]"), other_characters(r"[^\s]"), other_characters(r"\p{L}+")
    ('[^a-z]', '[\\s]', None)
    """
    node = parse(pattern)
    if not isinstance(node, Class) or pattern == ".":
        return None
    if pattern[0] != "[":
        return f"[^{pattern}]"
    if pattern[1] != "^":
        return f"[^{pattern[1:]}"
    escape = "\\" if pattern[2] == "^" else ""  # no longer after a "^", it would exclude
    return f"[{escape}{pattern[2:]}"
