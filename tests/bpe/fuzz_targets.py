"""Targets of ``tests.bpe.fuzz``: each entry point of the core, compared with ``bpe.reference``.

The reference sees short texts only; of long ones, two ways through the core must agree. Options
are drawn from the dice, so that a target, a seed and the data are the whole input. A target
returns what it saw, in a few rough words: an input that makes it see something new is kept.
"""

from __future__ import annotations

import functools
import pickle
import re
import tempfile
import unicodedata
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import bpe
from bpe._native import add_counts
from bpe.counting import PretokenCounter, count_pretokens
from bpe.counts import CutRuns, PretokenCounts
from bpe.counts.files import counts_table
from bpe.dropout import row_seeds
from bpe.errors import (
    BpeError,
    PretokenizerError,
    TokenizerFileError,
    TrainingError,
    UnknownCharacterError,
)
from bpe.models import ByteLevel, CharacterLevel, WordPiece
from bpe.names import PAIR_COUNTS
from bpe.normalizer import normalize_column
from bpe.parts import Merges
from bpe.pretokenizer import Pretokenizer
from bpe.reference import pretokenize
from bpe.reference.encode import decode as decode_by_reference
from bpe.reference.pretokenize import count as count_by_reference
from bpe.reference.train import Learnt
from bpe.roles import Roles
from bpe.run_counting import MERGE_PATTERN, RunCounter, count_runs
from bpe.ties import TIES
from tests.bpe.fuzz_files import FORMATS, cut_of
from tests.bpe.fuzz_tokenizers import (
    BEHIND,
    SENTENCEPIECE,
    UNORDERED_TIES,
    drawn_pattern,
    drawn_pretokenizer,
    drawn_tokenizer,
    of_bytes,
    trained,
)
from tests.bpe.oracle import (
    ByReference,
    known,
    learn,
    learn_superwords,
    learnt,
    lost_by_pruning,
    merged,
    runs_of,
    steps_of,
    training_of,
)
from tests.bpe.texts import is_doubtful

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping, Sequence

    from bpe.training_report import SuperwordTraining

MOST = 300  # bytes that the reference sees
KINDS = (pa.binary(), pa.large_binary())
# Texts of a few of these tell drawn patterns apart.
PIECES = ["a", "b", "aa", "A", "s", "ſ", " ", "\n", "\r\n", ".", "1", "é", "漢", "😀"]
SPECIAL = [(), (), ("<|endoftext|>",), ("<|end", "<|endoftext|>", "a"), ("\n\n", " the")]
MODELS = (ByteLevel(), CharacterLevel(), CharacterLevel(end_of_word=""), WordPiece())
# Of which not every character needs a token.
COVERING = (CharacterLevel(unknown="<unk>"), *SENTENCEPIECE)
SETTINGS = [
    (ties, model)
    for model in MODELS
    for ties in TIES
    if ties != "huggingface" or isinstance(model, ByteLevel)
]
# About the limits of what a slot of the trainer holds.
GREAT_COUNTS = [1, (1 << 29) - 1, 1 << 29, (1 << 29) + 1, 1 << 51, (1 << 53) - 1]

Seen = tuple[object, ...]
Target = Callable[[bytes, "random.Random"], Seen]


class DifferenceError(Exception):
    """The core and the reference, or two ways through the core, do not agree."""


def same(found: object, expected: object, *what: object) -> None:
    """Raise DifferenceError where two results differ."""
    if found != expected:
        told = " ".join(map(str, what))
        raise DifferenceError(f"{told}:\n  core      {found!r:.600}\n  reference {expected!r:.600}")


def size(number: int) -> int:
    """Roughly: 0, 1, 2, 3 to 4, 5 to 8, ..."""
    return max(number - 1, 0).bit_length() + (number > 0)


def certain(data: bytes) -> bytes:
    """The data without characters on whose Unicode reference and core may disagree."""
    text = data.decode("utf-8", "surrogateescape")
    doubtful = [c for c in set(text) if is_doubtful(c) or unicodedata.category(c) == "Cn"]
    without = text.translate(dict.fromkeys(map(ord, doubtful), "?"))
    return without.encode("utf-8", "surrogateescape")


