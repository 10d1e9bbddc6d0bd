"""``bpe report``: what the page says, what it never does, and how it looks to a browser."""

from __future__ import annotations

import html
import json
import re
import shutil
import sys
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

import bpe as library
from pipelines.cli.commands import bpe as group
from pipelines.errors import InputError
from pipelines.report import report
from tests.browser import shown
from tests.cli.conftest import TEXTS
from tests.cli.process import bpe
from tests.cli.reports import facts, harmless_elements, section, sections, table, text

if TYPE_CHECKING:
    from pathlib import Path

SECTIONS = {
    "model": ["compression", "lengths", "scripts", "merges", "ties", "special"],
    "model/counts": ["pre-tokens", "text-scripts", "manifest-counts"],
    "ids": ["lengths", "frequencies", "scripts", "tokens-per-document", "samples"],
}


def test_a_run_has_every_section(run: Path) -> None:
    page = (run / "out" / "report.html").read_text("utf-8")
    assert sections(page) == [
        *("compression", "lengths", "frequencies", "scripts"),
        *("tokens-per-document", "samples"),
        *("pre-tokens", "text-scripts", "merges", "ties", "special", "dead-letters", "throughput"),
        *("manifest-counts", "manifest-corpus"),
    ]
    assert page.count("<svg") == 7
    said = text(page)
    assert "count: 3 records were set aside" in said
    assert "no field 'text'" in html.unescape(said)
    assert re.search(r"train [\d.]+ s 40", said), "the time of the training"
    assert re.search(r"learnt from, [\d,]+ bytes in [\d,]+ pre-tokens, is ", said)
    assert re.search(r"of \d+ tokens that are neither special nor added", said)


def test_bad_records_are_said_once_of_each_job_that_met_them(run: Path) -> None:
    warnings = [one for one in (run / "said.txt").read_text("utf-8").splitlines() if "bad" in one]
    assert warnings == [
        f"warning   3 bad records set aside, see out/{job}/dead-letters/"
        for job in ("counts", "encoded")
    ]


@pytest.mark.parametrize("place", SECTIONS)
def test_each_kind_of_directory_has_its_report(work: Path, tmp_path: Path, place: str) -> None:
    page = tmp_path / "page.html"
    summary = report(str(work / place), output=str(page))
    found = sections(page.read_text("utf-8"))
    assert list(summary.sections) == found
    assert [one for one in found if one in SECTIONS[place]] == SECTIONS[place]


def test_a_manifest_is_shown_as_it_is(run: Path) -> None:
    page = run / "out" / "report.html"
    manifest = json.loads((run / "out" / "encoded" / "manifest.json").read_bytes())
    shown = facts(section(page, "manifest-corpus"))
    assert shown["totals.tokens"] == f"{manifest['totals']['tokens']:,}"
    assert shown["tokenizer.sha256"] == manifest["tokenizer"]["sha256"]
    listed = table(section(page, "manifest-corpus"), *manifest["inputs"][0])
    assert [row[0] for row in listed] == [one["name"] for one in manifest["inputs"]]


def test_nothing_is_loaded_and_no_foreign_script_can_run(run: Path) -> None:
    page = (run / "out" / "report.html").read_text("utf-8")
    assert harmless_elements(page)["table"] > 10
    assert "default-src 'none'; script-src 'none'; style-src 'unsafe-inline'" in page


def test_in_a_browser_nothing_acts(run: Path) -> None:
    dom = shown(run / "out" / "report.html")
    assert "<title>Report on out</title>" in dom, "a script of the corpus has run"
    assert "<img" not in dom


