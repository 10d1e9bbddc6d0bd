"""The examples of docs/commands.md, which are those of ``bpe COMMAND --help``: each is run."""

from __future__ import annotations

import gzip
import re
import shlex
import shutil
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

import bpe as library
from pipelines.cli.commands import bpe as group
from tests.cli.conftest import TEXTS
from tests.cli.pages import blocks, commands_of, make_command
from tests.cli.process import ROOT, execute
from tests.shared_data import shared_file

if TYPE_CHECKING:
    from pathlib import Path

# What no test has: a store, and a program of another project.
NOT_HERE = re.compile(r"s3://|configs/runners/")
# Jobs, which other tests run, and published vocabularies; that their options exist is tested
# by test_completion.py.
LONG = re.compile(r"bpe (run|count|encode|verify|export|report) |--input|--parity|_base")
EXAMPLES = [
    command
    for block in blocks(ROOT / "docs" / "commands.md")
    if block.kind == "console"
    for command in commands_of(block)
]


def invoke(*arguments: str) -> str:
    done = CliRunner().invoke(group, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture(scope="module")
def folder(work: Path) -> Path:
    """All that the examples name: corpora, counts, tokenizers in each format, ids."""
    for name in ("landing", "web", "code"):
        shutil.copytree(work / "corpus", work / name)
    (work / "corpus" / "b.jsonl.gz").write_bytes(gzip.compress((work / "web/a.jsonl").read_bytes()))
    shutil.copytree(ROOT / "configs", work / "configs")
    (work / "demo" / "corpus").mkdir(parents=True)
    shutil.copy(__file__, work / "demo" / "corpus")
    for name in ("counts", "english", "german"):
        shutil.copytree(work / "model" / "counts", work / name)
    model = library.Tokenizer.load(work / "model")
    library.count_runs(TEXTS, tokenizer=model).save(work / "runs")
    for name in ("words/tokenizer.json", "old/tokenizer.json", "a.json"):
        model.save(work / name)
    for name in ("new/tokenizer.json", "b.json"):
        model.truncated(280).save(work / name)
    counts = library.count_pretokens(TEXTS, pretokenizer="cl100k")
    library.train(counts, vocab_size=300).save(work / "mine.tiktoken")
    for name in ("ids-web", "ids-code"):
        shutil.copytree(work / "ids", work / name)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(work)
        superwords = ("--max-merges", "40", "--superwords", "3", "--output", "super")
        invoke("train", "--input", "corpus/*.jsonl", *superwords)
        invoke("export", "ids", "--to", "bin", "--output", "training-data")
        invoke("compare", "a.json", "b.json", "--input", "corpus", "--output", "compared.json")
    return work


PUBLISHED = re.compile(r"\b\w+_base\.tiktoken")


@pytest.mark.parametrize(
    "example",
    [
        pytest.param(
            example,
            marks=[
                *[pytest.mark.shared][: PUBLISHED.search(example) is not None],
                *[pytest.mark.long][: LONG.search(example) is not None],
            ],
        )
        for example in EXAMPLES
    ],
)
def test_an_example_runs(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, example: str
) -> None:
    if NOT_HERE.search(example):
        pytest.skip("names a store, or a runner that is not here")
    here = tmp_path / "here"
    shutil.copytree(folder, here)
    monkeypatch.chdir(here)
    for name in PUBLISHED.findall(example):
        shutil.copy(shared_file(f"vocabs/{name}"), here / name)
    if "~" in example or not example.startswith("bpe "):
        home = make_command(tmp_path)
        (tmp_path / "home" / ".config" / "fish" / "completions").mkdir(parents=True)
        execute("bash", "-euc", example, cwd=here, **home)
        return
    words = shlex.split(re.split(r" [|>]+ ", example)[0])
    if "--output" in words:  # what another example made
        shutil.rmtree(words[words.index("--output") + 1], ignore_errors=True)
    invoke(*words[1:])
