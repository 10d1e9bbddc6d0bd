"""Parity-aware training: the core is the reference, and both are the published program."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import pre_tokenizers

import bpe
from bpe import PretokenCounts, train_parity
from bpe.byte_alphabet import from_text
from bpe.errors import BpeError, CountsError, TrainingError
from bpe.reference import parity as reference
from bpe.ties import TIES
from bpe.training_report import Training
from tests.bpe.oracle import in_order, known, merged, training_of
from tests.examples import examples
from tests.shared_data import shared_file

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bpe.reference.train import Words
    from bpe.training_report import Parity

ALPHABET = [bytes([byte]) for byte in range(256)]
RULES = [ties for ties in TIES if ties != "huggingface"]
NAMES = ("de", "en", "ja", "z")


def counts_of(words: Mapping[str, int]) -> PretokenCounts:
    return PretokenCounts.from_items(words, track_order=True)


def words_of(counts: PretokenCounts) -> Words:
    return [(tuple(bytes([byte]) for byte in word), count) for word, count in in_order(counts)]


def parity_of(tokenizer: bpe.Tokenizer) -> Parity:
    return known(training_of(tokenizer).parity)


def words(letters: str) -> st.SearchStrategy[dict[str, int]]:
    word = st.lists(st.sampled_from(letters), min_size=1, max_size=8).map("".join)
    return st.dictionaries(word, st.integers(1, 6), min_size=1, max_size=6)


# Groups with some letters in common, so that merges of one change the others.
GROUPS = st.lists(
    st.sampled_from(["ab", "abc", "bcé", "a\xad é"]).flatmap(words), min_size=1, max_size=4
)


@pytest.mark.parametrize("ties", RULES)
@given(data=st.data(), groups=GROUPS)
@examples(100)
def test_the_core_is_the_reference(
    ties: str, data: st.DataObject, groups: list[dict[str, int]]
) -> None:
    names = NAMES[: len(groups)]
    some = words("abcé\xad ")
    held_out = data.draw(st.none() | st.tuples(*[some] * len(groups)), label="held out")
    settings: dict[str, Any] = {
        "min_frequency": data.draw(st.integers(1, 3), label="min_frequency"),
        "global_merges": data.draw(st.integers(0, 4), label="global_merges"),
        "window": data.draw(st.none() | st.integers(1, 5), label="window"),
        "pair_counts": data.draw(st.sampled_from(["overlapping", "disjoint"]), label="pairs"),
        "alpha": data.draw(st.sampled_from([1, 1.5, 2]), label="alpha"),
    }
    limits: dict[str, Any] = {
        "max_merges": data.draw(st.integers(0, 20), label="max_merges"),
        "vocab_size": data.draw(st.none() | st.integers(256, 270), label="vocab_size"),
    }
    counts = {name: counts_of(group) for name, group in zip(names, groups, strict=True)}
    dev = dict(zip(names, map(counts_of, held_out or ()), strict=False))
    tokenizer = train_parity(
        counts,
        dev=dev or None,
        ties=ties,
        **limits,
        **settings,
    )
    steps = reference.train_parity(
        [words_of(group) for group in counts.values()],
        [words_of(group) for group in dev.values()],
        ties=ties,
        alphabet=ALPHABET,
        **limits,
        **settings,
    )
    training, parity = training_of(tokenizer), parity_of(tokenizer)
    assert parity.chosen_by == tuple(step.group for step in steps)
    assert [(m.left, m.right, m.count, m.tokens_left) for m in training.merges] == [
        (step.left, step.right, step.count, sum(step.tokens)) for step in steps
    ]
    if steps:
        assert [group.tokens for group in parity.groups] == steps[-1].tokens
        if dev:
            assert [group.held_out_tokens for group in parity.groups] == steps[-1].held_out
    ends = {
        "merge limit": len(steps) == limits["max_merges"],
        "vocabulary full": len(tokenizer) == limits["vocab_size"],
    }
    assert ends.get(training.stopped, not any(ends.values()))
    for name, group in zip(names, parity.groups, strict=True):
        encoded = sum(
            len(tokenizer.encode(word.decode())) * count for word, count in counts[name].items()
        )
        assert group.tokens == encoded
        assert group.bytes == counts[name].totals.bytes
        assert group.held_out_bytes == (dev[name].totals.bytes if dev else None)


@given(words=words("abc"))
def test_one_group_is_ordinary_training(words: dict[str, int]) -> None:
    counts = counts_of(words)
    alone = train_parity({"en": counts}, max_merges=20, ties="bytes-min", min_frequency=1)
    ordinary = bpe.train(counts, max_merges=20)
    assert alone == ordinary
    assert dataclasses.replace(training_of(alone), parity=None) == training_of(ordinary)


def test_the_report_can_be_saved_and_truncated() -> None:
    counts = {name: counts_of({"abab": 3, f"a{name}": 5}) for name in NAMES}
    tokenizer = train_parity(counts, max_merges=6, global_merges=2, window=3)
    training = training_of(tokenizer)
    assert Training.read(training.to_json().encode(), where="training.json") == training
    short = parity_of(tokenizer.truncated(258))
    assert short.chosen_by == parity_of(tokenizer).chosen_by[:2] == (None, None)
    assert {group.tokens for group in short.groups} == {None}
    assert tokenizer.truncated(len(tokenizer)).training == dataclasses.replace(
        training, vocab_size=len(tokenizer), stopped="vocabulary full"
    )


def test_pruned_counts_say_which_merge_could_be_another() -> None:
    counts = {"en": counts_of({"abab": 9, "cd": 2, "ab": 1}), "ja": counts_of({"xyx": 4, "z": 3})}
    dev = {"en": counts_of({"abab": 1}), "ja": counts_of({"xyx": 1})}
    exact = train_parity(counts, dev=dev, max_merges=4)
    pruned = train_parity(counts, dev=dev, max_merges=4, prune_below=2)
    assert training_of(exact).pruned is None
    assert known(training_of(pruned).pruned)["occurrences"] == 1
    affected = known(training_of(pruned).pruned)["first_affected_merge"] or 0
    assert merged(pruned)[:affected] == merged(exact)[:affected]
    alone = train_parity(counts, max_merges=4, prune_below=2)
    assert known(training_of(alone).pruned)["first_affected_merge"] == 0


EN, JA = counts_of({"abab": 9}), counts_of({"xyx": 4})
WORDS = bpe.count_pretokens(["a b"], pretokenizer="words")
NEVER_SPLIT = bpe.count_pretokens(["a b"], never_split=["url"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"counts": {}}, "no groups"),
        ({"counts": {"en": EN, "ja": counts_of({})}}, "group 'ja' has no pre-tokens"),
        ({"counts": {"en": EN, "ja": "xyx"}}, "not str"),
        ({"prune_below": 5}, "group 'ja' has no pre-tokens after pruning"),
        ({"dev": {"en": EN}}, "group 'ja' of `counts` is not in `dev`"),
        ({"dev": {"en": EN, "ja": counts_of({})}}, "held-out group 'ja' has no pre-tokens"),
        ({"dev": {"en": EN, "ja": JA.pruned(2)}}, "held-out group 'ja' was pruned"),
        ({"window": 0}, "`window` 0"),
        ({"alpha": float("nan")}, "`alpha` nan"),
        ({"ties": "none"}, "unknown tie rule"),
        ({"vocab_size": 100}, "at least 256"),
        ({"counts": {"en": EN, "ja": WORDS}}, "different pretokenizer .* together: group 'en'"),
        ({"dev": {"en": WORDS, "ja": WORDS}}, "held-out group 'en' has 'words'"),
        ({"counts": {"en": EN, "ja": NEVER_SPLIT}}, "group 'ja': parity .* not go with `never_sp"),
    ],
)
def test_errors_name_the_group(arguments: dict[str, Any], message: str) -> None:
    values: dict[str, Any] = {"counts": {"en": EN, "ja": JA}, "max_merges": 5, **arguments}
    with pytest.raises(BpeError, match=message) as raised:
        train_parity(values.pop("counts"), **values)
    assert isinstance(raised.value, (TrainingError, CountsError))


PUBLISHED = ("arabic", "cyrillic", "han", "hangul", "latin")
# Each match of ``\w+|[^\w\s]+`` gets a space in front.
CUT = pre_tokenizers.Sequence(
    [
        pre_tokenizers.Whitespace(),
        pre_tokenizers.ByteLevel(use_regex=False, add_prefix_space=True),
    ]
)


def published_counts(name: str) -> PretokenCounts:
    lines = shared_file(f"superwords/parity/{name}").read_text(encoding="utf-8").splitlines()
    pretokens = Counter(word for line in lines for word, _ in CUT.pre_tokenize_str(line))
    return PretokenCounts.from_items({from_text(word): n for word, n in pretokens.items()})


@pytest.mark.shared
@pytest.mark.parametrize(
    ("variant", "settings"),
    [("base", {}), ("hybrid", {"global_merges": 500}), ("window", {"window": 100, "alpha": 2})],
)
def test_the_merges_are_those_of_the_published_program(
    variant: str, settings: dict[str, Any]
) -> None:
    counts = {name: published_counts(f"{name}.txt") for name in PUBLISHED}
    dev = {name: published_counts(f"{name}.dev.txt") for name in PUBLISHED}
    tokenizer = train_parity(counts, dev=dev, max_merges=2_000, **settings)
    lines = shared_file(f"superwords/parity/{variant}.merges").read_text(encoding="utf-8")
    expected = [tuple(map(from_text, line.split(" "))) for line in lines.splitlines()[1:]]
    assert merged(tokenizer) == expected
