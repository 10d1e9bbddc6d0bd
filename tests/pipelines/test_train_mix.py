"""Training on a mix of sources: as on the counts of each source, with the shares."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any, get_args

import pytest

import bpe
from pipelines.count.directory import load_counts
from pipelines.errors import ConfigError, InputError, OutputError, VerificationError
from pipelines.settings import (
    CountsInput,
    InputSettings,
    OutputSettings,
    PretokenSettings,
    ShareOf,
    TrainSettings,
)
from tests import jobs
from tests.pipelines.corpora import ONE, count, sentence, train, tree, write_rows
from tests.shared_data import long_but

if TYPE_CHECKING:
    from pathlib import Path

MIX = ("web=70%", "code=30%")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sources, whose files alternate; those of text share splits."""
    folder = tmp_path_factory.mktemp("corpus")
    for number in range(6):
        source = folder / f"{number}-{'web' if number % 2 else 'code'}"
        source.mkdir()
        texts = [sentence(100 * number + i, 3 + i % 9) for i in range(20)]
        if number < 2:
            records = ({"id": i, "text": text} for i, text in enumerate(texts))
            write_rows(source / "a.jsonl", records)
        else:
            for i in range(number):
                (source / f"{i}.txt").write_text(texts[i], encoding="utf-8")
    return folder


def plain(folder: Path, source: str = "*") -> InputSettings:
    return InputSettings(patterns=(f"{folder}/*-{source}/*.jsonl", f"{folder}/*-{source}/*.txt"))


def named(folder: Path) -> InputSettings:
    patterns = tuple(
        f"{name}={pattern}" for name in ("code", "web") for pattern in plain(folder, name).patterns
    )
    return InputSettings(patterns=patterns)


def swapped(folder: Path) -> InputSettings:
    """The files of each source as those of the other."""
    other = {"code": "web", "web": "code"}
    pairs = (pattern.split("=", 1) for pattern in named(folder).patterns)
    return InputSettings(patterns=tuple(f"{other[name]}={pattern}" for name, pattern in pairs))


