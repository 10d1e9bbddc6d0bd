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
    assert parts[0].schema.field("input_ids").type == pa.list_(pa.uint32())
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
        (("--validation", "some"), "'some' is not a share: write 0.5% or 0.005"),
        (("--validation", "1000"), "would need a second pass over the corpus"),
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
