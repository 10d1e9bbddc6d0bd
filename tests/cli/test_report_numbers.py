"""The numbers of a report compared with the same, computed slowly from the files of the job."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

import bpe as library
from bpe.explain import visible
from pipelines.report.page import section as section_of
from pipelines.report.tokenizer_sections import compression, proven_ties
from pipelines.report.writing_systems import kind_of
from tests.cli.conftest import EVIL
from tests.cli.reports import section, table, text
from tests.pipelines.corpora import sentence

if TYPE_CHECKING:
    from pathlib import Path

SPECIAL = ("<|endoftext|>", EVIL)
WORST = 0.0006  # relative: figures have four digits


@dataclass(frozen=True, eq=False)
class Material:
    """The job that the page is about.

    Attributes:
        page: it.
        pretokens: the count of each.
        rows: the ids of the documents, as the parts hold them.
        training: of the tokenizer.
        tokens: those that are not special, by id.
    """

    page: Path
    pretokens: Counter[bytes]
    rows: list[list[int]]
    training: library.Training
    tokens: dict[int, bytes]

    def section(self, key: str) -> str:
        return section(self.page, key)

    @property
    def times(self) -> Counter[int]:
        """The count of each id."""
        return Counter(id_ for row in self.rows for id_ in row)


@pytest.fixture(scope="module")
def material(run: Path) -> Material:
    out = run / "out"
    parts = sorted((out / "encoded").glob("data/train-*"))
    tokenizer = library.Tokenizer.load(out / "tokenizer.json")
    ids = set(range(len(tokenizer))) - {tokenizer.token_id(one.encode()) for one in SPECIAL}
    return Material(
        page=out / "report.html",
        pretokens=Counter(dict(library.PretokenCounts.load(out / "counts").items())),
        rows=pq.read_table(parts)["input_ids"].to_pylist(),
        training=library.Training.load(out / "training.json"),
        tokens={id_: tokenizer.token_bytes(id_) for id_ in sorted(ids)},
    )


def figure(cell: str) -> float:
    return float(cell.replace(",", "").removesuffix("%"))


def test_the_curve_is_that_of_the_merges_one_after_the_other(material: Material) -> None:
    found, training = material.section("compression"), material.training
    size = sum(len(word) * times for word, times in material.pretokens.items())
    lengths = [size, *(merge.tokens_left for merge in training.merges)]
    ratios = {258 + merges: f"{size / tokens:.3f}" for merges, tokens in enumerate(lengths)}
    rows = table(found, "tokens in the vocabulary", "bytes of text per token")
    shown = {int(vocab): ratio for vocab, ratio in rows}
    assert len(shown) >= 30
    assert (min(shown), max(shown)) == (258, 330)
    assert shown.items() <= ratios.items()
    pretokens = material.pretokens.total()
    said = f"{size:,} bytes in {pretokens:,} pre-tokens, is {lengths[-1]:,} tokens"
    assert said in text(found)


@pytest.mark.parametrize("vocab_size", [300, 700, 4000])
def test_what_doublings_of_the_vocabulary_save(vocab_size: int) -> None:
    counts = library.count_pretokens([sentence(number, 40) for number in range(500)])
    training = library.train(counts, vocab_size=vocab_size).training
    assert training is not None
    made = section_of(compression, training=training)
    assert made is not None
    found = str(made)
    sizes = [256 + len(training.merges)]
    while sizes[0] // 2 > 256:
        sizes.insert(0, sizes[0] // 2)
    lengths = [training.merges[size - 257].tokens_left for size in sizes]
    saved = [1 - after / before for before, after in pairwise(lengths)]
    if not saved:
        assert "doubling" not in text(found)
        return
    asked = ("tokens in the vocabulary", "tokens of the text", "saved by the doubling")
    rows = table(found, *asked)
    assert [row[:2] for row in rows] == [
        [f"{size:,}", f"{length:,}"] for size, length in zip(sizes, lengths, strict=True)
    ]
    assert [row[2] for row in rows[1:]] == [f"{share:.1%}" for share in saved]
    enough = [size for size, share in zip(sizes[:-1], saved, strict=True) if share < 0.05]
    said = f"{enough[0]:,} tokens are enough" if enough else "The last doubling still saves"
    assert said in text(found)


def test_shares_of_lengths_and_the_longest_tokens(material: Material) -> None:
    found = material.section("lengths")
    rows = table(found, "bytes of the token", "of the vocabulary", "of the corpus")
    sizes, times = Counter[int](), Counter[int]()
    for id_, data in material.tokens.items():
        sizes[min(len(data), 24)] += 1
        times[min(len(data), 24)] += material.times[id_]
    assert [row[0] for row in rows] == [*map(str, range(1, 24)), "24+"]
    for column, counter in ((1, sizes), (2, times)):
        shares = [100 * counter[size] / counter.total() for size in range(1, 25)]
        assert [figure(row[column]) for row in rows] == pytest.approx(shares, rel=WORST)
    heads = ("token", "id", "bytes", "occurrences")
    rows = table(found, *heads, below="The longest tokens")
    tokens = sorted(material.tokens.items(), key=lambda item: (-len(item[1]), item[0]))
    assert rows == [
        [visible(data), str(id_), str(len(data)), str(material.times[id_])]
        for id_, data in tokens[:30]
    ]


def test_the_most_frequent_and_the_rarest_tokens(material: Material) -> None:
    found, times = material.section("frequencies"), material.times
    ordered = sorted(material.tokens, key=lambda id_: (-times[id_], id_))
    used = [id_ for id_ in ordered if times[id_]]
    unused = [id_ for id_ in ordered if not times[id_]]
    for heading, expected in (
        ("The most frequent tokens", used[:30]),
        ("The rarest tokens that occur", used[::-1][:30]),
        ("Some that do not occur", unused[:30]),
    ):
        assert table(found, "token", "id", "occurrences", below=heading) == [
            [visible(material.tokens[id_]), str(id_), f"{times[id_]:,}"] for id_ in expected
        ]
    sums = accumulate(times[id_] for id_ in used)
    half = next(n for n, sum_ in enumerate(sums, 1) if 2 * sum_ >= times.total())
    said = text(found)
    assert f"The {half} most frequent tokens make half of the corpus." in said
    assert f"{len(unused)} of {len(material.tokens)} tokens that are neither" in said
    assert f"({len(unused) / len(material.tokens):.1%}) do not occur in it." in said
    ranks = table(found, "rank of the token", "occurrences")
    assert len(ranks) > 20
    for rank, count in ranks:
        assert times[used[int(rank) - 1]] == figure(count)


def test_coverage_by_script(material: Material) -> None:
    heads = (
        *("script", "tokens", "share of the vocabulary"),
        *("never used", "share of the corpus", "bytes per token"),
    )
    rows = {row[0]: row[1:] for row in table(material.section("scripts"), *heads)}
    kinds: dict[str, list[int]] = {}
    for id_, data in material.tokens.items():
        kinds.setdefault(kind_of(data), []).append(id_)
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


def test_pre_tokens(material: Material) -> None:
    found, counts = material.section("pre-tokens"), material.pretokens
    once = sum(times == 1 for times in counts.values())
    said = f"{once} of {len(counts)} distinct pre-tokens ({once / len(counts):.1%}) occur once"
    assert said in text(found)
    shown = table(found, "pre-token", "occurrences", below="The most frequent pre-tokens")
    most = sorted(counts.items(), key=lambda item: (item[1], item[0]), reverse=True)[:40]
    assert shown == [[visible(word), f"{times:,}"] for word, times in most]
    bars = ("occurrences of the pre-token", "of distinct pre-tokens", "of the corpus")
    for label, distinct, share in table(found, *bars):
        first, _, last = label.partition("–")
        among = [n for n in counts.values() if int(first) <= n <= int(last or first)]
        assert figure(distinct) == pytest.approx(100 * len(among) / len(counts), rel=WORST)
        assert figure(share) == pytest.approx(100 * sum(among) / counts.total(), rel=WORST)


def test_scripts_of_pre_tokens(material: Material) -> None:
    counts = material.pretokens
    kinds: dict[str, list[bytes]] = {}
    for word in counts:
        kinds.setdefault(kind_of(word), []).append(word)
    columns = ("script", "distinct pre-tokens", "occurrences", "bytes", "share of the bytes")
    every = sum(len(word) * times for word, times in counts.items())
    for kind, *row in table(material.section("text-scripts"), *columns):
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
    found, merges = material.section("merges"), material.training.merges
    rows = table(found, "merge", "left", "right", "occurrences", "tokens left")
    assert rows == [
        [
            str(n + 1),
            visible(one.left),
            visible(one.right),
            f"{one.count:,}",
            f"{one.tokens_left:,}",
        ]
        for n, one in enumerate(merges)
        if n < 12 or n >= len(merges) - 12
    ]
    for number, times in table(found, "number of the merge", "occurrences of the pair"):
        assert figure(times) == merges[int(figure(number)) - 1].count


def test_what_the_tie_rule_decided(material: Material) -> None:
    found, training = material.section("ties"), material.training
    assert training.tied
    of_all = len(training.merges)
    share = f"{len(training.tied)} of {of_all} merges ({len(training.tied) / of_all:.1%})"
    assert f"The rule was bytes-min . It decided {share}." in text(found)
    proven = proven_ties(training)
    assert len(proven) > 12

    def pair(number: int) -> str:
        merge = training.merges[number]
        return f"{visible(merge.left)} + {visible(merge.right)}"

    assert table(found, "merge", "joined", "had to wait", "both occurred") == [
        [str(n + 1), pair(n), pair(n + 1), f"{training.merges[n].count:,}"]
        for n in proven[:6] + proven[-6:]
    ]


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
        ("漢字", "Han"),
        ("½.", "digits"),
        (" 🙂", "punctuation and symbols"),
        ("\x00", "punctuation and symbols"),
        (" \t\r\n\u00a0", "white space"),
        ("\U00010400", "other letters"),  # Deseret
        (b"a\xff", "parts of characters"),
    ],
)
def test_kind_of(token: str | bytes, kind: str) -> None:
    assert kind_of(token.encode() if isinstance(token, str) else token) == kind
