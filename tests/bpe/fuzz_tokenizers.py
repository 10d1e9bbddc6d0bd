"""Tokenizers of every model and ways to cut text, drawn for ``tests.bpe.fuzz_targets``."""

from __future__ import annotations

import functools
import random
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import bpe
from bpe.counts import PretokenCounts
from bpe.errors import BpeError
from bpe.formats.cut_at_marks import WORDS
from bpe.models import SENTENCEPIECE_BPE, ByteLevel, CharacterLevel, WordPiece
from bpe.normalizer import NORMALIZERS
from bpe.pretokenizer import PATTERNS, PRETOKENIZERS, Pretokenizer
from bpe.ties import TIES, needs_order
from tests.bpe.models import make, of_sources
from tests.bpe.oracle import ByReference
from tests.bpe.vocabularies import BYTES, drawn_merges, ranked_tokens, small_tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable

    from bpe.models import Model

POOL = 24  # tokenizers that are made once: their caches of words are used again and again
END = "<|endoftext|>"
ADDED = "<|end|>"
UNORDERED_TIES = tuple(
    ties for ties in TIES if ties != "huggingface" and not needs_order(ties)
)  # for any model and any counts
# What tokenizers of today cut by, as their files have it.
PUBLISHED = {
    "deepseek": r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"
    r"|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "digits": r"\p{N}{1,3}",
    "kana": "[一-龥぀-ゟ゠-ヿ]+",
    "falcon": r"[0-9][0-9][0-9]",
    "tekken": r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "cl100k, possessive": r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
    r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
}

# Classes and letters of few kinds, so that texts of a few characters tell patterns apart.
ATOMS = [
    *("a", "b", "ab", r"\s", r"\S", r"\w", r"\W", r"\d", ".", r"\n", r"\.", r"\x61", r"\u0062"),
    *(r"\p{L}", r"\P{L}", r"\p{Lu}", r"[ab]", r"[^ab]", r"[^\s\p{L}]", r"[\]a-]", "[]a]", " "),
    *("(?i:a)", "(?i:s)", "(?i:[a-k])", "(?s:.)", "(?i-i:a)", "é", "漢"),
]
BEHIND = ["", "", "", "(?<!a)", r"(?<!\S)", "(?<!(?i:[s漢]))"]
AHEAD = [*[""] * 7, r"(?!\S)", r"(?=a)", r"(?!a)", r"(?=\s)", "$", r"\Z", "(?!(?:b))"]
REPEATS = ["*", "+", "?", "{2}", "{1,3}", "{,2}", "{2,}"]
# Cut by the core, by a table, and in Python; one after the other; with marks and spaces.
CUTS: list[dict[str, Any]] = [
    *({"pattern": pattern} for pattern in (r"\w+", r"\d", r"(?<=a)b?", r"'.|!", r"( ?[abc])\1|.")),
    *({"pattern": PATTERNS[name]} for name in ("gpt2", "cl100k", "o200k")),
    *({"pattern": pattern} for pattern in PUBLISHED.values()),
    {"pattern": (r"\p{N}", "llama3")},
    {"pattern": (r"\p{N}", "cl100k", r"[a-c]|[^a-c]+")},
    {"pattern": ("bert", r"[aeiou]")},
    {"pattern": ("words", r"\d", r"\s+$|\S+|\s")},
    {"pattern": ("gpt2", r"(?<=a)b", r"\s+$", "spaces")},
    {"name": "bert", "normalizer": ("nfd", "strip-accents", "lowercase")},
    {"name": "none", "normalizer": ("mark-spaces", "ensure-first-mark")},
]
SENTENCEPIECE = (
    SENTENCEPIECE_BPE,
    replace(SENTENCEPIECE_BPE, byte_fallback=False),
    replace(SENTENCEPIECE_BPE, byte_fallback=False, fuse_unknown=False),
)
MARKED = [("mark-spaces", *more) for more in ((), ("ensure-mark",), ("ensure-first-mark",))]
MARKED += [("prepend-mark", "mark-spaces"), ("nfkc", "mark-spaces", "ensure-mark")]
NEVER_SPLIT: list[tuple[str, ...]] = [
    *(("url",), ("url", "email"), ("[a-c]+", "[b-z]+"), ("ab|abc",), ("a|ab", "abc?")),
    *((r"(?<!a)b+", "ca"), (r"[ab]+c?(?!a)", "c"), (r"\babc", "b"), ("(?!ab)[a-c]+",)),
    *((r"(?<![a-c])[bx]+(?!\d)", r"\.$"), (r"\d+[.,]\d+", "email")),
]