def test_a_report_may_be_written_again_and_other_files_not(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(run)
    before = (run / "out" / "report.html").read_bytes()
    report("out")
    assert (run / "out" / "report.html").read_bytes() == before
    other = run / "mine.html"
    other.write_text("<p>mine")
    refused = bpe("report", "out", "--output", "mine.html", cwd=run, status=1)
    assert "mine.html is there already: name another file" in refused.stderr
    assert other.read_text() == "<p>mine"
    report("out", output="mine.html", overwrite=True)
    assert other.read_bytes() == before


@pytest.mark.long
def test_jobs_know_the_report_and_the_times(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "copy")
    place = tmp_path / "copy"
    bpe("report", "out/encoded", cwd=place)
    bpe("verify", "out/encoded", "--input", "*.jsonl", cwd=place)
    bpe("run", "job.yaml", "--resume", cwd=place)
    assert (place / "out" / "report.html").exists()
    bpe("run", "job.yaml", "--overwrite", cwd=place)
    assert not (place / "out" / "report.html").exists()
    assert not (place / "out" / "encoded" / "report.html").exists()


def test_without_matplotlib_there_are_tables_and_advice(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    arguments = ("report", str(work / "model"), "--output", str(tmp_path / "page.html"))
    done = CliRunner().invoke(group, arguments, catch_exceptions=False)
    assert "pip install matplotlib" in done.stdout
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "The pictures are missing" in page
    assert "<svg" not in page
    assert "Compression by vocabulary size: the figures" in page


@pytest.mark.parametrize("name", ["tokenizer.json", "merges.txt", "vocab.json"])
def test_a_tokenizer_file_alone_is_enough(work: Path, tmp_path: Path, name: str) -> None:
    tokenizer = library.Tokenizer.load(work / "model").truncated(280)
    tokenizer.save(tmp_path / name, leave_out=library.formats.LEAVE_OUT)
    report(str(tmp_path / name), output=str(tmp_path / "page.html"))
    found = sections((tmp_path / "page.html").read_text("utf-8"))
    assert found == ["lengths", "scripts", *["special"] * (name == "tokenizer.json")]


@pytest.mark.parametrize("model", [library.WordPiece(), library.CharacterLevel()])
def test_wordpiece_and_characters_have_reports(tmp_path: Path, model: library.models.Model) -> None:
    counts = library.count_pretokens(TEXTS, pretokenizer="words")
    tokenizer = library.train(counts, vocab_size=150, model=model)
    assert tokenizer.training is not None
    tokenizer.save(tmp_path / "tokenizer.json", dialect="beam-bpe")
    tokenizer.training.save(tmp_path / "training.json")
    report(str(tmp_path))
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "What the tie rule decided" in page
    assert '<section id="lengths">' in page


def test_what_is_not_there_or_damaged_is_named(work: Path, tmp_path: Path) -> None:
    empty = bpe("report", tmp_path, status=1).stderr
    assert "no finished job left its output here: name a directory" in empty
    shutil.copytree(work / "ids", tmp_path / "ids")
    part = next((tmp_path / "ids").glob("data/train-*"))
    part.write_bytes(part.read_bytes()[:-100])
    with pytest.raises(InputError, match=f"{part.name}.*bpe verify"):
        report(str(tmp_path / "ids"))
    assert not (tmp_path / "ids" / "report.html").exists()


def test_the_manifest_of_another_program_is_left_alone(work: Path, tmp_path: Path) -> None:
    for name in ("model", "ids"):
        shutil.copytree(work / name, tmp_path / name)
        (tmp_path / name / "manifest.json").write_text('{"files": []}')
    report(str(tmp_path / "model"))
    with pytest.raises(InputError, match="not a manifest of counts, of an encoded corpus"):
        report(str(tmp_path / "ids"))


def test_a_corpus_of_another_tokenizer_is_refused(run: Path, work: Path, tmp_path: Path) -> None:
    shutil.copytree(run / "out", tmp_path / "out")
    shutil.copy(work / "model" / "tokenizer.json", tmp_path / "out" / "tokenizer.json")
    with pytest.raises(InputError, match="was encoded with another tokenizer than"):
        report(str(tmp_path / "out"))
    bpe("report", ".", cwd=tmp_path / "out" / "encoded")
    page = (tmp_path / "out" / "encoded" / "report.html").read_text("utf-8")
    assert "<title>Report on encoded</title>" in page
