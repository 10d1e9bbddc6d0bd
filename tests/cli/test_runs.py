"""``bpe count --runs``: the counts of `bpe.count_runs`, and commands that meet such counts."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import apache_beam as beam
import pytest
from apache_beam.testing.util import assert_that, equal_to

import bpe as library
from bpe.counts import PretokenCounts
from bpe.errors import CountsError
from bpe.files import with_checksum
from pipelines import CountCorpus, ReadCounts
from pipelines.count.steps import Counters
from pipelines.errors import ConfigError
from pipelines.failures import WorkerError
from tests.cli.process import bpe, refused
from tests.cli.reports import section, sections, table, text
from tests.cli.runs_corpus import END, texts, words_of, write_corpus
from tests.pipelines.beam_runs import pipeline
from tests.pipelines.corpora import write_rows

if TYPE_CHECKING:
    from pathlib import Path

TEXTS = texts(120)
COUNT = ("count", "--runs", "--tokenizer", "words.json", "--quiet")


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus, its tokenizer of words, and the counts of its runs."""
    folder = tmp_path_factory.mktemp("runs")
    write_corpus(folder / "corpus", TEXTS)
    words_of(TEXTS).save(folder / "words.json")
    bpe(*COUNT, "--input", "corpus", "--output", "runs", cwd=folder)
    bpe("count", "--input", "corpus", "--pretokenizer", "o200k", "--output", "plain", cwd=folder)
    (folder / "mine").mkdir()
    shutil.copy(folder / "words.json", folder / "mine" / "tokenizer.json")
    counts = library.count_pretokens(["low lower"], pretokenizer="words")
    library.train(counts, vocab_size=20, model=library.WordPiece()).save(folder / "pieces.json")
    return folder


def expected(work: Path, **settings: Any) -> PretokenCounts:
    words = library.Tokenizer.load(work / "words.json")
    return library.count_runs(TEXTS, tokenizer=words, **settings)


def assert_same(found: PretokenCounts, counts: PretokenCounts) -> None:
    assert dict(found.items()) == dict(counts.items())
    assert (found.runs, found.pretokenizer) == (counts.runs, counts.pretokenizer)
    assert (found.special_tokens, found.cut) == (counts.special_tokens, counts.cut)
    for name in ("documents", "bytes", "pretokens"):
        assert getattr(found.totals, name) == getattr(counts.totals, name)


def test_the_counts_are_those_of_the_library(work: Path) -> None:
    assert_same(PretokenCounts.load(work / "runs"), expected(work))
    assert len(expected(work)) > 50


def test_how_runs_are_found(work: Path, tmp_path: Path) -> None:
    pattern = r"^[\p{L} ]+$"
    options = ("--max-run", "3", "--merge-pattern", pattern, "--prune-below", "2")
    bpe(*COUNT, *options, "--input", "corpus", "--output", tmp_path / "runs", cwd=work)
    counts = expected(work, max_run=3, merge_pattern=pattern).pruned(2)
    for less in ({}, {"max_run": 3}, {"merge_pattern": pattern}):
        assert dict(counts.items()) != dict(expected(work, **less).pruned(2).items())
    found = PretokenCounts.load(tmp_path / "runs")
    assert_same(found, counts)
    assert found.prune == counts.prune
    assert found.prune is not None
    verify = ("verify", tmp_path / "runs", "--input", "corpus")
    assert "counting the input again gives the same" in bpe(*verify, cwd=work).stdout
    again = (*COUNT, "--input", "corpus", "--output", tmp_path / "runs", "--resume")
    failed = bpe(*again, cwd=work, status=1)
    assert "settings runs.max_run was 3, is null" in failed.stderr
    manifest = tmp_path / "runs" / "manifest.json"
    value = json.loads(manifest.read_bytes())
    value["cut"]["max_pair"] += 1
    manifest.write_text(json.dumps(with_checksum(value)), "utf-8")
    wrong = bpe(*verify, cwd=work, status=1)
    assert f"max_pair={value['cut']['max_pair']}); counting again gives CutRuns(" in wrong.stderr
    count = ("count", "--input", "corpus", "--output", tmp_path / "runs", "--overwrite")
    bpe(*count, cwd=work)
    assert not (tmp_path / "runs" / "tokenizer.json").exists()