def drawn_pretokenizer(dice: random.Random) -> Pretokenizer:
    """Mostly a name alone; now and then a pattern, with a normalizer, or with what is whole."""
    way: dict[str, Any] = {"name": dice.choice(PRETOKENIZERS)}
    if dice.random() < 0.3:
        way = dice.choice(CUTS)
    if dice.random() < 0.25 and "normalizer" not in way:
        way = way | {"normalizer": tuple(dice.choices(NORMALIZERS, k=dice.choice((1, 1, 2, 3))))}
    if dice.random() < 0.2:
        way = way | {"never_split": dice.choice(NEVER_SPLIT)}
    return Pretokenizer(**way)


def drawn_pattern(dice: random.Random, depth: int = 2) -> str:
    """A pattern of the kinds that a table can say, mostly."""

    def repeated(node: str) -> str:
        often = dice.choice(("", "", *REPEATS))
        return node + often + (dice.choice(("", "", "?", "+")) if often else "")

    if depth and dice.random() < 0.5:
        choices = (drawn_pattern(dice, depth - 1) for _ in range(dice.randint(1, 3)))
        return repeated(dice.choice(("(?:", "(", "(?i:", "(?s:")) + "|".join(choices) + ")")
    atoms = [repeated(dice.choice(ATOMS)) for _ in range(dice.randint(1, 3))]
    return "".join(atoms) + dice.choice(AHEAD)


def drawn_tokenizer(data: bytes, dice: random.Random) -> ByReference:
    """One of the pool, made of some merges of the data's letters, or trained on the data."""
    kinds = (None, None, of_bytes, of_bytes, of_strings, of_marks, trained, trained)
    make_one = dice.choice(kinds)
    if make_one is not None:
        try:
            return ByReference(make_one(data, dice))
        except BpeError:  # data that this model cannot be trained on
            pass
    return pooled(dice.randrange(POOL))


