"""The commands that do work, as processes, on a corpus small enough to be quick."""

from __future__ import annotations

import json
import os
import sys
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING

import pytest
import tokenizers
from tokenizers import processors

import bpe as library
from pipelines.settings import CountsInput
from tests.cli.process import BPE, bpe, execute, on_a_terminal
from tests.pipelines.corpora import encoded_manifest
from tests.shared_data import long_but

if TYPE_CHECKING:
    from collections.abc import Callable

FULL = Path("/dev/full")


def test_train_says_what_it_made(work: Path) -> None:
    said = (work / "trained.txt").read_text("utf-8")
    assert "trained   320 tokens (" in said
    assert " bytes per token" in said
    assert "model/tokenizer.json, model/training.json" in said
    assert "bpe: count: done in " in said
    assert "bpe: train: done in " in said
    assert "only bpe reads" not in said
    assert (work / "model" / "counts" / "manifest.json").is_file()


def test_verify_agrees(work: Path) -> None:
    done = bpe("verify", "ids", cwd=work)
    assert done.stdout.startswith("verified  100 documents (jsonl), ")
    assert "as its manifest says" in done.stdout
    done = bpe("verify", "ids", "--input", "corpus/*.jsonl", cwd=work)
    assert "every document decodes to its own bytes" in done.stdout


def unread() -> IO[bytes]:
    """A pipe that nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    return os.fdopen(writer, "wb")


full = pytest.mark.skipif(not FULL.exists(), reason="no /dev/full on this system")
NO_SPACE = "bpe: error: the job failed: OSError: [Errno 28] No space left on device"


@pytest.mark.parametrize(
    ("opened", "said"),
    [(unread, []), pytest.param(partial(FULL.open, "wb"), [NO_SPACE], marks=full)],
    ids=["unread", "full"],
)
def test_what_cannot_be_printed_is_an_error_of_a_line(
    work: Path, opened: Callable[[], IO[bytes]], said: list[str]
) -> None:
    with opened() as stdout:
        done = bpe("decode", "ids", cwd=work, stdout=stdout, status=1)
    assert done.stderr.splitlines() == said


def test_a_directory_may_be_called_like_a_weight(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "day:2").mkdir()
    for given, weight in (
        ("day:2", 1),
        ("day:2:1/2", Fraction(1, 2)),
        ("day:2:2.5", Fraction(5, 2)),
    ):
        assert CountsInput.parse(given) == CountsInput(directory="day:2", weight=weight)


def test_too_little_text_for_the_vocabulary_is_said(work: Path, tmp_path: Path) -> None:
    arguments = ("--input", "corpus", "--output", tmp_path / "out", "--vocab-size", "100000")
    done = bpe("train", *arguments, cwd=work)
    assert "warning   the corpus gave " in done.stdout
    assert "not the 100,000 that were asked for" in done.stdout


def test_what_was_not_counted_is_said(tmp_path: Path) -> None:
    (tmp_path / "c.jsonl").write_text('{"text": "good"}\n{"text": 3}\n{"text": "better"}\n')
    count = ("count", "--input", "c.jsonl", "--output", "out")
    done = bpe(*count, cwd=tmp_path, status=1)
    last = done.stderr.splitlines()[-1]
    assert last.startswith("bpe: error: ")
    assert "c.jsonl" in last
    assert "--max-failures" in last
    done = bpe(*count, "--max-failures", "1", "--overwrite", cwd=tmp_path)
    assert "counted   2 documents" in done.stdout
    assert "warning   1 bad record set aside, see out/dead-letters/" in done.stdout
    assert list((tmp_path / "out" / "dead-letters").iterdir())
    (tmp_path / "empty.txt").touch()
    lines = ("--input", "empty.txt", "--format", "lines", "--output", "none")
    done = bpe("count", *lines, cwd=tmp_path)
    assert "warning   the input holds no documents" in done.stdout
    done = bpe("count", "--append", "--input", "c.jsonl", "--output", "some", cwd=tmp_path)
    assert "warning   1 file set aside, such as c.jsonl: " in done.stdout


@pytest.mark.parametrize("model", ["bpe", pytest.param("wordpiece", marks=pytest.mark.long)])
def test_unknown_tokens_are_counted(work: Path, tmp_path: Path, model: str) -> None:
    token = {"bpe": "<unk>", "wordpiece": "[UNK]"}[model]
    done = bpe(
        *("train", "--input", "corpus", "--model", model, "--symbols", "characters"),
        *("--pretokenizer", "words", "--max-merges", "20", "--unknown-token", token),
        *("--output", tmp_path / "model"),
        cwd=work,
    )
    why = "only bpe reads this tokenizer.json: the end of word '</w>'"
    assert (why in done.stdout) == (model == "bpe")
    (tmp_path / "c.txt").write_text("the lazy ξ dog ψ\n", "utf-8")
    done = bpe(
        *("encode", "--input", "c.txt", "--tokenizer", "model/tokenizer.json", "--output", "ids"),
        cwd=tmp_path,
    )
    assert "unknown tokens: 2 of " in done.stdout
    manifest = encoded_manifest(tmp_path / "ids")
    assert manifest["totals"]["unknown"] == manifest["parts"][0]["unknown"] == 2
    done = bpe("verify", "ids", "--input", "c.txt", cwd=tmp_path)
    assert "unknown tokens: 2 of " in done.stdout
    assert "encoding every document again gives its ids (they do not hold all" in done.stdout


@pytest.mark.long
@pytest.mark.parametrize("stream", ["1>&-", "2>&-", "2> >(true)"])
def test_a_stream_that_nobody_reads_does_not_end_a_job(
    work: Path, tmp_path: Path, stream: str
) -> None:
    count = [*BPE, "count", "--input", "corpus", "--output", str(tmp_path / "out")]
    execute("bash", "-c", f'exec "$@" {stream}', "-", *count, cwd=work)
    assert (tmp_path / "out" / "manifest.json").exists()


@pytest.mark.long
def test_json_on_a_stream_that_is_not_utf8(work: Path, tmp_path: Path) -> None:
    output = tmp_path / "é"
    done = bpe("count", "--input", "corpus", "--output", output, "--json", cwd=work)
    assert json.loads(done.stdout)["output"] == str(output)
    done = bpe("verify", output, "--json", cwd=work, PYTHONIOENCODING="ascii")
    assert json.loads(done.stdout)["directory"] == str(output)


def test_an_error_is_one_line_whatever_a_file_is_called(tmp_path: Path) -> None:
    (tmp_path / "a\n\x1b[31m").write_text("")
    done = bpe("count", "--input", "a\n\x1b[31m/x", "--output", "o", cwd=tmp_path, status=1)
    assert len(done.stderr.splitlines()) == 1
    output = ("--output", "a\n\x1b[31m")
    done = bpe("count", "--input", "a\n\x1b[31m", *output, cwd=tmp_path, status=1)
    assert done.stderr.splitlines()[-1].endswith("/a\\n\\x1b[31m is a file: name a directory")
    assert "\x1b" not in done.stderr


def test_beam_gets_its_arguments_and_is_quiet(work: Path, tmp_path: Path) -> None:
    count = ("count", "--input", "corpus", "--output", tmp_path / "out", "--quiet")
    beam = ("--direct_running_mode=in_memory", "--direct_num_workers=1")
    assert bpe(*count, "--", *beam, cwd=work).stderr == ""


def test_a_bar_on_a_terminal_and_the_summary_apart(work: Path, tmp_path: Path) -> None:
    count = ("count", "--input", "corpus", "--output", tmp_path / "out")
    with (tmp_path / "summary").open("wb") as file:
        drawn = on_a_terminal(*count, cwd=work, stdout=file, TERM="xterm")
    assert drawn.startswith("bpe: count: 2 files, ")
    assert "\x1b[" in drawn
    assert (tmp_path / "summary").read_bytes().startswith(b"counted   100 documents")


MODULES = ["click", "apache_beam.coders", "yaml", "numpy", "grpc", "apache_beam", "pyarrow"]


@pytest.mark.parametrize("module", long_but(MODULES, "click", "apache_beam.coders"))
def test_interrupting_an_import_ends_with_a_line(tmp_path: Path, module: str) -> None:
    (tmp_path / "a.txt").write_text("some words")
    start = f"""
