"""Superwords are learnt as the readable twin learns them, and encode as they were learnt."""

from __future__ import annotations

import copy
import re
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest

import bpe
from bpe import PretokenCounts, Tokenizer, Training
from bpe.counts import Runs, combine
from bpe.errors import TrainingError
from tests.bpe.fuzz_targets import check_same_superwords, cut_of_runs
from tests.bpe.oracle import known, training_of
from tests.bpe.test_counts_of_runs import counts_of
from tests.bpe.vocabularies import byte_tokenizer

if TYPE_CHECKING:
    from bpe.training_report import SuperwordTraining

IdRuns = dict[tuple[int, ...], int]


def counts_for(words: Tokenizer, runs: IdRuns, max_run: int | None = None) -> PretokenCounts:
    """Counts of runs of a tokenizer."""
    found = Runs(tokenizer=words.text_sha256, merge_pattern=r"\p{L}", max_run=max_run, id_bytes=2)
    return replace(counts_of(dict(runs), found), pretokenizer=words.pretokenizer)


def learnt_by(counts: PretokenCounts, **settings: Any) -> SuperwordTraining:
    """The report of superwords that are trained on runs."""
    return known(training_of(bpe.train_superwords(counts, **settings)).superwords)


CORPUS = ["to be or not to be, that is the question: to be or to have"] * 3
WORDS_OF_CORPUS = bpe.train(bpe.count_pretokens(CORPUS, special_tokens=["<s>"]), max_merges=60)
RUNS = bpe.count_runs(CORPUS, tokenizer=WORDS_OF_CORPUS)


def test_weights_of_words_and_runs_may_differ() -> None:
    """Fractions make the unit of counts smaller: what is compared is what occurs."""
    plain = bpe.train_superwords(RUNS, tokenizer=WORDS_OF_CORPUS, boundless=True)
    halves = combine([(RUNS, Fraction(1, 2)), (RUNS, Fraction(1, 2))])
    assert halves.scale == 2
    assert bpe.train_superwords(halves, tokenizer=WORDS_OF_CORPUS, boundless=True) == plain


def test_a_tokenizer_without_a_record_of_its_training_gets_one() -> None:
    words = WORDS_OF_CORPUS.with_training(None)
    tokenizer = bpe.train_superwords(RUNS, tokenizer=words, superwords=2)
    assert known(training_of(tokenizer).extends).merges == len(words.merges)
    assert tokenizer == bpe.train_superwords(RUNS, tokenizer=WORDS_OF_CORPUS, superwords=2)


# In runs, abc is one token, or two in two ways.
AMBIGUOUS = byte_tokenizer("ab", "abc", "bc", joins=["a|b", "ab|c", "b|c"])


@pytest.mark.parametrize("superwords", [1, 30])
@pytest.mark.parametrize(("max_run", "below"), [(None, 2), (3, 1)])
def test_a_pair_of_a_string_of_several_sequences_loses_their_sum(
    max_run: int | None, below: int, superwords: int
) -> None:
    """No two tokens are dropped or cut apart more than 10 times, and abcd 30 times."""
    runs: IdRuns = {(256, 99): 100, (97, 258): 60, (117, 118): 25}
    for letter in range(65, 75):
        runs |= {(letter, 120, 257, 100): 1, (letter, 256, 99, 100): 1, (letter, 97, 258, 100): 1}
    counts = kept = counts_for(AMBIGUOUS, runs)
    if max_run is not None:
        pieces: Counter[tuple[int, ...]] = Counter()
        for run, count in runs.items():
            for at in range(0, len(run) - 1, max_run):
                pieces[run[at : at + max_run]] += count
        kept = replace(counts_for(AMBIGUOUS, pieces, max_run), cut=cut_of_runs(runs, max_run))
    full = learnt_by(counts, tokenizer=AMBIGUOUS, superwords=superwords)
    less = learnt_by(kept, tokenizer=AMBIGUOUS, superwords=superwords, prune_below=below)
    assert check_same_superwords(less, full) == 1


