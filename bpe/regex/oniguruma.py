r"""Regular expressions between the package ``regex`` and Oniguruma, which Hugging Face uses.

The two agree on most patterns of pre-tokenizers, and differ silently on the rest: ``$`` is the end
of the text in one and of any line in the other, ``\w`` and ``\h`` are other sets, ``{1,3}+`` is
possessive in one and a repeated repetition in the other. What means the same in both passes,
anchors are rewritten, and everything else is refused by name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Mapping


# The properties that are taken over: general categories, and the script of Chinese.
_CATEGORIES = re.compile(r"L[ultmo]?|M[nce]?|N[dlo]?|P[cdseifo]?|S[mcko]?|Z[slp]?|C[cf]?|Han")

# Without flags, which are refused, "^" and "$" are of the whole text in Python.
_TO_HUGGINGFACE = {"^": r"\A", "$": r"\Z", r"\A": r"\A", r"\Z": r"\z"}
_FROM_HUGGINGFACE = {r"\A": r"\A", r"\Z": "$", r"\z": r"\Z", "$": r"(?:(?=\n)|\Z)"}

_ESCAPE = re.compile(
    r"\\(?:[pP]\{(?P<property>\w+)\}|x[0-7][0-9a-fA-F]|u[0-9a-fA-F]{4}|[sSdDrntf]|[^\w\s])"
)
_GROUP = re.compile(r"\((?:\?(?:i?:|>|=|!))?(?![?*])")
_QUANTIFIER = re.compile(r"(?:[?*+][?+]?|\{\d+(?:,\d*)?\})(?![?+*{])")
_PLAIN = re.compile(r"[^\\^$.\[\](){}?*+|]|[.|]")
_MAY_SKIP = re.compile(r"[?*]|\{0+[,}]")
# Single characters, ranges and escapes.
_OPERATORS = ("&&", "--", "||", "~~")  # between sets, to `regex`
_CLASS_ITEM = re.compile(r"(?!&&|--|\|\||~~)[^\\\[\]]")
# A set within a set, to Oniguruma: its characters belong to the outer one. Not [:alpha:] of POSIX.
_INNER_CLASS = re.compile(r"\[(?![\^:\-\]])")

# Ignoring case is not sure for other letters than ASCII, properties, or what is excluded.
_LIGATURE = re.compile(r"[sf\[][sfilt\[]")
_CASE_UNSURE = re.compile(r"[^\x00-\x7f]|\\[pPuSD]|^\[\^")


def to_huggingface(pattern: str) -> str:
    """A pattern of ``regex`` as Oniguruma has to read it to mean the same.

    Raises:
        ValueError: it holds something that cannot be carried over with certainty; the message
            names it and its position.
    """
    return _Rewriter(pattern, _TO_HUGGINGFACE).rewrite()


def from_huggingface(pattern: str) -> str:
    """A pattern of Oniguruma as ``regex`` has to read it; raises as :func:`to_huggingface`."""
    return _Rewriter(pattern, _FROM_HUGGINGFACE, nests=True).rewrite()


@dataclass
class _Group:
    """What is known of a group (or the whole pattern) while it is read.

    ``consumes`` says of the branch that is being read, ``all_consume`` of those before it, whether
    they match at least one character; ``atom`` of the last element, which a quantifier may undo.
    ``elements`` and ``anchors`` count in the branch: Oniguruma repeats no group (``repeatable``)
    with a branch of anchors only.
    """

    ignores_case: bool
    looks_around: bool = False
    all_consume: bool = True
    consumes: bool = False
    atom: bool = False
    elements: int = 0
    anchors: int = 0
    repeatable: bool = True

    def add(self, *, anchor: bool) -> None:
        self.elements += 1
        self.anchors += anchor

    def end_atom(self) -> None:
        self.consumes |= self.atom
        self.atom = False

    def end_branch(self) -> None:
        self.end_atom()
        self.all_consume &= self.consumes
        self.consumes = False
        self.repeatable &= self.anchors == 0 or self.anchors < self.elements
        self.elements = self.anchors = 0


class _Rewriter:
    """Reads a pattern from left to right and takes over what it knows."""

    def __init__(self, pattern: str, anchors: Mapping[str, str], *, nests: bool = False) -> None:
        self.pattern = pattern
        self.anchors = anchors
        self.nests = nests  # whether a class may hold others
        self.at = 0
        self.groups = [_Group(ignores_case=False)]
        self.repeatable = False  # whether what was read last can have a quantifier in both
        self.letters = ""  # elements of the branch whose case is ignored; "[" for a class

    def rewrite(self) -> str:
        out = []
        while self.at < len(self.pattern):
            out.append(self.anchor() or self.element())
        self.groups[0].end_branch()
        if not self.groups[0].all_consume:
            raise ValueError(
                f"the pattern {self.pattern!r} can match the empty string; Hugging Face cuts the "
                "text at such a match"
            )
        return "".join(out)

    def fail(self) -> NoReturn:
        raise ValueError(
            f"{self.pattern[self.at : self.at + 4]!r} at character {self.at} of the pattern "
            f"{self.pattern!r} may differ between Python's regex and Hugging Face's Oniguruma"
        )

    def take(self, expression: re.Pattern[str]) -> str:
        match = expression.match(self.pattern, self.at)
        if match is None or not _CATEGORIES.fullmatch(match.groupdict().get("property") or "L"):
            self.fail()
        self.at = match.end()
        return match[0]

    def anchor(self) -> str | None:
        size = 2 if self.pattern[self.at] == "\\" else 1
        written = self.anchors.get(self.pattern[self.at : self.at + size])
        if written is not None:
            self.at += size
            self.groups[-1].end_atom()
            self.groups[-1].add(anchor=True)
            self.repeatable = False
        return written

    def element(self) -> str:
        begin = self.at
        char = self.pattern[begin]
        group = self.groups[-1]
        repeatable, self.repeatable = self.repeatable, True
        if char in "?*+{":
            if not repeatable:
                self.fail()
            taken = self.take(_QUANTIFIER)
            group.atom &= not _MAY_SKIP.match(taken)
        elif char == "|":
            taken = self.take(_PLAIN)
            group.end_branch()
            self.letters = ""
        elif char == "(":
            taken = self.take(_GROUP)
            group.end_atom()
            ignores_case = group.ignores_case or taken == "(?i:"
            self.groups.append(_Group(ignores_case, looks_around=taken[-1] in "=!"))
        elif char == ")" and len(self.groups) > 1:
            taken = char
            self.at += 1
            self.groups.pop()
            group.end_branch()
            self.groups[-1].atom = group.all_consume and not group.looks_around
            self.repeatable = group.repeatable and not group.looks_around
            self.groups[-1].add(anchor=not self.repeatable)
        else:
            group.end_atom()
            group.add(anchor=False)
            group.atom = True
            if char == "[":
                taken = self.character_class()
            else:
                taken = self.take(_ESCAPE if char == "\\" else _PLAIN)
            if group.ignores_case and self.case_is_unsure(taken):
                self.at = begin
                self.fail()
        return taken

    def case_is_unsure(self, taken: str) -> bool:
        """Whether ignoring the case of this element could be another thing in Oniguruma.

        ASCII is sure, but for the i, which is the same as U+0130 to ``regex``, and for letters of
        which two or three are the same as a ligature (``ffl`` and U+FB04) there: brackets and
        quantifiers between them do not matter, so as to be sure.
        """
        self.letters += "[" if taken[0] == "[" else taken
        return bool(
            _CASE_UNSURE.search(taken)
            or _LIGATURE.search(self.letters.lower())
            or (taken != "." and re.fullmatch(taken, "i", re.IGNORECASE))
        )

    def character_class(self) -> str:
        """The class that begins here, with the characters of classes in it among its own."""
        begin = self.at
        self.at += 2 if self.pattern.startswith("[^", begin) else 1
        taken, plain = [self.pattern[begin : self.at]], True
        while len(taken) == 1 or not self.pattern.startswith("]", self.at):
            if self.nests and self.pattern.startswith("[", self.at):
                plain = False
                taken.append(self.inner_class(after=taken[-1]))
            else:
                taken.append(self.class_item())
        self.at += 1
        written = "".join([*taken, "]"])
        if not plain and any(operator in written for operator in _OPERATORS):
            self.at = begin
            self.fail()
        return written

    def class_item(self) -> str:
        return self.take(_ESCAPE if self.pattern.startswith("\\", self.at) else _CLASS_ITEM)

    def inner_class(self, *, after: str) -> str:
        """The items of a class in a class; a hyphen at its border would be a range in the outer."""
        begin = self.at
        self.take(_INNER_CLASS)
        items = [self.class_item()]
        while not self.pattern.startswith("]", self.at):
            items.append(self.class_item())
        self.at += 1
        if "-" in (after, items[-1]) or self.pattern.startswith("-", self.at):
            self.at = begin
            self.fail()
        return "".join(items)


def other_characters(pattern: str) -> str | None:
    r"""The class of the characters that a pattern of ``regex`` does not match, if it matches one.

    Args:
        pattern: as :func:`from_huggingface` or ``re.escape`` returns it.

    >>> other_characters("[a-z]"), other_characters(r"[^\s]"), other_characters(r"\p{L}+")
    ('[^a-z]', '[\\s]', None)
    """
    if pattern.startswith("["):
        is_class = re.fullmatch(r"\[(?:\\.|[^\]\\])*\]", pattern, re.DOTALL)
        if is_class is None:
            return None
        if pattern[1] != "^":
            return f"[^{pattern[1:]}"
        escape = "\\" if pattern[2] == "^" else ""  # no longer behind a "^", it would exclude
        return f"[{escape}{pattern[2:]}"
    is_one = _ESCAPE.fullmatch(pattern) or (len(pattern) == 1 and _PLAIN.fullmatch(pattern))
    return f"[^{pattern}]" if is_one and pattern not in (".", "|") else None


_MAX_SIZE = 4096
_MAX_DEPTH = 50

_TOKEN = re.compile(
    r"""
      \\[pPNxuU]\{[^}]*\} | \\.           # an escape
    | \[\^?\]?(?:\\.|[^\]\\])*\]          # a set
    | \{(?P<least>\d*)(?P<comma>,)?(?P<most>\d*)\}  # a repetition
    | .
    """,
    re.VERBOSE | re.DOTALL,
)


def check_size(pattern: str) -> None:
    """Refuse patterns that nest deeply, or are long once their repetitions are written out.

    Raises:
        ValueError: the pattern is one of them.
    """
    groups = [0]  # the size of each open group
    last = 0  # that of the last element
    for token in _TOKEN.finditer(pattern):
        text = token[0]
        if text == "(":
            groups.append(0)
            last = 0
        elif text == ")" and len(groups) > 1:
            last = groups.pop()
            groups[-1] += last
        elif text[0] == "{" and len(text) > 1 and (token["least"] or token["most"]):
            times = max(_count(token["least"]), _count(token["most"]))
            groups[-1] += last * (times - 1)
            last *= times
        else:
            last = 1
            groups[-1] += 1
        if len(groups) > _MAX_DEPTH or groups[-1] > _MAX_SIZE:
            raise ValueError(
                f"the pattern {pattern[:60]!r} nests more than {_MAX_DEPTH} deep, or has more than "
                f"{_MAX_SIZE} elements with its repetitions written out"
            )


def _count(digits: str) -> int:
    return min(int(digits[:7] or 1), _MAX_SIZE + 1) if len(digits) < 8 else _MAX_SIZE + 1
