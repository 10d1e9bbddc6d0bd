"""A folder in which jobs have run, for the tests of the commands."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.cli.process import bpe
from tests.pipelines.corpora import write_rows

if TYPE_CHECKING:
    from pathlib import Path

EVIL = '</script><script>document.title = "hacked"</script><img src=x onerror="document.title=1">'
LONG = "antidisestablishmentarianism"
TEXTS = [
    "the quick brown fox jumps over the lazy dog",
    "",
    "low lower lowest, new newer newest; the lowest and the newest",
    "naïve café – 価格は三千円です 🙂\nsecond line\n",
    "if corpus forges <|endoftext|> it stays text",
] * 20


@pytest.fixture(scope="module")
def work(worked: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus, a model and its encoded corpus."""
    return shutil.copytree(worked, tmp_path_factory.mktemp("work") / "work")


@pytest.fixture(scope="session")
def worked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("worked")
    for name, texts in (("a", TEXTS[:60]), ("b", TEXTS[60:])):
        rows = ({"id": f"{name}{i}", "text": text, "lang": "en"} for i, text in enumerate(texts))
        write_rows(folder / "corpus" / f"{name}.jsonl", rows)
    common = ("--input", "corpus/*.jsonl", "--special-token", "<|endoftext|>")
    trained = bpe("train", *common, "--vocab-size", "320", "--output", "model", cwd=folder)
    (folder / "trained.txt").write_text(trained.stdout + "\n" + trained.stderr, "utf-8")
    encode = ("encode", "--input", "corpus/*.jsonl", "--tokenizer", "model/tokenizer.json")
    bpe(*encode, "--append-token", "<|endoftext|>", "--output", "ids", cwd=folder)
    return folder


@pytest.fixture(scope="module")
def run(reported: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole run over a corpus with bad records, and names and tokens that would act."""
    return shutil.copytree(reported, tmp_path_factory.mktemp("run") / "run")


@pytest.fixture(scope="session")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reported")
    lines = [
        json.dumps({"id": EVIL, "text": f"{EVIL} the newest and the lowest été 漢字 {n} {LONG}"})
        for n in range(40)
    ]
    lines += ["not json " + EVIL, json.dumps({"id": "no text"}), json.dumps({"id": "none"})]
    name = "a<b>&amp;'\"<script>document.title=2<!--.jsonl"
    (folder / name).write_text("\n".join(lines) + "\n", "utf-8")
    (folder / "job.yaml").write_text(
        "input: '*.jsonl'\noutput: out\nvocab_size: 330\nmax_failures: 5\n"
        "special_token:\n  - <|endoftext|>\n  - " + json.dumps(EVIL) + "\n",
        "utf-8",
    )
    (folder / "said.txt").write_text(bpe("run", "job.yaml", cwd=folder).stdout, "utf-8")
    bpe("report", "out", cwd=folder)
    return folder