import os, signal, sys

class Interrupting:
    def find_spec(self, name, path, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
from pipelines.cli import main
sys.exit(main())
"""
    arguments = ("count", "--input", "a.txt", "--output", "counts")
    for extra, line in (
        ((), "bpe: error: interrupted\n"),
        (("--log-format", "json"), '"level": "ERROR", "message": "interrupted"}\n'),
    ):
        done = execute(sys.executable, "-c", start, *arguments, *extra, cwd=tmp_path, status=130)
        assert done.stderr.endswith(line)
        assert done.stderr.count("\n") == 1
        assert not (tmp_path / "counts").exists()


def test_the_share_of_each_of_several_counts_is_said(work: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        bpe("count", "--input", f"corpus/{name}.jsonl", "--output", tmp_path / name, cwd=work)
    train = ("train", "--counts", "a:0.3", "--counts", "b:7/10", "--vocab-size", "280")
    summary = json.loads(bpe(*train, "--output", "one", "--json", cwd=tmp_path).stdout)
    mix, tokens = summary["mix"], summary["tokens"] / summary["scale"]
    assert [(one["path"], one["weight"]) for one in mix] == [("a", "3/10"), ("b", "7/10")]
    training = (tmp_path / "one" / "training.json").read_bytes()
    assert json.loads(training)["mix"] == mix
    shown = bpe(*train, "--output", "two", cwd=tmp_path).stdout
    assert f": the weighted corpus is {tokens:,.1f} tokens, " in shown
    for one in mix:
        shares = (
            f"{one['bytes_share']:.1%} of the bytes, {one['pretokens_share']:.1%} of the pre-to"
        )
        assert f"{one['path']}, weight {one['weight']}: {shares}" in shown


def test_what_of_a_tokenizer_is_not_applied_is_said(work: Path, tmp_path: Path) -> None:
    theirs = tokenizers.Tokenizer.from_file(str(work / "model" / "tokenizer.json"))
    name = "<|endoftext|>"
    theirs.post_processor = processors.TemplateProcessing(
        single=f"{name} $A", special_tokens=[(name, theirs.token_to_id(name))]
    )
    theirs.save(str(tmp_path / "theirs.json"))
    (what,) = library.Tokenizer.load(tmp_path / "theirs.json").not_applied
    encode = ("encode", "--input", work / "corpus", "--tokenizer", "theirs.json", "--json")
    encoded = bpe(*encode, "--output", "ids", cwd=tmp_path)
    shown = bpe("show", "theirs.json", "low", "lower", "--json", cwd=tmp_path)
    assert json.loads(encoded.stdout)["not_applied"] == [what]
    assert [word["not_applied"] for word in json.loads(shown.stdout)] == [[what]] * 2
    for done in (encoded, shown):
        lines = [line for line in done.stderr.splitlines() if "not applied" in line]
        assert len(lines) == 1
        assert f"theirs.json: not applied: {what}" in lines[0]
    assert "not applied" not in bpe("show", work / "model" / "tokenizer.json", "low").stderr
