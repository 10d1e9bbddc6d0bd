"""What ``tests.bpe.fuzz`` calls: each entry point of the core beside ``bpe.reference``.

The reference sees short texts only; of long ones, two ways through the core must agree. Options
are drawn from the dice, so that a target, a seed and the data are the whole input. A target
returns what it saw, in a few rough words: an input that makes it see something new is kept.
"""

from __future__ import annotations

import functools
import re
import tempfile
import unicodedata
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import regex
import unicodedata2

import bpe
from bpe.counting import count_pretokens
from bpe.counts import PretokenCounts
from bpe.dropout import row_seeds
from bpe.errors import BpeError, TrainingError, UnknownCharacterError
from bpe.models import ByteLevel, WordPiece
from bpe.normalizer import NORMALIZERS, normalize_column
from bpe.pair_counts import PAIR_COUNTS
from bpe.pretokenizer import NEVER_SPLIT, PRETOKENIZERS, Pretokenizer
from bpe.reference import pretokenize
from bpe.reference.encode import decode as decode_by_reference
from bpe.reference.pretokenize import count as count_by_reference
from bpe.run_counting import MERGE_PATTERN, RunCounter, count_runs
from tests.bpe.fuzz_tokenizers import UNORDERED_TIES, ByReference, drawn_tokenizer, drawn_words
from tests.bpe.superword_tokenizers import reference as superword_ids
from tests.bpe.test_count_runs import reference as runs_by_reference
from tests.bpe.test_count_runs import runs_of
from tests.bpe.test_formats_fuzz import FORMATS, cut_of
from tests.bpe.test_train_reference import SETTINGS, learn, learnt
from tests.bpe.test_train_superwords import learn as learn_superwords

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

MOST = 300  # bytes that the reference sees
KINDS = (pa.binary(), pa.large_binary())
SPECIAL = [(), (), ("<|endoftext|>",), ("<|end", "<|endoftext|>", "a"), ("\n\n", " the")]
CLASSES = (
    *(r"\p{Lu}\p{Lt}", r"\p{Ll}", r"\p{Lm}\p{Lo}", r"\p{Mn}", r"\p{Mc}\p{Me}"),
    *(r"\p{Nd}\p{Nl}\p{No}", r"\p{Zs}\p{Zl}\p{Zp}"),
)
PATTERNS = (r"\w+", r"\d", (r"\p{N}", "llama3"), ("bert", r"[aeiou]"))

Seen = tuple[object, ...]


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


def is_doubtful(text: bytes) -> bool:
    """Whether the reference may know another Unicode than the core for a character of a text."""
    return any(map(_is_doubtful, set(text.decode("utf-8", "ignore"))))


@functools.cache
def _is_doubtful(char: str) -> bool:
    category = unicodedata2.category(char)
    by_regex = [classes for classes in CLASSES if regex.match(rf"[{classes}]", char)]
    by_table = [classes for classes in CLASSES if rf"\p{{{category}}}" in classes]
    return by_regex != by_table or unicodedata.category(char) == "Cn"


def drawn_pretokenizer(dice: random.Random) -> Pretokenizer:
    """Mostly a name alone; now and then with a normalizer, what is never split, or a pattern."""
    more: dict[str, Any] = {}
    if dice.random() < 0.3:
        more["normalizer"] = tuple(dice.choices(NORMALIZERS, k=dice.choice((1, 1, 2, 3))))
    if dice.random() < 0.15:
        more["never_split"] = tuple(dice.sample(sorted(NEVER_SPLIT), dice.choice((1, 2))))
    if dice.random() < 0.1:
        return Pretokenizer(pattern=dice.choice(PATTERNS), **more)
    return Pretokenizer(dice.choice(PRETOKENIZERS), **more)


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
    if len(data) > MOST:
        rows = parts_of(data, dice)
        changed = normalize_column(column(rows, dice), cut.normalizer).cast(pa.large_binary())
        same(changed.to_pylist(), [cut.normalize(row) for row in rows], "columns and rows,", cut)
        return cut.name, cut.normalizer[:1]
    pieces = cut.split(data)
    if cut.lossless:
        same(b"".join(pieces), data, "all pieces of", cut)
    expected = pretokenize.split(cut, data)
    if pieces != expected and not is_doubtful(data):
        same(pieces, expected, "cuts of", cut)
    longest = max(map(len, pieces), default=0)
    return cut.name, size(len(pieces)), size(longest)


