"""The results of five published descriptions of BPE, by their own algorithms.

Where a description prints something else, docs/systems.md says why it is not what it computes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Merges = list[tuple[str, str, int]]


@dataclass(frozen=True)
class System:
    """A description's example: texts, and what comes of them.

    Attributes:
        preset: its name.
        texts: in order.
        options: how large to get, where that is not the preset's, as options of the command line.
        merges: all of them, with their counts.
        splits: words, and the pieces that the merges make of them.
        pairs: the most frequent pairs before the first merge.
        size: of the vocabulary.
        ids: texts with their ids.
    """

    preset: str
    texts: list[str]
    merges: Merges
    splits: dict[str, str]
    options: dict[str, Any] = field(default_factory=dict)
    pairs: dict[tuple[str, str], int] = field(default_factory=dict)
    size: int | None = None
    ids: dict[str, list[int]] = field(default_factory=dict)


def read(merges: str) -> Merges:
    """Merges as ``bpe words`` prints them, spaces in symbols as ``␣``: ``l o 3, ␣ w 3``."""
    rows = (merge.split(" ") for merge in merges.split(", "))
    rows = ([part.replace("␣", " ") for part in row] for row in rows)
    return [(left, right, int(count)) for left, right, count in rows]


def repeated(counts: dict[str, int]) -> list[str]:
    return [word for word, count in counts.items() for _ in range(count)]


FREQUENCIES = {"low": 5, "lower": 2, "newest": 6, "widest": 3, "new": 4}
WITHOUT_NEW = {word: count for word, count in FREQUENCIES.items() if word != "new"}

TUTORIAL = System(
    preset="word-tutorial",
    texts=repeated(FREQUENCIES),
    options={"max_merges": 10},
    merges=read(
        "n e 10, ne w 10, e s 9, es t 9, est </w> 9, l o 7, lo w 7, new est</w> 6, "
        "low </w> 5, new </w> 4"
    ),
    splits={
        "lower": "low e r </w>",
        "lowest": "low est</w>",
        "newest": "newest</w>",
        "wide": "w i d e </w>",
    },
    size=25,
)
TUTORIAL_WITHOUT_NEW = System(
    preset="word-tutorial",
    texts=repeated(WITHOUT_NEW),
    options={"max_merges": 10},
    pairs={
        ("e", "s"): 9,
        ("s", "t"): 9,
        ("t", "</w>"): 9,
        ("w", "e"): 8,
    },
    merges=read(
        "e s 9, es t 9, est </w> 9, l o 7, lo w 7, n e 6, ne w 6, new est</w> 6, low </w> 5, w i 3"
    ),
    splits={"low": "low</w>", "widest": "wi d est</w>"},
)
NOTEBOOK = System(
    preset="notebook",
    texts=[
        "This is the first document.",
        "This document is the second document.",
        "And this is the third one.",
        "Is this the first document?",
    ],
    pairs={("s", "</w>"): 8, ("i", "s"): 7, ("t", "h"): 7, ("h", "i"): 5, ("h", "e"): 4},
    merges=read(
        "s </w> 8, i s</w> 7, t h 7, th e 4, the </w> 4, d o 4, do c 4, doc u 4, "
        "docu m 4, docum e 4, docume n 4, documen t 4, i r 3, . </w> 3, d </w> 3"
    ),
    splits={
        "This": "T h is</w>",
        "document.": "document .</w>",
        "third": "th ir d</w>",
        "second": "s e c o n d</w>",
    },
    size=35,
)
WORKS = System(
    preset="byte-level",
    texts=["I work", "I work", "I worked", "he works", "he worked"],
    options={"max_merges": 8},
    merges=read("␣ w 5, ␣w o 5, ␣wo r 5, ␣wor k 5, I ␣work 3, e ␣work 2, e d 2, h e␣work 2"),
    splits={},
    size=264,
)
EATS = System(
    preset="byte-level",
    texts=["he eats", "he eats", "I eat", "you eat"],
    options={"vocab_size": 260},
    merges=read("␣ e 4, ␣e a 4, ␣ea t 4, ␣eat s 2"),
    splits={"he eats": "h|e| eats", "you eat": "y|o|u| eat"},
    size=260,
)
WORDS = System(
    preset="words",
    texts=["low", "lower", "lowest"],
    merges=[("l", "o", 3), ("lo", "w", 3), ("low", "e", 2)],
    splits={
        "low": "low </w>",
        "lower": "lowe r </w>",
        "lowest": "lowe s t </w>",
        "lowly": "low l y </w>",
    },
)
INTERVIEW_TEXTS = [
    "low lower lowest",
    "new newer newest",
    "old older oldest",
    "low new low new low",
    "the newest lowest old newer",
]
INTERVIEW = System(
    preset="interview",
    texts=INTERVIEW_TEXTS,
    merges=read(
        "w e 7, w </w> 7, n e 7, l o 7, t </w> 5, s t</w> 5, we st</w> 4, r </w> 4, "
        "o l 4, ol d 4, lo w</w> 4, we r</w> 3, ne w</w> 3, old e 2, old </w> 2"
    ),
    splits={
        "low": "low</w>",
        "lower": "lo wer</w>",
        "lowest": "lo west</w>",
        "newer": "ne wer</w>",
        "oldest": "olde st</w>",
        "unknown": "u n k n o w n </w>",
    },
    size=30,
)
INTERVIEW_20 = System(
    preset="interview",
    texts=INTERVIEW_TEXTS,
    options={"max_merges": 20},
    merges=[*INTERVIEW.merges, *read("ne west</w> 2, ne wer</w> 2, lo west</w> 2, t h 1, th e 1")],
    splits={},
    size=35,
    ids={"low newer oldest": [25, 31, 28, 20], "the lowest new old": [34, 4, 32, 27, 29]},
)
SYSTEMS = {
    "A": TUTORIAL,
    "A without new": TUTORIAL_WITHOUT_NEW,
    "B": NOTEBOOK,
    "C works": WORKS,
    "C eats": EATS,
    "D": WORDS,
    "E": INTERVIEW,
    "E with 20 merges": INTERVIEW_20,
}


def pieces(system: System, text: str) -> list[str]:
    """The pieces of a text; those that hold spaces are between bars."""
    shown = system.splits[text]
    return shown.split("|" if "|" in shown else " ")