def parts_of(data: bytes, dice: random.Random) -> list[bytes]:
    """Rows that are the data when they are put together."""
    places = sorted(dice.randint(0, len(data)) for _ in range(dice.choice((0, 1, 3))))
    return [data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True)]


def column(rows: Sequence[bytes], dice: random.Random) -> pa.Array:
    """The rows as an Arrow array, perhaps a slice of a longer one."""
    kind = dice.choice(KINDS)
    if dice.random() < 0.3:
        return pa.array([b"before", *rows, b"behind"], kind)[1:-1]
    return pa.array(rows, kind)


def check_scan(data: bytes, dice: random.Random) -> Seen:
    """The cuts of each pre-tokenizer, whatever is done before."""
    cut = drawn_pretokenizer(dice)
    rows = parts_of(data, dice)
    changed = normalize_column(column(rows, dice), cut.normalizer).cast(pa.large_binary())
    same(changed.to_pylist(), [cut.normalize(row) for row in rows], "columns and rows,", cut)
    if len(data) > MOST:
        return cut.name, cut.normalizer[:1]
    same(changed.to_pylist(), [normalized(row, cut) for row in rows], "normal forms,", cut)
    pieces = cut.split(data)
    if cut.lossless:
        same(b"".join(pieces), data, "all pieces of", cut)
    same(pieces, pretokenize.split(cut, data), "cuts of", cut)
    longest = max(map(len, pieces), default=0)
    return cut.name, size(len(pieces)), size(longest)


def normalized(text: bytes, cut: Pretokenizer) -> bytes:
    """A text after all steps of the readable normalizer."""
    characters = text.decode("utf-8", "surrogateescape")
    for step in cut.normalizer:
        characters = pretokenize.normalize(step, characters)
    return characters.encode("utf-8", "surrogateescape")


def check_pattern(data: bytes, dice: random.Random) -> Seen:
    """Matches of drawn patterns as the package `regex` finds them, to cut by or never split."""
    text = "".join(PIECES[byte % len(PIECES)] for byte in data[:12]).encode()
    number = dice.choice((1, 1, 2, 3))
    patterns = tuple(dice.choice(BEHIND) + drawn_pattern(dice) for _ in range(number))
    way: dict[str, Any] = {"pattern": patterns}
    if dice.random() < 0.4:
        way = {"name": dice.choice(("gpt2", "words", "none")), "never_split": patterns}
    try:
        cut = Pretokenizer(**way)
    except PretokenizerError as error:  # it matches the empty string
        return (kind_of(error),)
    if not cut.is_native:
        return ("regex",)
    pieces = cut.split(text)
    same(pieces, pretokenize.split(cut, text), "cuts of", cut)
    return "pattern" in way, number, size(len(pieces)), size(max(map(len, pieces), default=0))


