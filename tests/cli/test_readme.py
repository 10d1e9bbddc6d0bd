"""The commands of the README work, in their order."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
import yaml

from pipelines.cli.count import count
from pipelines.cli.encode import encode
from pipelines.cli.run import run
from pipelines.config import read_config
from tests.cli.pages import make_folder, run_page
from tests.cli.process import ROOT, bpe
from tests.pipelines.corpora import write_jsonl

if TYPE_CHECKING:
    from pathlib import Path

REFERENCE = (ROOT / "configs" / "reference.yaml").read_text("utf-8")
CONFIGS = sorted((ROOT / "configs").glob("*.yaml"))


def test_the_blocks_of_the_readme_run(tmp_path: Path) -> None:
    ran = run_page(ROOT / "README.md", make_folder(tmp_path))
    assert ran.count("sh") >= 3
    assert ran.count("python") >= 2


@pytest.mark.long
@pytest.mark.parametrize("config", CONFIGS, ids=lambda path: path.name)
def test_every_config_runs(tmp_path: Path, config: Path) -> None:
    texts = [path.read_text("utf-8") for path in sorted((ROOT / "bpe").glob("*.py"))]
    corpus = tmp_path / "c.jsonl"
    write_jsonl(corpus, texts)
    done = bpe(
        *("run", config, "--input", corpus, "--output", tmp_path / "out", "--json"),
        *("--set", "format=jsonl", "--set", "vocab_size=400"),
        cwd=ROOT,
    )
    summary = json.loads(done.stdout)
    assert summary["encode"]["documents"] == len(texts)
    assert summary["train"]["vocab_size"] == 400


def lines_of(text: str) -> list[str]:
    """The last line of each block of a file of keys: ``key: value``, or that in a comment."""
    return [block.splitlines()[-1] for block in text.strip().split("\n\n")]


def test_the_reference_config_names_every_option() -> None:
    named = [
        one[1] for line in lines_of(REFERENCE) if (one := re.match(r"(?:# )?([a-z_]+):", line))
    ]
    keys = {name for command in (run, count, encode) for name in command.keys}
    assert sorted(named) == sorted(keys)


def test_the_reference_config_tells_how_to_append(tmp_path: Path) -> None:
    _, section = re.split(r"^# --- .*docs/appending.*$", REFERENCE, flags=re.MULTILINE)
    lines = "".join(f"{line.removeprefix('# ')}\n" for line in lines_of(section))
    (tmp_path / "append.yaml").write_text(lines)
    keys = encode.keys | count.keys
    values = read_config(str(tmp_path / "append.yaml"), keys)
    assert values.keys() == keys.keys() - run.keys.keys()
    for param in encode.params:
        default = param.to_info_dict()["default"]
        if param.name in values and default not in (None, ()):
            assert values[param.name] == default, param.name


def test_the_reference_config_holds_defaults_but_for_what_is_marked() -> None:
    chosen = set(re.findall(r"^([a-z_]+):.*# chosen$", REFERENCE, re.MULTILINE))
    keys = run.keys
    for name, value in yaml.safe_load(REFERENCE).items():
        assert (name in chosen) == (value not in (keys[name].default, [keys[name].default])), name


def test_the_reference_config_names_every_choice() -> None:
    words = set(re.findall(r"[\w-]+(?:\.\w+)*", REFERENCE))
    for name, spec in run.keys.items():
        assert {*spec.choices} <= words, name
