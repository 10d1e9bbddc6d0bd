"""Training through a pipeline: the same tokenizer as in memory."""

from __future__ import annotations

import contextlib
import json
import shutil
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest

import bpe
from bpe.counts import PretokenCounts, combine
from bpe.roles import Roles
from pipelines.errors import ConfigError, InputError, OutputError
from pipelines.progress import Progress, SlotWriter
from pipelines.progress.steps import StageProgress
from pipelines.settings import (
    SHARES_OF,
    CountsInput,
    OutputSettings,
    PretokenSettings,
    ShareOf,
    TrainSettings,
)
from pipelines.tokenizer_files import load_tokenizer, write_tokenizer
from tests import jobs
from tests.pipelines.corpora import ONE, Corpus, count, train, tree, write_jsonl

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


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


@pytest.mark.parametrize("ties", ["gpt2-max", "first-seen"])
def test_the_tokenizer_is_the_one_trained_in_memory(
    corpus: Corpus, tmp_path: Path, ties: str
) -> None:
    summary = train(
        tmp_path / "model",
        inputs=corpus.inputs(),
        training=TrainSettings(vocab_size=330, ties=ties),
        pretokens=PretokenSettings(special_tokens=("<|end|>",)),
    )
    counts = bpe.count_pretokens(
        corpus.texts, special_tokens=("<|end|>",), track_order=ties == "first-seen"
    )
    expected = bpe.train(counts, vocab_size=330, ties=ties)
    expected.save(tmp_path / "tokenizer.json")
    made = tmp_path / "model" / "tokenizer.json"
    assert made.read_bytes() == (tmp_path / "tokenizer.json").read_bytes()
    training = json.loads((tmp_path / "model" / "training.json").read_bytes())
    assert expected.training is not None
    assert training == json.loads(expected.training.to_json())
    assert summary.vocab_size == len(expected) == 330
    assert summary.merges == len(expected.merges)
    assert summary.tokens == expected.training.tokens
    assert summary.sha256 == expected.sha256
    assert summary.documents == len(corpus.documents)
    assert summary.bytes_per_token == counts.totals.bytes / expected.training.tokens


@pytest.mark.parametrize(
    "training",
    [
        TrainSettings(
            max_merges=60,
            ties="first-seen",
            model=bpe.CharacterLevel(unknown="<unk>"),
            initial_alphabet=("ж",),
            prune_below=2,
        ),
        TrainSettings(vocab_size=200, model=bpe.WordPiece(), min_frequency=2),
    ],
)
def test_models_and_limits(corpus: Corpus, tmp_path: Path, training: TrainSettings) -> None:
    pretokens = PretokenSettings(pretokenizer="words", special_tokens=("<unk>",))
    train(
        tmp_path / "model",
        inputs=corpus.inputs(),
        training=training,
        pretokens=pretokens,
    )
    counts = bpe.count_pretokens(
        corpus.texts, pretokenizer="words", special_tokens=("<unk>",), track_order=True
    )
    assert training.model is not None
    expected = bpe.train(
        counts,
        vocab_size=training.vocab_size,
        max_merges=training.max_merges,
        ties=training.ties,
        min_frequency=training.min_frequency,
        prune_below=training.prune_below,
        model=training.model,
        initial_alphabet=training.initial_alphabet,
    )
    made = (tmp_path / "model" / "tokenizer.json").read_text(encoding="utf-8")
    assert made == expected.to_json(dialect="beam-bpe")
    assert expected.training is not None
    told = (tmp_path / "model" / "training.json").read_text(encoding="utf-8")
    assert told == expected.training.to_json()