def check_count(data: bytes, dice: random.Random) -> Seen:
    """Counts of texts with special tokens, and their order; sums, shards, what is rare."""
    texts = parts_of(data, dice)
    cut = drawn_pretokenizer(dice)
    special = drawn_special(data, dice)
    ordered = dice.random() < 0.5

    def counted(rows: pa.Array | list[bytes]) -> PretokenCounts:
        return count_pretokens(rows, pretokenizer=cut, special_tokens=special, track_order=ordered)

    counts = counted(column(texts, dice))
    first, *others = (counted([text]) for text in texts)
    same(sum(others, first), counts, "counts that are added up,", cut)
    same(counts + counts, counts * 2, "counts that are added")
    shards = dice.choice((1, 2, 7))
    runs = counts.sorted_counts.split(shards)
    same([run.misplaced(i, shards) for i, run in enumerate(runs)], [-1] * shards, "shards")
    same(sum(map(len, runs)), len(counts), "all shards")
    counter = PretokenCounter(cut, special_tokens=special, track_order=ordered)
    drained = []
    for place in dice.sample(range(len(texts)), len(texts)):
        counter.add(column([texts[place]], dice), pa.array([place], pa.int64()))
        if dice.random() < 0.5:
            drained.append(counter.drain(shards))
    drained.append(counter.drain(shards))
    merged_shards = [counts_table(add_counts([*parts])) for parts in zip(*drained, strict=True)]
    same(merged_shards, [counts_table(run) for run in runs], "counts in any order,", cut)
    items = list(counts.items())
    below = dice.choice((1, 2, 3))
    pruned = counts.pruned(below)
    frequent = [item for item in items if item[1] >= below]
    same(list(pruned.items()), frequent, "counts without the rare ones")
    same(pruned.prune, lost_by_pruning(items, below), "what was rare")
    same((counts * 3).pruned(3 * below), pruned * 3, "three times what was rare")
    said = known(sum((one.pruned(below) for one in others), first.pruned(below)).prune)
    rare: Counter[bytes] = Counter()
    for one in (first, *others):
        rare.update({word: count for word, count in one.items() if count < below})
    lost = lost_by_pruning(rare.items(), 1 << 62)
    same((said.occurrences, said.bytes), (lost.occurrences, lost.bytes), "what all parts lost")
    bounds = said.max_pair >= lost.max_pair, said.max_end >= lost.max_end
    same(bounds, (True, True), "the most that a pair can have lost")
    if len(data) <= MOST and (len(data) < 100 or dice.random() < 0.5):
        encoded = [token.encode() for token in special]
        expected = count_by_reference(texts, pretokenizer=cut, special_tokens=encoded)
        same(items, sorted(expected.items()), "counts of", cut, special)
        if ordered:
            places = [(name, "ascending") for name in ("first_document", "first_position")]
            table = counts.to_table().sort_by(places)
            same(table["pretoken"].to_pylist(), list(expected), "the order of", cut)
    return cut.name, bool(special), size(len(items))


def drawn_special(data: bytes, dice: random.Random) -> tuple[str, ...]:
    """Special tokens that overlap: some of a list, or pieces of the text."""
    text = data.decode("utf-8", "ignore")
    if not text or dice.random() < 0.6:
        return dice.choice(SPECIAL)
    begins = dice.choices(range(len(text)), k=4)
    return tuple(dict.fromkeys(text[at : at + dice.choice((1, 2, 3, 5))] for at in begins))


def check_train(data: bytes, dice: random.Random) -> Seen:
    """The merges of the words of a text, by every rule and model."""
    # Models of characters have tables of all code points: they take ten times as long to begin.
    bytes_only = dice.random() < 0.6
    ties, model = dice.choice(
        [one for one in SETTINGS if isinstance(one[1], ByteLevel) or not bytes_only]
    )
    coverage = Fraction(1)
    if isinstance(model, CharacterLevel) and dice.random() < 0.7:
        model, coverage = dice.choice(COVERING), Fraction(dice.randint(1, 50), 50)
    has_end = isinstance(model, CharacterLevel) and bool(model.end_of_word)
    few = [(b"a", b"</w>")] if has_end else [(b"a", b"b"), (b"#", b"a", b"e")]
    merges = dice.choice((0, 3, 10, 10, 25))
    special = dice.choice(((), (), ("<s>",), ("aa", "<|endoftext|>")))
    initial = "" if isinstance(model, ByteLevel) else dice.choice(("", "", "ab#"))
    ours: dict[str, Any] = {"special_tokens": special, "initial_alphabet": initial}
    theirs: dict[str, Any] = {"initial": initial, "coverage": coverage}
    if isinstance(model, ByteLevel):
        ours["vocab_size"] = 256 + merges + len(special)
        theirs["vocab_size"] = 256 + merges
    else:
        ours["max_merges"] = theirs["max_merges"] = merges
        ours["character_coverage"] = None if isinstance(model, WordPiece) else coverage
    counts = words_of(data, dice, *few)
    return check_training(counts, dice, ours, theirs, ties=ties, model=model)


