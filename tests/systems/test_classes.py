"""The classes of the presets: the values of their descriptions, and what else these ask for."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import pytest

from bpe import BpeError, presets
from bpe.errors import TrainingError
from bpe.presets import Preset
from examples.presets import (
    ByteLevelTokenizer,
    InterviewTokenizer,
    NotebookTokenizer,
    PresetTokenizer,
    WordsTokenizer,
    WordTutorialTokenizer,
)
from tests.systems import values
from tests.systems.values import SYSTEMS, System, pieces

if TYPE_CHECKING:
    from pathlib import Path


def trained(system: System) -> PresetTokenizer:
    """The description's class, trained on its example."""
    limit = system.options.get("max_merges")
    if system.preset == "word-tutorial":
        return WordTutorialTokenizer().train(system.texts, max_merges=limit)
    if system.preset == "byte-level":
        return ByteLevelTokenizer().train(system.texts, **system.options)
    if system.preset == "notebook":
        return NotebookTokenizer().train(system.texts, limit)
    if system.preset == "words":
        return WordsTokenizer().train(system.texts)
    return InterviewTokenizer().train(system.texts, limit)


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_values_of_the_description(name: str) -> None:
    system = SYSTEMS[name]
    tokenizer = trained(system)
    assert [tuple(merge) for merge in tokenizer.merges] == system.merges
    for text in system.splits:
        assert tokenizer.split(text) == pieces(system, text)
        assert tokenizer.splits.get(text, pieces(system, text)) == pieces(system, text)
    size = system.size or len(tokenizer)
    assert tokenizer.get_vocab_size() == size
    assert sorted(tokenizer.vocabulary.values()) == list(range(size))
    for text, ids in system.ids.items():
        assert tokenizer.tokenizer.encode(text) == ids
    found = tokenizer.pair_counts()
    assert system.pairs.items() <= found.items()
    assert [n for _, n in found.most_common(len(system.pairs))] == list(system.pairs.values())
    by_preset = Preset.load(system.preset).train(system.texts, **system.options)
    assert (by_preset, by_preset.training) == (tokenizer.tokenizer, tokenizer.training)


# A


def tutorial() -> WordTutorialTokenizer:
    return WordTutorialTokenizer().train(values.FREQUENCIES, max_merges=10)


def test_special_tokens_come_first_then_sorted_characters_then_merges() -> None:
    tokenizer = tutorial()
    ids = [tokenizer.pad_token_id, tokenizer.unk_token_id]
    ids += [tokenizer.bos_token_id, tokenizer.eos_token_id]
    assert ids == [0, 1, 2, 3]
    tokens = list(tokenizer.vocabulary)
    assert tokens[:4] == ["<pad>", "<unk>", "<bos>", "<eos>"]
    assert tokens[4:15] == ["</w>", *"deilnorstw"]
    assert tokens[15:] == [left + right for left, right, _ in values.TUTORIAL.merges]


def test_rare_words_and_case() -> None:
    texts = ["Low low LOW once"]
    assert WordTutorialTokenizer().train(texts, 20).word_counts == {"low": 3}
    everything = WordTutorialTokenizer().train(texts, 20, min_freq=1)
    assert everything.word_counts == {"low": 3, "once": 1}
    kept = WordTutorialTokenizer(case_sensitive=True).train(texts, 30, min_freq=1)
    assert list(kept.word_counts) == ["Low", "low", "LOW", "once"]
    assert kept.tokenize("Low") != kept.tokenize("low")
    assert kept.case_sensitive
    assert "case kept" in repr(kept)


def test_encoding_and_decoding() -> None:
    tokenizer = tutorial()
    ids = tokenizer.encode("New  LOWEST\nquiz", add_special_tokens=True)
    assert ids[0] == tokenizer.bos_token_id
    assert ids[-1] == tokenizer.eos_token_id
    assert ids.count(tokenizer.unk_token_id) == 3
    assert tokenizer.decode(tokenizer.encode("New  LOWEST")) == "new lowest"
    assert tokenizer.decode(tokenizer.encode("low new", True)) == "low new"
    shown = tokenizer.decode(tokenizer.encode("low", add_special_tokens=True), skip_special=False)
    assert shown.startswith("<bos>")
    assert tokenizer.encode("") == []
    assert tokenizer.tokenize("quiz") == ["<unk>", "<unk>", "i", "<unk>", "</w>"]


def test_dropout_is_seeded_and_off_by_default() -> None:
    tokenizer = tutorial()
    seeds = [tuple(tokenizer.encode("newest lowest", dropout=0.5, seed=i)) for i in range(20)]
    assert len(set(seeds)) > 1
    assert seeds[3] == tuple(tokenizer.encode("newest lowest", dropout=0.5, seed=3))
    assert len(tokenizer.encode("newest", dropout=1.0)) == len("newest") + 1


