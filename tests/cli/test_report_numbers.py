"""The numbers of a report compared with the same, computed slowly from the corpus and the files."""

from __future__ import annotations

import json
import math
import string
import unicodedata
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
import regex

import bpe as library
from pipelines.report.page import section as section_of
from pipelines.report.tokenizer_sections import compression, proven_ties
from pipelines.report.writing_systems import kind_of
from tests.cli.conftest import EVIL
from tests.cli.reports import section, table, text
from tests.pipelines.corpora import sentence

if TYPE_CHECKING:
    from pathlib import Path

SPECIAL = ("<|endoftext|>", EVIL)
# As it was published with GPT-2.
GPT2 = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
WORST = 0.0006  # relative: figures have four digits

Pair = tuple[bytes, bytes]


@dataclass(frozen=True, eq=False)
class Material:
    """The job that the page is about.

    Attributes:
        page: it.
        texts: the good documents.
        rows: their ids, as the parts hold them.
        training: ``training.json``.
        tokens: those that are not special, by id.
    """

    page: Path
    texts: list[str]
    rows: list[list[int]]
    training: dict[str, Any]
    tokens: dict[int, bytes]

    def section(self, key: str) -> str:
        return section(self.page, key)

    @cached_property
    def pretokens(self) -> Counter[bytes]:
        """The count of each pre-token; special tokens cut texts, and are not counted."""
        cut = "|".join(map(regex.escape, SPECIAL))
        pieces = [piece for text in self.texts for piece in regex.split(cut, text)]
        return Counter(one.encode() for piece in pieces for one in regex.findall(GPT2, piece))

    @cached_property
    def times(self) -> Counter[int]:
        """The count of each id."""
        return Counter(id_ for row in self.rows for id_ in row)

    @cached_property
    def merges(self) -> list[Pair]:
        names = {written(data): data for data in self.tokens.values()}
        return [(names[one["left"]], names[one["right"]]) for one in self.training["merges"]]

    @cached_property
    def corpora(self) -> list[dict[bytes, list[bytes]]]:
        """The symbols of each pre-token before any merge, after the first, and so on."""
        words = {word: [bytes([byte]) for byte in word] for word in self.pretokens}
        found = [words]
        for pair in self.merges:
            words = {word: joined(symbols, pair) for word, symbols in words.items()}
            found.append(words)
        return found

    @cached_property
    def pair_counts(self) -> list[Counter[Pair]]:
        """The count of each pair before each merge."""
        counts = []
        for words in self.corpora[:-1]:
            pairs: Counter[Pair] = Counter()
            for word, times in self.pretokens.items():
                for pair in pairwise(words[word]):
                    pairs[pair] += times
            counts.append(pairs)
        return counts

    def tokens_of(self, words: dict[bytes, list[bytes]]) -> int:
        """The length of the corpus in symbols."""
        return sum(len(words[word]) * times for word, times in self.pretokens.items())


def written(data: bytes) -> str:
    """A token as tokenizer.json writes it: each byte that cannot be seen is a letter above 255."""
    seen = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in seen]
    letters = {byte: chr(byte) for byte in seen}
    letters |= {byte: chr(256 + place) for place, byte in enumerate(hidden)}
    return "".join(letters[byte] for byte in data)


@pytest.fixture(scope="module")
def material(run: Path) -> Material:
    lines = [
        json.loads(line)
        for file in run.glob("*.jsonl")
        for line in file.read_text("utf-8").splitlines()
        if line.startswith("{")
    ]
    parts = sorted((run / "out" / "encoded").glob("data/train-*"))
    tokenizer = library.Tokenizer.load(run / "out" / "tokenizer.json")
    ids = set(range(len(tokenizer))) - {tokenizer.token_id(one.encode()) for one in SPECIAL}
    return Material(
        page=run / "out" / "report.html",
        texts=[line["text"] for line in lines if "text" in line],
        rows=pq.read_table(parts)["input_ids"].to_pylist(),
        training=json.loads((run / "out" / "training.json").read_bytes()),
        tokens={id_: tokenizer.token_bytes(id_) for id_ in sorted(ids)},
    )


def joined(symbols: list[bytes], pair: Pair) -> list[bytes]:
    """The symbols of a word after a merge, from left to right."""
    done: list[bytes] = []
    left = list(symbols)
    while left:
        if tuple(left[:2]) == pair:
            done.append(left.pop(0) + left.pop(0))
        else:
            done.append(left.pop(0))
    return done


def figure(cell: str) -> float:
    return float(cell.replace(",", "").removesuffix("%"))


def spelled(data: bytes) -> str:
    """A token as people see it; only of those that are text without control characters."""
    return data.decode().replace(" ", "␣")


def is_plain(data: bytes) -> bool:
    try:
        return data.decode().isprintable()
    except UnicodeDecodeError:
        return False


