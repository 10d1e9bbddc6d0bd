"""Outputs of ``bpe encode`` and ``bpe export`` stay what they were, until a change means otherwise.

``golden.json`` has a row a command: a hash of what its files hold, and one of its manifest. Another
row is another output: if that is meant, write the file again and say why in the commit:

    python -m tests.pipelines.test_golden
"""

from __future__ import annotations

import hashlib
import json
import shlex
import tempfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from pipelines.cli import main
from tests.pipelines.corpora import sentence, small_tokenizer, write_corpus, write_rows

GOLDEN = Path(__file__).with_name("golden.json")
ALL = "--input 'in/*.txt' --input 'in/b/*.jsonl*' --input in/c.parquet"
NAMED = "--input web=in/b --input code=in/c.parquet --append-token '<|end|>'"
END = "--append-token '<|end|>'"
# The second word is the directory that a command writes; exports read those of encode.
COMMANDS = (
    f"encode documents {ALL}",
    f"encode ends {ALL} --prepend-token '<|end|>' {END} --id-type uint32",
    "encode kept --input columns --keep lang --keep score",
    f"encode special {ALL} --allow-special all --dropout 0.3 --dropout-seed 5",
    f"encode named {NAMED}",
    "export bin documents --to bin",
    "export llm.c ends --to bin --header llm.c --pack 33 --shuffle 4",
    "export megatron ends --to megatron --max-tokens 7 --validation 25%",
    "export mds documents --to mds --shard-size 900 --shuffle 5",
    "export mds-padded ends --to mds --pack 33 --pack-remainder pad --pad-token '<|end|>'",
    "export litdata ends --to litdata --pack 33 --pack-remainder drop --shard-size 900",
    "export parquet kept --to parquet --pack 50 --add-column cu_seqlens --validation 30%",
    "export fitted kept --to parquet --pack 50 --packing best-fit --shuffle 1",
    (
        "export blend web=documents code=kept --to parquet --mix web=70% --mix code=30% "
        "--token-budget 3k --mix-seed 2"
    ),
    "export sources named --to parquet --mix web=70% --mix code=30% --token-budget 2k",
)
_OF_THE_WRITER = ("bytes", "sha256", "checksum")  # another pyarrow compresses otherwise


def without(value: Any) -> Any:
    """A manifest without sizes and hashes of files: these are compared by what is in them."""
    if isinstance(value, dict):
        return {k: without(v) for k, v in value.items() if not k.endswith(_OF_THE_WRITER)}
    return [without(one) for one in value] if isinstance(value, list) else value


def content(path: Path) -> bytes:
    """The types and rows of a Parquet file; the bytes of another one."""
    if path.suffix != ".parquet":
        return path.read_bytes()
    table = pq.read_table(path)
    return f"{table.schema.remove_metadata()}{table.to_pylist()}".encode()


def short_hash(*parts: bytes) -> str:
    digests = b"".join(hashlib.sha256(part).digest() for part in parts)
    return hashlib.sha256(digests).hexdigest()[:16]


def hashes(output: Path) -> dict[str, str]:
    """The files of a command in a directory, but plans and times, which are hidden files.

    Records and pins hold checksums of files, which the manifest has in theirs.
    """
    paths = sorted(path for path in output.rglob("*") if path.is_file() and path.name[0] != ".")
    paths = [path for path in paths if path.name not in ("records.parquet", "sources.parquet")]
    manifests = [path for path in paths if path.name == "manifest.json"]
    values = [without(json.loads(path.read_bytes())) for path in manifests]
    data = [
        part
        for path in paths
        if path not in manifests
        for part in (str(path.relative_to(output)).encode(), content(path))
    ]
    return {"data": short_hash(*data), "manifest": short_hash(json.dumps(values).encode())}


def run_all(folder: Path) -> dict[str, dict[str, str]]:
    """The hashes of every command, on a corpus and a tokenizer in a new working folder."""
    write_corpus(folder / "in")
    records = [{"text": sentence(i), "lang": f"l{i % 3}", "score": i / 2} for i in range(40)]
    write_rows(folder / "columns" / "docs.jsonl", records)
    small_tokenizer(folder / "tokenizer.json")
    rows = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for command in COMMANDS:
            verb, output, *more = shlex.split(command)
            if verb == "encode":
                more += ["--tokenizer", "tokenizer.json", "--split-size", "700"]
            assert main([verb, *more, "--output", output, "--workers", "1", "--quiet"]) == 0
            rows[command] = hashes(folder / output)
    return rows


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """The hashes of today."""
    return run_all(tmp_path_factory.mktemp("golden"))


@pytest.mark.parametrize("command", COMMANDS, ids=lambda one: "-".join(one.split()[:2]))
def test_outputs_are_as_before(rows: dict[str, dict[str, str]], command: str) -> None:
    assert rows[command] == json.loads(GOLDEN.read_bytes())[command]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        today = run_all(Path(made))
    text = ",\n".join(f"{json.dumps(one)}: {json.dumps(row)}" for one, row in today.items())
    GOLDEN.write_text(f"{{\n{text}\n}}\n", "utf-8")