@functools.cache
def pooled(number: int) -> ByReference:
    """Tokenizer number so-and-so."""
    dice = random.Random(number)
    kinds: tuple[Callable[[bytes, random.Random], bpe.Tokenizer], ...] = (of_strings, of_bytes)
    if number % 4 < len(kinds):
        return ByReference(kinds[number % 4](b"", dice))
    return ByReference(
        small_tokenizer(
            PRETOKENIZERS[number // 2 % len(PRETOKENIZERS)],
            ignore_merges=dice.random() < 0.3,
            special_tokens=(END,),
            added_tokens=(ADDED,) if dice.random() < 0.2 else (),
        )
    )


def of_bytes(data: bytes, dice: random.Random) -> bpe.Tokenizer:
    """Merges of few letters that overlap, make a string twice, or are never reached.

    The same holds for superwords, which half of them have, and a superword may be a word as well.
    """
    letters = dice.choice((b"ab ", b"abc", b"the ", "éèɩ東𐐩a ".encode(), b"0 \n", b"\xff\x80a"))
    if data and dice.random() < 0.6:
        letters = bytes(dice.choices(data, k=5))
    tokens: list[bytes | None] = list(BYTES)
    merges = drawn_merges(tokens, list(letters), dice.choice((3, 15, 40)), dice)
    has_superwords = dice.random() < 0.5
    usable = [*letters, *range(256, len(tokens))]
    across = drawn_merges(tokens, usable, dice.choice((3, 12)), dice) if has_superwords else []
    added = {ADDED: len(tokens) + 2} if dice.random() < 0.3 else {}
    return bpe.Tokenizer(
        tokens=[*tokens, None, END.encode(), *(token.encode() for token in added)],
        merges=merges,
        superwords=across,
        pretokenizer=drawn_pretokenizer(dice),
        special_tokens={END: len(tokens) + 1},
        added_tokens=added,
        ignore_merges=dice.random() < 0.3,
    )


def of_strings(data: bytes, dice: random.Random) -> bpe.Tokenizer:
    """Characters or WordPieces over a few letters and pieces of real text."""
    letters = dice.choice(("abthe", "aé漢\N{SLIGHTLY SMILING FACE}", "0123<>/w#", "eiou \n."))
    if dice.random() < 0.6:
        letters = "".join(sorted(set(data.decode("utf-8", "ignore")[:8]))) or letters
    pretokenizer = drawn_pretokenizer(dice)
    if dice.random() < 0.5:
        return of_pieces(letters, dice, pretokenizer)
    end = dice.choice(("</w>", "", "\N{BULLET}"))
    known = [*letters, *([end] if end else [])]
    pairs: dict[tuple[str, str], None] = {}
    for _ in range(dice.choice((0, 5, 30))):
        left = dice.choice([string for string in known if not end or not string.endswith(end)])
        pair = (left, dice.choice(known))
        if len(left + pair[1]) <= 12:
            pairs[pair] = None
            known += [left + pair[1]] if left + pair[1] not in known else []
    unknown = dice.choice(("<unk>", None))
    order = list(pairs)
    dice.shuffle(order)
    return make(
        dict.fromkeys([*([unknown] if unknown else []), *known]),
        order,
        special=[unknown] if unknown else [],
        model=CharacterLevel(end_of_word=end, unknown=unknown),
        ignore_merges=dice.random() < 0.3,
        pretokenizer=pretokenizer,
    )


def of_marks(_: bytes, dice: random.Random) -> bpe.Tokenizer:
    """Of SentencePiece, in which what has no token becomes bytes, or unknown."""
    parts = of_sources().parts
    cut = Pretokenizer(pattern=dice.choice((WORDS, "none")), normalizer=dice.choice(MARKED))
    model, whole = dice.choice(SENTENCEPIECE), dice.random() < 0.3
    return bpe.Tokenizer(replace(parts, model=model, pretokenizer=cut, ignore_merges=whole))


def of_pieces(letters: str, dice: random.Random, pretokenizer: Pretokenizer) -> bpe.Tokenizer:
    """Pieces of words over few letters: the longest one leads into many dead ends."""
    ranked = [token.decode("utf-8", "ignore") for token in ranked_tokens()[256:400]]
    prefix = dice.choice(("##", "", "é"))
    pieces = [*letters, *dice.sample(ranked, 40)]
    pieces += ["".join(dice.choices(letters, k=dice.choice((2, 3, 4)))) for _ in range(8)]
    pieces += [prefix + piece for piece in dice.sample(pieces, len(pieces) * 3 // 4)]
    return make(
        dict.fromkeys(["[UNK]", *filter(None, pieces)]),
        special=["[UNK]"],
        model=WordPiece(prefix=prefix, max_characters=dice.choice((3, 8, 100))),
        pretokenizer=pretokenizer,
    )


def trained(data: bytes, dice: random.Random, *, of_bytes: bool = False) -> bpe.Tokenizer:
    """A tokenizer of any model, or of bytes, trained on the first words of a text."""
    pretokenizer = drawn_pretokenizer(dice)
    text = data[:400]
    models: list[Model] = [ByteLevel()] * 8
    models += [] if of_bytes else [CharacterLevel(unknown="<unk>"), WordPiece()]  # slow to begin
    model = dice.choice(models)
    if not isinstance(model, ByteLevel):
        text = text.decode("utf-8", "ignore").encode()
    words = Counter(word[:50] for word in pretokenizer.split(text)[:60])
    counts = PretokenCounts.from_items(words or {b"a": 1}, pretokenizer=pretokenizer)
    return bpe.train(
        counts,
        max_merges=dice.choice((2, 10, 60, 200)),
        ties=dice.choice(UNORDERED_TIES),
        model=model,
        special_tokens=(END,) if dice.random() < 0.5 else (),
    )