def check_extend(data: bytes, dice: random.Random) -> Seen:
    """The merges that go on where those of a tokenizer end, and the ids of all of them."""
    drawn = of_bytes(data, dice)
    tokens = [drawn.token_bytes(id_) for *_, id_ in drawn.merges] or [b"a"]
    counts = words_of(data, dice, dice.choices(tokens, k=3), (b"#", b"a", b"b"))
    old = bpe.Tokenizer(replace(drawn.parts, superwords=Merges(), pretokenizer=counts.pretokenizer))
    limit = {"vocab_size": len(old) + dice.choice((0, 3, 10, 25))}
    ties = dice.choice([ties for ties in TIES if ties != "huggingface"])
    return check_training(counts, dice, limit, limit, ties=ties, model=ByteLevel(), extend=old)


def check_training(
    counts: PretokenCounts,
    dice: random.Random,
    ours: dict[str, Any],
    theirs: dict[str, Any],
    **settings: Any,
) -> Seen:
    """The core learns what the reference learns, also from pruned counts, and truncates likewise.

    Args:
        counts: to train on.
        dice: for other settings.
        ours: settings as the library names them.
        theirs: the same as the reference has them.
        **settings: of both.
    """
    ties, model, old = settings["ties"], settings["model"], settings.get("extend")
    settings["min_frequency"] = dice.choice((1, 1, 2, 3))
    if ties != "huggingface":
        settings.setdefault("pair_counts", dice.choice(PAIR_COUNTS))
    below = dice.choice((1, 1, 1, 2, 3))
    train = functools.partial(bpe.train, counts, **settings)
    try:
        tokenizer, full = train(prune_below=below, **ours), train(**ours)
    except TrainingError as error:
        return type(model).__name__, kind_of(error)
    training, found = training_of(tokenizer), learnt(tokenizer)
    used = counts.pruned(below) if below > 1 else counts
    is_merged = not isinstance(model, WordPiece)
    if used.prune is not None and is_merged and theirs.get("coverage", 1) == 1:
        has_end = isinstance(model, CharacterLevel) and bool(model.end_of_word)
        lost = max(used.prune.max_pair, used.prune.max_end if has_end else 0)
        theirs = theirs | {"pruned": lost}
    forbidden = tuple(token.encode() for token in tokenizer.parts.cut_tokens)
    expected = learn(used, forbidden=forbidden, **settings, **theirs)
    at_last = expected.first_affected == len(expected.merges)
    if at_last and training.stopped == "vocabulary full":  # of whole words
        expected = expected._replace(first_affected=None)
    if "pruned" not in theirs:  # the twin does not say
        expected = expected._replace(first_affected=found.first_affected)
    for name, value, wanted in zip(Learnt._fields, found, expected, strict=True):
        same(value, wanted, f"{name},", settings)
    before = found.first_affected
    if before is None and training.stopped == "vocabulary full":
        before = len(found.merges)
    same(merged(tokenizer)[:before], merged(full)[:before], "merges of all words,", settings)
    if is_merged and used.pretokenizer == Pretokenizer("none"):
        for one, length in ((old, training.initial_tokens), (tokenizer, training.tokens)):
            if one is not None:
                lengths = [len(one.encode(word)) * n for word, n in used.items()]
                same(length, sum(lengths), "the length of the words,", settings)
    least = training.initial_vocab
    if old is not None:
        least = len(old)
        kept = [tokenizer.tokens[: len(old.tokens)], tokenizer.merges[: len(old.merges)]]
        same(kept, [old.tokens, old.merges], "what is extended,", settings)
        same(tokenizer.ignore_merges, old.ignore_merges, "whether words are looked up")
        same(None in tokenizer.tokens[len(old.tokens) :], False, "a gap among new tokens")
        by_reference = ByReference(tokenizer)
        for word in used.pretokens.to_pylist():
            same(tokenizer.encode(word), by_reference.ids(word), "ids of", tokenizer)
    if least <= len(tokenizer) and dice.random() < 0.3:
        smaller = dice.randint(least, len(tokenizer))
        less = train(prune_below=below, **ours | {"vocab_size": smaller})
        cut_off = tokenizer.truncated(smaller)
        same(cut_off, less, "a truncated tokenizer,", settings)
        of_less = replace(training_of(less), vocab_size=smaller)
        same(cut_off.training, of_less, "its training,", settings)
    kinds = type(model).__name__, ties, old is None
    return *kinds, size(len(training.merges)), size(len(training.repeated))