def check_tokens(rows: list[list[str]], expected: list[tuple[int, ...]], material: Material) -> int:
    """Compare the rows of a table of tokens: what each looks like, its id, and figures."""
    assert [tuple(int(figure(cell)) for cell in row[1:]) for row in rows] == expected
    plain = [(row[0], data) for row in rows if is_plain(data := material.tokens[int(row[1])])]
    assert [cell for cell, _ in plain] == [spelled(data) for _, data in plain]
    return len(plain)


@pytest.mark.long
def test_the_curve_is_that_of_the_merges_one_after_the_other(material: Material) -> None:
    found = material.section("compression")
    size = sum(len(word) * times for word, times in material.pretokens.items())
    sizes = {}
    for merges, words in enumerate(material.corpora):
        tokens = material.tokens_of(words)
        sizes[256 + len(SPECIAL) + merges] = f"{size / tokens:.3f}"
    rows = table(found, "tokens in the vocabulary", "bytes of text per token")
    shown = {int(vocab): ratio for vocab, ratio in rows}
    assert len(shown) >= 30
    assert (min(shown), max(shown)) == (min(sizes), 330)
    assert shown == {vocab: sizes[vocab] for vocab in shown}
    said = f"{size:,} bytes in {material.pretokens.total():,} pre-tokens, is {tokens:,} tokens"
    assert said in text(found)


