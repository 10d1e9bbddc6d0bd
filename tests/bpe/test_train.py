"""Training: the known examples, the limits, and what is refused."""

from __future__ import annotations

import random
from typing import Any

import pytest

import bpe
from bpe import PretokenCounts, Tokenizer, train
from bpe.errors import SpecialTokenError, TrainingError
from bpe.ties import TIES
from tests.bpe.steps import assert_linear, counts_steps


def trained(
    words: dict[str | bytes, int], *, merges: int, ties: str = "bytes-min", **settings: Any
) -> Tokenizer:
    """A tokenizer of so many merges over whole words."""
    counts = PretokenCounts.from_items(words.items(), track_order=True)
    return train(counts, vocab_size=256 + merges, ties=ties, **settings)


def steps(tokenizer: Tokenizer) -> list[tuple[str, str, int]]:
    """The merges as text, with their counts."""
    assert tokenizer.training is not None
    return [
        (merge.left.decode(), merge.right.decode(), merge.count)
        for merge in tokenizer.training.merges
    ]


@pytest.mark.parametrize("ties", TIES)
def test_the_example_of_wikipedia(ties: str) -> None:
    """``aaabdaaabac`` (en.wikipedia.org/wiki/Byte-pair_encoding): aa, then ab, then both."""
    tokenizer = trained({"aaabdaaabac": 1}, merges=3, ties=ties)
    assert tokenizer.training is not None
    merges = steps(tokenizer)
    assert merges[0] == ("a", "a", 4)
    # Then (a, b) and (aa, a) occur twice each: Wikipedia takes the first, so do smallest strings.
    expected = {
        "bytes-min": [("a", "b", 2), ("aa", "ab", 2)],
        "id-min": [("a", "b", 2), ("aa", "ab", 2)],
        "huggingface": [("a", "b", 2), ("aa", "ab", 2)],
        "bytes-max": [("aa", "a", 2), ("aaa", "b", 2)],
        "gpt2-max": [("aa", "a", 2), ("aaa", "b", 2)],
        "first-seen": [("aa", "a", 2), ("aaa", "b", 2)],
    }
    assert merges[1:] == expected[ties]
    assert [merge.tokens_left for merge in tokenizer.training.merges] == [9, 7, 5]
    tokens = [tokenizer.token_bytes(i) for i in tokenizer.encode("aaabdaaabac")]
    assert tokens == [b"aaab", b"d", b"aaab", b"a", b"c"]


