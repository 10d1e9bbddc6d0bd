"""Pages name modules, functions, files and headings that exist."""

from __future__ import annotations

import re
from pkgutil import resolve_name
from typing import TYPE_CHECKING

import pytest

from tests.cli.pages import anchors, links
from tests.cli.process import ROOT

if TYPE_CHECKING:
    from pathlib import Path

PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
CODE = re.compile(r"`([^`\n]+)`")
NAME = re.compile(r"(bpe|pipelines)(\.\w+)+")
FOLDERS = ("bpe", "pipelines", "tests", "configs", "docs", "scripts", "benchmarks", ".github")
FILE = re.compile(rf"({'|'.join(map(re.escape, FOLDERS))})/[\w./-]*")


def codes(name: str) -> list[str]:
    return CODE.findall((ROOT / name).read_text("utf-8"))


def test_the_architecture_shows_the_ways_by_names_that_can_be_imported() -> None:
    names = [one for one in codes("ARCHITECTURE.md") if NAME.fullmatch(one)]
    assert len(names) > 30
    for name in names:
        assert resolve_name(name) is not None, name


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_files_that_are_named_exist(page: str) -> None:
    files = [one for one in codes(page) if FILE.fullmatch(one)]
    assert len(files) > 15
    for file in files:
        assert (ROOT / file).exists(), file


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_relative_links_lead_somewhere(page: Path) -> None:
    for file, anchor in links(page):
        target = page.parent / file if file else page
        assert target.exists(), file
        assert not anchor or anchor in anchors(target), f"{file}#{anchor}"