def words_of(data: bytes, dice: random.Random, *few: Sequence[bytes]) -> PretokenCounts:
    """Some words of a text, with counts; half the time of few pieces, now and then never split.

    Few pieces make ties, and strings twice: also one that is a symbol, the end of a word.
    """
    most, longest = (10, 14) if dice.random() < 0.9 else (25, 60)
    cutter = re.compile(dice.choice((rb"[ \n]+", rb"[^a-z]+", rb"(?<=[\x80-\xff])(?=[\x00-\x7f])")))
    words = [word[:longest] for word in cutter.split(data[:2000]) if word][:most]
    if dice.random() < 0.5:
        pieces = dice.choice(few)
        words = [b"".join(pieces[byte % len(pieces)] for byte in word)[:longest] for word in words]
    never_split = dice.choice(((), (), (), ("url",), ("[ae]+",), ("#.*|^ab$",)))
    numbers = GREAT_COUNTS if dice.random() < 0.1 else (1, 1, 2, 3, 7, 30)
    return PretokenCounts.from_items(
        [(word, dice.choice(numbers)) for word in words] or {b"a": 1},
        pretokenizer=Pretokenizer("words" if never_split else "none", never_split=never_split),
        track_order=True,
    )


def check_encode(data: bytes, dice: random.Random) -> Seen:
    """Ids of bytes, with special tokens, dropout, normalizers; and the bytes of the ids."""
    by_reference = drawn_tokenizer(data, dice)
    tokenizer = by_reference.tokenizer
    dropout = 0.0
    if not isinstance(tokenizer.model, WordPiece):
        dropout = dice.choice((0.0, 0.0, 0.1, 0.5, 1.0))
    seed = dice.getrandbits(64)
    allowed = dice.choice(((), "all", tuple(tokenizer.special_tokens)[:1]))
    rows = parts_of(data, dice)
    short = len(data) <= MOST
    try:
        ids = tokenizer.encode_arrow(
            column(rows, dice), allowed_special=allowed, dropout=dropout, seed=seed
        ).to_pylist()
    except UnknownCharacterError as error:
        if short:
            expected = tuple(i for i, row in enumerate(rows) if by_reference.ids(row) is None)
            same(error.rows, expected, "rows with unknown characters")
        return type(tokenizer.model).__name__, "unknown", size(len(error.rows))
    seeds = row_seeds(seed, len(rows)).to_pylist()
    for row, row_seed, row_ids in zip(rows, seeds, ids, strict=True):
        again = tokenizer.encode_arrow(
            pa.array([row], pa.binary()), allowed_special=allowed, dropout=dropout, seeds=[row_seed]
        )
        same(again.to_pylist(), [row_ids], "a row by itself,", tokenizer)
        if short:
            alone = {"dropout": dropout, "seed": row_seed}  # from which the first row's is drawn
            found = tokenizer.encode(row, allowed_special=allowed, **alone)
            wanted = by_reference.ids(row, allowed=allowed, **alone)
            same(found, wanted, "ids of", tokenizer, dropout, allowed)
            if dropout == 0:
                same(row_ids, found, "a text and a row")
        if isinstance(tokenizer.model, ByteLevel) and tokenizer.pretokenizer.lossless:
            same(tokenizer.decode_bytes(row_ids), row, "bytes of the ids")
    first = tokenizer.encode(rows[0], allowed_special=allowed, dropout=dropout, seed=seed)
    same(first, ids[0], "encode and encode_arrow,", tokenizer)
    narrow = tokenizer.encode_arrow(
        column(rows, dice), allowed_special=allowed, dropout=dropout, seed=seed, id_type="uint16"
    )
    same(narrow.to_pylist(), ids, "ids of 16 bits,", tokenizer)
    kinds = type(tokenizer.model).__name__, tokenizer.pretokenizer.name, tokenizer.ignore_merges
    return *kinds, dropout, size(sum(map(len, ids))), size(len(set().union(*ids)))


