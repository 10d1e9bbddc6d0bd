"""The merges, counts, vocabularies and ids of five published descriptions of BPE.

Where a description's own output disagrees with its algorithm, the algorithm wins (see
docs/systems.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import bpe
from bpe import CharacterLevel, PretokenCounts, Tokenizer, WordPiece, train
from bpe.pair_counts import count_pairs

if TYPE_CHECKING:
    from bpe.reference.train import Words

SPECIALS_A = ("<pad>", "<unk>", "<bos>", "<eos>")
SPECIALS_E = ("[PAD]", "[UNK]", "[BOS]", "[EOS]")
TUTORIAL = {"low": 5, "lower": 2, "newest": 6, "widest": 3, "new": 4}
NOTEBOOK = (
    "This is the first document.",
    "This document is the second document.",
    "And this is the third one.",
    "Is this the first document?",
)
INTERVIEW = (
    "low lower lowest",
    "new newer newest",
    "old older oldest",
    "low new low new low",
    "the newest lowest old newer",
)


def merges(tokenizer: Tokenizer) -> list[tuple[str, str, int]]:
    """The merges as text, with their counts."""
    assert tokenizer.training is not None
    return [
        (merge.left.decode(), merge.right.decode(), merge.count)
        for merge in tokenizer.training.merges
    ]


def made(tokenizer: Tokenizer) -> list[tuple[str, int]]:
    """The strings that merges make, with their counts."""
    return [(left + right, count) for left, right, count in merges(tokenizer)]


def tutorial(words: dict[str, int], *, max_merges: int) -> Tokenizer:
    """System A: words with frequencies, the first pair seen wins."""
    counts = PretokenCounts.from_items(words, pretokenizer="words", track_order=True)
    return train(
        counts,
        max_merges=max_merges,
        ties="first-seen",
        special_tokens=SPECIALS_A,
        model=CharacterLevel(unknown="<unk>"),
    )


def test_word_tutorial() -> None:
    tokenizer = tutorial(TUTORIAL, max_merges=10)
    assert merges(tokenizer) == [
        ("n", "e", 10),
        ("ne", "w", 10),
        ("e", "s", 9),
        ("es", "t", 9),
        ("est", "</w>", 9),
        ("l", "o", 7),
        ("lo", "w", 7),
        ("new", "est</w>", 6),
        ("low", "</w>", 5),
        ("new", "</w>", 4),
    ]
    assert tokenizer.tokenize("lower") == ["low", "e", "r", "</w>"]
    assert tokenizer.tokenize("lowest") == ["low", "est</w>"]
    assert tokenizer.tokenize("newest") == ["newest</w>"]
    assert tokenizer.tokenize("wide") == ["w", "i", "d", "e", "</w>"]


def test_word_tutorial_ids() -> None:
    """Special tokens, sorted characters with ``</w>``, then merges."""
    tokenizer = tutorial(TUTORIAL, max_merges=2)
    assert [token.decode() for token in tokenizer.tokens if token] == [
        *SPECIALS_A,
        *("</w>", "d", "e", "i", "l", "n", "o", "r", "s", "t", "w"),
        *("ne", "new"),
    ]
    assert tokenizer.encode("x") == [1, 4]


def test_word_tutorial_without_new() -> None:
    words = {word: count for word, count in TUTORIAL.items() if word != "new"}
    tokenizer = tutorial(words, max_merges=10)
    strings = ["es", "est", "est</w>", "lo", "low", "ne", "new", "newest</w>", "low</w>", "wi"]
    assert made(tokenizer) == list(zip(strings, [9, 9, 9, 7, 7, 6, 6, 6, 5, 3], strict=True))


def pair_counts(counts: PretokenCounts) -> dict[str, int]:
    """How often each pair of symbols occurs before the first merge, as the reference counts."""
    words: Words = [(CharacterLevel().symbols(word), count) for word, count in counts.items()]
    return {
        f"{left.decode()} {right.decode()}": count
        for (left, right), count in count_pairs(words).most_common()
    }


def test_word_tutorial_pair_counts() -> None:
    words = {word: count for word, count in TUTORIAL.items() if word != "new"}
    found = pair_counts(PretokenCounts.from_items(words, pretokenizer="words"))
    assert found == {
        **dict.fromkeys(["e s", "s t", "t </w>"], 9),
        "w e": 8,
        **dict.fromkeys(["l o", "o w"], 7),
        **dict.fromkeys(["n e", "e w"], 6),
        "w </w>": 5,
        **dict.fromkeys(["w i", "i d", "d e"], 3),
        **dict.fromkeys(["e r", "r </w>"], 2),
    }


def test_word_tutorial_drops_rare_words() -> None:
    """Words below the minimum frequency are dropped before, their characters too."""
    counts = PretokenCounts.from_items(TUTORIAL | {"zoo": 1}, pretokenizer="words")
    model = CharacterLevel(unknown="<unk>")
    tokenizer = train(counts, max_merges=10, model=model, prune_below=2)
    assert b"z" not in tokenizer.tokens
    assert tokenizer.training is not None
    assert tokenizer.training.pruned is not None
    assert tokenizer.training.pruned["distinct_pretokens"] == 1


def test_a_vocabulary_too_small_for_the_alphabet_trains_no_merge_and_says_so() -> None:
    counts = PretokenCounts.from_items(TUTORIAL, pretokenizer="words")
    tokenizer = train(counts, vocab_size=8, model=CharacterLevel())
    assert tokenizer.training is not None
    assert tokenizer.training.merges == ()
    assert tokenizer.training.stopped == "vocabulary full"
    assert len(tokenizer) == 11


def notebook() -> PretokenCounts:
    """System B's words: cut at single spaces, case kept."""
    return bpe.count_pretokens(NOTEBOOK, pretokenizer="spaces", track_order=True)