@pytest.fixture(scope="module")
def counted(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The counts of each source; tokenizers that count the tokens of shares, or cannot."""
    path = tmp_path_factory.mktemp("counted")
    for name in ("web", "code"):
        count(plain(folder, name), path / name, track_order=True)
    counts = bpe.count_pretokens([sentence(1, 90)])
    plain_one = bpe.train(counts, vocab_size=280)
    runs = bpe.count_runs([sentence(1, 90)], tokenizer=plain_one)
    words = bpe.count_pretokens(["low"], pretokenizer="words")
    for name, tokenizer in (
        ("plain", plain_one),
        ("words", bpe.train(words, vocab_size=257)),
        ("superwords", bpe.train_superwords(runs, tokenizer=plain_one, superwords=2)),
        ("characters", bpe.train(counts, max_merges=2, model=bpe.CharacterLevel())),
    ):
        tokenizer.save(path / f"{name}.json", dialect="beam-bpe")
    return path


@pytest.fixture(scope="module")
def mixed(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tokenizer that was trained on the mix; nobody may change it."""
    path = tmp_path_factory.mktemp("mixed") / "model"
    train(path, inputs=named(folder), mix=MIX)
    return path


def by_themselves(counted: Path, output: Path, **settings: Any) -> bytes:
    """The tokenizer trained on the counts of each source, which has its share."""
    counts = (f"{counted}/web:70%", f"{counted}/code:30%")
    train(output / "model", counts=tuple(map(CountsInput.parse, counts)), **settings)
    return (output / "model" / "tokenizer.json").read_bytes()


@pytest.mark.parametrize("share_of", long_but(get_args(ShareOf), "bytes", "tokens"))
def test_the_tokenizer_is_that_of_the_counts_of_each_source(
    folder: Path, counted: Path, tmp_path: Path, share_of: ShareOf
) -> None:
    training = TrainSettings(vocab_size=300, ties="first-seen", prune_below=4)
    settings: dict[str, Any] = {"share_of": share_of, "training": training}
    if share_of == "tokens":
        settings["share_tokenizer"] = str(counted / "plain.json")
    summary = train(tmp_path / "model", inputs=named(folder), mix=MIX, **settings)
    made = (tmp_path / "model" / "tokenizer.json").read_bytes()
    assert made == by_themselves(counted, tmp_path / "each", **settings)
    assert [source.path for source in summary.mix] == ["web", "code"]
    shares = [getattr(source, f"{share_of}_share") for source in summary.mix]
    assert shares == pytest.approx([0.7, 0.3], rel=1e-4)
    recorded = bpe.Training.load(tmp_path / "model" / "training.json")
    assert recorded.mix == summary.mix
    assert summary.documents == load_counts(str(tmp_path / "model/counts")).totals.documents == 54


def test_counts_are_verified_with_names_and_without(folder: Path, mixed: Path) -> None:
    directory = str(mixed / "counts")
    for inputs in (named(folder), plain(folder)):
        assert jobs.verify(directory=directory, inputs=inputs).documents == 54
    with pytest.raises(
        VerificationError, match="was given as of the source web, and the manifest says code"
    ):
        jobs.verify(directory=directory, inputs=swapped(folder))
    manifest = json.loads((mixed / "counts/manifest.json").read_text())
    assert [source["name"] for source in manifest["sources"]] == ["code", "web"]
    web = {
        manifest["inputs"][i]["name"].partition("/")[0]
        for first, end in manifest["sources"][1]["inputs"]
        for i in range(first, end)
    }
    assert web == {"1-web", "3-web", "5-web"}


def test_a_resumed_job_is_of_the_same_mix(folder: Path, mixed: Path, tmp_path: Path) -> None:
    shutil.copytree(mixed, tmp_path / "model")
    made = tree(tmp_path / "model")
    with pytest.raises(OutputError, match=r"settings counts was .*source=web.*7/10"):
        train(tmp_path / "model", inputs=named(folder), mix=("web=60%", "code=40%"), resume=True)
    with pytest.raises(OutputError, match="settings sources was"):
        train(tmp_path / "model", inputs=swapped(folder), mix=MIX, resume=True)
    assert tree(tmp_path / "model") == made
    train(tmp_path / "model", inputs=plain(folder), overwrite=True)
    assert not list((tmp_path / "model/counts").glob("source=*"))


def test_superwords_are_of_the_same_mix(folder: Path, counted: Path, tmp_path: Path) -> None:
    training = TrainSettings(vocab_size=290, superwords=6)
    summary = train(tmp_path / "model", inputs=named(folder), mix=MIX, training=training)
    words = TrainSettings(vocab_size=290)
    expected = by_themselves(counted, tmp_path / "each", training=words)
    assert (tmp_path / "model/words/tokenizer.json").read_bytes() == expected
    weights = [source.weight for source in summary.mix]
    assert len(set(weights)) == 2
    runs = []
    for name, weight in zip(("web", "code"), weights, strict=True):
        jobs.count(
            inputs=plain(folder, name),
            pretokens=PretokenSettings(),
            tokenizer=str(tmp_path / "model/words/tokenizer.json"),
            output=OutputSettings(directory=str(tmp_path / "runs" / name)),
            execution=ONE,
        )
        runs.append(CountsInput.parse(f"{tmp_path}/runs/{name}:{weight}"))
    alone = training.superwords_on(str(tmp_path / "model/words/tokenizer.json"))
    train(tmp_path / "super", counts=tuple(runs), training=alone)
    made, other = ((tmp_path / name / "tokenizer.json").read_bytes() for name in ("model", "super"))
    assert made == other
    assert summary.superwords == 6
    recorded = bpe.Training.load(tmp_path / "model" / "training.json")
    assert [source.bytes_share for source in recorded.mix] == pytest.approx([0.7, 0.3], rel=1e-4)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"mix": ("web=70%",)}, "the shares of `mix` add up to 70%, not to 100%"),
        ({"mix": ("web=70%", "text=30%")}, "is of no source of the mix"),
        ({"mix": ("web=100%", "web=0%")}, "web is given twice"),
        ({"share_of": "tokens"}, "give `share_tokenizer` FILE"),
        ({"share_tokenizer": "plain.json"}, "`share_tokenizer` goes with `share_of` tokens"),
        ({"share_of": "tokens", "share_tokenizer": "words.json"}, "the corpus was split with gpt2"),
        ({"share_of": "tokens", "share_tokenizer": "superwords.json"}, "has superwords"),
        (
            {"share_of": "tokens", "share_tokenizer": "characters.json"},
            "has no token for unknown characters",
        ),
        (
            {"inputs": None, "counts": (CountsInput(directory="web"),)},
            "goes with `input` NAME=PATTERN",
        ),
    ],
)
def test_what_is_no_mix_is_refused(
    folder: Path,
    counted: Path,
    tmp_path: Path,
    settings: dict[str, Any],
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(counted)
    with pytest.raises(ConfigError, match=reason):
        train(tmp_path / "model", **{"inputs": named(folder), "mix": MIX, **settings})
    assert not (tmp_path / "model").exists()


def test_a_source_without_documents_can_have_no_share(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "nothing.jsonl").touch()
    code = [one for one in named(folder).patterns if one.startswith("code")]
    inputs = InputSettings(patterns=(*code, f"web={tmp_path}/nothing.jsonl"))
    with pytest.raises(InputError, match="source=web: no bytes were counted: it can have no share"):
        train(tmp_path / "model", inputs=inputs, mix=MIX)
    assert not (tmp_path / "model" / "tokenizer.json").exists()