def check_superwords(data: bytes, dice: random.Random) -> Seen:
    """Runs of the tokens of words, the superwords that are learnt from them, and their ids."""
    rows = parts_of(data, dice)
    if dice.random() < 0.3:  # with frequent short runs, which are certain whatever else is cut
        rows += [b" a" * dice.choice((2, 5)), *dice.choice(([b" a b"] * 9, [b" a b"] * 30))]
    cut: dict[str, Any] = {
        "merge_pattern": dice.choice((MERGE_PATTERN, MERGE_PATTERN, "", r"^[^ab]", r"\d|\s")),
        "max_run": dice.choice((None, None, 2, 3, 7)),
    }
    is_trained = dice.random() < 0.7
    words = trained(b"".join(rows), dice, of_bytes=True)
    if not is_trained:
        words = bpe.Tokenizer(replace(of_bytes(data, dice).parts, superwords=Merges()))
    counts = count_runs(column(rows, dice), tokenizer=words, **cut)
    counter = RunCounter(words, **cut)
    for row in rows:
        counter.add(column([row], dice))
    found = runs_of(counts.sorted_counts, 2)
    same(runs_of(counter.drain(1)[0], 2), found, "runs of rows by themselves")
    short = len(data) <= MOST
    if short:
        by_reference = ByReference(words)
        expected = by_reference.runs(rows, **cut)
        same(found, expected, "runs of", words, cut)
        if counts.cut is not None:
            whole = by_reference.runs(rows, **cut | {"max_run": None})
            same(counts.cut, cut_of_runs(whole, cut["max_run"]), "runs that were cut")
    if not is_trained:
        return short, size(len(counts))
    boundless = dice.random() < 0.4
    more = dice.choice((0, 3, 10))
    settings: dict[str, Any] = {
        "ties": dice.choice(UNORDERED_TIES),
        "pair_counts": dice.choice(PAIR_COUNTS),
        "min_frequency": dice.choice((1, 1, 2)),
    }
    below = dice.choice((1, 1, 2, 3))
    lost, exact = known(counts.pruned(below).prune), lost_by_pruning(found.items(), below)
    same(
        lost,
        replace(exact, bytes=2 * exact.bytes, max_pair=lost.max_pair, max_end=0),
        "what was rare",
    )
    same(lost.max_pair >= exact.max_pair, True, "the most that a pair can have lost")
    limits = {"superwords": None if boundless else more, "boundless": boundless}
    how = {"tokenizer": words, **settings, **limits}
    tokenizer = bpe.train_superwords(counts, prune_below=below, **how)
    training = training_of(tokenizer)
    learnt_across = known(training.superwords)
    if short:
        most = len(words) + (0 if boundless else more)
        runs = dict(runs_of((counts.pruned(below) if below > 1 else counts).sorted_counts, 2))
        wanted = learn_superwords(words, runs, boundless=boundless, most=most, **settings)
        same(list(learnt_across.merges), wanted.merges, "superwords,", settings)
        same(learnt_across.tied, wanted.tied, "superwords that the rule chose,", settings)
        tokens = [token for token in tokenizer.tokens if token is not None]
        same(tokens, wanted.tokens, "tokens,", settings)
        if boundless:
            same(list(learnt_across.steps_before), wanted.before, "steps before,", settings)
            steps = steps_of(training_of(words))[: wanted.steps]
            same(steps_of(training), steps, "steps,", settings)
    all_runs = count_runs(column(rows, dice), tokenizer=words, **cut | {"max_run": None})
    full = known(training_of(bpe.train_superwords(all_runs, **how)).superwords)
    check_same_superwords(learnt_across, full)
    if not boundless and len(tokenizer) > len(words):
        smaller = dice.randint(len(words) + 1, len(tokenizer))
        fewer = how | {"superwords": smaller - len(words)}
        less = bpe.train_superwords(counts, prune_below=below, **fewer)
        same(tokenizer.truncated(smaller), less, "a truncated tokenizer,", settings)
    by_reference = ByReference(tokenizer)
    for row, ids in zip(rows, tokenizer.encode_arrow(column(rows, dice)).to_pylist(), strict=True):
        if short:
            same(ids, by_reference.ids(row), "ids of", tokenizer)
    longest = max(map(len, found), default=0)
    return boundless, size(len(counts)), size(longest), size(len(tokenizer.superwords))


