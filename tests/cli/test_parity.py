"""``bpe train --parity``: from counts by group to a tokenizer, its record and its report."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import bpe as library
from bpe.counts import PretokenCounts
from pipelines.report import report
from tests.cli.process import bpe, refused
from tests.cli.reports import section, text
from tests.pipelines.corpora import tree, write_rows

if TYPE_CHECKING:
    from pathlib import Path

TEXTS = {
    "de": "der die das und ist nicht ein eine mit sich auf für von dem zu den im",
    "en": "the of and to in that is was he for it with as his on be at by",
    "ja": "これは日本語の文章です。東京は日本の首都です。これも文章です。",
}


@pytest.fixture(scope="module")
def grouped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of three languages, counted by group: to train on, and held out."""
    folder = tmp_path_factory.mktemp("parity")
    for name, times in (("train", 20), ("dev", 2)):
        rows = (
            {"text": f"{words} {number}", "language": language}
            for number in range(times)
            for language, words in TEXTS.items()
        )
        write_rows(folder / f"{name}.jsonl", rows)
        bpe(
            *("count", "--input", f"{name}.jsonl", "--group-by", "language", "--shards", "2"),
            *("--output", name),
            cwd=folder,
        )
    (folder / "job.yaml").write_text("input: train.jsonl\nparity: true\nmax_merges: 60\n")
    return folder


def load(folder: Path) -> dict[str, PretokenCounts]:
    return {name: PretokenCounts.load(folder / f"language={name}") for name in TEXTS}


@pytest.fixture(scope="module")
def model(grouped: Path) -> Path:
    """The choices of the groups."""
    done = bpe(
        *("train", "--parity", "--counts", "train", "--dev-counts", "dev", "--max-merges", "60"),
        *("--global-merges", "10", "--window", "20", "--output", "model"),
        cwd=grouped,
    )
    assert "316 tokens (60 merges)" in done.stdout
    return grouped / "model"


def test_the_tokenizer_is_that_of_the_library(grouped: Path, model: Path) -> None:
    tokenizer = library.Tokenizer.load(model / "tokenizer.json")
    expected = library.train_parity(
        load(grouped / "train"),
        dev=load(grouped / "dev"),
        max_merges=60,
        global_merges=10,
        window=20,
    )
    assert tokenizer == expected
    training = library.Training.load(model / "training.json")
    assert expected.training is not None
    assert training.merges == expected.training.merges
    assert training.parity == expected.training.parity
    assert (training.ties, training.min_frequency) == ("gpt2-max", 2)


def test_directories_are_groups_and_given_options_win(grouped: Path) -> None:
    bpe(
        *("train", "--parity", "--counts", "train/language=ja", "--counts", "train/language=en"),
        *("--ties", "bytes-min", "--min-frequency", "1", "--vocab-size", "300"),
        *("--output", "two"),
        cwd=grouped,
    )
    counts = load(grouped / "train")
    expected = library.train_parity(
        {name: counts[name] for name in ("ja", "en")},
        vocab_size=300,
        ties="bytes-min",
        min_frequency=1,
    )
    assert library.Tokenizer.load(grouped / "two" / "tokenizer.json") == expected


def test_counts_by_group_are_counts(grouped: Path) -> None:
    bpe("train", "--counts", "train", "--max-merges", "30", "--output", "sum", cwd=grouped)
    counts = load(grouped / "train")
    expected = library.train(counts["de"] + counts["en"] + counts["ja"], max_merges=30)
    assert library.Tokenizer.load(grouped / "sum" / "tokenizer.json") == expected
    shares = ("--counts", "train/language=en:30%", "--counts", "train/language=ja:70%")
    done = bpe("train", *shares, "--max-merges", "30", "--output", "mixed", cwd=grouped)
    assert "30.0% of the bytes" in done.stdout


