"""Training through a pipeline: the same tokenizer as in memory, also where one is extended."""

from __future__ import annotations

import shutil
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest

import bpe
from bpe.counts import PretokenCounts, combine
from bpe.roles import Roles
from pipelines.errors import ConfigError, InputError, JobError, OutputError
from pipelines.progress import SlotWriter
from pipelines.settings import CountsInput, PretokenSettings, TrainSettings
from pipelines.tokenizer_files import load_tokenizer, write_tokenizer
from tests.pipelines.corpora import Corpus, count, train, tree, write_jsonl

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.summaries import TrainSummary


@pytest.mark.parametrize(
    "model", [bpe.ByteLevel(), bpe.CharacterLevel(unknown="<unk>"), bpe.WordPiece(prefix="@@")]
)
def test_who_loads_what_was_written_gets_what_the_file_holds(
    tmp_path: Path, model: bpe.models.Model
) -> None:
    counts = bpe.count_pretokens(["the cat sat on the mat"], special_tokens=("<|e|>",))
    trained = bpe.train(counts, max_merges=9, model=model)
    trained = trained.with_roles(Roles(eos="<|e|>", add_eos=True))
    path = str(tmp_path / "tokenizer.json")
    write_tokenizer(path, trained)
    loaded = load_tokenizer(path)
    assert loaded == bpe.Tokenizer.load(path)
    assert loaded.training is None
    bpe.train(counts, max_merges=8, model=model).save(path, dialect="beam-bpe")
    assert load_tokenizer(path) == bpe.Tokenizer.load(path)


O200K = PretokenSettings(pretokenizer="o200k", special_tokens=("<|end|>",))
WORDS = PretokenSettings(pretokenizer="words", special_tokens=("<unk>",))


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a tokenizer that was trained on something else."""
    texts = ["low lower lowest newest", "die neue Niederung"] * 3
    counts = bpe.count_pretokens(texts, pretokenizer="o200k", special_tokens=["<|end|>"])
    path = tmp_path_factory.mktemp("base") / "tokenizer.json"
    bpe.train(counts, vocab_size=280).save(path)
    return path


CHARACTERS = bpe.CharacterLevel(unknown="<unk>")


@pytest.mark.parametrize(
    ("pretokens", "options"),
    [
        (O200K, {"vocab_size": 300, "ties": "first-seen", "prune_below": 60}),
        (
            WORDS,
            {"max_merges": 60, "model": CHARACTERS, "initial_alphabet": ("ж",), "prune_below": 2},
        ),
        (WORDS, {"vocab_size": 200, "model": bpe.WordPiece(), "min_frequency": 2}),
        (None, {"vocab_size": 330, "ties": "id-min", "extend": "base"}),
    ],
    ids=["pruned", "characters", "word pieces", "a tokenizer extended"],
)
def test_the_tokenizer_is_the_one_trained_in_memory(
    corpus: Corpus,
    base: Path,
    tmp_path: Path,
    pretokens: PretokenSettings | None,
    options: dict[str, Any],
) -> None:
    """The pre-tokenizer and the special tokens come from the file that is extended."""
    asked, given = dict(options), dict(options)
    if "extend" in options:
        asked["extend"], given["extend"] = str(base), bpe.Tokenizer.load(base)
    training = TrainSettings(**asked)
    summary = train(
        tmp_path / "model", inputs=corpus.inputs(), training=training, pretokens=pretokens
    )
    cut = pretokens or O200K
    special: dict[str, Any] = {"special_tokens": cut.special_tokens, "track_order": True}
    counts = bpe.count_pretokens(corpus.texts, pretokenizer=cut.cut, **special)
    expected = bpe.train(counts, **given)
    report = expected.training
    assert report is not None
    made = tree(tmp_path / "model")
    assert made["tokenizer.json"].decode() == expected.to_json(dialect="beam-bpe")
    assert made["training.json"].decode() == report.to_json()
    assert summary.sha256 == expected.sha256
    assert (summary.vocab_size, summary.merges) == (len(expected), len(report.merges))
    assert (summary.tokens, summary.initial_tokens) == (report.tokens, report.initial_tokens)
    assert summary.documents == len(corpus.documents)
    assert summary.bytes_per_token == report.bytes_per_token


def train_on(output: Path, *counts: Path | str, **asked: Any) -> TrainSummary:
    """Train on counts, which may have a weight or a share behind a colon."""
    return train(output, counts=tuple(CountsInput.parse(str(one)) for one in counts), **asked)


SHARED_TEXTS = {"c1": "low low lower lowest", "c2": "newest " * 700, "c3": "wide ok"}


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that nobody changes: the counts of each of the texts, and others."""
    path = tmp_path_factory.mktemp("sources")
    for name, text in SHARED_TEXTS.items():
        bpe.count_pretokens([text]).save(path / name)
    bpe.count_pretokens(["low"], pretokenizer="words").save(path / "words")
    return path