def test_notebook_pair_counts() -> None:
    found = pair_counts(notebook())
    assert {pair: count for pair, count in found.items() if count >= 5} == {
        "s </w>": 8,
        "i s": 7,
        "t h": 7,
        "h i": 5,
    }
    assert found["h e"] == 4


def test_notebook() -> None:
    tokenizer = train(
        notebook(), max_merges=15, ties="first-seen", model=CharacterLevel(), initial_alphabet=" "
    )
    assert tokenizer.training is not None
    assert tokenizer.training.initial_vocab == 20
    assert len(tokenizer) == 35
    strings = "s</w> is</w> th the the</w> do doc docu docum docume documen document ir .</w> d</w>"
    counts = [8, 7, 7, 4, 4, 4, 4, 4, 4, 4, 4, 4, 3, 3, 3]
    assert made(tokenizer) == list(zip(strings.split(), counts, strict=True))
    assert tokenizer.tokenize("This document. third second") == [
        *("T", "h", "is</w>"),
        *("document", ".</w>"),
        *("th", "ir", "d</w>"),
        *("s", "e", "c", "o", "n", "d</w>"),
    ]


def bytes_of(texts: dict[str, int], *, max_merges: int | None = None) -> Tokenizer:
    """System C: each text is one sequence of bytes, smallest pairs win."""
    counts = PretokenCounts.from_items(texts, pretokenizer="none")
    return train(counts, max_merges=max_merges, vocab_size=300, special_tokens=("<|e|>",))


def test_byte_level() -> None:
    tokenizer = bytes_of({"I work": 2, "I worked": 1, "he works": 1, "he worked": 1})
    assert tokenizer.token_id(b"<|e|>") == 0
    assert tokenizer.token_id(b"\0") == 1
    assert merges(tokenizer)[:8] == [
        (" ", "w", 5),
        (" w", "o", 5),
        (" wo", "r", 5),
        (" wor", "k", 5),
        ("I", " work", 3),
        ("e", " work", 2),
        ("e", "d", 2),
        ("h", "e work", 2),
    ]
    assert tokenizer.training is not None
    assert tokenizer.training.stopped == "no pair left"


def test_byte_level_splits() -> None:
    tokenizer = bytes_of({"he eats": 2, "I eat": 1, "you eat": 1}, max_merges=4)
    assert made(tokenizer) == [(" e", 4), (" ea", 4), (" eat", 4), (" eats", 2)]

    def split(text: str) -> list[bytes]:
        return [tokenizer.token_bytes(id_) for id_ in tokenizer.encode(text)]

    assert split("he eats") == [b"h", b"e", b" eats"]
    assert split("you eat") == [b"y", b"o", b"u", b" eat"]