@pytest.mark.parametrize("vocab_size", [300, 700, 4000])
def test_what_doublings_of_the_vocabulary_save(vocab_size: int) -> None:
    counts = library.count_pretokens([sentence(number, 40) for number in range(500)])
    training = library.train(counts, vocab_size=vocab_size).training
    assert training is not None
    made = section_of(compression, training=training)
    assert made is not None
    found = str(made.body)
    sizes = [256 + len(training.merges)]
    while sizes[0] // 2 > 256:
        sizes.insert(0, sizes[0] // 2)
    lengths = []
    for size in sizes:
        smaller = library.train(counts, vocab_size=size).training
        assert smaller is not None
        lengths.append(smaller.tokens)
    saved = [1 - after / before for before, after in pairwise(lengths)]
    if not saved:
        assert "doubling" not in text(found)
        return
    asked = ("tokens in the vocabulary", "tokens of the text", "saved by the doubling")
    rows = table(found, *asked)
    assert [int(row[0].replace(",", "")) for row in rows] == sizes
    assert [int(row[1].replace(",", "")) for row in rows] == lengths
    assert [row[2] for row in rows[1:]] == [f"{share:.1%}" for share in saved]
    enough = [size for size, share in zip(sizes[:-1], saved, strict=True) if share < 0.05]
    said = f"{enough[0]:,} tokens are enough" if enough else "The last doubling still saves"
    assert said in text(found)


def test_shares_of_lengths(material: Material) -> None:
    heads = ("bytes of the token", "of the vocabulary", "of the corpus")
    rows = table(material.section("lengths"), *heads)
    sizes = Counter(map(len, material.tokens.values()))
    times: Counter[int] = Counter()
    for id_, count in material.times.items():
        times[len(material.tokens[id_])] += count
    longest = max(sizes)
    assert longest >= 24
    assert [row[0] for row in rows] == [*map(str, range(1, 24)), "24+"]
    for counter, column in ((sizes, 1), (times, 2)):
        shares = [100 * counter[size] / counter.total() for size in range(1, longest + 1)]
        shares[23:] = [sum(shares[23:])]
        assert [figure(row[column]) for row in rows] == pytest.approx(shares, rel=WORST)


def test_the_longest_tokens(material: Material) -> None:
    heads = ("token", "id", "bytes", "occurrences")
    rows = table(material.section("lengths"), *heads, below="The longest tokens")
    times = material.times
    tokens = sorted(material.tokens.items(), key=lambda item: (-len(item[1]), item[0]))
    expected = [(id_, len(data), times[id_]) for id_, data in tokens[:30]]
    # Of these the page shows the first 60 characters.
    short = [(row, one) for row, one in zip(rows, expected, strict=True) if one[1] < 50]
    assert [tuple(map(figure, row[1:])) for row in rows] == expected
    assert check_tokens([row for row, _ in short], [one for _, one in short], material) > 10


def test_the_most_frequent_and_the_rarest_tokens(material: Material) -> None:
    found, times = material.section("frequencies"), material.times
    heads = ("token", "id", "occurrences")
    ordered = sorted(material.tokens, key=lambda id_: (-times[id_], id_))
    used = [(id_, times[id_]) for id_ in ordered if times[id_]]
    unused = [(id_, 0) for id_ in ordered if not times[id_]]
    for heading, expected in (
        ("The most frequent tokens", used[:30]),
        ("The rarest tokens that occur", used[::-1][:30]),
        ("Some that do not occur", unused[:30]),
    ):
        rows = table(found, *heads, below=heading)
        short = [row for row in rows if "…" not in row[0]]
        assert len(rows) == 30
        assert [tuple(map(figure, row[1:])) for row in rows] == expected
        ids = {int(row[1]) for row in short}
        check_tokens(short, [one for one in expected if one[0] in ids], material)
    half, sum_ = 0, 0
    while 2 * sum_ < times.total():
        sum_ += used[half][1]
        half += 1
    share = f"{len(unused) / len(material.tokens):.1%}"
    said = text(found)
    assert f"The {half} most frequent tokens make half of the corpus." in said
    assert f"{len(unused)} of {len(material.tokens)} tokens that are neither" in said
    assert f"({share}) do not occur in it." in said
    ranks = table(found, "rank of the token", "occurrences")
    assert len(ranks) > 20
    for rank, count in ranks:
        assert used[int(rank) - 1][1] == figure(count)


def slow_kind(data: bytes) -> str:
    """The script of a token, by the names of its characters; for the letters of this corpus."""
    try:
        characters = data.decode()
    except UnicodeDecodeError:
        return "parts of characters"
    for char in characters:
        if char.isalpha():
            return {"LATIN": "Latin", "CJK": "Han"}[unicodedata.name(char).split()[0]]
    if any(char.isdigit() for char in characters):
        return "digits"
    white = all(char in string.whitespace for char in characters)
    return "white space" if white else "punctuation and symbols"


def test_coverage_by_script(material: Material) -> None:
    heads = (
        *("script", "tokens", "share of the vocabulary"),
        *("never used", "share of the corpus", "bytes per token"),
    )
    found = material.section("scripts")
    rows = {row[0]: row[1:] for row in table(found, *heads)}
    kinds: dict[str, list[int]] = {}
    for id_, data in material.tokens.items():
        kinds.setdefault(slow_kind(data), []).append(id_)
    assert {"Latin", "digits", "parts of characters", "Han"} <= kinds.keys()
    assert rows.keys() == kinds.keys()
    times, every = material.times, material.times.total()
    for kind, ids in kinds.items():
        uses = sum(times[id_] for id_ in ids)
        size = sum(times[id_] * len(material.tokens[id_]) for id_ in ids)
        assert rows[kind] == [
            str(len(ids)),
            f"{len(ids) / len(material.tokens):.1%}",
            str(sum(not times[id_] for id_ in ids)),
            f"{uses / every:.1%}",
            f"{size / uses:.2f}" if uses else "–",
        ]


def test_pre_tokens_and_their_scripts(material: Material) -> None:
    found, counts = material.section("pre-tokens"), material.pretokens
    once = sum(times == 1 for times in counts.values())
    said = f"{once} of {len(counts)} distinct pre-tokens ({once / len(counts):.1%}) occur once"
    assert said in text(found)
    heads = ("pre-token", "occurrences")
    shown = table(found, *heads, below="The most frequent pre-tokens")
    most = sorted(counts.items(), key=lambda item: (item[1], item[0]), reverse=True)[: len(shown)]
    assert len(shown) == min(40, len(counts))
    assert [int(row[1]) for row in shown] == [times for _, times in most]
    assert [row[0] for row in shown if is_plain(row[0].encode())] == [
        spelled(word) for word, _ in most if is_plain(word)
    ]
    for row in table(
        found, "occurrences of the pre-token", "of distinct pre-tokens", "of the corpus"
    ):
        first, _, last = row[0].partition("–")
        among = [n for n in counts.values() if int(first) <= n <= int(last or first)]
        assert figure(row[1]) == pytest.approx(100 * len(among) / len(counts), rel=WORST)
        assert figure(row[2]) == pytest.approx(100 * sum(among) / counts.total(), rel=WORST)
    kinds: dict[str, list[bytes]] = {}
    for word in counts:
        kinds.setdefault(slow_kind(word), []).append(word)
    scripts = material.section("text-scripts")
    columns = ("script", "distinct pre-tokens", "occurrences", "bytes", "share of the bytes")
    rows = table(scripts, *columns)
    every = sum(len(word) * times for word, times in counts.items())
    for kind, *row in rows:
        words = kinds.pop(kind)
        size = sum(len(word) * counts[word] for word in words)
        times = sum(counts[word] for word in words)
        assert row == [str(len(words)), f"{times:,}", f"{size:,}", f"{size / every:.2%}"]
    assert not kinds


def test_tokens_per_document(material: Material) -> None:
    found = material.section("tokens-per-document")
    sizes = sorted(map(len, material.rows))
    shares = (0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)
    expected = [sizes[math.ceil(share * len(sizes)) - 1] for share in shares]
    rows = table(found, "share of all", "tokens of a document at most")
    assert [int(row[1]) for row in rows] == expected
    for label, share in table(found, "tokens of the document", "percent of documents"):
        first, _, last = label.partition("–")
        among = [size for size in sizes if int(first) <= size <= int(last or first)]
        assert figure(share) == pytest.approx(100 * len(among) / len(sizes), rel=WORST)
    assert f"{len(sizes)} documents, {sum(sizes):,} tokens." in text(found)


def test_merges_and_their_counts(material: Material) -> None:
    found, counts = material.section("merges"), material.pair_counts
    rows = table(found, "merge", "left", "right", "occurrences", "tokens left")
    assert [int(row[0]) for row in rows] == [*range(1, 13), *range(61, 73)]
    for number, left, right, times, tokens in rows:
        pair, words = material.merges[int(number) - 1], material.corpora[int(number)]
        assert figure(times) == counts[int(number) - 1][pair]
        assert figure(tokens) == material.tokens_of(words)
        for cell, symbol in zip((left, right), pair, strict=True):
            assert not is_plain(symbol) or cell == spelled(symbol)
    for number, times in table(found, "number of the merge", "occurrences of the pair"):
        place = int(figure(number)) - 1
        assert figure(times) == counts[place][material.merges[place]]


def test_what_the_tie_rule_decided(material: Material) -> None:
    found, counts, merges = material.section("ties"), material.pair_counts, material.merges
    tied = []
    for number, pairs in enumerate(counts):
        best = [pair for pair, times in pairs.items() if times == max(pairs.values())]
        assert merges[number] == min(best), "the rule is bytes-min"
        if len(best) > 1:
            tied.append(number)
    share = f"{len(tied)} of {len(merges)} merges ({len(tied) / len(merges):.1%})"
    assert f"The rule was bytes-min . It decided {share}." in text(found)
    assert 0 < len(tied) < len(merges)
    proven = [
        number
        for number in range(len(merges) - 1)
        if counts[number][merges[number + 1]] == counts[number][merges[number]]
        and counts[number + 1][merges[number + 1]] == counts[number][merges[number]]
    ]
    assert len(proven) > 12
    rows = table(found, "merge", "joined", "had to wait", "both occurred")
    assert [int(row[0]) - 1 for row in rows] == proven[:6] + proven[-6:]
    for row in rows:
        number = int(row[0]) - 1
        assert figure(row[3]) == counts[number][merges[number]]
        for cell, pair in zip(row[1:3], merges[number : number + 2], strict=True):
            if all(map(is_plain, pair)):
                assert cell == " + ".join(map(spelled, pair))


@pytest.mark.parametrize(
    ("texts", "merges", "expected"),
    [
        # Two pairs of five each, which share nothing: the second had to wait.
        ("ab " * 5 + "cd " * 5, 2, [0]),
        # The second pair is more rare.
        ("ab " * 5 + "cd " * 4, 2, []),
        # As often, but there only since the first merge.
        ("abc " * 5, 2, []),
        # The pair that waited lost an occurrence by the merge: it is not found by its count.
        ("abc " * 3 + "ab " + "bc ", 2, []),
        ("ab " * 3 + "cd " * 3 + "ef " * 3 + "gh ", 4, [0, 1]),
    ],
)
def test_proven_ties(texts: str, merges: int, expected: list[int]) -> None:
    counts = library.count_pretokens([texts], pattern=r"[a-z]+|\s+")
    training = library.train(counts, vocab_size=256 + merges).training
    assert training is not None
    ties = proven_ties(training)
    assert ties == expected
    for number in ties:
        chosen, waited = training.merges[number : number + 2]
        assert chosen.count == waited.count
        assert number in (training.tied or ())


def test_of_word_piece_no_tie_is_proven() -> None:
    counts = library.count_pretokens(["ab ab cd cd"], pretokenizer="words")
    training = library.train(counts, vocab_size=9, model=library.WordPiece()).training
    assert training is not None
    assert training.merges
    assert proven_ties(training) == []


@pytest.mark.parametrize(
    ("token", "kind"),
    [
        (" été", "Latin"),
        ("12a", "Latin"),
        ("«Ω»", "Greek"),
        ("привет", "Cyrillic"),
        ("漢字", "Han"),
        ("ひらがな", "Hiragana"),
        ("한국", "Hangul"),
        ("ไทย", "Thai"),
        (" ١٢", "digits"),
        ("½.", "digits"),
        ("...", "punctuation and symbols"),
        (" 🙂", "punctuation and symbols"),
        ("\x00", "punctuation and symbols"),
        (" \t\r\n\u00a0", "white space"),
        ("\U00010400", "other letters"),  # Deseret
        ("é".encode()[:1], "parts of characters"),
        (b"a\xff", "parts of characters"),
    ],
)
def test_kind_of(token: str | bytes, kind: str) -> None:
    assert kind_of(token.encode() if isinstance(token, str) else token) == kind