def test_shares_of_counts_become_weights(sources: Path, tmp_path: Path) -> None:
    counted = (f"{sources}/{one}" for one in ("c1:33.4%", "c2:33.3%", "c3:33.3%"))
    summary = train_on(tmp_path / "model", *counted, training=TrainSettings(vocab_size=262))
    assert summary.documents == 3
    training = bpe.Training.load(tmp_path / "model" / "training.json")
    shares = [source.bytes_share for source in training.mix]
    assert shares == pytest.approx([0.334, 0.333, 0.333], rel=1e-4)
    assert {source.tokens_share for source in training.mix} == {None}
    weights = [Fraction(source.weight) for source in training.mix]
    assert min(weights) == 1
    assert all((10_000 * weight).denominator == 1 for weight in weights)
    counts = combine(
        (PretokenCounts.load(sources / f"c{i + 1}"), weight) for i, weight in enumerate(weights)
    )
    expected = bpe.train(counts, vocab_size=262)
    assert (tmp_path / "model" / "tokenizer.json").read_text() == expected.to_json()


TOKENS = {"share_of": "tokens", "share_tokenizer": "none.json"}


@pytest.fixture(scope="module")
def trained(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a training on the corpus, which nobody may change."""
    path = tmp_path_factory.mktemp("trained") / "model"
    train(path, inputs=corpus.inputs())
    return path


@pytest.fixture
def copied(trained: Path, tmp_path: Path) -> Path:
    """A copy of it, which a test may change."""
    return shutil.copytree(trained, tmp_path / "model")


@pytest.mark.parametrize(
    ("asked", "of", "reason"),
    [
        ("c1:60% c2:30%", {}, "add up to 90%, not to 100%"),
        ("c1:60% c2:2", {}, "c2 has no share, others have one"),
        ("c1:160% c2:40%", {}, "add up to 200%, not to 100%"),
        ("c1:0% c2:100%", {}, "c1: 0 is not above 0"),
        ("c1:50% c2:50%", TOKENS, "cannot read the tokenizer"),
        ("c1", TOKENS, "`share_tokenizer` goes with shares"),
        ("c1:2 words", {}, "different pretokenizer .*/c1 has 'gpt2', .*/words has 'words'"),
    ],
)
def test_counts_that_do_not_fit_are_refused(
    sources: Path, tmp_path: Path, asked: str, of: dict[str, Any], reason: str
) -> None:
    with pytest.raises((ConfigError, InputError), match=reason):
        train_on(tmp_path / "model", *(f"{sources}/{one}" for one in asked.split()), **of)
    assert not (tmp_path / "model").exists()


def test_counts_may_lie_in_the_output_directory(corpus: Corpus, tmp_path: Path) -> None:
    count(corpus.inputs(), tmp_path / "model" / "counts")
    train_on(tmp_path / "model", tmp_path / "model" / "counts")
    before = tree(tmp_path)
    train_on(tmp_path / "model", tmp_path / "model" / "counts", overwrite=True)
    assert tree(tmp_path) == before


def test_counts_of_an_earlier_training_are_not_left_beside_another_tokenizer(
    sources: Path, copied: Path
) -> None:
    train_on(copied, sources / "c1", overwrite=True)
    assert set(tree(copied)) == {".plan.json", "tokenizer.json", "training.json"}


def test_counts_that_are_read_are_never_removed(copied: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(copied / "counts")
    before = tree(tmp_path)
    for source, output in (("model/counts", "model/counts"), ("link", "model"), ("link", "link")):
        with pytest.raises(OutputError, match="read by this job and is in its output directory"):
            train_on(tmp_path / output, tmp_path / source, overwrite=True)
        assert tree(tmp_path) == before


def test_counts_behind_a_link_are_not_removed(corpus: Corpus, tmp_path: Path) -> None:
    count(corpus.inputs(), tmp_path / "mine")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "counts").symlink_to(tmp_path / "mine")
    before = tree(tmp_path / "mine")
    with pytest.raises(OutputError, match="holds 'counts', and no"):
        train_on(tmp_path / "model", tmp_path / "mine", overwrite=True)
    assert tree(tmp_path / "mine") == before


def test_counts_of_a_training_that_failed_are_made_again(corpus: Corpus, copied: Path) -> None:
    before = tree(copied)
    (copied / "tokenizer.json").unlink()
    (copied / "counts" / "data" / "part-00003-of-00016.parquet").write_bytes(b"damaged")
    train(copied, inputs=corpus.inputs())
    assert tree(copied) == before
    (copied / "tokenizer.json").unlink()
    (copied / "counts" / "manifest.json").unlink()  # killed while it counted
    train(copied, inputs=corpus.inputs(), training=TrainSettings(vocab_size=301))


@pytest.mark.parametrize("resume", [False, True])
def test_other_counts_of_a_training_that_failed_are_kept(
    corpus: Corpus, copied: Path, resume: bool
) -> None:
    (copied / "tokenizer.json").unlink()
    (copied / "training.json").unlink()
    before = tree(copied)
    message = r"counts: cannot resume: .* pretokenizer was .*`overwrite`"
    with pytest.raises(OutputError, match=message):
        train(copied, inputs=corpus.inputs(), pretokens=WORDS, resume=resume)
    counts = {name: data for name, data in before.items() if name.startswith("counts/")}
    assert counts.items() <= tree(copied).items()


def test_counts_that_are_not_of_a_training_are_kept(corpus: Corpus, tmp_path: Path) -> None:
    count(corpus.inputs(), tmp_path / "model" / "counts")
    before = tree(tmp_path)
    for _ in range(2):
        with pytest.raises(OutputError, match=r"counts holds .*`overwrite`"):
            train(tmp_path / "model", inputs=corpus.inputs())
        assert tree(tmp_path) == before


def test_counts_that_a_training_reads_are_not_made_again(corpus: Corpus, copied: Path) -> None:
    (copied / "tokenizer.json").unlink()
    with pytest.raises(OutputError, match="bpe count, which is complete: replace it"):
        count(corpus.inputs(), copied / "counts")


def test_progress_hears_of_merges(corpus: Corpus, tmp_path: Path) -> None:
    words = [f"{i * 7919 % 99991:x}" for i in range(400)]
    corpus = write_jsonl(tmp_path / "in" / "docs.jsonl", words)
    with patch.object(SlotWriter, "advance", autospec=True) as advance:
        train(tmp_path / "model", inputs=corpus.inputs(), training=TrainSettings(vocab_size=900))
    merges = [call.args[1:] for call in advance.call_args_list if call.args[2] == 900 - 256]
    assert merges == sorted(merges)
    assert len(merges) > 1


# A tokenizer extended.


def test_counts_that_are_there(corpus: Corpus, base: Path, tmp_path: Path) -> None:
    count(corpus.inputs(), tmp_path / "counts", pretokens=O200K)
    training = TrainSettings(max_merges=20, extend=str(base))
    train_on(tmp_path / "one", tmp_path / "counts", training=training, pretokens=O200K)
    train(tmp_path / "two", inputs=corpus.inputs(), training=training)
    for name in ("tokenizer.json", "training.json"):
        assert tree(tmp_path / "one")[name] == tree(tmp_path / "two")[name]
    bpe.count_pretokens(["low lower"]).save(tmp_path / "others")
    with pytest.raises(JobError, match=r"counts were split with gpt2, but .* splits with o200k"):
        train_on(tmp_path / "three", tmp_path / "others", training=training)
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
        (O200K, {"extend": None, "vocab_size": 256}, ConfigError, "`vocab_size` 256"),
        (PretokenSettings(pretokenizer="cl100k"), {}, ConfigError, "text with o200k, .* cl100k"),
        (PretokenSettings(special_tokens=("<x>",)), {}, ConfigError, r"lacks .* '<x>' \(it has"),
        (None, {"vocab_size": 279}, JobError, "`vocab_size` 279 is smaller than .* 280 tokens"),
        (None, {"extend": "nowhere.json"}, JobError, "nowhere.json: cannot read the tokenizer"),
    ],
)
def test_settings_that_cannot_be_are_refused_before_anything_is_counted(
    corpus: Corpus,
    base: Path,
    tmp_path: Path,
    pretokens: PretokenSettings | None,
    changes: dict[str, Any],
    error: type[JobError],
    message: str,
) -> None:
    training = TrainSettings(**{"vocab_size": 300, "extend": str(base), **changes})
    with pytest.raises(error, match=message):
        train(tmp_path / "m", inputs=corpus.inputs(), training=training, pretokens=pretokens)
    assert not (tmp_path / "m").exists()


def test_the_file_must_not_lie_in_the_output(corpus: Corpus, base: Path) -> None:
    training = TrainSettings(max_merges=3, extend=str(base))
    with pytest.raises(OutputError, match=r"tokenizer\.json"):
        train(base.parent, inputs=corpus.inputs(), training=training, overwrite=True)