@pytest.mark.long
def test_the_report_compares_the_groups(grouped: Path, model: Path) -> None:
    report(str(model), output=str(grouped / "report.html"))
    said = text(section(grouped / "report.html", "parity"))
    assert "merges chosen bytes tokens bytes per token held-out bytes" in said
    parity = library.Training.load(model / "training.json").parity
    assert parity is not None
    assert f"tokens of the held-out texts: {parity.held_out_gini:.4f}" in said
    for group in parity.groups:
        assert group.tokens is not None
        assert f"{group.name} " in said
        assert f"{group.bytes / group.tokens:.3f}" in said


def test_a_run_counts_groups_and_lets_them_choose(
    grouped: Path, model: Path, tmp_path: Path
) -> None:
    job = tmp_path / "job.yaml"
    job.write_text(
        "input: train.jsonl\ngroup_by: language\nshards: 2\nparity: true\ndev_counts: dev\n"
        "window: 20\nmax_merges: 60\nglobal_merges: 10\n"
    )
    run = ("run", job, "--output", tmp_path / "all")
    summary = json.loads(bpe(*run, "--json", cwd=grouped).stdout)
    tokenizer = tmp_path / "all" / "tokenizer.json"
    assert tokenizer.read_bytes() == (model / "tokenizer.json").read_bytes()
    trained, expected = (
        library.Training.load(folder / "training.json") for folder in (tmp_path / "all", model)
    )
    assert (trained.merges, trained.parity) == (expected.merges, expected.parity)
    assert summary["encode"]["tokens"] == summary["train"]["tokens"]
    files = tree(tmp_path / "all")
    assert bpe(*run, "--resume", cwd=grouped).stdout.count("complete already") == 2
    assert tree(tmp_path / "all") == files


@pytest.mark.long
def test_a_run_on_groups_without_parity_is_one_on_all_of_them(
    grouped: Path, tmp_path: Path
) -> None:
    job = tmp_path / "job.yaml"
    job.write_text("input: train.jsonl\nmax_merges: 60\nsuperwords: 5\n")
    bpe("run", job, "--output", tmp_path / "all", "--set", "group_by=language", cwd=grouped)
    lines = (grouped / "train.jsonl").read_text("utf-8").splitlines()
    texts = [json.loads(line)["text"] for line in lines]
    words = library.train(library.count_pretokens(texts), max_merges=60)
    runs = library.count_runs(texts, tokenizer=words)
    expected = library.train_superwords(runs, tokenizer=words, superwords=5)
    assert library.Tokenizer.load(tmp_path / "all" / "tokenizer.json") == expected
    assert expected.superwords


TRAIN = "train --max-merges 5"
PARITY = f"{TRAIN} --parity --counts"
RUN = "run job.yaml --set"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("run job.yaml", "--parity needs --group-by NAME"),
        (f"{RUN} superwords=3", "--parity and --superwords exclude each other"),
        (f"{RUN} dev_counts=none", "none: there is no such directory"),
        (f"{RUN} ties=huggingface", "which knows no groups"),
        (f"{RUN} symbols=characters", "for models of bytes"),
        (
            f"{RUN} dev_counts=dev --set pretokenizer=o200k",
            "dev/language=de was split with gpt2, the text to train on with o200k",
        ),
        (f"{TRAIN} --parity --input train.jsonl", "--parity needs --counts"),
        (f"{PARITY} train/language=en:2", "weights and shares do not go with --parity"),
        (
            f"{PARITY} train/language=en --dev-counts dev",
            "group 'de' is in --dev-counts but not in --counts",
        ),
        (f"{PARITY} train --counts train/language=en", "2 groups that are called 'en'"),
        (f"{TRAIN} --counts train --window 9", "--window needs --parity"),
    ],
)
def test_what_does_not_go_with_parity_is_refused(grouped: Path, command: str, message: str) -> None:
    grouping = () if command == "run job.yaml" else ("--set", "group_by=language")
    more = grouping if command.startswith("run") else ()
    refused(message, *command.split(), *more, "--output", "wrong", cwd=grouped)