def test_words_of_a_command_line() -> None:
    """System D: it stops when the best pair occurs fewer than twice."""
    counts = bpe.count_pretokens(["low lower lowest"], pretokenizer="words", track_order=True)
    tokenizer = train(
        counts, max_merges=200, ties="first-seen", min_frequency=2, model=CharacterLevel()
    )
    assert merges(tokenizer) == [("l", "o", 3), ("lo", "w", 3), ("low", "e", 2)]
    assert tokenizer.training is not None
    assert tokenizer.training.stopped == "no pair left"
    assert [tokenizer.tokenize(word) for word in ("low", "lower", "lowest")] == [
        ["low", "</w>"],
        ["lowe", "r", "</w>"],
        ["lowe", "s", "t", "</w>"],
    ]


def test_merges_of_two_pairs_encode_a_new_word() -> None:
    """System D: l o and lo w alone encode lowly as low l y."""
    counts = PretokenCounts.from_items({"low": 3, "y": 1}, pretokenizer="words")
    tokenizer = train(counts, max_merges=2, model=CharacterLevel(end_of_word=""))
    assert tokenizer.tokenize("lowly") == ["low", "l", "y"]


def interview(*, max_merges: int) -> Tokenizer:
    """System E: the greatest pair wins."""
    return train(
        bpe.count_pretokens(INTERVIEW, pretokenizer="words"),
        max_merges=max_merges,
        ties="bytes-max",
        special_tokens=SPECIALS_E,
        model=CharacterLevel(unknown="[UNK]"),
    )


def test_interview() -> None:
    tokenizer = interview(max_merges=15)
    strings = (
        "we w</w> ne lo t</w> st</w> west</w> r</w> ol old low</w> wer</w> new</w> olde old</w>"
    )
    counts = [7, 7, 7, 7, 5, 5, 4, 4, 4, 4, 4, 3, 3, 2, 2]
    assert made(tokenizer) == list(zip(strings.split(), counts, strict=True))
    splits = {
        "low": "low</w>",
        "lower": "lo wer</w>",
        "lowest": "lo west</w>",
        "newer": "ne wer</w>",
        "oldest": "olde st</w>",
    }
    for word, tokens in splits.items():
        assert tokenizer.tokenize(word) == tokens.split()
    # u n k n o w n </w>, and no word of the corpus has a u or a k.
    assert tokenizer.tokenize("unknown") == ["[UNK]", "n", "[UNK]", "n", "o", "w", "n", "</w>"]


def test_interview_ids() -> None:
    tokenizer = interview(max_merges=20)
    assert [string for string, _ in made(tokenizer)[15:]] == [
        *("newest</w>", "newer</w>", "lowest</w>", "th", "the")
    ]
    assert len(tokenizer) == 35
    assert tokenizer.encode("low newer oldest") == [25, 31, 28, 20]
    assert tokenizer.encode("the lowest new old") == [34, 4, 32, 27, 29]


def test_word_piece_joins_what_is_rare_apart() -> None:
    """The pair of the greatest count(ab) / (count(a) · count(b)), not the most frequent one."""
    words = {"hug": 10, "pug": 5, "pun": 12, "bun": 4, "hugs": 5}
    counts = PretokenCounts.from_items(words, pretokenizer="words", track_order=True)
    tokenizer = train(counts, max_merges=3, ties="first-seen", model=WordPiece())
    # The corpus of huggingface.co/learn/llm-course/chapter6/6, which takes (hu, ##g) at last: it
    # gives that pair a score of 1/15, but 10 / (15 * 15) is less than 5 / (15 * 5).
    assert merges(tokenizer) == [("##g", "##s", 5), ("h", "##u", 15), ("hu", "##gs", 5)]
    assert tokenizer.tokenize("hugs hug pug") == ["hugs", "hu", "##g", "p", "##u", "##g"]


@pytest.mark.parametrize("model", [CharacterLevel(), WordPiece()])
def test_ids_do_not_depend_on_the_order_of_counts(model: bpe.models.Model) -> None:
    words = list(TUTORIAL.items())
    one, other = (
        train(PretokenCounts.from_items(items, pretokenizer="words"), max_merges=20, model=model)
        for items in (words, words[::-1])
    )
    assert one == other
