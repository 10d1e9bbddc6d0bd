"""``bpe train --parity``: from counts by group to a tokenizer, its record and its report."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

import bpe as library
from bpe.counts import PretokenCounts
from tests.cli.process import bpe
from tests.cli.reports import section, text
from tests.pipelines.corpora import tree

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
        lines = "".join(
            json.dumps({"text": f"{words} {number}", "language": language}) + "\n"
            for number in range(times)
            for language, words in TEXTS.items()
        )
        (folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")
        bpe(
            *("count", "--input", f"{name}.jsonl", "--group-by", "language", "--shards", "2"),
            *("--output", name),
            cwd=folder,
        )
    return folder


def load(folder: Path) -> dict[str, PretokenCounts]:
    return {name: PretokenCounts.load(folder / f"language={name}") for name in TEXTS}


@pytest.fixture(scope="module")
def model(grouped: Path) -> Path:
    """What the groups choose."""
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
    assert training.parity is not None
    assert (training.ties, training.min_frequency) == ("gpt2-max", 2)
    assert [one.name for one in training.parity.groups] == ["de", "en", "ja"]
    assert training.parity.chosen_by[:10] == (None,) * 10
    assert {*training.parity.chosen_by[10:]} == {0, 1, 2}


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
    everything = counts["de"] + counts["en"] + counts["ja"]
    expected = library.train(everything, max_merges=30)
    assert library.Tokenizer.load(grouped / "sum" / "tokenizer.json") == expected
    weights = [f"train/language={name}:{n}" for name, n in (("en", "30%"), ("ja", "70%"))]
    done = bpe(
        *("train", "--counts", weights[0], "--counts", weights[1], "--max-merges", "30"),
        *("--output", "mixed"),
        cwd=grouped,
    )
    assert "30.0% of the bytes" in done.stdout


def test_the_report_compares_the_groups(grouped: Path, model: Path) -> None:
    bpe("report", model, "--output", "report.html", cwd=grouped)
    said = text(section(grouped / "report.html", "parity"))
    assert re.search(r"merges chosen bytes tokens bytes per token held-out bytes", said)
    training = library.Training.load(model / "training.json")
    assert training.parity is not None
    assert f"tokens of the held-out texts: {training.parity.held_out_gini:.4f}" in said
    for group in training.parity.groups:
        assert group.tokens is not None
        assert f"{group.name} " in said
        assert f"{group.bytes / group.tokens:.3f}" in said
    bpe("report", "train", "--output", "counts.html", cwd=grouped)
    assert "pre-tokens" in (grouped / "counts.html").read_text("utf-8")


def test_a_run_counts_groups_and_lets_them_choose(grouped: Path, tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text(
        "input: train.jsonl\ngroup_by: language\nshards: 2\nparity: true\ndev_counts: dev\n"
        "window: 20\nmax_merges: 60\n"
    )
    run = ("run", job, "--output", tmp_path / "all")
    summary = json.loads(bpe(*run, "--json", cwd=grouped).stdout)
    expected = library.train_parity(
        load(grouped / "train"), dev=load(grouped / "dev"), max_merges=60, window=20
    )
    assert library.Tokenizer.load(tmp_path / "all" / "tokenizer.json") == expected
    training = library.Training.load(tmp_path / "all" / "training.json")
    assert expected.training is not None
    assert training.parity == expected.training.parity
    assert training.merges == expected.training.merges
    assert summary["encode"]["tokens"] == summary["train"]["tokens"]
    counts = tmp_path / "all" / "counts"
    assert {name: PretokenCounts.load(counts / f"language={name}") for name in TEXTS} == load(
        grouped / "train"
    )
    files = tree(tmp_path / "all")
    assert bpe(*run, "--resume", cwd=grouped).stdout.count("complete already") == 2
    assert tree(tmp_path / "all") == files
    bpe("verify", tmp_path / "all", "--input", "train.jsonl", cwd=grouped)


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


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], "--parity needs --group-by NAME"),
        (["group_by=language", "superwords=3"], "--parity and --superwords exclude each other"),
        (["group_by=language", "dev_counts=none"], "none: there is no such directory"),
        (["group_by=language", "ties=huggingface"], "does not go with parity"),
        (["group_by=language", "symbols=characters"], "for models of bytes"),
        (
            ["group_by=language", "dev_counts=dev", "pretokenizer=o200k"],
            "`dev_counts` dev/language=de was split with gpt2, the text to train on with o200k",
        ),
    ],
)
def test_a_run_refuses_before_it_counts(
    grouped: Path, tmp_path: Path, values: list[str], message: str
) -> None:
    job = tmp_path / "job.yaml"
    job.write_text("input: train.jsonl\nparity: true\nmax_merges: 60\n")
    given = [text for value in values for text in ("--set", value)]
    done = bpe("run", job, *given, "--output", tmp_path / "all", cwd=grouped, status=None)
    assert done.returncode in (1, 2)
    assert message in done.stderr.replace("\n", " ").replace("--dev-counts", "`dev_counts`", 1)
    assert not (tmp_path / "all").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--input", "train.jsonl"], "--parity needs --counts"),
        (["--counts", "train/language=en:2"], "weights and shares do not go with --parity"),
        (
            ["--counts", "train/language=en", "--dev-counts", "dev"],
            "group 'de' is in --dev-counts but not in --counts",
        ),
        (["--counts", "train", "--counts", "train/language=en"], "2 groups that are called 'en'"),
        (["--counts", "train", "--symbols", "characters"], "for models of bytes"),
        (["--counts", "train", "--ties", "huggingface"], "does not go with parity"),
        (["--counts", "missing"], "missing"),
        (["--counts", "train", "--dev-counts", "missing"], "missing"),
        (["--counts", "train", "--alpha", "0.5"], "--alpha"),
    ],
)
def test_errors_say_what_to_do(grouped: Path, arguments: list[str], message: str) -> None:
    done = bpe(
        *("train", "--parity", *arguments, "--max-merges", "5", "--output", "wrong"),
        cwd=grouped,
        status=None,
    )
    assert done.returncode in (1, 2)
    assert message in done.stderr.replace("\n", " ")
    assert "Traceback" not in done.stderr
    assert not (grouped / "wrong").exists()


@pytest.mark.parametrize(("option", "needed"), [("--window", "--parity"), ("--alpha", "--window")])
def test_the_options_need_parity(grouped: Path, option: str, needed: str) -> None:
    done = bpe(
        *("train", "--counts", "train", option, "9", "--max-merges", "5", "--output", "wrong"),
        cwd=grouped,
        status=2,
    )
    assert f"{option} needs {needed}" in done.stderr
