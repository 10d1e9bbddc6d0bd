"""Training that begins with a tokenizer keeps its ids and merges, and learns as the textbook."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bpe
from bpe import CharacterLevel, PretokenCounts, Pretokenizer, Tokenizer, train
from bpe.errors import TokenizerError, TrainingError
from bpe.pair_counts import PAIR_COUNTS
from bpe.reference import encode as reference_encode
from bpe.reference import train as reference
from bpe.ties import TIES
from tests.bpe.oracle import in_order, known, learnt, training_of
from tests.examples import examples

if TYPE_CHECKING:
    from pathlib import Path


def words_of(letters: str, *, least: int = 1) -> st.SearchStrategy[dict[str, int]]:
    """Few letters and small counts, so that ties, overlaps and repeated strings abound."""
    word = st.lists(st.sampled_from(letters), min_size=1, max_size=16).map("".join)
    return st.dictionaries(word, st.integers(1, 6), min_size=least, max_size=10)


RULES = [ties for ties in TIES if ties != "huggingface"]
WORDS = st.one_of(words_of("a"), words_of("ab"), words_of("abc"), words_of("aé"))


@st.composite
def tokenizers(draw: st.DrawFn) -> Tokenizer:
    """With special tokens before, among or after the others, gaps, and words looked up or not."""
    counts = PretokenCounts.from_items(draw(WORDS))
    trained = train(counts, max_merges=draw(st.integers(0, 6)))
    order: list[bytes | None] = list(trained.tokens)
    for added in draw(st.lists(st.sampled_from([b"<s>", b"<pad>", None]), max_size=3, unique=True)):
        order.insert(draw(st.integers(0, len(order))), added)
    if order[-1] is None:
        order[-1:] = [None, b"<end>"]
    looked_up = draw(st.booleans())
    if looked_up and b"ba" not in order:
        order.append(b"ba")  # a token that no merge makes
    ids = {token: id_ for id_, token in enumerate(order)}
    return Tokenizer(
        tokens=order,
        merges=[
            (ids[trained.token_bytes(a)], ids[trained.token_bytes(b)], ids[trained.token_bytes(c)])
            for a, b, c in trained.merges
        ],
        pretokenizer=trained.pretokenizer,
        special_tokens={
            token.decode(): ids[token] for token in (b"<s>", b"<pad>", b"<end>") if token in ids
        },
        ignore_merges=looked_up,
    )


def pairs(tokenizer: Tokenizer) -> list[tuple[bytes, bytes]]:
    return [
        (tokenizer.token_bytes(left), tokenizer.token_bytes(right))
        for left, right, _ in tokenizer.merges
    ]


def learn(tokenizer: Tokenizer, counts: PretokenCounts, **limits: Any) -> reference.Learnt:
    """The training of the readable twin."""
    items = in_order(counts)
    whole = [item for item in items if counts.pretokenizer.is_never_split(item[0])]
    return reference.train(
        [(tokenizer.model.symbols(word), n) for word, n in items if (word, n) not in whole],
        alphabet=[token for token in tokenizer.tokens if token is not None],
        forbidden=tuple(token.encode() for token in tokenizer.special_tokens),
        whole=reference.sort_whole(whole, limits["ties"]),
        known=pairs(tokenizer),
        look_up=tokenizer.ignore_merges,
        **limits,
    )


def learnt_from(old: Tokenizer, new: Tokenizer) -> reference.Learnt:
    """The merges of an extended tokenizer, as `learn` gives them."""
    found = learnt(new)
    return found._replace(tokens=[token for token in new.tokens if token is not None])


@pytest.mark.parametrize("ties", RULES)
@given(
    old=tokenizers(),
    words=WORDS,
    merges=st.integers(0, 16),
    least=st.integers(1, 3),
    pair_counts=st.sampled_from(PAIR_COUNTS),
)
@examples(100)
def test_the_learner_goes_on_where_the_tokenizer_ends(
    ties: str, old: Tokenizer, words: dict[str, int], merges: int, least: int, pair_counts: str
) -> None:
    counts = PretokenCounts.from_items(words, track_order=True)
    settings: dict[str, Any] = {
        "vocab_size": len(old) + merges,
        "ties": ties,
        "min_frequency": least,
        "pair_counts": pair_counts,
    }
    new = train(counts, extend=old, **settings)
    assert learnt_from(old, new) == learn(old, counts, **settings)
    assert new.tokens[: len(old.tokens)] == old.tokens
    assert new.merges[: len(old.merges)] == old.merges
    assert dict(new.special_tokens) == dict(old.special_tokens)
    assert new.ignore_merges == old.ignore_merges
    assert None not in new.tokens[len(old.tokens) :]


@given(old=tokenizers(), words=WORDS, merges=st.integers(0, 16))
def test_encoding_ends_where_training_does(
    old: Tokenizer, words: dict[str, int], merges: int
) -> None:
    """Ids are those of all merges, the old ones first; and of old text without new merges, the old.

    The tokens left after the last merge are the tokens of the words.
    """
    new = train(PretokenCounts.from_items(words), extend=old, max_merges=merges)
    assert training_of(new).initial_tokens == sum(len(old.encode(w)) * n for w, n in words.items())
    assert training_of(new).tokens == sum(len(new.encode(w)) * n for w, n in words.items())
    ranks: dict[tuple[bytes, bytes], int] = {}
    for pair in pairs(new):
        ranks.setdefault(pair, len(ranks))
    ids = {token: id_ for id_, token in enumerate(new.tokens) if token is not None}
    for word in [*words, "abcab", "bacé"]:
        assert new.encode(word) == reference_encode.encode(
            new.pretokenizer.split(word), ids=ids, ranks=ranks, ignore_merges=old.ignore_merges
        )
    untouched = train(PretokenCounts.from_items({"x": 1}), extend=old, max_merges=merges)
    assert untouched == old


@given(old=tokenizers(), words=WORDS, below=st.integers(2, 4), merges=st.integers(0, 8))
def test_what_pruning_could_have_changed(
    old: Tokenizer, words: dict[str, int], below: int, merges: int
) -> None:
    counts = PretokenCounts.from_items(words | {"c": below}, track_order=True)
    new = train(counts, extend=old, max_merges=merges, prune_below=below)
    kept = counts.pruned(below)
    limits: dict[str, Any] = {"ties": "bytes-min", "max_merges": merges}
    assert learnt_from(old, new) == learn(old, kept, pruned=known(kept.prune).max_pair, **limits)


@given(words=words_of("ab@"), merges=st.integers(0, 8))
def test_words_that_are_never_split_compete_with_merges(words: dict[str, int], merges: int) -> None:
    cut = Pretokenizer("words", never_split=("@.*|^ab$",))
    base = PretokenCounts.from_items({"ab": 2, "ba": 3, "@b": 4}, pretokenizer=cut)
    old = train(base, vocab_size=258)
    counts = PretokenCounts.from_items(words | {"b": 1}, pretokenizer=cut, track_order=True)
    new = train(counts, extend=old, vocab_size=258 + merges)
    limits: dict[str, Any] = {"ties": "bytes-min", "vocab_size": 258 + merges}
    assert learnt_from(old, new) == learn(old, counts, **limits)


@given(old=tokenizers(), words=WORDS, merges=st.integers(1, 8), size=st.integers(0, 8))
def test_a_smaller_one_is_in_it(
    old: Tokenizer, words: dict[str, int], merges: int, size: int
) -> None:
    counts = PretokenCounts.from_items(words)
    new = train(counts, extend=old, max_merges=merges)
    smaller = min(len(old) + size, len(new))
    truncated = new.truncated(smaller)
    if smaller < len(new):
        trained = train(counts, extend=old, vocab_size=smaller)
        assert truncated == trained
        assert training_of(truncated).merges == training_of(trained).merges
    with pytest.raises(TokenizerError, match="is not between"):
        new.truncated(len(old) - 1)


def test_files_keep_it(tmp_path: Path) -> None:
    counts = bpe.count_pretokens(["low lower lowest new newer"] * 3, special_tokens=["<s>"])
    old = train(counts, vocab_size=262)
    old.save(tmp_path / "old.json")
    more = bpe.count_pretokens(["die neue niedrige Niederung"] * 2)
    new = train(more, extend=Tokenizer.load(tmp_path / "old.json"), vocab_size=270)
    extends = known(training_of(new).extends)
    assert (extends.sha256, extends.vocab_size, extends.merges) == (old.sha256, 262, 5)
    new.save(tmp_path / "new.json")
    training_of(new).save(tmp_path / "training.json")
    assert Tokenizer.load(tmp_path / "new.json") == new
    assert bpe.Training.load(tmp_path / "training.json") == training_of(new)


def test_hugging_face_reads_it_where_special_tokens_stand_among_the_others(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    text = "low lower lowest, new newer newest; die neue niedrige Niederung"
    first = train(bpe.count_pretokens([text[:30]] * 2), vocab_size=262)
    old = Tokenizer(
        tokens=[*first.tokens, b"<|end|>"],
        merges=first.merges,
        pretokenizer=first.pretokenizer,
        special_tokens={"<|end|>": 262},
    )
    new = train(bpe.count_pretokens([text]), extend=old, vocab_size=280)
    new.save(tmp_path / "tokenizer.json")
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert theirs.encode(text, add_special_tokens=False).ids == new.encode(text)
    assert theirs.encode("<|end|>").ids == [262]
    assert max(new.encode(text)) > 262


OLD = train(bpe.count_pretokens(["low lower lowest"], special_tokens=["<s>"]), vocab_size=260)
COUNTS = bpe.count_pretokens(["new newer"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"vocab_size": 259}, "`vocab_size` 259 is smaller than the tokenizer to extend.* 260"),
        ({"ties": "huggingface"}, "ties 'huggingface' cannot extend"),
        ({"model": CharacterLevel()}, "to extend is ByteLevel, the model asked for is Character"),
        ({"special_tokens": ["<pad>"]}, r"has '<pad>', which .* lacks \(it has '<s>'\)"),
        ({"initial_alphabet": "x"}, "initial_alphabet"),
        ({"extend": "tokenizer.json"}, "`extend` is str, not a tokenizer: load it"),
        (
            {"extend": train(COUNTS, vocab_size=300, model=CharacterLevel())},
            "CharacterLevel cannot be extended, only byte-level BPE: characters of the new corpus",
        ),
        (
            {"extend": train(COUNTS, vocab_size=300, model=bpe.WordPiece())},
            "WordPiece cannot be extended, only byte-level BPE: .* does not record its merges",
        ),
    ],
)
def test_settings_that_contradict_the_tokenizer(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        train(COUNTS, **{"extend": OLD, "max_merges": 3, **arguments})


def test_counts_that_were_cut_otherwise() -> None:
    for counts, message in (
        (bpe.count_pretokens(["x"], pretokenizer="cl100k"), "split with cl100k, but .* with gpt2"),
        (bpe.count_pretokens(["x"], special_tokens=["<e>"]), "at the special token '<e>', which"),
    ):
        with pytest.raises(TrainingError, match=message):
            train(counts, extend=OLD, max_merges=3)
