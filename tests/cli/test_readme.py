"""What the README tells people to type works, in the order in which it stands there."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.cli.command import option_keys
from pipelines.cli.run import run
from tests.cli.process import BPE, ROOT, bpe, environment

README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
CONFIGS = sorted((ROOT / "configs").glob("*.yaml"))


def make_corpus(folder: Path) -> None:
    folder.mkdir()
    texts = [path.read_text("utf-8") for path in sorted((ROOT / "pipelines").rglob("*.py"))]
    for name, part in (("a", texts[::2]), ("b", texts[1::2])):
        lines = [json.dumps({"text": text}) for text in part]
        (folder / f"{name}.jsonl").write_text("\n".join(lines), "utf-8")


def test_the_blocks_of_the_readme_run(tmp_path: Path) -> None:
    make_corpus(tmp_path / "corpus")
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "bpe"
    command.write_text(f'#!/bin/sh\nexec "{BPE[0]}" -m pipelines.cli "$@"\n')
    command.chmod(0o755)
    path = f"{command.parent}:{environment()['PATH']}"
    ran = []
    for kind, block in BLOCKS:
        if kind == "yaml":
            name = block.splitlines()[0].removeprefix("# ")
            (tmp_path / name).write_text(block, "utf-8")
        elif kind == "python" or (kind == "sh" and "make " not in block):
            shell = ["sh", "-euc", block] if kind == "sh" else [sys.executable, "-c", block]
            done = subprocess.run(
                shell,
                cwd=tmp_path,
                env=environment(PATH=path),
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
            ran.append(kind)
    assert ran.count("sh") >= 3
    assert ran.count("python") >= 3


@pytest.mark.parametrize("config", CONFIGS, ids=lambda path: path.name)
def test_every_config_runs(tmp_path: Path, config: Path) -> None:
    texts = [path.read_text("utf-8") for path in sorted((ROOT / "bpe").glob("*.py"))]
    corpus = tmp_path / "c.jsonl"
    corpus.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), "utf-8")
    done = bpe(
        *("run", config, "--input", corpus, "--format", "jsonl", "--output", tmp_path / "out"),
        *("--vocab-size", "400", "--json"),
        cwd=ROOT,
    )
    summary = json.loads(done.stdout)
    assert summary["encode"]["documents"] == len(texts)
    assert summary["train"]["vocab_size"] == 400


def test_the_reference_config_names_every_option() -> None:
    text = (ROOT / "configs" / "reference.yaml").read_text("utf-8")
    named = set(re.findall(r"^(?:# )?([a-z_]+):", text, re.MULTILINE))
    assert named == {name for name, _ in option_keys(run)}


def test_relative_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", README):
        assert Path(ROOT, target).exists(), target
