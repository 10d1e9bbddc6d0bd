"""``bpe compare`` as users run it."""

from __future__ import annotations

import html
import json
import re
from typing import TYPE_CHECKING

import pytest
import tokenizers

import bpe as library
from pipelines.errors import InputError
from pipelines.report import report
from tests.cli.conftest import TEXTS
from tests.cli.process import bpe, on_a_terminal, refused
from tests.cli.reports import harmless_elements
from tests.contrast import readable
from tests.pipelines.corpora import write_rows

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE = "<script>alert(1)</script> [bold]x[/bold]"


@pytest.fixture(scope="module")
def compared(work: Path) -> Path:
    """A folder with a second tokenizer, a hostile corpus, and one comparison of it."""
    large = library.Tokenizer.load(work / "model" / "tokenizer.json")
    large.truncated(270).save(work / "tiny" / "tokenizer.json")
    rows = [{"text": f"{HOSTILE} {i % 3}", "lang": HOSTILE if i % 2 else None} for i in range(30)]
    write_rows(work / "hostile" / "h.jsonl", rows)
    bpe(
        *("compare", "model/tokenizer.json", "small=tiny/tokenizer.json", "--input", "hostile"),
        *("--by", "lang", "--output", "c.json", "--workers", "1"),
        cwd=work,
    )
    bpe("report", "c.json", "--output", "c.html", cwd=work)
    return work


def test_the_same_result_is_printed_and_written(compared: Path) -> None:
    command = ("compare", "model/tokenizer.json", "small=tiny/tokenizer.json", "--input", "hostile")
    done = bpe(*command, "--by", "lang", "--json", cwd=compared)
    assert json.loads(done.stdout) == json.loads((compared / "c.json").read_text("utf-8"))


def test_a_tokenizer_of_hugging_face_in_the_table_and_the_result(
    compared: Path, tmp_path: Path
) -> None:
    file = json.loads((compared / "tiny" / "tokenizer.json").read_bytes()) | {"added_tokens": []}
    theirs = tokenizers.Tokenizer.from_str(json.dumps(file))
    theirs.save(str(tmp_path / "theirs.json"))
    done = bpe(
        *("compare", "ours=model", f"theirs={tmp_path}/theirs.json", "--input", "corpus/*.jsonl"),
        *("--output", tmp_path / "c.json", "--workers", "1"),
        cwd=compared,
    )
    result = json.loads((tmp_path / "c.json").read_bytes())
    ids = [id_ for text in TEXTS for id_ in theirs.encode(text).ids]
    ours, one = result["total"]["tokenizers"]
    assert (one["tokens"], one["vocabulary_used"]) == (len(ids), len(set(ids)))
    heads, _, row = (
        re.split(r" {2,}", line) for line in done.stdout.split("\nin all\n")[1].splitlines()[:3]
    )
    assert dict(zip(heads, row, strict=True)) == {
        "tokenizer": "theirs",
        "tokens": f"{len(ids):,}",
        "to first": f"{len(ids) / ours['tokens']:.3f}",
        "bytes/token": f"{one['bytes_per_token']:.2f}",
        "tokens/document": f"{one['tokens_per_document']:.2f}",
        "single bytes": f"{one['single_byte_share']:.1%}",
        "unknown": "0",
        "vocabulary used": f"{len(set(ids)):,} of {theirs.get_vocab_size():,}",
        "same tokens": f"{one['same_token_share']:.1%}",
        "same documents": f"{one['same_document_share']:.1%}",
    }


def test_the_page_holds_what_was_found_and_loads_nothing(compared: Path) -> None:
    page = (compared / "c.html").read_text("utf-8")
    names = harmless_elements(page)
    assert names["table"] == 4, "in all, the tokenizers, the files, by group"
    assert not names["b"]
    assert HOSTILE in html.unescape(page)


DAMAGED = r"/c\.json: damaged: .*make it again with bpe compare"


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("tokenizers", None, DAMAGED),
        ("total", None, DAMAGED),
        ("failures", None, DAMAGED),
        ("version", 1, "a comparison of version 1, not 2: use the release"),
    ],
)
def test_a_comparison_that_cannot_be_read_is_named(
    compared: Path, tmp_path: Path, key: str, value: int | None, message: str
) -> None:
    result = json.loads((compared / "c.json").read_text("utf-8")) | {key: value}
    result = {key: value for key, value in result.items() if value is not None}
    (tmp_path / "c.json").write_text(json.dumps(result), "utf-8")
    with pytest.raises(InputError, match=message):
        report(str(compared / "model"), comparisons=[str(tmp_path / "c.json")])


def test_a_report_shows_comparisons(compared: Path) -> None:
    model = ("report", "model", "--output", "with.html", "--compare", "c.json")
    sections = json.loads(bpe(*model, "--compare", "c.json", "--json", cwd=compared).stdout)
    assert [one for one in sections["sections"] if one.startswith("comparison")] == [
        *("comparison", "comparison-2")
    ]
    text = (compared / "with.html").read_text("utf-8")
    alone = (compared / "c.html").read_text("utf-8")
    section = alone[alone.index("<h2>") : alone.index("</section>")]
    assert text.count(section) == 2
    wrong = str(compared / "model" / "tokenizer.json")
    with pytest.raises(InputError, match="not a comparison: bpe compare --output writes one"):
        report(str(compared / "model"), comparisons=[wrong])


@pytest.mark.long
def test_all_text_of_a_report_can_be_read_in_light_and_dark(compared: Path) -> None:
    kinds = set()
    for name in ("model", "ids"):
        page = compared / f"{name}.html"
        report(str(compared / name), output=str(page), comparisons=[str(compared / "c.json")])
        kinds |= readable(page)
    assert {"h1", "h2", "h3", "p", "a", "td", "td.n", "th", "th.n", "summary", "bdi"} <= kinds
    assert {"p.explanation", "dt", "dd", "text", "span.bar", "p.note"} <= kinds
    assert {"span.t.c0", "span.t.c4"} <= kinds
    assert any("special" in kind for kind in kinds)


def test_tables_on_a_terminal(compared: Path) -> None:
    compare = ("compare", "model", "tiny", "--input", "hostile", "--workers", "1", "-q")
    shown = on_a_terminal(*compare, cwd=compared, TERM="xterm-256color")
    assert "\x1b[1mtokenizer\x1b[0m  " in shown
    assert "where tiny differs most from model" in shown


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ("model nowhere.json --input hostile", 1, "nowhere.json"),
        ("model tiny --input hostile --by nothing", 2, "--by nothing: "),
        ("a.json", 2, "name two tokenizers to compare, or more"),
        ("a.json b.json c.json", 2, "3 tokenizers are compared over a corpus alone: give"),
        ("a.json b.json --output x.json", 2, "--output needs --input"),
        ("a.json b.json --counts c --input x", 2, "--counts"),
    ],
)
def test_what_is_wrong_is_said(compared: Path, arguments: str, status: int, message: str) -> None:
    refused(message, "compare", *arguments.split(), cwd=compared, status=(status,))