def check_same_superwords(found: SuperwordTraining, full: SuperwordTraining) -> int | None:
    """Up to the named superword, those of runs that were cut or dropped are those of all runs."""
    lost = found.pruned or found.cut
    before = None if lost is None else lost["first_affected_merge"]
    pairs, expected = (
        [(merge.left, merge.right) for merge in one.merges[:before]] for one in (found, full)
    )
    same(pairs, expected, "superwords of all runs")
    return before


def cut_of_runs(runs: Mapping[tuple[int, ...], int], max_run: int) -> CutRuns:
    """The most that runs lose where they are cut, and their most frequent pair."""
    pairs: Counter[tuple[int, int]] = Counter()
    for run, times in runs.items():
        for pair in pairwise(run) if len(run) > max_run else ():
            pairs[pair] += times
    return CutRuns(pairs=pairs.total(), max_pair=max(pairs.values(), default=0))


def check_decode(data: bytes, dice: random.Random) -> Seen:
    """Any ids: their bytes, or a refusal."""
    tokenizer = drawn_tokenizer(data, dice).tokenizer
    tokens = tokenizer.tokens
    width = dice.choice((1, 2, 4))
    most = dice.choice((len(tokens), len(tokens), len(tokens) + 1, 1 << 16, 1 << 32))
    numbers = data[: 100 * width] if len(data) <= MOST else data
    ids = [
        int.from_bytes(numbers[i : i + width], "little") % most
        for i in range(0, len(numbers), width)
    ]
    valid = [id_ for id_ in ids if id_ < len(tokens) and tokens[id_] is not None]
    special = {token.encode() for token in tokenizer.special_tokens}

    def expected(row: list[int], skip: bool) -> bytes:
        strings = [tokens[id_] or b"" for id_ in row]
        if skip:
            strings = [string for string in strings if string not in special]
        steps = tokenizer.pretokenizer.normalizer
        return decode_by_reference(
            strings, model=tokenizer.model, special=special, normalizer=steps
        )

    skip = dice.random() < 0.5
    half = dice.randint(0, len(valid))
    lists = [valid, [], valid[half:], valid[:half]]
    texts = [expected(row, skip) for row in lists]
    array = pa.array(lists, dice.choice((pa.list_(pa.uint32()), pa.large_list(pa.int64()))))
    found = tokenizer.decode_arrow(array, skip_special_tokens=skip).to_pylist()
    same(found, texts, "bytes of any ids,", tokenizer, skip)
    same(tokenizer.decode_bytes(valid, skip_special_tokens=skip), texts[0], "decode_bytes")
    seen: Seen = type(tokenizer.model).__name__, skip, size(len(valid)), size(len(texts[0]))
    if len(valid) == len(ids):
        return seen
    calls: list[Callable[[], object]] = [
        lambda: tokenizer.decode_bytes(ids),
        lambda: tokenizer.decode_arrow(pa.array([valid, ids])),
    ]
    return *seen, *(refused(call, "ids without tokens were decoded") for call in calls)


def check_save(data: bytes, dice: random.Random) -> Seen:
    """A tokenizer in a file: refused by an error of ours, or read back with the same ids."""
    tokenizer = drawn_tokenizer(data, dice).tokenizer
    same(pickle.loads(pickle.dumps(tokenizer)), tokenizer, "a pickle")  # noqa: S301 - our own
    name = dice.choice(("tokenizer.json", "tokenizer.json", "x.tiktoken", "vocab.json", "x.model"))
    how: dict[str, Any] = {"dialect": dice.choice(("huggingface", "beam-bpe"))}
    cut: dict[str, Any] = {}
    if name in ("x.tiktoken", "vocab.json"):
        how = {"leave_out": ["special-tokens"]}
        cut = {"pretokenizer": tokenizer.pretokenizer, "special_tokens": tokenizer.special_tokens}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        try:
            tokenizer.save(path, **how)
        except BpeError as error:
            same(name == "tokenizer.json" and how["dialect"] == "beam-bpe", False, error)
            same(list(path.parent.iterdir()), [], "files of what was refused")
            return name, kind_of(error)
        again = bpe.Tokenizer.load(path, **cut)
    way = tokenizer.pretokenizer  # which may come back as another that cuts text alike
    if not (cut or way.patterns or any("mark" in step for step in way.normalizer)):
        same((again, again.sha256), (tokenizer, tokenizer.sha256), "a tokenizer that was saved")
    try:
        same(again.encode(data[:MOST]), tokenizer.encode(data[:MOST]), "ids of", tokenizer, name)
    except UnknownCharacterError as error:
        return name, kind_of(error)
    return name, type(tokenizer.model).__name__, bool(tokenizer.superwords)


