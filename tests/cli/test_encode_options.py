"""The options that say what rows hold, as people type them or write them into a file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.process import bpe

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
pack: 12
pack_remainder: drop
add_column: [position_ids, cu_seqlens]
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
        *("--keep", "score:float", "--pack", "12", "--pack-remainder", "drop"),
        *("--add-column", "position_ids", "--add-column", "cu_seqlens"),
        *("--allow-special", "all", "--dropout", "0.25", "--dropout-seed", "9"),
        *("--id-type", "uint32"),
        cwd=folder,
    )
    name = "data/train-00000-of-00001.parquet"
    parts = [pq.read_table(folder / output / name) for output in ("configured", "typed")]
    assert parts[0].equals(parts[1])
    assert parts[0].schema.field("input_ids").type.value_type == pa.uint32()
    piece = parts[0].schema.field("documents").type.value_type
    assert [field.name for field in piece] == ["id", "offset", "length", "lang", "score"]
    assert parts[0].schema.names[-2:] == ["position_ids", "cu_seqlens"]
    assert piece.field("score").type == pa.float32()
    assert summary["documents"] == 9
    assert summary["rows"] == len(parts[0])
    assert summary["tokens"] == 12 * summary["rows"]
    assert summary["dropped_tokens"] < 12


def test_what_was_dropped_is_said(folder: Path) -> None:
    arguments = ("--input", "docs.jsonl", "--tokenizer", "model/tokenizer.json")
    done = bpe(
        *("encode", *arguments, "--output", "d", "--pack", "999", "--pack-remainder", "drop"),
        cwd=folder,
    )
    assert "0 tokens in 0 rows" in done.stdout
    assert "9 documents whole" in done.stdout


def test_a_share_is_held_out(folder: Path) -> None:
    arguments = ("--input", "docs.jsonl", "--tokenizer", "model/tokenizer.json")
    done = bpe("encode", *arguments, "--output", "held", "--validation", "40%", cwd=folder)
    rows = pq.read_table(folder / "held" / "data" / "validation-00000-of-00001.parquet")
    assert 0 < len(rows) < 9
    assert f"held out for validation: {len(rows)} document" in done.stdout
    for share in ("0.4", "40 %"):
        (folder / "held.yaml").write_text(f"validation: {share}\n")
        bpe(
            *("encode", *arguments, "--config", "held.yaml", "--output", "held", "--resume"),
            cwd=folder,
        )
    bpe("verify", "held", "--input", "docs.jsonl", cwd=folder)
    bpe("report", "held", cwd=folder)
    assert len(bpe("decode", "held", cwd=folder).stdout.splitlines()) == 9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--pack", "8", "--max-tokens", "8"), "exclude each other"),
        (("--append-token", "<eos>"), "which has '<|end|>'"),
        (("--keep", "langs"), "no such field (their fields: 'text', 'lang', 'score')"),
        (("--keep", "lang:strin"), "'strin' is no type"),
        (("--validation", "some"), "'some' is not a share: write 0.5%, 0.005 or 1/200"),
        (("--validation", "1000"), "would need a second pass over the corpus"),
        (("--mix", "web=70%"), "the shares of --mix add up to 70%, not to 100%"),
        (("--mix", "web=100%"), "--input 'docs.jsonl' is of no source of the mix"),
        (("--token-budget", "5k"), "--token-budget goes with --mix NAME=SHARE"),
        (("--token-budget", "many"), "'many' is not a whole number"),
        (("--dropout", "2"), "--dropout': 2.0 is not between 0 and 1"),
        (("--dropout", "some"), "'some' is not a number"),
    ],
)
def test_mistakes_are_errors_of_the_command_line(
    folder: Path, arguments: tuple[str, ...], message: str
) -> None:
    done = bpe(
        *("encode", "--input", "docs.jsonl", "--tokenizer", "model/tokenizer.json"),
        *("--output", "never", *arguments),
        cwd=folder,
        status=2,
    )
    assert message in " ".join(done.stderr.split())
    assert not (folder / "never").exists()


@pytest.fixture(scope="module")
def mixed(folder: Path) -> Path:
    """The folder with two sources, a and b, of 90 documents each."""
    for name in ("a", "b"):
        records = [{"id": f"{name}{i}", "text": f"{name} lower " * (i % 9)} for i in range(90)]
        lines = "".join(json.dumps(record) + "\n" for record in records)
        (folder / f"{name}=1.jsonl").write_text(lines)
    return folder


def test_sources_are_mixed_to_a_budget(mixed: Path) -> None:
    (mixed / "mix.yaml").write_text(
        "input: [web=a=1.jsonl, code=b=1.jsonl]\nmix: [web=60%, code=40%]\ntoken_budget: 1k\n"
    )
    rest = ("--tokenizer", "model/tokenizer.json", "--append-token", END)
    done = bpe("encode", "--config", "mix.yaml", "--output", "file", "--json", *rest, cwd=mixed)
    summary = json.loads(done.stdout)
    web, code = summary["mix"]["sources"]
    assert (summary["mix"]["budget"], web["asked"], code["asked"]) == (1000, 600, 400)
    assert summary["tokens"] == web["tokens"] + code["tokens"] >= 1000
    inputs = ("--input", "web=a=1.jsonl", "--input", "code=b=1.jsonl")
    options = ("--mix", "web=0.6", "--mix", "code=0.4", "--token-budget", "1000")
    done = bpe("encode", *inputs, *options, "--output", "options", *rest, cwd=mixed)
    assert f"web: {web['documents']} documents, {web['tokens']} tokens, " in done.stdout
    assert f"(asked for 600, 60.00%; of {web['available_tokens']:,})" in done.stdout
    parts = [pq.read_table(mixed / output / "data") for output in ("file", "options")]
    assert parts[0].equals(parts[1])
    bpe("verify", "options", *inputs, cwd=mixed)
    bpe("verify", "options", "--input", "./a=1.jsonl", "--input", "./b=1.jsonl", cwd=mixed)
    watch = ("--watch", "web=new/*.jsonl", "--mix", "web=100%", "--output", "watched")
    done = bpe("encode", *watch, *rest, cwd=mixed, status=2)
    assert "--mix does not work with a watch" in done.stderr


def test_run_trains_and_encodes_the_same_mix(mixed: Path) -> None:
    (mixed / "job.yaml").write_text(
        "input: [web=a=1.jsonl, code=b=1.jsonl]\nmix: [web=30%, code=70%]\ntoken_budget: 100\n"
        "output: job\nvocab_size: 262\n"
    )
    done = json.loads(bpe("run", "job.yaml", "--json", cwd=mixed).stdout)
    assert (done["count"]["documents"], done["train"]["documents"]) == (180, 180)
    assert done["encode"]["mix"]["budget"] == 100
    assert done["encode"]["documents"] < 90
    shares = [(one["path"], round(one["bytes_share"], 4)) for one in done["train"]["mix"]]
    assert shares == [("web", 0.3), ("code", 0.7)]
    inputs = ("--input", "web=a=1.jsonl", "--input", "code=b=1.jsonl")
    bpe("verify", "job", *inputs, cwd=mixed)
    mix = ("--mix", "web=30%", "--mix", "code=70%", "--vocab-size", "262")
    done = json.loads(bpe("train", *inputs, *mix, "--output", "alone", "--json", cwd=mixed).stdout)
    assert [one["path"] for one in done["mix"]] == ["web", "code"]
    for name in ("tokenizer.json", "training.json"):
        assert (mixed / "alone" / name).read_bytes() == (mixed / "job" / name).read_bytes()
    for command in (("train", *inputs, *mix, "--output", "no"), ("run", "job.yaml")):
        refused = bpe(*command, "--parity", cwd=mixed, status=2)
        assert "--parity and --mix exclude each other" in refused.stderr
    by_id = bpe("run", "job.yaml", "--group-by", "id", "--output", "no", cwd=mixed, status=2)
    assert "--group-by id does not go with --mix" in by_id.stderr
    assert not (mixed / "no").exists()


def test_run_refuses_before_it_counts_what_encoding_would_refuse(folder: Path) -> None:
    (folder / "run.yaml").write_text(
        "input: docs.jsonl\noutput: ran\nvocab_size: 260\nappend_token: <eos>\n"
    )
    assert "'<eos>' is not a special token" in bpe("run", "run.yaml", cwd=folder, status=2).stderr
    (folder / "run.yaml").write_text(
        "input: docs.jsonl\noutput: ran\nvocab_size: 260\nkeep: nothing\n"
    )
    assert "no such field" in bpe("run", "run.yaml", cwd=folder, status=2).stderr
    assert not (folder / "ran").exists()


def test_a_rate_that_is_no_number_is_named(folder: Path) -> None:
    (folder / "wrong.yaml").write_text("dropout: often\n")
    done = bpe("encode", "--config", "wrong.yaml", cwd=folder, status=2)
    assert "dropout: 'often' is text; write a number" in done.stderr
