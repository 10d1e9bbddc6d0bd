"""Parse a regular expression into a tree, for all modules that have to understand one.

Whatever is not known stays in the tree as an `Other`, so every string has a tree: `bpe.regex.table`
and `bpe.regex.oniguruma` refuse what they cannot say, and :func:`check_size` bounds the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import regex

MAX_DEPTH = 50
_MAX_SIZE = 4096


@dataclass(frozen=True)
class Class:
    """One character: itself, an escape, a set, or a dot.

    Attributes:
        source: its text.
        at: its place in the pattern.
        flags: that hold for it, of ``i`` and ``s``.
    """

    source: str
    at: int
    flags: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Anchor:
    r"""A place in the text: ``^``, ``$``, ``\A``, ``\Z`` or ``\z``."""

    source: str
    at: int


@dataclass(frozen=True)
class Other:
    """A node of any other kind, such as a backreference or a comment."""

    source: str
    at: int


@dataclass(frozen=True)
class Group:
    """A node in parentheses; ``opening`` is its first characters: ``(?:``."""

    opening: str
    node: Node
    at: int

    @property
    def looks_around(self) -> bool:
        """Return whether the group takes no characters."""
        return self.opening[-1] in "=!"


@dataclass(frozen=True)
class Sequence:
    """Nodes that match one after the other."""

    nodes: tuple[Node, ...]


@dataclass(frozen=True)
class Choice:
    """Alternatives, of which the first that leads to a match is taken."""

    nodes: tuple[Node, ...]


@dataclass(frozen=True)
class Repeat:
    """A repetition of a node.

    Attributes:
        node: that is repeated.
        least: times.
        most: times; None for any number.
        kind: "" for as often as leads to a match, "?" for as seldom, "+" for as often as it goes.
        source: the text of the quantifier.
        at: its place in the pattern.
    """

    node: Node
    least: int
    most: int | None
    kind: str
    source: str
    at: int


Node: TypeAlias = Class | Anchor | Other | Group | Sequence | Choice | Repeat

_ANCHOR = regex.compile(r"[$^]|\\[AZz]")
_ESCAPE = regex.compile(
    r"\\(?:[pPNxu]\{[^}]{0,99}\}|[pP]\w|x\p{AHex}{2}|u\p{AHex}{4}|U\p{AHex}{8}|.)", regex.DOTALL
)
_SET = regex.compile(r"\[\^?\]?+(?:\\.|[^\]\\])*+\]", regex.DOTALL)
_SET_OF_SETS = regex.compile(r"\[\^?\]?+(?:\\.|\[(?:\\.|[^\]\\])*+\]|[^\[\]\\])*+\]", regex.DOTALL)
_GROUP = regex.compile(r"\((?:\?(?:P?<[^\W\d]\w*>|([a-zA-Z]*)(?:-([a-zA-Z]+))?:|<?[=!]|[>|])?)?")
_QUANTIFIER = regex.compile(r"(?:[*+?]|\{(?:(\d+)(,(\d*))?|,(\d+))\})([?+]?)")
_SIGNS = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_SPECIAL = frozenset("\\^$*+?{}[]()|")


def parse(
    pattern: str, *, begin: int = 0, flags: frozenset[str] = frozenset(), nests: bool = False
) -> Node:
    """Return the tree of a pattern.

    Args:
        pattern: in the syntax of ``regex``, or of Oniguruma.
        begin: where to begin.
        flags: that hold from there.
        nests: whether a set may hold sets, as Oniguruma has them.

    Raises:
        ValueError: the groups of the pattern nest deeply.
    """
    return _Parser(pattern, begin, _SET_OF_SETS if nests else _SET).choice(flags, 0)


class _Parser:
    def __init__(self, pattern: str, begin: int, set_: regex.Pattern[str]) -> None:
        self._text, self._at, self._set = pattern, begin, set_

    def choice(self, flags: frozenset[str], depth: int) -> Node:
        if depth >= MAX_DEPTH:
            raise _too_large(self._text)
        nodes = [self._sequence(flags, depth)]
        while self._text.startswith("|", self._at):
            self._at += 1
            nodes.append(self._sequence(flags, depth))
        return nodes[0] if len(nodes) == 1 else Choice(tuple(nodes))

    def _sequence(self, flags: frozenset[str], depth: int) -> Node:
        nodes: list[Node] = []
        ends = "|)" if depth else "|"
        while self._at < len(self._text) and self._text[self._at] not in ends:
            nodes.append(self._repeat(self._element(flags, depth)))
        return nodes[0] if len(nodes) == 1 else Sequence(tuple(nodes))

    def _repeat(self, node: Node) -> Node:
        match = _QUANTIFIER.match(self._text, self._at)
        if match is None:
            return node
        at, self._at = self._at, match.end()
        if match[0][0] != "{":
            least, most = _SIGNS[match[0][0]]
        else:
            least = _times(match[1] or "0")
            most = _times(match[3] or match[4]) if match[3] or match[4] else None
            if match[2] is None and match[4] is None:
                most = least
        return Repeat(node, least, most, match[5], match[0], at)

    def _element(self, flags: frozenset[str], depth: int) -> Node:
        at, mark = self._at, self._text[self._at]
        if anchor := _ANCHOR.match(self._text, at):
            self._at = anchor.end()
            return Anchor(anchor[0], at)
        if mark == "(":
            return self._group(flags, depth)
        one = self._set if mark == "[" else _ESCAPE if mark == "\\" else None
        match = one.match(self._text, at) if one else None
        self._at = match.end() if match else at + 1
        if match is None and mark == "[":  # it has no end
            self._at = len(self._text)
        source = self._text[at : self._at]
        return Other(source, at) if mark in _SPECIAL and not match else Class(source, at, flags)

    def _group(self, flags: frozenset[str], depth: int) -> Node:
        at, match = self._at, _GROUP.match(self._text, self._at)
        self._at = match.end()
        on, off = (set(match[i] or "") & {"i", "s"} for i in (1, 2))
        node = self.choice((flags | on) - off, depth + 1)
        if self._at == len(self._text):  # it has no end
            return Sequence((Other(match[0], at), node))
        self._at += 1
        return Group(match[0], node, at)


def _times(digits: str) -> int:
    """Return the number, or a number that is too large for any use if there are many digits."""
    return int(digits) if len(digits) < 8 else 10**8


def is_nullable(node: Node) -> bool:
    """Return whether a node can match without a character; of an `Other`, that is not known."""
    if isinstance(node, Sequence):
        return all(map(is_nullable, node.nodes))
    if isinstance(node, Choice):
        return any(map(is_nullable, node.nodes))
    if isinstance(node, Group):
        return node.looks_around or is_nullable(node.node)
    if isinstance(node, Repeat):
        return node.least == 0 or is_nullable(node.node)
    return not isinstance(node, Class)


def check_size(pattern: str) -> None:
    """Check the depth and the size of a pattern, with its repetitions written out.

    Raises:
        ValueError: the pattern nests deeply or is too long.
    """
    if _size(parse(pattern)) > _MAX_SIZE:
        raise _too_large(pattern)


def _size(node: Node) -> int:
    """Return the number of elements of a node, counting repetitions at most."""
    if isinstance(node, Sequence | Choice):
        return sum(map(_size, node.nodes)) + isinstance(node, Choice) * (len(node.nodes) - 1)
    if isinstance(node, Group):
        return _size(node.node)
    if isinstance(node, Repeat):
        times = max(node.least, node.most or 1)
        return _size(node.node) * times + (times == 1)
    return len(node.source) if isinstance(node, Other) else 1


def _too_large(pattern: str) -> ValueError:
    return ValueError(
        f"the pattern {pattern[:60]!r} nests more than {MAX_DEPTH} deep, or has more than "
        f"{_MAX_SIZE} elements with its repetitions written out"
    )
