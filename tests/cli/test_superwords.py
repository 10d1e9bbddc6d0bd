"""Superwords from the command line: words, runs and superwords, and what is done with them."""

from __future__ import annotations

import functools
import json
import shutil
from typing import TYPE_CHECKING

import pytest

import bpe as library
from pipelines.report import report
from tests.cli.process import bpe, refused
from tests.cli.reports import section
from tests.cli.runs_corpus import END, texts, words_of, write_corpus
from tests.pipelines.corpora import tree
from tests.shared_data import LONG

if TYPE_CHECKING:
    from pathlib import Path

TEXTS = texts(120)
WORDS = ("--pretokenizer", "o200k", "--special-token", END, "--max-merges", "60")
DISJOINT = ("--pair-counts", "disjoint")
METHODS = {"super": ("--superwords", "25"), "boundless": ("--boundless",)}
TRAIN = ("train", "--input", "corpus", *WORDS, *DISJOINT, "--quiet")


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus, and a model of each method."""
    folder = tmp_path_factory.mktemp("superwords")
    write_corpus(folder / "corpus", TEXTS)
    for name, options in METHODS.items():
        more = ("--json",) if name == "super" else ()
        done = bpe(*TRAIN, *options, *more, "--output", name, cwd=folder)
        (folder / f"{name}.txt").write_text(done.stdout, "utf-8")
    encode = ("encode", "--input", "corpus", "--tokenizer", "super", "--output", "ids", "--quiet")
    bpe(*encode, cwd=folder)
    words_of(TEXTS, merges=40).save(folder / "other" / "tokenizer.json")
    (folder / "bare").mkdir()
    shutil.copy(folder / "super" / "words" / "tokenizer.json", folder / "bare")
    return folder


@functools.cache
def expected(method: str) -> library.Tokenizer:
    words = words_of(TEXTS)
    return library.train_superwords(
        library.count_runs(TEXTS, tokenizer=words),
        tokenizer=words,
        superwords=25 if method == "super" else None,
        boundless=method == "boundless",
        pair_counts="disjoint",
    )


@pytest.mark.parametrize("method", METHODS)
def test_one_command_makes_the_tokenizer_of_the_library(work: Path, method: str) -> None:
    wanted = expected(method)
    assert library.Tokenizer.load(work / method) == wanted
    assert library.Tokenizer.load(work / method / "words") == words_of(TEXTS)
    assert len(wanted.superwords) >= 10
    training = library.Training.load(work / method / "training.json")
    assert wanted.training is not None
    assert (training.merges, training.superwords) == (
        wanted.training.merges,
        wanted.training.superwords,
    )


def test_the_summary_tells_of_every_phase(work: Path, tmp_path: Path) -> None:
    said = (work / "boundless.txt").read_text("utf-8")
    lines = [line.split()[0] for line in said.splitlines() if line[0] != " "]
    assert lines == ["words", "runs", "trained"]
    assert f", {len(expected('boundless').superwords)} superwords) of" in said
    summary = json.loads((work / "super.txt").read_text("utf-8"))
    assert summary["words"]["merges"] == 60
    assert summary["words"]["bytes_per_token"] < summary["bytes_per_token"]
    assert summary["runs"]["unit"] == "run"
    assert (summary["superwords"], summary["stopped"]) == (25, "vocabulary full")
    tokens = sum(map(len, expected("super").encode_batch(TEXTS, allowed_special="all")))
    special = sum(text.count(END) for text in TEXTS)
    assert summary["tokens"] == tokens - special
    alone = ("train", "--counts", "super/runs", "--tokenizer", "super/words", *DISJOINT)
    few = bpe(*alone, "--superwords", "100000", "--output", tmp_path / "c", cwd=work).stdout
    assert "superwords, not the 100,000 that were asked for: no pair left" in few


def test_rare_words_and_rare_runs_are_dropped(work: Path, tmp_path: Path) -> None:
    prune = (*METHODS["super"], *DISJOINT, "--prune-runs-below", "2", "--json", "--output")
    done = bpe(*TRAIN, "--prune-below", "9", *prune, tmp_path / "one", cwd=work)
    summary = json.loads(done.stdout)
    assert summary["tokens"] is None  # runs do not tell how long a corpus without rare words is
    alone = ("train", "--counts", "one/runs", "--tokenizer", "one/words")
    summary = json.loads(bpe(*alone, *prune, "two", cwd=tmp_path).stdout)
    assert (summary["words"], summary["runs"]) == (None, None)
    assert summary["run_tokens_left"] < summary["run_tokens"]
    one, two = (tmp_path / name for name in ("one", "two"))
    assert (one / "tokenizer.json").read_bytes() == (two / "tokenizer.json").read_bytes()
    trained, again = (library.Training.load(model / "training.json") for model in (one, two))
    assert trained.superwords is not None
    assert trained.superwords.pruned is not None
    assert trained.superwords == again.superwords
    assert summary["superwords"] == len(library.Tokenizer.load(two).superwords)


CORPUS = "train --input corpus --max-merges 9"
ALONE = "train --superwords 5 --counts"
OF_RUNS = f"{ALONE} super/runs --tokenizer super/words"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (f"{CORPUS} --superwords 3 --boundless", "--superwords and --boundless exclude each"),
        (f"{CORPUS} --superwords 0", "0 is out of range: use 1 or more"),
        (f"{CORPUS} --superwords 3 --ties first-seen", "counts of runs do not track the order"),
        (f"{CORPUS} --superwords 3 --model wordpiece", "--model: superwords need tokens of"),
        (f"{CORPUS} --superwords 3 --tokenizer x", "--tokenizer needs --counts DIR"),
        (f"{CORPUS} --max-run 3", "--max-run needs --superwords N or --boundless"),
        (f"{ALONE} super/counts --tokenizer super/words", "holds counts of pre-tokens"),
        (f"{ALONE} super/runs", "give --tokenizer FILE, whose runs were counted"),
        (f"{ALONE} super/runs --tokenizer other", "holds counts of runs of another tokenizer than"),
        (
            f"{OF_RUNS} --vocab-size 500",
            "--vocab-size and --max-merges go with --input, leave them out",
        ),
        (f"{OF_RUNS} --extend super/words", "--extend and --tokenizer exclude each other"),
        (f"{OF_RUNS} --max-run 3", "--max-run needs --input"),
        (f"{OF_RUNS} --prune-below 2", "to drop rare runs, use --prune-runs-below"),
        (f"{OF_RUNS} --eos <x>", "lacks the special token '<x>'"),
        (f"{OF_RUNS} --counts super/counts", "counts of different runs cannot be added"),
        (
            "train --boundless --counts super/runs --tokenizer bare",
            "training.json is missing: --boundless compares superwords with",
        ),
        ("convert super hf.json --counts super/runs", "--counts needs --approximate"),
        ("convert super/words hf.json --approximate", "no superwords"),
        ("compare super/words super --counts super/counts", "superwords"),
    ],
)
def test_what_does_not_go_with_superwords_is_refused(
    work: Path, command: str, message: str
) -> None:
    output = ("--output", "never") if command.startswith("train") else ()
    refused(message, *command.split(), *output, cwd=work)


@pytest.mark.long
def test_a_corpus_without_runs_has_no_superwords(tmp_path: Path) -> None:
    (tmp_path / "one.jsonl").write_text('{"text": "word"}\n{"text": "42 42"}\n', "utf-8")
    train = ("train", "--input", "one.jsonl", "--max-merges", "3", "--superwords", "2")
    failed = bpe(*train, "--output", "model", cwd=tmp_path, status=1)
    assert "the corpus holds no runs, of which superwords are learnt" in failed.stderr


def test_a_run_encodes_with_superwords(work: Path, tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text(
        f"input: corpus\npretokenizer: o200k\nspecial_token: '{END}'\nmax_merges: 60\n"
        "pair_counts: disjoint\nsuperwords: 25\n"
    )
    run = ("run", job, "--output", tmp_path / "all")
    summary = json.loads(bpe(*run, "--json", cwd=work).stdout)
    assert list(summary) == ["count", "train", "encode", "warnings"]
    assert summary["train"]["superwords"] == 25
    tokenizer = tmp_path / "all" / "tokenizer.json"
    assert tokenizer.read_bytes() == (work / "super" / "tokenizer.json").read_bytes()
    files = tree(tmp_path / "all")
    again = bpe(*run, "--resume", cwd=work)
    assert again.stdout.count("complete already") == 3
    assert "words is complete" in again.stderr
    assert tree(tmp_path / "all") == files
    verified = json.loads(bpe("verify", tmp_path / "all", "--json", cwd=work).stdout)
    assert list(verified) == ["counts", "words", "runs", "tokenizer", "encoded"]


def test_ids_decode_and_verify(work: Path) -> None:
    decoded = bpe("decode", "ids", cwd=work).stdout.splitlines()
    assert [json.loads(line)["text"] for line in decoded] == TEXTS
    for name in METHODS if LONG else ("super",):
        lines = bpe("verify", name, "--input", "corpus", cwd=work, status=None)
        assert lines.returncode == 0, lines.stderr
        assert lines.stdout.count("each token is what its own bytes merge to") == 2
        assert f"merges, {len(expected(name).superwords)} superwords" in lines.stdout


def test_compare_measures_superwords(work: Path) -> None:
    compare = ("compare", "super/words", "super", "--json")
    totals = json.loads(bpe(*compare, "--input", "corpus", cwd=work).stdout)["total"]
    words, superwords = (one["tokens"] for one in totals["tokenizers"])
    assert superwords == sum(map(len, expected("super").encode_batch(TEXTS)))
    assert superwords < words
    facts = json.loads(bpe(*compare, cwd=work).stdout)
    assert not facts["same"]
    assert len(facts["gained"]) == 25
    assert "␣by␣the␣way" in facts["gained"]


def test_show_gives_the_merges_of_words_and_then_of_superwords(work: Path) -> None:
    assert "superwords" in bpe("show", "super", " by the way", cwd=work).stdout
    (facts,) = json.loads(bpe("show", "super", " by the way", "--json", cwd=work).stdout)
    assert facts["ids"] == expected("super").encode(" by the way")
    (run,) = facts["superwords"]
    assert run["steps"][0]["symbols"] == ["␣by", "␣the", "␣way"]
    last = run["steps"][-1]
    assert last["symbols"] == facts["tokens"] == ["␣by␣the␣way"]
    training = library.Training.load(work / "super" / "training.json").superwords
    assert training is not None
    assert last["count"] == training.merges[last["rank"]].count
    found = json.loads(bpe("show", "super", "--search", " by the way", "--json", cwd=work).stdout)
    assert {one["kind"] for one in found} == {"superword"}
    assert found[0]["token"] == "␣by␣the␣way"
    curve = json.loads(bpe("show", "super", "--curve", "--json", cwd=work).stdout)
    assert curve[-1]["vocab_size"] == len(expected("super"))
    assert curve[-1]["tokens"] < curve[-26]["tokens"]


@pytest.mark.long
@pytest.mark.parametrize("method", METHODS)
def test_the_report_tells_of_superwords(work: Path, tmp_path: Path, method: str) -> None:
    report(str(work / method), output=str(tmp_path / "report.html"))
    shown = section(tmp_path / "report.html", "superwords")
    assert "␣by␣the␣way" in shown


def test_the_approximate_form_says_how_much_differs(work: Path, tmp_path: Path) -> None:
    target = tmp_path / "hf.json"
    command = ("convert", "super", target, "--approximate")
    counts = ("--counts", "super/runs", "--counts", "super/counts")
    measured = json.loads(bpe(*command, *counts, "--json", cwd=work).stdout)["approximate"]
    exact, form, words = expected("super"), library.Tokenizer.load(target), words_of(TEXTS)
    assert form.superwords == []
    assert [one["unit"] for one in measured] == ["run", "pre-token"]
    runs = library.PretokenCounts.load(work / "super" / "runs").items()
    keys = [(words.decode(memoryview(key).cast("H").tolist()), count) for key, count in runs]
    pretokens = library.PretokenCounts.load(work / "super" / "counts").items()
    counted: list[list[tuple[str | bytes, int]]] = [[*keys], [*pretokens]]
    for found, items in zip(measured, counted, strict=True):
        pairs = [(exact.encode(text), form.encode(text), count) for text, count in items]
        assert found["texts"] == sum(count for *_, count in pairs)
        assert found["texts_that_differ"] == sum(n for ours, other, n in pairs if ours != other)
        assert found["tokens"] == sum(len(ours) * n for ours, _, n in pairs)
        assert (found["tokens_that_differ"] > 0) == (found["texts_that_differ"] > 0)
    shown = bpe(*command, *counts, "--overwrite", cwd=work).stdout
    assert "approximate: it may give other ids than super" in shown
    assert f"documents may differ more: bpe compare super {target} --input PATTERN" in shown