def check_count(data: bytes, dice: random.Random) -> Seen:
    """Counts of texts with special tokens, and their order; sums, shards, what is rare."""
    texts = parts_of(data, dice)
    cut = drawn_pretokenizer(dice)
    special = dice.choice(SPECIAL)
    ordered = dice.random() < 0.5

    def counted(rows: pa.Array | list[bytes]) -> PretokenCounts:
        return count_pretokens(rows, pretokenizer=cut, special_tokens=special, track_order=ordered)

    counts = counted(column(texts, dice))
    one_by_one = counted(texts[:0])
    for text in texts:
        one_by_one += counted([text])
    same(one_by_one, counts, "counts that are added up,", cut)
    same(counts + counts, counts * 2, "counts that are added")
    shards = dice.choice((1, 2, 7))
    runs = counts.run.split(shards)
    same([run.misplaced(i, shards) for i, run in enumerate(runs)], [-1] * shards, "shards")
    same(sum(map(len, runs)), len(counts), "pre-tokens of all shards")
    items = list(counts.items())
    below = dice.choice((1, 2, 3))
    frequent = [item for item in items if item[1] >= below]
    same(list(counts.pruned(below).items()), frequent, "counts without the rare ones")
    if len(data) <= MOST and (len(data) < 100 or dice.random() < 0.5):
        encoded = [token.encode() for token in special]
        expected = count_by_reference(texts, pretokenizer=cut, special_tokens=encoded)
        if dict(items) != expected and is_doubtful(data):
            return ("doubtful",)
        same(items, sorted(expected.items()), "counts of", cut, special)
        if ordered:
            places = [(name, "ascending") for name in ("first_document", "first_position")]
            table = counts.to_table().sort_by(places)
            same(table["pretoken"].to_pylist(), list(expected), "the order of", cut)
    return cut.name, bool(special), size(len(items))


def check_train(data: bytes, dice: random.Random) -> Seen:
    """The merges of the words of a text, by every rule and model; and what is less of them."""
    # Models of characters have tables of all code points: they take ten times as long to begin.
    bytes_only = dice.random() < 0.6
    ties, model = dice.choice(
        [one for one in SETTINGS if isinstance(one[1], ByteLevel) or not bytes_only]
    )
    counts = words_of(data, dice)
    below = dice.choice((1, 1, 1, 2, 3))
    least = dice.choice((1, 1, 2, 3))
    merges = dice.choice((0, 3, 10, 10, 25))
    special = dice.choice(((), (), ("<s>",), ("aa", "<|endoftext|>")))
    limit = "max_merges"
    if isinstance(model, ByteLevel):
        limit, merges = "vocab_size", 256 + merges
    settings: dict[str, Any] = {"ties": ties, "model": model, "min_frequency": least}
    if ties != "huggingface":
        settings["pair_counts"] = dice.choice(PAIR_COUNTS)
    more: dict[str, Any] = {"special_tokens": special, "prune_below": below}
    try:
        given: dict[str, Any] = {limit: merges + len(special) * (limit == "vocab_size")}
        trained = bpe.train(counts, **given, **settings, **more)
    except TrainingError as error:
        return type(model).__name__, kind_of(error)
    wanted_limit: dict[str, Any] = {limit: merges}
    expected = learn(
        counts.pruned(below) if below > 1 else counts,
        forbidden=tuple(token.encode() for token in trained.special_tokens),
        **wanted_limit,
        **settings,
    )
    found = learnt(trained)
    same(found.merges, expected.merges, "merges,", ties, model)
    same(found.tokens, expected.tokens, "tokens,", ties, model)
    same(found.tied, expected.tied, "merges that the rule chose,", ties, model)
    if limit == "vocab_size" and dice.random() < 0.3:
        smaller = dice.randint(256 + len(special), len(trained))
        less = bpe.train(counts, vocab_size=smaller, **settings, **more)
        cut_off = trained.truncated(smaller)
        same(cut_off, less, "a truncated tokenizer,", ties)
        wanted = None if less.training is None else replace(less.training, vocab_size=smaller)
        same(cut_off.training, wanted, "its training,", ties)
    repeated = len(trained.training.repeated) if trained.training else 0
    return type(model).__name__, ties, size(len(found.merges)), size(repeated)