@pytest.mark.parametrize(
    ("ties", "pair_counts", "message"),
    [
        ("huggingface", "disjoint", "'huggingface' counts overlapping pairs, .* not disjoint"),
        ("bytes-min", "every", "unknown `pair_counts` 'every': use one of overlapping, disjoint"),
    ],
)
def test_ways_to_count_pairs_that_are_refused(ties: str, pair_counts: str, message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        trained({"ab": 1}, merges=1, ties=ties, pair_counts=pair_counts)


def test_counts_whose_sum_does_not_fit_are_refused() -> None:
    with pytest.raises(TrainingError, match=r"more than 2\^62 symbols"):
        trained({"abcd": 2**61}, merges=1)


def test_vocab_size_below_the_bytes_is_refused() -> None:
    counts = PretokenCounts.from_items({"ab": 1}.items())
    with pytest.raises(TrainingError, match=r"`vocab_size` 256 .* at least 257"):
        train(counts, vocab_size=256, special_tokens=("<|end|>",))
    assert len(train(counts, vocab_size=257, special_tokens=("<|end|>",))) == 257


def test_vocab_size_above_what_the_corpus_gives_ends_early_and_says_so() -> None:
    tokenizer = trained({"abc": 5}, merges=1000)
    assert tokenizer.training is not None
    assert tokenizer.training.stopped == "no pair left"
    assert len(tokenizer) == 258
    assert trained({"abc": 5}, merges=2).training.stopped == "vocabulary full"  # type: ignore[union-attr]


@pytest.mark.parametrize("token", ["a", "é", "Ġ", " ", "\n", "\0"])
def test_a_special_token_that_is_a_byte_or_names_one_is_refused(token: str) -> None:
    counts = PretokenCounts.from_items({"ab": 1}.items())
    with pytest.raises(TrainingError, match="single byte"):
        train(counts, vocab_size=300, special_tokens=(token,))


def test_special_tokens_in_one_str_are_refused() -> None:
    counts = PretokenCounts.from_items({"ab": 1}.items())
    with pytest.raises(SpecialTokenError, match="one str, '末'"):
        train(counts, vocab_size=300, special_tokens="末")


@pytest.mark.parametrize(
    "sizes",
    [
        {"vocab_size": 300.5},
        {"vocab_size": "300"},
        {"min_frequency": 2.0},
        {"max_merges": 3.0},
        {"prune_below": True},
    ],
)
def test_numbers_that_are_none_are_named(sizes: dict[str, Any]) -> None:
    counts = PretokenCounts.from_items({"ab": 1}.items())
    with pytest.raises(TrainingError, match=f"`{next(iter(sizes))}` .* is not an int"):
        train(counts, **{"vocab_size": 300, **sizes})


def test_training_without_a_limit_is_refused() -> None:
    counts = PretokenCounts.from_items({"ab": 1})
    with pytest.raises(TrainingError, match="no limit: give `vocab_size`, `max_merges` or both"):
        train(counts)
    wrong: list[dict[str, Any]] = [
        {"max_merges": -1},
        {"vocab_size": 0},
        {"max_merges": 1, "prune_below": 0},
    ]
    for limit in wrong:
        with pytest.raises(TrainingError, match="is not between"):
            train(counts, **limit)


def test_texts_in_place_of_counts_are_refused() -> None:
    for texts in (["a text"], "a text", None):
        with pytest.raises(
            TrainingError, match=r"takes pre-token counts, not \w+: count the texts"
        ):
            train(texts, vocab_size=300)  # type: ignore[arg-type]


def test_both_limits_hold() -> None:
    counts = PretokenCounts.from_items({"abcd": 5})
    assert len(train(counts, vocab_size=300, max_merges=2)) == 258
    assert len(train(counts, vocab_size=257, max_merges=2)) == 257
    for max_merges, vocab_size, stopped in (
        (2, None, "merge limit"),
        (3, 259, "vocabulary full"),
        (4, None, "no pair left"),
        (0, None, "merge limit"),
    ):
        training = train(counts, vocab_size=vocab_size, max_merges=max_merges).training
        assert training is not None
        assert training.stopped == stopped


def test_special_tokens_of_the_counts_are_kept() -> None:
    counts = bpe.count_pretokens(["one<|e|>two"], special_tokens=("<|e|>",))
    assert train(counts, vocab_size=300).special_tokens == {"<|e|>": 0}


def test_unknown_ties_and_missing_order_are_refused() -> None:
    counts = PretokenCounts.from_items({"ab": 1}.items())
    with pytest.raises(TrainingError, match="unknown tie rule 'random'"):
        train(counts, vocab_size=300, ties="random")
    with pytest.raises(TrainingError, match="track_order"):
        train(counts, vocab_size=300, ties="first-seen")
    with pytest.raises(TrainingError, match="`min_frequency` 0"):
        train(counts, vocab_size=300, min_frequency=0)
    with pytest.raises(TrainingError, match="`min_frequency` 9223372036854775808"):
        train(counts, vocab_size=300, min_frequency=2**63)


def test_progress_counts_merges() -> None:
    seen: list[tuple[int, int]] = []
    draw = random.Random(1)
    words = {draw.randbytes(200): 1 for _ in range(50)}
    counts = PretokenCounts.from_items(words.items())
    train(counts, vocab_size=2256, progress=lambda done, total: seen.append((done, total)))
    assert seen
    assert seen == sorted(seen)
    assert {total for _, total in seen} == {2000}


ALPHABETS = [b"a", b"abcdefghijklmnopqrstuvwxyz", bytes(range(256))]


def letters_of(alphabet: bytes, size: int) -> bytes:
    return bytes(random.Random(7).choices(alphabet, k=size))


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("letters", ALPHABETS)
def test_a_pretoken_of_a_megabyte(ties: str, letters: bytes) -> None:
    word = letters_of(letters, 1_000_000)
    tokenizer = trained({word: 1}, merges=744, ties=ties)
    assert tokenizer.training is not None
    tokens = tokenizer.encode(word)
    assert len(tokens) == tokenizer.training.tokens
    assert tokenizer.decode_bytes(tokens) == word


@counts_steps
@pytest.mark.parametrize(
    ("ties", "pair_counts"), [*((ties, "overlapping") for ties in TIES), ("bytes-min", "disjoint")]
)
@pytest.mark.parametrize("letters", ALPHABETS)
def test_a_long_pretoken_takes_linear_work(ties: str, pair_counts: str, letters: bytes) -> None:
    assert_linear(
        lambda size: trained(
            {letters_of(letters, size): 1}, merges=244, ties=ties, pair_counts=pair_counts
        ),
        50_000,
    )