SHARED_TEXTS = {"c1": "low low lower lowest", "c2": "newest " * 700, "c3": "wide ok"}


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the counts of each of the texts."""
    path = tmp_path_factory.mktemp("sources")
    for name, text in SHARED_TEXTS.items():
        bpe.count_pretokens([text]).save(path / name)
    return path


@pytest.mark.parametrize("share_of", SHARES_OF)
def test_shares_of_counts_become_weights(sources: Path, tmp_path: Path, share_of: ShareOf) -> None:
    shares_asked = {"c1": "33.4%", "c2": "33.3%", "c3": "33.3%"}
    other = tmp_path / "other.json"
    bpe.train(PretokenCounts.load(sources / "c2"), vocab_size=259).save(other)
    summary = train(
        tmp_path / "model",
        counts=tuple(CountsInput.parse(f"{sources}/{a}:{b}") for a, b in shares_asked.items()),
        training=TrainSettings(vocab_size=262),
        share_of=share_of,
        share_tokenizer=str(other) if share_of == "tokens" else None,
    )
    assert summary.documents == 3
    training = bpe.Training.load(tmp_path / "model" / "training.json")
    shares = [getattr(source, f"{share_of}_share") for source in training.mix]
    if share_of == "tokens":
        tokenizer = bpe.Tokenizer.load(other)
        tokens = [len(tokenizer.encode(text)) for text in SHARED_TEXTS.values()]
        mixed = [n * Fraction(one.weight) for n, one in zip(tokens, training.mix, strict=True)]
        assert shares == [float(one / sum(mixed)) for one in mixed]
    else:
        assert {source.tokens_share for source in training.mix} == {None}
    assert shares == pytest.approx([0.334, 0.333, 0.333], rel=1e-4)
    weights = [Fraction(source.weight) for source in training.mix]
    assert min(weights) == 1
    assert all((10_000 * weight).denominator == 1 for weight in weights)
    counts = combine(
        (PretokenCounts.load(sources / f"c{i + 1}"), weight) for i, weight in enumerate(weights)
    )
    expected = bpe.train(counts, vocab_size=262)
    assert (tmp_path / "model" / "tokenizer.json").read_text() == expected.to_json()


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with counts that nobody changes: c1 and c2 of two words each, and empty ones."""
    path = tmp_path_factory.mktemp("counted")
    for name, text in (("c1", "low lower"), ("c2", "new newer"), ("empty", "")):
        bpe.count_pretokens([text] if text else []).save(path / name)
    return path


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
    ("asked", "reason"),
    [
        (("c1:60%", "c2:30%"), "add up to 90%, not to 100%"),
        (("c1:60%", "c2"), "c2 has no share, others have one"),
        (("c1:60%", "c2:2"), "c2 has no share, others have one"),
        (("c1:60%", "empty:40%"), "empty: no bytes were counted"),
        (("c1:0%", "c2:100%"), "the share 0% is not above 0"),
        (("c1:160%", "c2:1"), "the share 160% is not above 0 and at most 100%"),
    ],
)
def test_shares_that_make_no_mix_are_refused(
    counted: Path, tmp_path: Path, asked: tuple[str, ...], reason: str
) -> None:
    with pytest.raises((ConfigError, InputError), match=reason):
        train(
            tmp_path / "model",
            counts=tuple(CountsInput.parse(f"{counted}/{source}") for source in asked),
        )
    assert not (tmp_path / "model").exists()


def test_shares_of_tokens_need_a_tokenizer_that_splits_alike(counted: Path, tmp_path: Path) -> None:
    words = bpe.count_pretokens(["low"], pretokenizer="words")
    bpe.train(words, vocab_size=257).save(tmp_path / "words.json")
    shares = tuple(CountsInput.parse(f"{counted}/{source}:50%") for source in ("c1", "c2"))
    whole = (CountsInput(directory=str(counted / "c1")),)
    of: ShareOf = "tokens"
    for counts, share_of, tokenizer, reason in (
        (shares, of, None, "give `share_tokenizer` FILE"),
        (shares, of, "words.json", "its tokens cannot be counted there"),
        (shares, of, "none.json", "cannot read the tokenizer"),
        (whole, of, "words.json", "`share_tokenizer` goes with shares"),
        (shares, "bytes", "words.json", "`share_tokenizer` goes with `share_of` tokens"),
    ):
        file = None if tokenizer is None else str(tmp_path / tokenizer)
        with pytest.raises((ConfigError, InputError), match=reason):
            train(tmp_path / "m", counts=counts, share_of=share_of, share_tokenizer=file)
    assert not (tmp_path / "m").exists()


def test_counts_may_lie_in_the_output_directory(corpus: Corpus, tmp_path: Path) -> None:
    count(corpus.inputs(), tmp_path / "model" / "counts")
    source = (CountsInput(directory=str(tmp_path / "model" / "counts")),)
    train(tmp_path / "model", counts=source)
    before = tree(tmp_path)
    train(tmp_path / "model", counts=source, overwrite=True)
    assert tree(tmp_path) == before


def test_counts_of_an_earlier_training_are_not_left_beside_another_tokenizer(
    counted: Path, copied: Path
) -> None:
    train(copied, counts=(CountsInput(directory=str(counted / "c1")),), overwrite=True)
    assert set(tree(copied)) == {".plan.json", "tokenizer.json", "training.json"}


def test_counts_that_are_read_are_never_removed(copied: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(copied / "counts")
    before = tree(tmp_path)
    for source, output in (("model/counts", "model/counts"), ("link", "model"), ("link", "link")):
        with pytest.raises(OutputError, match="read by this job and is in its output directory"):
            train(
                tmp_path / output,
                counts=(CountsInput(directory=str(tmp_path / source)),),
                overwrite=True,
            )
        assert tree(tmp_path) == before


def test_counts_behind_a_link_are_not_removed(corpus: Corpus, tmp_path: Path) -> None:
    count(corpus.inputs(), tmp_path / "mine")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "counts").symlink_to(tmp_path / "mine")
    before = tree(tmp_path / "mine")
    source = (CountsInput(directory=str(tmp_path / "mine")),)
    with pytest.raises(OutputError, match="holds 'counts', and no"):
        train(tmp_path / "model", counts=source, overwrite=True)
    assert tree(tmp_path / "mine") == before