def test_what_cuts_of_long_runs_could_have_changed() -> None:
    texts = ["to be"] * 50 + ["or not"] * 30 + [" is the" * 3]
    words = bpe.train(bpe.count_pretokens(texts), max_merges=60)
    for max_run, affected, lost in ((2, 2, (5, 3)), (4, 2, (5, 3)), (6, None, (0, 0))):
        counts = bpe.count_runs(texts, tokenizer=words, max_run=max_run)
        training = training_of(bpe.train_superwords(counts, tokenizer=words, superwords=3))
        cut = known(known(training.superwords).cut)
        assert cut == {"pairs": lost[0], "max_pair": lost[1], "first_affected_merge": affected}
        shorter = known(training.truncated(len(words) + 2).superwords)
        assert shorter.cut == {**cut, "first_affected_merge": None}
        assert copy.deepcopy(training) == training
        assert Training.read(training.to_json().encode(), where="test") == training


def test_great_weights_of_runs_that_were_cut() -> None:
    texts = [" a" * 5]
    words = bpe.train(bpe.count_pretokens(texts), max_merges=1)
    counts = bpe.count_runs(texts, tokenizer=words, max_run=2)
    cut = learnt_by(2**60 * counts, tokenizer=words, superwords=1).cut
    assert cut == {"pairs": 2**62, "max_pair": 2**62, "first_affected_merge": 0}


def test_where_words_were_dropped_runs_do_not_say_how_long_the_corpus_is() -> None:
    texts = [" abcd"] * 10 + [" a ab abc"] * 4
    words = bpe.train(bpe.count_pretokens(texts), max_merges=9, prune_below=5)
    runs = bpe.count_runs(texts, tokenizer=words)
    training = training_of(bpe.train_superwords(runs, tokenizer=words, superwords=9))
    assert training.bytes_per_token is None
    assert training.curve() == training_of(words).curve()


BARE, SHORTER = WORDS_OF_CORPUS.with_training(None), WORDS_OF_CORPUS.truncated(270)
SUPERWORDS = bpe.train_superwords(RUNS, tokenizer=WORDS_OF_CORPUS, superwords=1)
PIECES = bpe.train(bpe.count_pretokens(CORPUS), max_merges=3, model=bpe.WordPiece())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"superwords": None}, "superwords have no limit: give `superwords` or `boundless`"),
        ({"boundless": True}, "finds the number of superwords itself: leave out `superwords` 3"),
        ({"superwords": -1}, "`superwords` -1 is not between 0 and"),
        ({"ties": "first-seen"}, "ties 'first-seen' are not for superwords: use one of bytes"),
        ({"tokenizer": "words.json"}, "`tokenizer` is str, not a tokenizer: load it"),
        ({"tokenizer": SHORTER}, "the counts are of runs .*: count the runs of this tokenizer"),
        ({"tokenizer": SUPERWORDS}, "has superwords already"),
        ({"tokenizer": PIECES}, "are for byte-level tokenizers, this one is of WordPiece"),
        (
            {"superwords": None, "boundless": True, "tokenizer": BARE},
            "`boundless` needs the counts",
        ),
    ],
)
def test_settings_that_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        bpe.train_superwords(RUNS, **{"tokenizer": WORDS_OF_CORPUS, "superwords": 3, **arguments})


def test_counts_that_are_refused() -> None:
    with pytest.raises(TrainingError, match="counts of runs, not of pre-tokens: count them first"):
        bpe.train_superwords(bpe.count_pretokens(CORPUS), tokenizer=WORDS_OF_CORPUS, superwords=1)
    damaged = counts_for(WORDS_OF_CORPUS, {(1, 60_000): 1})
    with pytest.raises(TrainingError, match=re.escape("no such symbol")):
        bpe.train_superwords(damaged, tokenizer=WORDS_OF_CORPUS, superwords=1)