def test_verify_knows_runs(work: Path, tmp_path: Path) -> None:
    runs = f"{expected(work).totals.pretokens:,} runs in 16 files"
    for arguments in ((), ("--input", "corpus")):
        assert runs in bpe("verify", "runs", *arguments, cwd=work).stdout
    shutil.copytree(work / "runs", tmp_path / "runs")
    words_of(TEXTS, merges=40).save(tmp_path / "runs" / "tokenizer.json")
    for command, *more in (("verify",), ("verify", "--input", "corpus"), ("report",)):
        failed = bpe(command, tmp_path / "runs", *more, cwd=work, status=1).stderr
        assert "runs/tokenizer.json is " in failed
        assert "not the tokenizer whose runs are counted there" in failed
    shutil.copytree(work / "corpus", tmp_path / "corpus")
    changed = (tmp_path / "corpus" / "a.jsonl").read_text("utf-8").replace("way", "yaw")
    (tmp_path / "corpus" / "a.jsonl").write_text(changed, "utf-8")
    wrong = bpe("verify", "runs", "--input", tmp_path / "corpus", cwd=work, status=1)
    assert "in byte order, the run of row" in wrong.stderr


PLAIN = "count --input corpus"
RUNS = f"{PLAIN} --runs --tokenizer"
WORDS = f"{RUNS} words.json"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            f"{WORDS} --pretokenizer gpt2",
            "which says how text is cut: leave out the options",
        ),
        (f"{WORDS} --preset words", "which says how text is cut"),
        (f"{WORDS} --track-order", "--track-order does not work with runs"),
        (f"{WORDS} --merge-pattern (", "merge pattern '(' does not compile"),
        (f"{WORDS} --max-run 1", "1 is out of range: use 2 or more"),
        (f"{WORDS} --no-runs", "--tokenizer needs --runs"),
        (f"{RUNS} nowhere.json", "nowhere.json: cannot read the tokenizer"),
        (f"{RUNS} mine/tokenizer.json --output mine", "mine/tokenizer.json is read by this job"),
        (f"{RUNS} pieces.json", "runs are of byte-level tokens, the tokenizer's are WordPiece"),
        (f"{PLAIN} --runs", "--runs needs --tokenizer FILE"),
        (f"{PLAIN} --max-run 5", "--max-run needs --runs"),
        ("train --vocab-size 300 --counts runs", "runs holds counts of runs (tokenizer"),
        ("train --vocab-size 300 --counts runs --counts plain", "different runs"),
        (
            "train --vocab-size 300 --counts plain --pretokenizer gpt2",
            "plain was split with o200k, but the options or the preset say gpt2",
        ),
        ("compare words.json same=words.json --counts runs", "not of pre-tokens"),
        (
            "encode --append --input corpus/* --tokenizer words.json --baseline runs",
            "not of pre-tokens: give the counts that it was trained on",
        ),
    ],
)
def test_what_does_not_go_with_runs_is_refused(work: Path, command: str, message: str) -> None:
    to = () if "compare" in command or "--output" in command else ("--output", "never")
    refused(message, *command.split(), *to, cwd=work)


