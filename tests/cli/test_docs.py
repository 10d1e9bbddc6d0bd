"""What the pages in ``docs/`` tell people to type works, and prints what they say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cli.pages import anchors, links, run_page
from tests.cli.process import ROOT

if TYPE_CHECKING:
    from pathlib import Path

PAGES = sorted((ROOT / "docs").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_blocks_of_a_page_run(tmp_path: Path, page: Path) -> None:
    assert run_page(page, tmp_path)


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: page.name)
def test_relative_links_lead_somewhere(page: Path) -> None:
    for file, anchor in links(page):
        target = page.parent / file if file else page
        assert target.exists(), file
        assert not anchor or anchor in anchors(target), f"{file}#{anchor}"
