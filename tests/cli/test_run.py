"""``bpe run``: a job that a file describes."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING

import pytest

import bpe as library
from bpe.roles import Roles
from tests.cli.process import bpe, refused
from tests.pipelines.corpora import tree

if TYPE_CHECKING:
    from pathlib import Path


def test_run_does_it_all_and_resumes(work: Path) -> None:
    (work / "job.yaml").write_text(
        "input: corpus/*.jsonl\noutput: all\nvocab_size: 300\npretokenizer: cl100k\n"
        "export: {to: parquet, pack: 16, shuffle: 1}\n"
    )
    done = bpe("run", "job.yaml", "--json", cwd=work)
    summary = json.loads(done.stdout)
    assert list(summary) == ["count", "train", "encode", "export", "warnings"]
    assert summary["train"]["vocab_size"] == 300
    files = tree(work / "all")
    assert {"tokenizer.json", "training.json", "counts/manifest.json"} <= files.keys()
    assert {"encoded/manifest.json", "export/manifest.json"} <= files.keys()

    refused = bpe("run", "job.yaml", cwd=work, status=1)
    assert "of bpe run, which is complete: replace it with --overwrite, or" in refused.stderr
    again = bpe("run", "job.yaml", "--resume", cwd=work)
    assert again.stdout.count("complete already") == 3
    for stage in ("count", "encode", "export"):
        assert re.search(rf"bpe: {stage}: done in .*all by an earlier run\n", again.stderr)
    assert " 0 documents" not in again.stderr
    assert tree(work / "all") == files
    (work / "all" / "encoded" / "manifest.json").unlink()
    refused = bpe("run", "job.yaml", cwd=work, status=1)
    assert "which is not finished: repeat its command with --resume, " in refused.stderr


def test_the_command_line_wins_over_the_file(work: Path, tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text(
        "input: nowhere\nvocab-size: 100\npretokenizer: words\nspecial_token: [<a>, <b>]\n"
        "workers: 1\njson: true\n"
    )
    out = tmp_path / "out"
    done = bpe(
        *("train", "--config", job, "--input", "corpus", "--vocab-size", "290"),
        *("--pattern", r"\S+|\s+", "--special-token", "<c>", "--output", out),
        cwd=work,
    )
    assert json.loads(done.stdout)["vocab_size"] == 290
    tokenizer = library.Tokenizer.load(out / "tokenizer.json")
    assert tokenizer.special_tokens == {"<c>": 0}
    assert tokenizer.pretokenizer.pattern == r"\S+|\s+"
    again = (*("train", "--config", job, "--input", "corpus", "--vocab-size", "290"), "--output")
    assert not bpe(*again, tmp_path / "2", "--no-json", cwd=work).stdout.startswith("{")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("baseline: a\n", "job.yaml: baseline: an option of bpe encode, not of this command"),
        ("beam_args: [x]\n", "job.yaml: beam_args: 'x' does not begin with --"),
        ("config: other.yaml\n", "job.yaml: config: unknown key"),
        ("pretokenizer: gpt2\npattern: x\n", "--pretokenizer and --pattern exclude each other"),
    ],
)
def test_a_wrong_file_is_a_wrong_command_line(work: Path, text: str, message: str) -> None:
    (work / "job.yaml").write_text(text)
    arguments = ("--input", "corpus", "--output", "never")
    for command in (
        ("train", "--config", "job.yaml", "--vocab-size", "300"),
        ("run", "job.yaml", "--set", "vocab_size=300"),
    ):
        refused(message, *command, *arguments, cwd=work, status=(2,))


def test_a_section_is_for_its_stage_alone(work: Path, tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text(
        "input: corpus/*.jsonl\nvocab_size: 290\nsplit_size: 100MB\n"
        f"output: {tmp_path / 'out'}\ntrain: {{vocab_size: 300}}\n"
        "encode: {split_size: 200MB}\nexport: {to: bin}\n"
    )
    given = ("--set", "encode.split_size=1kB", "--set", "export.to=parquet")
    done = bpe("run", job, *given, "--set", "boundless=false", "--json", cwd=work)
    assert json.loads(done.stdout)["train"]["vocab_size"] == 300
    assert len([*(tmp_path / "out/encoded/data").iterdir()]) > 2  # two files, in splits of 1 kB
    assert [one.suffix for one in (tmp_path / "out/export/data").iterdir()] == [".parquet"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("--set vocab_sice=10", "--set vocab_sice: no stage has this option; did you mean"),
        ("--set export.ties=any", "--set export.ties: no stage has this option; did you mean"),
        ("--set vocab_size", "--set vocab_size: write KEY=VALUE"),
        ("--set boundless=1", "--set boundless=1: '1' is not true or false"),
        ("--set ties=any", "'any' is unknown: use one of bytes-min"),
        ("--vocab-size 9", "is an option of a stage: give --set vocab_size=VALUE"),
        ("--discard-ids", "discard_ids is of an export: give its format with `to`"),
        ("--config both.yaml", "min_frequency: given in count and in train: keep one"),
        ("--set vocab_size=100", "--vocab-size 100 is too small"),
        ("--set append_token=<eos>", "'<eos>' is not a special token"),
        ("--set keep=nothing", "no such field"),
        (
            "--set extend=cl100k/tokenizer.json --preset words",
            "splits text with cl100k, but the options say words",
        ),
    ],
)
def test_run_refuses_before_it_counts(work: Path, given: str, message: str) -> None:
    counts = library.count_pretokens(["low lower"], pretokenizer="cl100k")
    library.train(counts, vocab_size=260).save(work / "cl100k" / "tokenizer.json")
    (work / "job.yaml").write_text("input: corpus\nvocab_size: 300\noutput: never\n")
    (work / "both.yaml").write_text("count: {min_frequency: 2}\ntrain: {min_frequency: 2}\n")
    refused(message, "run", "job.yaml", *given.split(), cwd=work, status=(2,))


def test_run_writes_nothing_beside_files_of_others(work: Path) -> None:
    (work / "foreign").mkdir()
    (work / "foreign" / "notes").touch()
    (work / "job.yaml").write_text("input: corpus\nvocab_size: 300\noutput: foreign\n")
    refused("holds 'notes'", "run", "job.yaml", cwd=work)


@pytest.mark.long
def test_the_output_of_a_run_may_lie_in_its_input(work: Path, tmp_path: Path) -> None:
    shutil.copytree(work / "corpus", tmp_path / "in")
    (tmp_path / "job.yaml").write_text("input: in\noutput: in/out\nvocab_size: 300\n")
    for more in ([], ["--resume"], ["--overwrite"]):
        bpe("run", "job.yaml", *more, cwd=tmp_path)
        bpe("verify", "in/out/encoded", "--input", "in", cwd=tmp_path)


def test_a_tokenizer_is_extended(work: Path, tmp_path: Path) -> None:
    """Its pre-tokenizer and special tokens hold."""
    old = library.train(
        library.count_pretokens(["low lower"], pretokenizer="o200k", special_tokens=["<e>"]),
        vocab_size=260,
    ).with_roles(Roles(eos="<e>"))
    old.save(tmp_path / "tokenizer.json")
    (tmp_path / "tokenizer_config.json").write_text('{"eos_token": "<e>"}')
    job = tmp_path / "job.yaml"
    job.write_text("input: corpus/*.jsonl\noutput: more\nvocab_size: 300\nappend_token: eos\n")
    named = f"extend={tmp_path / 'tokenizer.json'}"
    agreeing = ("--set", "pretokenizer=o200k", "--set", "eos=<e>")
    bpe("run", job, "--set", named, *agreeing, "--output", tmp_path / "more", cwd=work)
    new = library.Tokenizer.load(tmp_path / "more" / "tokenizer.json")
    assert new.tokens[:260] == old.tokens
    assert (len(new), new.roles.eos, new.pretokenizer) == (300, "<e>", old.pretokenizer)
    training = library.Training.load(tmp_path / "more" / "training.json")
    last = training.merges[-1]
    word = (last.left + last.right).decode()
    shown = bpe("show", tmp_path / "more", word, cwd=work).stdout
    assert f"rank {len(new.merges) - 1}, count {last.count}" in shown


def test_ids_are_discarded_when_their_export_is_verified(work: Path) -> None:
    (work / "gone.yaml").write_text(
        "input: corpus/*.jsonl\noutput: gone\nvocab_size: 300\nexport: {to: parquet, pack: 16}\n"
    )
    ids, rows = work / "gone" / "encoded", work / "gone" / "export"
    bpe("run", "gone.yaml", "--discard-ids", "-q", cwd=work)
    assert list((ids / "data").iterdir()) == []
    assert json.loads((ids / "manifest.json").read_text())["discarded"] is True
    made = tree(rows)
    bpe("verify", "gone", "-q", cwd=work)  # of the whole, what is there
    for command in ("verify", "decode", "export"):
        more = ["--to", "bin", "--output", "elsewhere"] if command == "export" else []
        refused = bpe(command, ids, *more, cwd=work, status=1)
        assert "its parts were removed when their export was verified" in refused.stderr
    again = bpe("run", "gone.yaml", "--discard-ids", "--resume", cwd=work)
    for stage in ("count", "encode", "export"):
        assert re.search(rf"bpe: {stage}: done in .*all by an earlier run\n", again.stderr)
    assert tree(rows) == made
    next((rows / "data").iterdir()).unlink()
    refused = bpe("run", "gone.yaml", "--resume", cwd=work, status=1)
    assert "encode the corpus again, with bpe encode --overwrite" in refused.stderr
    bpe("run", "gone.yaml", "--overwrite", "-q", cwd=work)
    assert tree(rows) == made
    assert "discarded" not in json.loads((ids / "manifest.json").read_text())
    bpe("verify", ids, "-q", cwd=work)
    (ids / "manifest.json").unlink()
    refused = bpe("run", "gone.yaml", cwd=work, status=1)
    assert "the output of bpe run, which is not finished: repeat its command" in refused.stderr
