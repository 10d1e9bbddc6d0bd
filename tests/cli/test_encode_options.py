"""The options that say what rows hold, as people type them or write them into a file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.process import bpe, refused

if TYPE_CHECKING:
    from pathlib import Path

END = "<|end|>"
CONFIG = """
input: docs.jsonl
tokenizer: model/tokenizer.json
output: configured
append_token: <|end|>
prepend_token: <|end|>
keep: [lang, "score:float"]
allow_special: all
dropout: 0.25
dropout_seed: 9
id_type: uint32
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("options")
    records = [{"text": "low lower lowest " * i, "lang": "en", "score": i} for i in range(9)]
    (folder / "docs.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    bpe(
        *("train", "--input", "docs.jsonl", "--output", "model"),
        *("--vocab-size", "265", "--special-token", END),
        cwd=folder,
    )
    return folder


def test_a_file_and_the_command_line_say_the_same(folder: Path) -> None:
    (folder / "encode.yaml").write_text(CONFIG)
    done = bpe("encode", "--config", "encode.yaml", "--json", cwd=folder)
    summary = json.loads(done.stdout)
    bpe(
        *("encode", "--input", "docs.jsonl", "--tokenizer", "model/tokenizer.json"),
        *("--output", "typed", "--append-token", END, "--prepend-token", END, "--keep", "lang"),
        *("--keep", "score:float"),
        *("--allow-special", "all", "--dropout", "0.25", "--dropout-seed", "9"),
        *("--id-type", "uint32"),
        cwd=folder,
    )
    name = "data/train-00000-of-00001.parquet"
    parts = [pq.read_table(folder / output / name) for output in ("configured", "typed")]
    assert parts[0].equals(parts[1])
    assert parts[0].schema.field("input_ids").type.value_type == pa.uint32()
    names = ["id", "lang", "score", "key", "input_ids", "num_tokens"]
    assert parts[0].schema.names == names
    assert parts[0].schema.field("score").type == pa.float32()
    assert summary["documents"] == len(parts[0]) == 9
    assert summary["tokens"] == sum(parts[0]["num_tokens"].to_pylist())


def test_options_of_another_command_are_named_with_it(folder: Path) -> None:
    arguments = ("--input", "docs.jsonl", "--tokenizer=model/tokenizer.json", "--output", "o")
    for option in ("--to=mds", "--mix=a=1", "--max-tokens=8", "--token-budget=1", "--pack=8"):
        said = bpe("encode", *arguments, option, cwd=folder, status=2).stderr
        owner = "train" if "mix" in option else "export"
        assert (
            f"{option.partition('=')[0]} is an option of bpe {owner}, not of this command" in said
        )
    (folder / "old.yaml").write_text("input: docs.jsonl\noutput: x\npack: 8\n")
    said = bpe("encode", "--config", "old.yaml", cwd=folder, status=2).stderr
    assert "old.yaml: pack: an option of bpe export, not of this command; remove it" in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--append-token", "<eos>"), "which has '<|end|>'"),
        (("--keep", "langs"), "no such field (their fields: 'text', 'lang', 'score')"),
        (("--keep", "lang:strin"), "'strin' is no type"),
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
        lines = "".join(json.dumps(record) + "\n" for record in records)
        (folder / f"{name}=1.jsonl").write_text(lines)
    return folder


def test_run_trains_and_exports_the_same_mix(mixed: Path) -> None:
    (mixed / "job.yaml").write_text(
        "input: [web=a=1.jsonl, code=b=1.jsonl]\nmix: [web=30%, code=70%]\ntoken_budget: 100\n"
        "output: job\nvocab_size: 262\nexport: {to: parquet, pack: 8}\n"
    )
    done = json.loads(bpe("run", "job.yaml", "--json", cwd=mixed).stdout)
    assert (done["count"]["documents"], done["train"]["documents"]) == (180, 180)
    assert done["encode"]["documents"] == 180
    assert 100 <= done["export"]["tokens"] < 140
    taken = {one["name"]: one["tokens"] for one in done["export"]["taken"]}
    assert 30 <= taken["web"] < 60 < 70 <= taken["code"]
    shares = [(one["path"], round(one["bytes_share"], 4)) for one in done["train"]["mix"]]
    assert shares == [("web", 0.3), ("code", 0.7)]
    inputs = ("--input", "web=a=1.jsonl", "--input", "code=b=1.jsonl")
    mix = ("--mix", "web=30%", "--mix", "code=70%", "--vocab-size", "262")
    done = json.loads(bpe("train", *inputs, *mix, "--output", "alone", "--json", cwd=mixed).stdout)
    assert [one["path"] for one in done["mix"]] == ["web", "code"]
    for name in ("tokenizer.json", "training.json"):
        assert (mixed / "alone" / name).read_bytes() == (mixed / "job" / name).read_bytes()
    for command in (
        ("train", "--counts", "job/counts/web", *mix, "--output", "no", "--parity"),
        ("run", "job.yaml", "--set", "parity=true", "--set", "group_by=id"),
    ):
        refused("--parity and --mix exclude each other", *command, cwd=mixed)
    by_id = ("run", "job.yaml", "--set", "group_by=id", "--output", "no")
    refused("--group-by id does not go with --mix", *by_id, cwd=mixed)


def test_run_refuses_before_it_counts_what_encoding_would_refuse(folder: Path) -> None:
    (folder / "run.yaml").write_text("input: docs.jsonl\noutput: ran\nvocab_size: 260\n")
    for value, message in (
        ("append_token=<eos>", "'<eos>' is not a special token"),
        ("keep=nothing", "no such field"),
    ):
        refused(message, "run", "run.yaml", "--set", value, cwd=folder, status=(2,))


def test_a_rate_that_is_no_number_is_named(folder: Path) -> None:
    (folder / "wrong.yaml").write_text("dropout: often\n")
    said = "dropout: 'often' is text; write a number"
    refused(said, "encode", "--config", "wrong.yaml", cwd=folder, status=(2,))