def refused(call: Callable[[], object], what: str) -> str:
    """The error of ours that a call raises; DifferenceError where it does not."""
    try:
        call()
    except BpeError as error:
        return kind_of(error)
    raise DifferenceError(what)


def check_load(data: bytes, dice: random.Random) -> Seen:
    """A tokenizer file: refused by an error of ours, or a tokenizer that works."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, file_name(data, dice))
        for other, content in FORMATS["pair"].items():
            if path.name in FORMATS["pair"]:
                Path(folder, other).write_bytes(content)
        path.write_bytes(data)
        try:
            tokenizer = bpe.Tokenizer.load(path, pretokenizer=cut_of(path))
        except TokenizerFileError as error:
            same((folder in str(error), len(str(error)) < 1000), (True, True), "an error,", error)
            return path.name, kind_of(error)
        same(len(tokenizer.unreachable()) <= len(tokenizer), True, "unreachable tokens")
        seen: Seen = path.name, type(tokenizer.model).__name__, size(len(tokenizer.merges))
        text = data[: dice.choice((20, 100))]
        for some in (text, b"the <s> xyz \xc3\xa9 12"):
            try:
                ids = tokenizer.encode(some, allowed_special="all")
            except BpeError as error:
                seen = (*seen, kind_of(error))
                continue
            tokenizer.decode_bytes(ids)
            if tokenizer.pretokenizer.patterns:  # of which some take for ever
                continue
            if any(flags.normalized for flags in tokenizer.token_flags.values()):
                continue  # which the textbook searches for in the text unchanged
            wanted = ByReference(tokenizer).ids(some, allowed="all")
            if wanted is not None:
                same(ids, wanted, "ids of", tokenizer)
        try:
            tokenizer.save(Path(folder, "again.json"), dialect="beam-bpe")
        except BpeError as error:
            return *seen, kind_of(error)
        again = bpe.Tokenizer.load(Path(folder, "again.json"))
        same(again, tokenizer.with_roles(Roles()), "a file that is saved")  # roles have their own
    return seen


def file_name(data: bytes, dice: random.Random) -> str:
    """The format that a file is read as: mostly what it looks like."""
    if dice.random() < 0.05:
        return dice.choice(sorted({name for files in FORMATS.values() for name in files}))
    if data.lstrip()[:1] in b"{[":
        is_whole = b'"model"' in data or b'"version"' in data
        return "tokenizer.json" if is_whole else "vocab.json"
    if data.startswith(b"\n"):
        return "x.model"
    return "merges.txt" if data.startswith(b"#") else "x.tiktoken"


def kind_of(error: BaseException) -> str:
    """The message of an error without what it names."""
    told = re.sub(r"'[^']*'|\"[^\"]*\"|/\S+|\d[\d,]*|0x\w+|\\\w+", "", str(error))
    return type(error).__name__ + " " + " ".join(re.findall(r"[a-z]{3,}", told)[:8])


CHECKS = (
    *(check_scan, check_pattern, check_count, check_train, check_extend),
    *(check_encode, check_superwords, check_decode, check_save, check_load),
)


def of_certain(check: Target) -> Target:
    """The target of a check."""
    return lambda data, dice: check(certain(data), dice)


TARGETS = {check.__name__.removeprefix("check_"): of_certain(check) for check in CHECKS}
