"""Training of BPE as SentencePiece has it, in both libraries.

Beside the readable twin: ``check_train`` of ``fuzz_targets.py``.
"""

from __future__ import annotations

import functools
import tempfile
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given

import bpe
from bpe.errors import TokenizerError, TrainingError
from bpe.models import SENTENCEPIECE_BPE
from tests.bpe.huggingface import ids_of, marked_texts, written
from tests.bpe.models import CUT_AT_MARKS, of_sources, trained_as_sentencepiece
from tests.bpe.oracle import training_of
from tests.examples import examples

if TYPE_CHECKING:
    import tokenizers

sentencepiece = pytest.importorskip("sentencepiece", reason="no sentencepiece here")

MARK = "▁"
SPECIAL = ("<unk>", "<s>", "</s>")


@functools.cache
def in_both() -> tuple[tokenizers.Tokenizer, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "tokenizer.model")
        of_sources().save(path)
        theirs = sentencepiece.SentencePieceProcessor(model_file=str(path))
    return written(of_sources()), theirs


@given(text=marked_texts())
@examples(200)
def test_ids_are_equal_in_both_libraries(text: str) -> None:
    hugging_face, theirs = in_both()
    ids = of_sources().encode(text)
    assert theirs.encode(text) == ids
    assert theirs.decode(ids) == of_sources().decode(ids) == text.replace(MARK, " ")
    if not any(special in text for special in SPECIAL):
        assert ids_of(hugging_face, text) == ids


def test_its_coverage_is_saved(tmp_path: Path) -> None:
    training = training_of(of_sources())
    assert training.character_coverage == "1999/2000"
    training.save(tmp_path / "training.json")
    assert bpe.Training.load(tmp_path / "training.json") == training


@pytest.mark.parametrize("end_of_word", ["", "</w>"])
def test_a_smaller_vocabulary_is_as_if_trained(end_of_word: str) -> None:
    """Also with a word of one character that is never split, a token but not of the alphabet."""
    words, cut = {"z": 5, "abab": 3, "日本": 2}, bpe.Pretokenizer("words", never_split=("z",))
    counts = bpe.PretokenCounts.from_items(words, pretokenizer=cut)
    train = functools.partial(bpe.train, counts, max_merges=3)
    model = replace(SENTENCEPIECE_BPE, end_of_word=end_of_word)
    whole = train(model=model)
    for size in range(training_of(whole).initial_vocab, len(whole) + 1):
        trained_so = train(model=model, vocab_size=size)
        assert whole.truncated(size) == trained_so
        assert training_of(whole.truncated(size)).merges == training_of(trained_so).merges


def test_a_token_of_a_byte_is_never_merged() -> None:
    ours = trained_as_sentencepiece(["<0x0A> " * 50], vocab_size=400)
    assert training_of(ours).stopped == "no pair left"
    assert ours.token_id("<0x0A>") not in {result for _, _, result in ours.merges}
    assert ours.token_id("<0x0A>") not in ours.encode("<0x0A>x<0x0A>")
    assert ours.decode(ours.encode("<0x0A>\n")) == "<0x0A>\n"


def test_a_coverage_is_a_fraction_and_the_mark_always_a_character() -> None:
    texts = ["a" * 9_994, "b" * 5, "c"]  # with a mark before each: 10,003 characters
    shares = {0.9995: "1999/2000", Fraction(9_994, 10_003): "9994/10003", "1": "1"}
    for share, text in shares.items():
        ours = trained_as_sentencepiece(texts, max_merges=0, character_coverage=share)
        assert training_of(ours).character_coverage == text
        assert ours.decode(ours.encode("abc")) == "abc"
        assert ours.tokens[-1] == MARK.encode()


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"character_coverage": 0}, "0 is not a share above 0"),
        ({"character_coverage": float("nan")}, "nan is not a share"),
        ({"character_coverage": []}, r"\[\] is not a share"),
        ({"character_coverage": 0.5, "model": bpe.WordPiece()}, "for models of characters, not"),
        ({"character_coverage": 0.5, "model": bpe.CharacterLevel()}, "neither byte_fallback nor"),
        ({"special_tokens": ["<0x0A>"]}, "'<0x0A>' is a symbol that words consist of"),
    ],
)
def test_what_is_refused(arguments: dict[str, Any], named: str) -> None:
    with pytest.raises(TrainingError, match=named):
        trained_as_sentencepiece(["a b"], **{"max_merges": 1} | arguments)


def test_files_that_sentencepiece_cannot_hold(tmp_path: Path) -> None:
    path = tmp_path / "x.model"
    state = of_sources().parts.__getstate__()

    def refused(named: str, **changes: Any) -> None:
        with pytest.raises(TokenizerError, match=named):
            bpe.Tokenizer(**state | changes).save(path)
        assert not path.exists()

    refused("here it is pattern", pretokenizer=replace(CUT_AT_MARKS, pattern=r"\d"))
    refused("has the normalizer nfc", pretokenizer=replace(CUT_AT_MARKS, normalizer=("nfc",)))
    refused("cannot hold these merges", merges=of_sources().merges[::-1])
    refused("cannot hold these merges", merges=of_sources().merges[:-1])
    refused(
        "fuses unknown", model=replace(SENTENCEPIECE_BPE, byte_fallback=False, fuse_unknown=False)
    )