def test_counts_of_a_training_that_failed_are_made_again(corpus: Corpus, copied: Path) -> None:
    before = tree(copied)
    (copied / "tokenizer.json").unlink()
    (copied / "counts" / "data" / "part-00003-of-00016.parquet").write_bytes(b"damaged")
    train(copied, inputs=corpus.inputs())
    assert tree(copied) == before
    (copied / "tokenizer.json").unlink()
    (copied / "counts" / "manifest.json").unlink()  # killed while it counted
    other = TrainSettings(vocab_size=301)
    train(copied, inputs=corpus.inputs(), training=other)


@pytest.mark.parametrize("resume", [False, True])
def test_other_counts_of_a_training_that_failed_are_kept(
    corpus: Corpus, copied: Path, resume: bool
) -> None:
    (copied / "tokenizer.json").unlink()
    (copied / "training.json").unlink()
    before = tree(copied)
    with pytest.raises(
        OutputError, match=r"counts: cannot resume: .* pretokenizer was .*`overwrite`"
    ):
        train(
            copied,
            inputs=corpus.inputs(),
            pretokens=PretokenSettings(pretokenizer="words"),
            resume=resume,
        )
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


def test_settings_are_checked_before_anything_is_counted(corpus: Corpus, tmp_path: Path) -> None:
    for training, pretokens in (
        (TrainSettings(vocab_size=100), PretokenSettings()),
        (TrainSettings(vocab_size=256), PretokenSettings(special_tokens=("<|end|>",))),
        (TrainSettings(vocab_size=300), PretokenSettings(pattern="(")),
    ):
        with pytest.raises(ConfigError):
            train(tmp_path / "m", inputs=corpus.inputs(), training=training, pretokens=pretokens)
    with pytest.raises(ConfigError, match="give one of them"):
        train(tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_counts_that_do_not_fit_are_refused(corpus: Corpus, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no finished job left its output here"):
        train(tmp_path / "model", counts=(CountsInput(directory=str(tmp_path)),))
    assert not (tmp_path / "model").exists()
    bpe.count_pretokens(corpus.texts).save(tmp_path / "c1")
    bpe.count_pretokens(corpus.texts, pretokenizer="words").save(tmp_path / "c2")
    both = tuple(CountsInput(directory=str(tmp_path / name)) for name in ("c1", "c2"))
    with pytest.raises(InputError, match="different pretokenizer"):
        train(tmp_path / "model", counts=both)
    with pytest.raises(ConfigError, match="first-seen"):
        train(
            tmp_path / "other",
            counts=both[:1],
            training=TrainSettings(vocab_size=300, ties="first-seen"),
        )
    assert not (tmp_path / "model" / "tokenizer.json").exists()


class Listening(Progress):
    """Looks at the stage each time that a worker has said how far it is."""

    def __init__(self) -> None:
        self.heard: list[tuple[int, int]] = []

    @contextlib.contextmanager
    def stage(
        self, name: str, total_bytes: int | None, *, unit: str = "merges"
    ) -> Iterator[StageProgress]:
        self._stage = StageProgress(name, total_bytes, unit=unit, is_watched=True)
        try:
            yield self._stage
        finally:
            self._stage.close()

    def look(self) -> None:
        now = self._stage.snapshot()
        self.heard.append((now.done, now.total))


def test_progress_hears_of_merges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    progress, advance = Listening(), SlotWriter.advance

    def advance_and_look(slot: SlotWriter, done: int, total: int) -> None:
        advance(slot, done, total)
        progress.look()

    monkeypatch.setattr(SlotWriter, "advance", advance_and_look)
    words = [f"{i * 7919 % 99991:x}" for i in range(400)]
    corpus = write_jsonl(tmp_path / "in" / "docs.jsonl", words)
    count(corpus.inputs(), tmp_path / "counts")
    summary = jobs.train(
        counts=(CountsInput(directory=str(tmp_path / "counts")),),
        pretokens=PretokenSettings(),
        training=TrainSettings(vocab_size=900),
        output=OutputSettings(directory=str(tmp_path / "model")),
        progress=progress,
        execution=ONE,
    )
    assert summary.merges > 256
    assert progress.heard
    assert progress.heard == sorted(progress.heard)
    assert progress.heard[-1][1] == 900 - 256