def test_a_report_shows_runs_as_text(work: Path, tmp_path: Path) -> None:
    counts = expected(work)
    bpe("report", "runs", "--output", tmp_path / "report.html", cwd=work)
    shown = section(tmp_path / "report.html", "runs")
    assert f"of {len(counts):,} distinct runs" in text(shown)
    key, times = max(counts.items(), key=lambda one: (one[1], one[0]))
    words = library.Tokenizer.load(work / "words.json")
    run = words.decode(memoryview(key).cast("H").tolist()).replace(" ", "␣")
    frequent = table(shown, "run", "occurrences", below="The most frequent runs")
    assert frequent[0] == [run, f"{times:,}"]
    longest = table(shown, "run", "tokens", "occurrences", below="The longest runs")
    assert longest[0][1] == str(max(len(key) // 2 for key, _ in counts.items()))
    assert "pre-tokens" not in sections((tmp_path / "report.html").read_text("utf-8"))


@pytest.mark.long
def test_runs_by_group(work: Path, tmp_path: Path) -> None:
    groups = {"a": TEXTS[::3], "b": TEXTS[1::3], "c": ["42"]}
    rows = [{"text": one, "kind": kind} for kind, some in groups.items() for one in some]
    corpus = tmp_path / "corpus.jsonl"
    write_rows(corpus, rows)
    by_kind = ("--input", corpus, "--group-by", "kind", "--split-size", "700")
    count = (*COUNT, *by_kind, "--output", tmp_path / "runs")
    bpe(*count, cwd=work)
    lost = tmp_path / "runs" / "kind=b" / "tokenizer.json"
    lost.write_text("junk", "utf-8")
    assert str(lost) in bpe("verify", tmp_path / "runs", cwd=work, status=1).stderr
    assert "complete already" not in bpe(*count, "--resume", cwd=work).stdout
    words = library.Tokenizer.load(work / "words.json")
    for kind, some in groups.items():
        folder = tmp_path / "runs" / f"kind={kind}"
        assert_same(PretokenCounts.load(folder), library.count_runs(some, tokenizer=words))
        assert library.Tokenizer.load(folder / "tokenizer.json") == words
    assert "runs in 48 files; counting the input again gives the same" in (
        bpe("verify", tmp_path / "runs", "--input", corpus, cwd=work).stdout
    )
    train = ("train", "--tokenizer", "words.json", "--superwords", "9", "--output")
    bpe(*train, tmp_path / "groups", "--counts", tmp_path / "runs", cwd=work)
    runs = library.count_runs([row["text"] for row in rows], tokenizer=words)
    expected = library.train_superwords(runs, tokenizer=words, superwords=9)
    assert library.Tokenizer.load(tmp_path / "groups" / "tokenizer.json") == expected


@pytest.mark.long
def test_runs_of_files_that_arrive(work: Path, tmp_path: Path) -> None:
    append = (*COUNT, "--append", "--input", "in/*", "--output", tmp_path / "runs", "--json")
    (tmp_path / "in").mkdir()
    (tmp_path / "words.json").write_bytes((work / "words.json").read_bytes())
    first, *others = sorted((work / "corpus").iterdir())
    for files in ([first], others):
        for path in files:
            shutil.copy(path, tmp_path / "in")
        summary = json.loads(bpe(*append, cwd=tmp_path).stdout)
    assert (summary["unit"], summary["inputs"]) == ("run", 3)
    assert summary["pretokens"] == expected(work).totals.pretokens
    verify = ("verify", tmp_path / "runs", "--input", "in/*")
    assert "runs in" in bpe(*verify, cwd=tmp_path).stdout
    (tmp_path / "runs" / "tokenizer.json").unlink()
    assert json.loads(bpe(*append, cwd=tmp_path).stdout)["new_inputs"] == 0
    assert (tmp_path / "runs" / "tokenizer.json").exists()
    words_of(TEXTS, merges=40).save(tmp_path / "words.json")
    other = bpe(*append, cwd=tmp_path, status=1)
    assert "cannot append: it was begun as another job: settings runs." in other.stderr


def test_a_transform_counts_runs(work: Path, tmp_path: Path) -> None:
    words = library.Tokenizer.load(work / "words.json")
    with pipeline() as p:
        counted = p | CountCorpus(
            inputs=[str(work / "corpus")], output=str(tmp_path / "runs"), tokenizer=words, max_run=4
        )
        distinct = len(expected(work, max_run=4))
        numbers = counted | beam.Map(lambda manifest: manifest["totals"]["distinct_pretokens"])
        assert_that(numbers, equal_to([distinct]))
    assert_same(PretokenCounts.load(tmp_path / "runs"), expected(work, max_run=4))
    with pytest.raises(ConfigError, match="say how runs are found: give `tokenizer` too"):
        CountCorpus(inputs=["x"], output="y", max_run=4)
    with pytest.raises(ConfigError, match="says how text is cut"):
        CountCorpus(inputs=["x"], output="y", tokenizer=words, special_tokens=[END])
    with pytest.raises(CountsError, match="not of pre-tokens"), pipeline() as p:
        p | ReadCounts(str(tmp_path / "runs"))


def test_pairs_of_cut_runs_that_a_runner_loses_are_missed(work: Path, tmp_path: Path) -> None:
    drained = Counters.drained
    words = library.Tokenizer.load(work / "words.json")
    where: dict[str, Any] = {"inputs": [str(work / "corpus")], "output": str(tmp_path)}
    p = pipeline()
    _ = p | CountCorpus(**where, tokenizer=words, max_run=99)  # none is as long
    with (
        patch.object(Counters, "drained", lambda one: (m for m in drained(one) if m[0][1] < 16)),
        pytest.raises(WorkerError, match="the runner lost the pairs in runs that were cut"),
    ):
        p.run()