def words_of(data: bytes, dice: random.Random) -> PretokenCounts:
    """Some words of a text, with counts; now and then of few letters, and never split."""
    most, longest = (10, 14) if dice.random() < 0.9 else (25, 60)
    cutter = re.compile(dice.choice((rb"[ \n]+", rb"[^a-z]+", rb"(?<=[\x80-\xff])(?=[\x00-\x7f])")))
    words = [word[:longest] for word in cutter.split(data[:2000]) if word][:most]
    letters = dice.choice((b"", b"", b"ab", b"#ae"))  # few letters: ties and strings made twice
    if letters:
        words = [bytes(letters[byte % len(letters)] for byte in word) for word in words]
    never_split = dice.choice(((), (), (), ("url",), ("[ae]+",)))
    return PretokenCounts.from_items(
        [(word, dice.choice((1, 1, 2, 3, 7))) for word in words] or {b"a": 1},
        pretokenizer=Pretokenizer("words", never_split=never_split),
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
    allowed = dice.choice(((), "all"))
    rows = parts_of(data, dice)
    short = len(data) <= MOST
    try:
        ids = tokenizer.encode_arrow(
            column(rows, dice), allowed_special=allowed, dropout=dropout, seed=seed
        ).to_pylist()
    except UnknownCharacterError as error:
        unknown = [by_reference.ids(row) is None for row in rows] if short else []
        if short and not is_doubtful(data):
            expected = tuple(i for i, missing in enumerate(unknown) if missing)
            same(error.rows, expected, "rows with unknown characters")
        return type(tokenizer.model).__name__, "unknown", size(len(error.rows))
    seeds = row_seeds(seed, len(rows)).to_pylist()
    for row, row_seed, row_ids in zip(rows, seeds, ids, strict=True):
        again = tokenizer.encode_arrow(
            pa.array([row], pa.binary()), allowed_special=allowed, dropout=dropout, seeds=[row_seed]
        )
        same(again.to_pylist(), [row_ids], "a row by itself,", tokenizer)
        # The textbook has a row for what lies between tokens that are cut out.
        if short and (dropout == 0 or (allowed != "all" and not tokenizer.added_tokens)):
            alone = {"dropout": dropout, "seed": row_seed}  # from which the first row's is drawn
            found = tokenizer.encode(row, allowed_special=allowed, **alone)
            wanted = by_reference.ids(row, allowed=allowed, **alone)
            if found != wanted and not is_doubtful(row):
                same(found, wanted, "ids of", tokenizer, dropout, allowed)
            if dropout == 0:
                same(row_ids, found, "a text and a row")
        if isinstance(tokenizer.model, ByteLevel) and tokenizer.pretokenizer.lossless:
            same(tokenizer.decode_bytes(row_ids), row, "bytes of the ids")
    first = tokenizer.encode(rows[0], allowed_special=allowed, dropout=dropout, seed=seed)
    same(first, ids[0], "encode and encode_arrow,", tokenizer)
    kinds = type(tokenizer.model).__name__, tokenizer.pretokenizer.name, tokenizer.ignore_merges
    return *kinds, dropout, size(sum(map(len, ids))), size(len(set().union(*ids)))


def check_superwords(data: bytes, dice: random.Random) -> Seen:
    """Runs of the tokens of words, the superwords that are learnt from them, and their ids."""
    words = drawn_words(data, dice)
    rows = parts_of(data, dice)
    cut: dict[str, Any] = {
        "merge_pattern": dice.choice((MERGE_PATTERN, MERGE_PATTERN, "", r"^[^ab]", r"\d|\s")),
        "max_run": dice.choice((None, None, 2, 3, 7)),
    }
    counts = count_runs(column(rows, dice), tokenizer=words, **cut)
    counter = RunCounter(words, **cut)
    for row in rows:
        counter.add(column([row], dice))
    same(runs_of(counter.drain(1)[0], 2), runs_of(counts.run, 2), "runs of rows by themselves")
    short = len(data) <= MOST
    if short:
        expected = runs_by_reference(words, rows, **cut)
        if runs_of(counts.run, 2) != expected and is_doubtful(data):
            return ("doubtful",)
        same(runs_of(counts.run, 2), expected, "runs of", words, cut)
    boundless = dice.random() < 0.4
    more = dice.choice((0, 3, 10))
    settings: dict[str, Any] = {
        "ties": dice.choice(UNORDERED_TIES),
        "pair_counts": dice.choice(PAIR_COUNTS),
        "min_frequency": dice.choice((1, 1, 2)),
    }
    limit = None if boundless else more
    tokenizer = bpe.train_superwords(
        counts, tokenizer=words, superwords=limit, boundless=boundless, **settings
    )
    trained = None if tokenizer.training is None else tokenizer.training.superwords
    if short and trained is not None:
        most = len(words) + (0 if boundless else more)
        runs = dict(runs_of(counts.run, 2))
        wanted = learn_superwords(words, runs, boundless=boundless, most=most, **settings)
        same(list(trained.merges), wanted.merges, "superwords,", settings)
        same(trained.tied, wanted.tied, "superwords that the rule chose,", settings)
    dropout, seed = dice.choice((0.0, 0.0, 0.3, 1.0)), dice.getrandbits(64)
    seeds = row_seeds(seed, len(rows)).to_pylist()
    ids = tokenizer.encode_arrow(column(rows, dice), dropout=dropout, seed=seed).to_pylist()
    for row, row_seed, row_ids in zip(rows, seeds, ids, strict=True):
        alone = column([row], dice)
        again = tokenizer.encode_arrow(alone, dropout=dropout, seeds=[row_seed]).to_pylist()
        same(again, [row_ids], "a row by itself,", tokenizer)
        if tokenizer.pretokenizer.lossless:
            same(tokenizer.decode_bytes(row_ids), row, "bytes of the ids")
        if short and not is_doubtful(row):
            found = tokenizer.encode(row, dropout=dropout, seed=row_seed)
            by_hand = superword_ids(tokenizer, row, dropout=dropout, seed=row_seed)
            same(found, by_hand, "ids of", tokenizer, dropout)
    longest = max(map(len, runs_of(counts.run, 2)), default=0)
    return boundless, dropout > 0, size(len(counts)), size(longest), size(len(tokenizer.superwords))


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
    known = [id_ for id_ in ids if id_ < len(tokens) and tokens[id_] is not None]
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
    half = dice.randint(0, len(known))
    lists = [known, [], known[half:], known[:half]]
    texts = [expected(row, skip) for row in lists]
    array = pa.array(lists, dice.choice((pa.list_(pa.uint32()), pa.large_list(pa.int64()))))
    found = tokenizer.decode_arrow(array, skip_special_tokens=skip).to_pylist()
    same(found, texts, "bytes of any ids,", tokenizer, skip)
    same(tokenizer.decode_bytes(known, skip_special_tokens=skip), texts[0], "decode_bytes")
    seen: Seen = type(tokenizer.model).__name__, skip, size(len(known)), size(len(texts[0]))
    if len(known) == len(ids):
        return seen
    calls: list[Callable[[], object]] = [
        lambda: tokenizer.decode_bytes(ids),
        lambda: tokenizer.decode_arrow(pa.array([known, ids])),
    ]
    return *seen, *(refused(call, "ids without tokens were decoded") for call in calls)


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
        except BpeError as error:
            return path.name, kind_of(error)
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
            wanted = ByReference(tokenizer).ids(some, allowed="all")
            if wanted is not None and wanted != ids and not is_doubtful(some):
                same(ids, wanted, "ids of", tokenizer)
        try:
            tokenizer.save(Path(folder, "again.json"), dialect="beam-bpe")
        except BpeError as error:
            return *seen, kind_of(error)
        same(bpe.Tokenizer.load(Path(folder, "again.json")), tokenizer, "a file that is saved")
    return seen


def file_name(data: bytes, dice: random.Random) -> str:
    """What a file is taken for: mostly what it looks like."""
    if dice.random() < 0.05:
        return dice.choice(sorted({name for files in FORMATS.values() for name in files}))
    if data.lstrip()[:1] in b"{[":
        is_whole = b'"model"' in data or b'"version"' in data
        return "tokenizer.json" if is_whole else "vocab.json"
    return "merges.txt" if data.startswith(b"#") else "x.tiktoken"


def kind_of(error: BaseException) -> str:
    """The message of an error without what it names."""
    told = re.sub(r"'[^']*'|\"[^\"]*\"|/\S+|\d[\d,]*|0x\w+|\\\w+", "", str(error))
    return type(error).__name__ + " " + " ".join(re.findall(r"[a-z]{3,}", told)[:8])


TARGETS: dict[str, Callable[[bytes, random.Random], Seen]] = {
    "scan": check_scan,
    "count": check_count,
    "train": check_train,
    "encode": check_encode,
    "superwords": check_superwords,
    "decode": check_decode,
    "load": check_load,
}
