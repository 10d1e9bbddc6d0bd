"""The examples of docs/commands.md, which are those of ``bpe COMMAND --help``: each is run."""

from __future__ import annotations

import gzip
import json
import re
import shlex
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

import bpe as library
from pipelines.cli.commands import bpe as group
from tests.cli.conftest import TEXTS
from tests.cli.pages import blocks, commands_of, make_command
from tests.cli.process import ROOT
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
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All that the examples name: corpora, counts, tokenizers in each format, ids."""
    folder = tmp_path_factory.mktemp("examples")
    lines = "".join(
        json.dumps({"id": str(number), "text": text, "lang": "en"}) + "\n"
        for number, text in enumerate(TEXTS)
    )
    for name in ("corpus", "landing", "web", "code"):
        (folder / name).mkdir()
        (folder / name / "a.jsonl").write_text(lines, "utf-8")
    with gzip.open(folder / "corpus" / "b.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write(lines)
    shutil.copytree(ROOT / "configs", folder / "configs")
    (folder / "demo" / "corpus").mkdir(parents=True)
    shutil.copy(__file__, folder / "demo" / "corpus")
    special = ("<|endoftext|>",)
    counts = library.count_pretokens(TEXTS, special_tokens=special)
    for name in ("counts", "english", "german"):
        counts.save(folder / name)
    model = library.train(counts, vocab_size=300)
    library.count_runs(TEXTS, tokenizer=model).save(folder / "runs")
    for name in ("model/tokenizer.json", "words/tokenizer.json", "old/tokenizer.json", "a.json"):
        (folder / name).parent.mkdir(exist_ok=True)
        model.save(folder / name)
    assert model.training is not None
    model.training.save(folder / "model" / "training.json")
    (folder / "new").mkdir()
    for name in ("new/tokenizer.json", "b.json"):
        model.truncated(280).save(folder / name)
    counts = library.count_pretokens(TEXTS, pretokenizer="cl100k")
    library.train(counts, vocab_size=300).save(folder / "mine.tiktoken")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        model_file = ("--tokenizer", "model/tokenizer.json")
        invoke("encode", "--input", "corpus/*.jsonl", *model_file, "--output", "ids")
        superwords = ("--max-merges", "40", "--superwords", "3", "--output", "super")
        invoke("train", "--input", "corpus/*.jsonl", *superwords)
        invoke("export", "ids", "--to", "bin", "--output", "training-data")
        for name in ("ids-web", "ids-code"):
            shutil.copytree("ids", name)
        invoke("compare", "a.json", "b.json", "--input", "corpus", "--output", "compared.json")
    return folder


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
        env = make_command(tmp_path)
        (tmp_path / "home" / ".config" / "fish" / "completions").mkdir(parents=True)
        subprocess.run(["bash", "-euc", example], check=True, env=env, cwd=here)
        return
    words = shlex.split(re.split(r" [|>]+ ", example)[0])
    if "--output" in words:  # what another example made
        shutil.rmtree(words[words.index("--output") + 1], ignore_errors=True)
    invoke(*words[1:])
