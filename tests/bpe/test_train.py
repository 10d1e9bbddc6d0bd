"""Training: the known examples, the limits, and what is refused."""

from __future__ import annotations

import random
from typing import Any

import pytest

import bpe
from bpe import CharacterLevel, PretokenCounts, Tokenizer, WordPiece, train
from bpe.errors import SpecialTokenError, TrainingError
from bpe.ties import TIES
from tests.bpe.oracle import training_of
from tests.bpe.steps import INSTRUMENTED, assert_linear
from tests.shared_data import LONG


def trained(
    words: dict[str | bytes, int], *, merges: int, ties: str = "bytes-min", **settings: Any
) -> Tokenizer:
    """A tokenizer of so many merges over whole words."""
    counts = PretokenCounts.from_items(words.items(), track_order=True)
    return train(counts, vocab_size=256 + merges, ties=ties, **settings)


AB = PretokenCounts.from_items({"ab": 1})
MALFORMED = PretokenCounts.from_items([("ab", 2), (b"a\xffb", 1)])
MALFORMED_WHOLE = PretokenCounts.from_items(
    [(b"@\xff", 1)], pretokenizer=bpe.Pretokenizer("words", never_split=(r"\S*@\S*",))
)
OF_CHARACTERS = (CharacterLevel(), CharacterLevel(end_of_word=""), WordPiece())
NO_CHARACTERS: list[tuple[dict[str, Any], str]] = [
    ({"counts": MALFORMED}, r"b'a\\xffb' is not UTF-8"),
    ({"counts": MALFORMED_WHOLE}, "is not UTF-8"),
    ({"ties": "huggingface"}, "'huggingface' is for byte-level models"),
    ({"special_tokens": ("x",)}, "'x' is a single character"),
    *(
        ({"initial_alphabet": initial}, "initial_alphabet holds")
        for initial in (["ab"], [""], [7], ["\ud800"])
    ),
]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"vocab_size": None}, "no limit: give `vocab_size`, `max_merges` or both"),
        ({"max_merges": -1}, "is not between"),
        ({"vocab_size": 256, "special_tokens": ("<|end|>",)}, "`vocab_size` 256 .* at least 257"),
        ({"vocab_size": 300.5}, "`vocab_size` .* is not an int"),
        ({"prune_below": True}, "`prune_below` .* is not an int"),
        ({"min_frequency": 0}, "`min_frequency` 0"),
        ({"min_frequency": 2**63}, "`min_frequency` 9223372036854775808"),
        ({"ties": "random"}, "unknown tie rule 'random'"),
        ({"ties": "first-seen"}, "track_order"),
        ({"ties": "huggingface", "pair_counts": "disjoint"}, "counts overlapping .* not disjoint"),
        ({"pair_counts": "every"}, "unknown `pair_counts` 'every': use one of overlapping, disj"),
        ({"counts": PretokenCounts.from_items({"abcd": 2**61})}, r"more than 2\^62 symbols"),
        (
            {"counts": PretokenCounts.from_items({"abcd": 2**62}), "model": CharacterLevel()},
            r"more than 2\^62 symbols",
        ),
        ({"counts": ["a text"]}, "takes pre-token counts, not list: count the texts"),
        *(({"special_tokens": (token,)}, "single byte") for token in ("a", "Ġ", "\n")),
        ({"special_tokens": "末"}, "one str, '末'"),
        ({"initial_alphabet": "x"}, "have all 256 bytes"),
        ({"model": "wordpiece"}, "the model is 'wordpiece'"),
        ({"model": CharacterLevel(), "special_tokens": ("</w>",)}, "'</w>' is a symbol"),
        ({"model": WordPiece(), "special_tokens": ("##b",)}, "'##b' is a symbol"),
        ({"model": CharacterLevel(end_of_word=""), "prune_below": 2}, "nothing to train on"),
        *(
            ({"model": model, **arguments}, message)
            for model in OF_CHARACTERS
            for arguments, message in NO_CHARACTERS
        ),
    ],
)
def test_what_is_refused(arguments: dict[str, Any], message: str) -> None:
    settings = {"vocab_size": 300, **arguments}
    with pytest.raises((TrainingError, SpecialTokenError), match=message):
        train(settings.pop("counts", AB), **settings)


def test_both_limits_hold_and_training_says_which_ended_it() -> None:
    counts = PretokenCounts.from_items({"abcd": 5})
    for max_merges, vocab_size, size, stopped in (
        (2, 300, 258, "merge limit"),
        (2, 257, 257, "vocabulary full"),
        (3, 259, 259, "vocabulary full"),
        (4, 1000, 259, "no pair left"),
        (0, None, 256, "merge limit"),
    ):
        tokenizer = train(counts, vocab_size=vocab_size, max_merges=max_merges)
        assert (len(tokenizer), training_of(tokenizer).stopped) == (size, stopped)


def test_special_tokens_of_the_counts_are_kept() -> None:
    counts = bpe.count_pretokens(["one<|e|>two"], special_tokens=("<|e|>",))
    assert train(counts, vocab_size=300).special_tokens == {"<|e|>": 0}


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


@pytest.mark.parametrize(
    ("ties", "pair_counts"), [*((ties, "overlapping") for ties in TIES), ("bytes-min", "disjoint")]
)
@pytest.mark.parametrize("letters", ALPHABETS)
def test_a_long_pretoken_takes_linear_work(ties: str, pair_counts: str, letters: bytes) -> None:
    settings: dict[str, Any] = {"ties": ties, "pair_counts": pair_counts}
    word = letters_of(letters, 1_000_000 if LONG else 20_000 if INSTRUMENTED else 200_000)
    tokenizer = trained({word: 1}, merges=744, **settings)
    tokens = tokenizer.encode(word)
    assert len(tokens) == training_of(tokenizer).tokens
    assert tokenizer.decode_bytes(tokens) == word
    if INSTRUMENTED:
        assert_linear(
            lambda size: trained({letters_of(letters, size): 1}, merges=244, **settings), 50_000
        )
