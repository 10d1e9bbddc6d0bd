"""The rows of an encoded corpus that a report shows as coloured tokens."""

from __future__ import annotations

import html
import json
import re
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import bpe as library
from bpe.explain import visible
from pipelines.report import report
from pipelines.settings import EncodeSettings, InputSettings
from tests.cli.conftest import EVIL
from tests.cli.reports import section, text
from tests.pipelines.corpora import encode, encoded_manifest, write_rows

if TYPE_CHECKING:
    from pathlib import Path

SAMPLES, MOST_TOKENS = 5, 200
END = "<|endoftext|>"
TEXTS = ["the newest and the lowest", "", "été 漢字\nsecond line", f"a forged {END}", EVIL]
_BOX = re.compile(r'<span class="t c(\d)( special)?" title="id (\d+)">(.*?)</span>')


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of many splits with ids and texts that would act, and a tokenizer."""
    folder = tmp_path_factory.mktemp("samples")
    texts = [TEXTS[n % 5] * (1 + 40 * (n % 11 == 8)) for n in range(153)]
    rows = ({"id": f"{n} <b>{EVIL}", "text": text} for n, text in enumerate(texts))
    write_rows(folder / "a.jsonl", rows)
    counts = library.count_pretokens(["the newest and the lowest"], special_tokens=(END,))
    library.train(counts, max_merges=20, special_tokens=(END, "<|pad|>")).save(
        folder / "tokenizer.json"
    )
    return folder


def encoded(folder: Path, out: Path, split_size: int = 4096, **rows: Any) -> Path:
    """The corpus in rows as asked, with a column that passes through."""
    inputs = InputSettings(patterns=(f"{folder}/*.jsonl",), split_size=split_size)
    encoding = EncodeSettings(keep=("text",), **rows)
    encode(inputs, folder / "tokenizer.json", out, encoding=encoding)
    return out


def all_rows(corpus: Path) -> list[tuple[str, int, dict[str, Any]]]:
    """Every row with its part, and its number in it."""
    files = [part["file"] for part in encoded_manifest(corpus)["parts"]]
    return [
        (file, number, row)
        for file in files
        for number, row in enumerate(pq.read_table(corpus / file).to_pylist())
    ]


def expected(rows: list[tuple[str, int, dict[str, Any]]]) -> list[tuple[str, int, dict[str, Any]]]:
    """Those in the middle of five stretches of equal length."""
    most = min(SAMPLES, len(rows))
    return [rows[(2 * i + 1) * len(rows) // (2 * most)] for i in range(most)]


def blocks(page: Path) -> list[str]:
    """The text of each row on the page, from its heading on."""
    return section(page, "samples").split("<h3>")[1:]


@pytest.mark.parametrize("split_size", [4096, pytest.param(1 << 30, marks=pytest.mark.long)])
def test_documents_are_spread_over_the_corpus(
    folder: Path, tmp_path: Path, split_size: int
) -> None:
    corpus = encoded(folder, tmp_path / "ids", split_size, append_token=END)
    parts = len(list(corpus.glob("data/*")))
    assert parts >= SAMPLES if split_size == 4096 else parts == 1
    report(str(corpus))
    page = corpus / "report.html"
    rows = expected(all_rows(corpus))
    assert len({file for file, *_ in rows}) == min(SAMPLES, parts)
    lengths = [row["num_tokens"] for *_, row in rows]
    assert (min(lengths), max(lengths) > MOST_TOKENS) == (1, True)
    tokenizer = library.Tokenizer.load(folder / "tokenizer.json")
    special = set(tokenizer.special_tokens.values())
    for block, (file, number, row) in zip(blocks(page), rows, strict=True):
        boxes, ids = _BOX.findall(block), row["input_ids"][:MOST_TOKENS]
        assert [int(box[2]) for box in boxes] == ids
        assert [bool(box[1]) for box in boxes] == [id_ in special for id_ in ids]
        assert [html.unescape(box[3]) for box in boxes] == [
            visible(tokenizer.token_bytes(id_)) for id_ in ids
        ]
        assert [int(box[0]) for box in boxes] == [place % 6 for place in range(len(boxes))]
        assert block.count("<br>") == block.count(">\\n</span><br>") == block.count(">\\n<")
        said = html.unescape(text(block))
        assert said.startswith(f"Document {row['id'].partition(' ')[0]}␣<b></script>")
        assert f"(row {number} of {file}, from 0)" in said
        cut = f"{row['num_tokens']:,} tokens; cut here after the first {MOST_TOKENS} (row"
        assert (cut in said) == (row["num_tokens"] > MOST_TOKENS)
        assert EVIL not in block
    before = page.read_bytes()
    report(str(corpus))
    assert page.read_bytes() == before


def test_sources_say_what_they_hold(folder: Path, tmp_path: Path) -> None:
    for name in ("web", "code"):
        rows = ({"text": f"{name} lowest " * (n % 7)} for n in range(60))
        write_rows(tmp_path / f"{name}.jsonl", rows)
    inputs = InputSettings(patterns=(f"web={tmp_path}/web.jsonl", f"code={tmp_path}/code.jsonl"))
    encode(inputs, folder / "tokenizer.json", tmp_path / "ids")
    report(str(tmp_path / "ids"))
    said = " ".join(text(section(tmp_path / "ids" / "report.html", "sources")).split())
    sources = json.loads((tmp_path / "ids" / "manifest.json").read_bytes())["totals"]["sources"]
    for name, one in sources.items():
        assert f"{name} {one['documents']:,} {one['tokens']:,}" in said


def test_a_corpus_without_rows_has_no_samples(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("")
    inputs = InputSettings(patterns=(f"{tmp_path}/a.jsonl",))
    encode(inputs, folder / "tokenizer.json", tmp_path / "ids")
    assert "samples" not in report(str(tmp_path / "ids")).sections
