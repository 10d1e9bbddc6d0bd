"""The options that say what rows hold, as people type them or write them into a file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.cli.process import bpe, refused
from tests.pipelines.corpora import write_rows

if TYPE_CHECKING:
    from pathlib import Path

END = "<|end|>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("options")
    records = [{"text": "low lower lowest " * i, "lang": "en", "score": i} for i in range(9)]
    write_rows(folder / "docs.jsonl", records)
    bpe(
        *("train", "--input", "docs.jsonl", "--output", "model"),
        *("--vocab-size", "265", "--special-token", END),
        cwd=folder,
    )
    return folder


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--to=mds",), "--to is an option of bpe export, not of this command"),
        (("--dropout", "2"), "--dropout': 2.0 is not between 0 and 1"),
        (("--dropout", "some"), "'some' is not a number"),
    ],
)
def test_mistakes_are_errors_of_the_command_line(
    folder: Path, arguments: tuple[str, ...], message: str
) -> None:
    encode = ("encode", "--input", "docs.jsonl", "--tokenizer", "model/tokenizer.json")
    refused(message, *encode, "--output", "never", *arguments, cwd=folder, status=(2,))


@pytest.fixture(scope="module")
def mixed(folder: Path) -> Path:
    """The folder with two sources, a and b, of 90 documents each."""
    for name in ("a", "b"):
        records = [{"id": f"{name}{i}", "text": f"{name} lower " * (i % 9)} for i in range(90)]
        write_rows(folder / f"{name}=1.jsonl", records)
    return folder


def test_run_trains_and_exports_the_same_mix(mixed: Path) -> None:
    (mixed / "job.yaml").write_text(
        "input: [web=a=1.jsonl, code=b=1.jsonl]\nmix: [web=30%, code=70%]\ntoken_budget: 100\n"
        "output: job\nvocab_size: 262\nexport: {to: parquet, pack: 8}\n"
    )
    done = json.loads(bpe("run", "job.yaml", "--json", cwd=mixed).stdout)
    assert {done[stage]["documents"] for stage in ("count", "train", "encode")} == {180}
    assert 100 <= done["export"]["tokens"] < 140
    taken = {one["name"]: one["tokens"] for one in done["export"]["taken"]}
    assert 30 <= taken["web"] < 60 < 70 <= taken["code"]
    shares = [(one["path"], round(one["bytes_share"], 4)) for one in done["train"]["mix"]]
    assert shares == [("web", 0.3), ("code", 0.7)]
    mix = ("--mix", "web=30%", "--mix", "code=70%", "--vocab-size", "262", "--output", "no")
    train = ("train", "--counts", "job/counts/web", *mix, "--parity")
    refused("--parity and --mix exclude each other", *train, cwd=mixed)
    by_id = ("run", "job.yaml", "--set", "group_by=id", "--output", "no")
    refused("--parity and --mix exclude each other", *by_id, "--set", "parity=true", cwd=mixed)
    refused("--group-by id does not go with --mix", *by_id, cwd=mixed)