def test_verbose_prints_every_merge(capsys: pytest.CaptureFixture[str]) -> None:
    lines: list[str] = []
    for verbose in (False, lines.append, True):
        assert capsys.readouterr().out == ""
        WordTutorialTokenizer().train(values.FREQUENCIES, max_merges=2, verbose=verbose)
    assert capsys.readouterr().out.splitlines() == lines
    assert lines == [
        "merge 1: n + e = ne (10 times)",
        "merge 2: ne + w = new (10 times)",
        "17 tokens: merge limit",
    ]


@pytest.mark.parametrize(
    "untrained",
    [WordTutorialTokenizer(), WordTutorialTokenizer(case_sensitive=True), InterviewTokenizer()],
)
def test_one_json_file_holds_it(
    untrained: WordTutorialTokenizer | InterviewTokenizer, tmp_path: Path
) -> None:
    tokenizer = untrained.train(values.INTERVIEW_TEXTS, vocab_size=30)
    assert len(tokenizer) == 30
    tokenizer.save(tmp_path / "t.json")
    assert [path.name for path in tmp_path.iterdir()] == ["t.json"]
    loaded = type(untrained).load(tmp_path / "t.json")
    assert type(loaded) is type(untrained)
    assert loaded.tokenizer == tokenizer.tokenizer
    text = "the Newest 日本"
    assert loaded.encode(text, add_special_tokens=True) == tokenizer.encode(
        text, add_special_tokens=True
    )
    assert repr(loaded) == repr(tokenizer)
    with pytest.raises(BpeError, match="loaded"):
        _ = loaded.word_counts


def test_before_training_it_says_what_to_do() -> None:
    tokenizer = WordTutorialTokenizer()
    assert len(tokenizer) == 0
    assert repr(tokenizer) == "<WordTutorialTokenizer, not trained, lower case>"
    with pytest.raises(BpeError, match="this WordTutorialTokenizer is not trained: call train"):
        tokenizer.encode("low")
    with pytest.raises(TrainingError, match="no limit: give `vocab_size`, `max_merges`"):
        tokenizer.train(["low"])
    with pytest.raises(BpeError):
        _ = tokenizer.splits


# B


def test_the_first_vocabulary_of_the_notebook() -> None:
    notebook = NotebookTokenizer().train(values.NOTEBOOK.texts, num_merges=0)
    characters = set("".join(values.NOTEBOOK.texts))
    assert len(characters) == 19
    assert set(notebook.vocabulary) == {*characters, "</w>"}
    assert len(notebook) == 20


# C


def test_texts_are_whole_unless_they_are_cut() -> None:
    assert ByteLevelTokenizer().train(["a b"], 300).word_counts == {"a b": 1}
    cut = ByteLevelTokenizer(pretokenizer="gpt2").train(["a b"], 300)
    assert cut.word_counts == {"a": 1, " b": 1}


def test_special_tokens_are_atomic() -> None:
    texts = ["<s>ab<s>ab", "ab<e>"]
    tokenizer = ByteLevelTokenizer().train(texts, 300, special_tokens=["<s>", "<e>"])
    assert [(left + right, n) for left, right, n in tokenizer.merges] == [("ab", 3)]
    assert tokenizer.encode("<s>ab<e>") == [0, 258, 1]
    assert tokenizer.decode([0, 258, 1]) == "<s>ab<e>"


BYTES = ByteLevelTokenizer().train(values.EATS.texts, 262, special_tokens=["<|end|>"])


def test_the_pair_of_files(tmp_path: Path) -> None:
    BYTES.save(tmp_path / "pair")
    assert {path.name for path in (tmp_path / "pair").iterdir()} == {"merges.txt", "vocab.json"}
    assert ByteLevelTokenizer.load(tmp_path / "pair").tokenizer == BYTES.tokenizer


# D and E


def test_output_without_marks() -> None:
    tokenizer = InterviewTokenizer().train(values.INTERVIEW_TEXTS, 20)
    assert tokenizer.split("lower unknown", clean=True) == ["lo", "wer", *"unknown"]
    assert tokenizer.tokenize("lower zoo", clean=True) == ["lo", "wer", "[UNK]", "o", "o"]
    assert tokenizer.tokenize("[UNK]", clean=True) == ["[UNK]"] * 5
    assert tokenizer.encode("zoo") == [1, *tokenizer.encode("oo")]


def test_marks_in_the_text_itself_stay() -> None:
    words = WordsTokenizer().train(["a</w> b"], max_merges=0)
    assert "".join(words.split("a</w> b", clean=True)) == "a</w>b"


# All of them


def test_names_and_unknown_names() -> None:
    assert presets.names() == ("byte-level", "interview", "notebook", "word-tutorial", "words")
    with pytest.raises(TrainingError, match=r"unknown preset 'word': .*did you mean words\?"):
        Preset.load("word")


def test_presets_are_values() -> None:
    for name in presets.names():
        assert pickle.loads(pickle.dumps(Preset.load(name))) == Preset.load(name)  # noqa: S301
