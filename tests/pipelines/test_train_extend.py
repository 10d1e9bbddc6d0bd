"""Training that begins with a tokenizer, as a job: the tokenizer of ``bpe.train(extend=...)``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import apache_beam as beam
import pytest
from apache_beam.testing.util import equal_to

import bpe
from pipelines import CountPretokens, TrainTokenizer
from pipelines.errors import ConfigError, JobError, OutputError
from pipelines.settings import CountsInput, PretokenSettings, TrainSettings
from tests.pipelines.beam_runs import assert_that, pipeline
from tests.pipelines.corpora import ONE, Corpus, count, train, tree
from tests.shared_data import long_but

if TYPE_CHECKING:
    from pathlib import Path

CUT = PretokenSettings(pretokenizer="o200k", special_tokens=("<|end|>",))


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a tokenizer that was trained on something else."""
    texts = ["low lower lowest newest", "die neue Niederung"] * 3
    counts = bpe.count_pretokens(texts, pretokenizer="o200k", special_tokens=["<|end|>"])
    trained = bpe.train(counts, vocab_size=280)
    path = tmp_path_factory.mktemp("base") / "tokenizer.json"
    trained.save(path)
    return path


@pytest.mark.parametrize("ties", long_but(["id-min", "first-seen"], "first-seen"))
def test_the_tokenizer_is_the_one_trained_in_memory(
    corpus: Corpus, base: Path, tmp_path: Path, ties: str
) -> None:
    """The pre-tokenizer and the special tokens come from the file."""
    training = TrainSettings(vocab_size=330, ties=ties, extend=str(base), min_frequency=2)
    summary = train(tmp_path / "model", inputs=corpus.inputs(), training=training)
    counts = bpe.count_pretokens(
        corpus.texts, pretokenizer="o200k", special_tokens=["<|end|>"], track_order=True
    )
    old = bpe.Tokenizer.load(base)
    expected = bpe.train(counts, extend=old, vocab_size=330, ties=ties, min_frequency=2)
    assert (tmp_path / "model" / "tokenizer.json").read_text("utf-8") == expected.to_json()
    assert expected.training is not None
    assert (tmp_path / "model" / "training.json").read_text("utf-8") == expected.training.to_json()
    assert (summary.vocab_size, summary.merges) == (330, 50)
    assert summary.initial_tokens == expected.training.initial_tokens


def test_counts_that_are_there(corpus: Corpus, base: Path, tmp_path: Path) -> None:
    count(corpus.inputs(), tmp_path / "counts", pretokens=CUT)
    source = (CountsInput(directory=str(tmp_path / "counts")),)
    training = TrainSettings(max_merges=20, extend=str(base))
    train(tmp_path / "one", counts=source, training=training, execution=ONE)
    train(tmp_path / "two", inputs=corpus.inputs(), training=training)
    for name in ("tokenizer.json", "training.json"):
        assert tree(tmp_path / "one")[name] == tree(tmp_path / "two")[name]
    bpe.count_pretokens(["low lower"]).save(tmp_path / "others")
    source = (CountsInput(directory=str(tmp_path / "others")),)
    with pytest.raises(JobError, match=r"counts were split with gpt2, but .* splits with o200k"):
        train(tmp_path / "three", counts=source, training=training)
    assert not (tmp_path / "three").exists()


def test_another_tokenizer_is_another_job(corpus: Corpus, base: Path, tmp_path: Path) -> None:
    copy = tmp_path / "base.json"
    copy.write_bytes(base.read_bytes())
    training = TrainSettings(max_merges=20, extend=str(copy))
    train(tmp_path / "model", inputs=corpus.inputs(), training=training)
    files = tree(tmp_path / "model")
    same = replace(training, extend=str(base))
    train(tmp_path / "model", inputs=corpus.inputs(), training=same, resume=True)
    assert tree(tmp_path / "model").keys() == files.keys()
    bpe.Tokenizer.load(base).truncated(270).save(copy)
    with pytest.raises(OutputError, match="extend"):
        train(tmp_path / "model", inputs=corpus.inputs(), training=training, resume=True)


@pytest.mark.parametrize(
    ("pretokens", "changes", "error", "message"),
    [
        (PretokenSettings(pretokenizer="cl100k"), {}, ConfigError, "text with o200k, .* cl100k"),
        (PretokenSettings(special_tokens=("<x>",)), {}, ConfigError, r"lacks .* '<x>' \(it has"),
        (None, {"model": bpe.WordPiece()}, JobError, "ByteLevel, the model asked for is WordP"),
        (None, {"vocab_size": 279}, JobError, "`vocab_size` 279 is smaller than .* 280 tokens"),
        (None, {"ties": "huggingface"}, JobError, "ties 'huggingface' cannot extend"),
        (None, {"extend": "nowhere.json"}, JobError, "nowhere.json: cannot read the tokenizer"),
    ],
)
def test_what_contradicts_the_file_is_refused_before_anything_is_counted(
    corpus: Corpus,
    base: Path,
    tmp_path: Path,
    pretokens: PretokenSettings | None,
    changes: dict[str, object],
    error: type[JobError],
    message: str,
) -> None:
    values: dict[str, object] = {"vocab_size": 300, "extend": str(base), **changes}
    training = TrainSettings(**values)  # type: ignore[arg-type]  # of several types
    with pytest.raises(error, match=message):
        train(tmp_path / "m", inputs=corpus.inputs(), training=training, pretokens=pretokens)
    assert not (tmp_path / "m").exists()


def test_the_file_must_not_lie_in_the_output(corpus: Corpus, base: Path) -> None:
    training = TrainSettings(max_merges=3, extend=str(base))
    with pytest.raises(OutputError, match=r"tokenizer\.json"):
        train(base.parent, inputs=corpus.inputs(), training=training, overwrite=True)


def test_training_on_elements(base: Path) -> None:
    texts = ["die niedrige Niederung", "low new lower"]
    cut: dict[str, Any] = {"pretokenizer": "o200k", "special_tokens": ["<|end|>"]}
    counts = bpe.count_pretokens(texts, pretokenizer="o200k", special_tokens=["<|end|>"])
    expected = bpe.train(counts, extend=bpe.Tokenizer.load(base), max_merges=12)
    with pipeline() as p:
        elements = p | beam.Create(texts) | CountPretokens(**cut)
        trained = elements | TrainTokenizer(max_merges=12, extend=str(base), **cut)
        assert_that(trained, equal_to([expected]))
