"""Compile regular expressions into tables for the core (``native/text/pattern_table.h``).

A table does one step per character, so a match takes linear time. Nearly every pattern of a
tokenizer can become one: character classes, groups, alternatives, repetition (greedy or lazy, and
possessive for a single class), lookahead at one character, and at the beginning a negative
lookbehind at one. All other patterns run in the package ``regex``. That package also says which
characters belong to each class, so both ways follow the same version of Unicode.

1. The pattern is parsed; classes stay as they are written.
2. ``regex`` says which characters each class contains. Characters that belong to the same classes
   become one symbol. The end of the text is a symbol too, and so is a line feed at the end of the
   text, for ``$``.
3. The pattern becomes a program (K. Thompson, "Regular Expression Search Algorithm", 1968) in which
   the targets of a split are ordered by preference (R. Cox, "Regular Expression Matching: the
   Virtual Machine Approach", 2009, describes Pike's version).
4. All threads of the program run at once, in order of preference. Each list of threads that occurs
   is a state of the table. When a thread matches, the threads after it are dropped: backtracking
   would not have tried them.
5. A search looks for the rarest characters of which each match holds one.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import regex

from bpe._native import PatternTable
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

_CODE_POINTS = 0x110000
_MAX_CLASSES = 128  # each takes some hundredths of a second
_MAX_SYMBOLS = 254  # and the two of the end
_MAX_PROGRAM = 4096  # instructions
_MAX_STATES = 4096
_MAX_WORK = 2_000_000  # instructions visited: some seconds


class _NotATable(Exception):  # noqa: N818  # not an error: such patterns run in `regex`
    """The error of a pattern that cannot be a table; the message says why."""


@functools.lru_cache(maxsize=16)
def pattern_table(pattern: str) -> PatternTable | None:
    """Return the table of a compiled pattern, or None if only ``regex`` can run the pattern.

    A pattern that can match the empty string has no table: an automaton cannot do what
    ``finditer`` does around empty matches.
    """
    try:
        return _table(*_parsed(pattern))
    except _NotATable:
        return None


@functools.lru_cache(maxsize=16)
def never_split_tables(pattern: str) -> tuple[PatternTable, PatternTable] | None:
    """Return the tables of a never-split pattern: of matches in a text, and of whole texts.

    None if only ``regex`` can run the pattern, or if the pattern has a positive lookahead.
    """
    try:
        lookbehind, node = _parsed(pattern)
        if any(one.next and one.next.is_required for one in _program(node) if not one.takes):
            return None
        return _table(lookbehind, node), _table(lookbehind, node, whole=True)
    except _NotATable:
        return None


def _table(lookbehind: str, node: Node, *, whole: bool = False) -> PatternTable:
    if is_nullable(node):
        raise _NotATable("it matches the empty string")
    program = _program(node, whole=whole)
    sources = [lookbehind, *(one.next.source for one in program if one.next)]
    symbols = _symbols(list(dict.fromkeys(filter(None, sources))))
    steps = _steps(program, symbols)
    roles = _roles(node, lookbehind, symbols, steps)
    required = np.flatnonzero(roles[symbols.of] & _REQUIRED)
    few = bytes(required.tolist()) if len(required) <= _FEW and required[-1] < _ASCII else b""
    return PatternTable(symbols.of.tobytes(), steps.tobytes(), roles.tobytes(), few)


# What a pattern is made of.

_ESCAPE = regex.compile(
    r"\\(?:[sSdDwW]|[pP]\{\^?[\w\s:=\-.&]+\}|[pP]\w|[nrtfva]|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}"
    r"|U[0-9A-Fa-f]{8}|[\W_])"
)
_SET = regex.compile(rf"\[\^?\]?(?:{_ESCAPE.pattern}|(?!--|&&|\|\||~~)[^\\\[\]])*\]")
_OPENING = regex.compile(r"\((?:\?(?:P?<\w+>|[is]*(?:-[is]+)?:))?")


def _parsed(pattern: str) -> tuple[str, Node]:
    """Return the class of characters after which no match begins, "" for none; and the rest."""
    leading = regex.match(r"\(\?([is]+)\)", pattern)
    flags, begin = (frozenset(leading[1]), leading.end()) if leading else (frozenset[str](), 0)
    try:
        tree = parse(pattern, begin=begin, flags=flags)
    except ValueError as error:
        raise _NotATable(str(error)) from None
    first, *others = tree.nodes if isinstance(tree, Sequence) and tree.nodes else [tree]
    if isinstance(first, Group) and first.opening == "(?<!":
        return _class(first.node), Sequence(tuple(others))
    return "", tree


def _grouped(node: Node) -> Node:
    """Return what a group holds that only groups; any other node itself."""
    while isinstance(node, Group) and _OPENING.fullmatch(node.opening):
        node = node.node
    return node


def _class(node: Node) -> str:
    """Return the class that makes up a whole node, with its flags."""
    node = _grouped(node)
    if not isinstance(node, Class):
        raise _NotATable("more than a character")
    known = {"[": _SET, "\\": _ESCAPE}.get(node.source[0])
    if known is not None and not known.fullmatch(node.source):
        raise _NotATable(f"{node}")
    flags = "".join(sorted(node.flags))
    return f"(?{flags}:{node.source})" if flags else node.source


# Characters.


class _Symbols(NamedTuple):
    """The symbols that stand for the characters of a pattern.

    Attributes:
        of: the symbol of each code point, uint8.
        sets: the symbols of each class, as a bit set.
        width: how many symbols there are, with the two of the end.
    """

    of: npt.NDArray[np.uint8]
    sets: Mapping[str, int]
    width: int

    def members(self, sources: Iterable[str]) -> npt.NDArray[np.bool_]:
        """Return whether each symbol is of one of these classes."""
        held = functools.reduce(operator.or_, (self.sets[source] for source in sources), 0)
        return np.array([bool(held >> symbol & 1) for symbol in range(self.width)])

    def next(self, what: _Next | None) -> int:
        """Return the symbols that may come next, as a bit set."""
        every, end, line_feed = ((1 << self.width) >> shift for shift in range(3))
        if what is None:
            return every - 1
        held = self.sets.get(what.source, 0)
        held = held if what.of_class else (end - 1) & ~held
        return held | (end if what.end else 0) | (line_feed if what.last_line_feed else 0)


@functools.cache
def _all_characters() -> str:
    """Return every code point; lone surrogates are malformed bytes, too."""
    return np.arange(_CODE_POINTS, dtype="<u4").tobytes().decode("utf-32-le", "surrogatepass")


def _runs(source: str) -> list[tuple[int, int]]:
    """Return the code points of a class as ranges (begin, end), ascending."""
    if len(source) == 1 and source != ".":
        return [(ord(source), ord(source) + 1)]
    return [run.span() for run in regex.finditer(f"(?:{source})+", _all_characters())]


def _symbols(sources: list[str]) -> _Symbols:
    """Return the symbols that tell the characters of these classes apart."""
    if len(sources) > _MAX_CLASSES:
        raise _NotATable("too many classes")
    runs = [_runs(source) for source in sources]
    ends = {point for of_class in runs for run in of_class for point in run}
    bounds = sorted({0, _CODE_POINTS} | ends)  # between them, characters are alike
    place = {point: number for number, point in enumerate(bounds)}
    held = [0] * (len(bounds) - 1)  # the classes that hold these characters, as a bit set
    for number, of_class in enumerate(runs):
        for begin, end in of_class:
            for between in range(place[begin], place[end]):
                held[between] |= 1 << number
    kinds = [*dict.fromkeys(held)]
    if len(kinds) > _MAX_SYMBOLS:
        raise _NotATable("too many kinds of characters")
    symbols = np.array([kinds.index(classes) for classes in held], np.uint8)
    of = np.repeat(symbols, np.diff(bounds))
    kinds.append(kinds[of[ord("\n")]])  # the line feed that ends the text
    sets = {
        source: sum(1 << symbol for symbol, classes in enumerate(kinds) if classes >> number & 1)
        for number, source in enumerate(sources)
    }
    return _Symbols(of, sets, len(kinds) + 1)


# The program.


class _Next(NamedTuple):
    """A condition on what follows.

    Attributes:
        source: a class of characters; "" for none.
        of_class: whether characters of the class, rather than others.
        end: whether the end of the text, too.
        last_line_feed: whether a line feed that ends the text, too, whatever its class.
    """

    source: str
    of_class: bool = True
    end: bool = False
    last_line_feed: bool = False

    @property
    def is_required(self) -> bool:
        """Return whether a character of a class has to follow."""
        return self.of_class and self.source != ""


_END = _Next("", end=True)
_ENDS = {"$": _END._replace(last_line_feed=True), r"\Z": _END, r"\z": _END}


class _Instruction(NamedTuple):
    """An instruction of a thread, and the next one.

    Attributes:
        next: what must come next; None for anything.
        takes: whether it goes on after that.
        targets: where it goes on, the first preferred; nowhere if it has matched.
    """

    next: _Next | None
    takes: bool
    targets: tuple[int, ...]


_MATCHED = _Instruction(None, takes=False, targets=())


class _Compiler:
    """Builds a program from its end: each node gets the instruction after it."""

    def __init__(self) -> None:
        self.instructions = [_MATCHED]

    def add(self, node: Node, then: int) -> int:
        """Add the instructions of a node, which go on at ``then``; return the first."""
        node = _grouped(node)
        if isinstance(node, Class):
            return self.put(_Next(_class(node)), then, takes=True)
        if isinstance(node, Group) and node.opening == "(?=":
            return self.put(_Next(_class(node.node)), then)
        if isinstance(node, Group) and node.opening == "(?!":
            return self.put(_Next(_class(node.node), of_class=False, end=True), then)
        if isinstance(node, Anchor) and node.source in _ENDS:
            return self.put(_ENDS[node.source], then)
        if isinstance(node, Sequence):
            for one in reversed(node.nodes):
                then = self.add(one, then)
            return then
        if isinstance(node, Choice):
            return self.put(None, *(self.add(one, then) for one in node.nodes))
        if isinstance(node, Repeat):
            return self._repeat(node, then)
        raise _NotATable(f"{node}")

    def _repeat(self, node: Repeat, then: int) -> int:
        if is_nullable(node.node) and node.most != 1:
            raise _NotATable("a repetition of what can be empty")
        leave = then
        if node.kind == "+":
            # As many as there are: something else follows, or it is the most that may be.
            leave = self.put(_Next(_class(node.node), of_class=False, end=True), then)
        if node.most is None:
            begin = self.put(None)  # its place; what it does is known when its body is there
            body = self.add(node.node, begin)
            self.instructions[begin] = _Instruction(None, False, _choice(node, body, leave))
        else:
            begin = then
            for _ in range(node.most - node.least):
                begin = self.put(None, *_choice(node, self.add(node.node, begin), leave))
        for _ in range(node.least):
            begin = self.add(node.node, begin)
        return begin

    def put(self, what: _Next | None, *targets: int, takes: bool = False) -> int:
        """Add one instruction, and return its place."""
        if len(self.instructions) == _MAX_PROGRAM:
            raise _NotATable("it is too long")
        self.instructions.append(_Instruction(what, takes, targets))
        return len(self.instructions) - 1


def _choice(node: Repeat, again: int, leave: int) -> tuple[int, int]:
    return (leave, again) if node.kind == "?" else (again, leave)


def _program(node: Node, *, whole: bool = False) -> list[_Instruction]:
    """Return the instructions of a pattern, which ends with the text if ``whole``.

    The last one is the first to be done.
    """
    compiler = _Compiler()
    begin = compiler.add(node, compiler.put(_END, 0) if whole else 0)
    return [*compiler.instructions, _Instruction(None, False, (begin,))]


# The table.

_Threads: TypeAlias = tuple[int, ...]  # instructions, the preferred thread first


def _steps(instructions: list[_Instruction], symbols: _Symbols) -> npt.NDArray[np.uint32]:
    """Return the steps of `PatternTable`, as many for each state as there are symbols."""
    width = symbols.width
    program = [(symbols.next(what), takes, targets) for what, takes, targets in instructions]
    first: _Threads = (len(program) - 1,)
    states: dict[_Threads, int] = {(): 0, first: 1}
    waiting = [first]
    steps = [np.zeros(width, np.uint32)]
    work = 0
    for threads in waiting:  # grows while it is read
        row = np.zeros(width, np.uint32)
        for symbol in range(width):
            following, matched, looked_at = _step(program, threads, 1 << symbol)
            work += looked_at
            if following not in states:
                states[following] = len(states)
                waiting.append(following)
            row[symbol] = states[following] << 1 | matched
        steps.append(row)
        if len(states) > _MAX_STATES or work > _MAX_WORK:
            raise _NotATable("it has too many states")
    return np.concatenate(steps)


def _step(
    program: list[tuple[int, bool, tuple[int, ...]]], threads: _Threads, symbol: int
) -> tuple[_Threads, bool, int]:
    """Return the threads after a symbol, whether one matched before it, and the work done."""
    following: dict[int, None] = {}  # in order
    seen: set[int] = set()
    stack = list(reversed(threads))
    while stack:
        at = stack.pop()
        if at in seen:
            continue
        seen.add(at)
        symbols, takes, targets = program[at]
        if not targets:
            return tuple(following), True, len(seen)
        if symbols & symbol and takes:
            following.update(dict.fromkeys(targets))
        elif symbols & symbol:
            stack += reversed(targets)
    return tuple(following), False, len(seen)


# The search.

_REQUIRED, _BEFORE, _NOT_BEHIND, _FIRST = 1, 2, 4, 8  # as the core knows them
_FEW = 3  # required characters, which vectors compare with
_ASCII = 0x80

# How common characters are, about; those of ASCII that are not here have 1.
_COMMON = {**dict.fromkeys(" abcdefghijklmnopqrstuvwxyz", 20), **dict.fromkeys(".,\n", 4)}
_BEYOND_ASCII = 20  # all together


def _roles(
    node: Node, lookbehind: str, symbols: _Symbols, steps: npt.NDArray[np.uint32]
) -> npt.NDArray[np.uint8]:
    """Return the roles of each symbol in a search, as `PatternTable` has them."""
    common = np.zeros(symbols.width, np.int64)
    ascii_, others = symbols.of[:_ASCII], symbols.of[_ASCII:]
    np.add.at(common, ascii_, [_COMMON.get(chr(point), 1) for point in range(_ASCII)])
    common[np.unique(others)] += _BEYOND_ASCII
    rarest = _required(node, symbols, common)
    required = symbols.members(rarest[1] if rarest else ())
    first = steps[symbols.width : 2 * symbols.width] > 0
    first[symbols.of[ord("\n")]] |= first[-2]
    return (
        np.where(required, _REQUIRED, 0)
        + np.where(_before(required, steps), _BEFORE, 0)
        + np.where(symbols.members([lookbehind] if lookbehind else []), _NOT_BEHIND, 0)
        + np.where(first, _FIRST, 0)
    ).astype(np.uint8)


def _required(
    node: Node, symbols: _Symbols, common: npt.NDArray[np.int64]
) -> tuple[int, list[str]] | None:
    """Return the rarest classes of which each match of a node holds a character.

    Returns:
        How common their characters are, and the classes; None if there are no such classes: the
        node can match the empty string.
    """
    node = _grouped(node)
    if isinstance(node, Class):
        source = _class(node)
        return int(common @ symbols.members([source])), [source]
    if isinstance(node, Repeat):
        return _required(node.node, symbols, common) if node.least else None
    if not isinstance(node, Sequence | Choice):
        return None
    of_each = [_required(inside, symbols, common) for inside in node.nodes]
    known = [required for required in of_each if required]
    if isinstance(node, Sequence):
        return min(known, key=operator.itemgetter(0), default=None)
    if len(known) < len(of_each):
        return None
    return sum(weight for weight, _ in known), [one for _, classes in known for one in classes]


def _before(
    required: npt.NDArray[np.bool_], steps: npt.NDArray[np.uint32]
) -> npt.NDArray[np.bool_]:
    """Return the symbols that a match may hold before the first required character."""
    following = steps.reshape(-1, len(required)) >> 1
    following[:, required] = 0
    reached = {0, 1}
    waiting = [1]
    for state in waiting:  # grows while it is read
        new = set(following[state].tolist()) - reached
        reached |= new
        waiting += new
    before: npt.NDArray[np.bool_] = np.any(following[waiting] > 0, axis=0)
    return before
