"""The commands in ``docs/`` work, and print what the pages say."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.cli.pages import blocks, is_elsewhere, make_folder, run_page
from tests.cli.process import ROOT
from tests.shared_data import long_but

if TYPE_CHECKING:
    from pathlib import Path

INDEX = ROOT / "docs" / "README.md"
ORDER = re.findall(r"^\| .*?\]\(([\w/-]+\.md)\)", INDEX.read_text("utf-8"), re.MULTILINE)
PAGES = [INDEX, *(INDEX.parent / name for name in dict.fromkeys(ORDER))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all pages: none is in the way of those that come later."""
    return make_folder(tmp_path_factory.mktemp("pages"))


def test_the_index_names_every_page() -> None:
    assert set(PAGES) == set(INDEX.parent.rglob("*.md"))


# All but the generated pages (test_examples.py runs the reference's examples) and make's targets.
RUN = [page for page in PAGES if page.name not in ("benchmarks.md", "commands.md", "fuzzing.md")]


# The slowest; what they speak of has tests of its own.
SLOW = {
    *("coming-from.md", "compare.md", "counts.md", "files.md", "metrics.md", "models.md"),
    *("pretraining.md", "report.md", "rows.md", "superwords.md", "systems.md", "appending.md"),
    *("beam.md", "export.md", "parity.md", "running.md", "scale.md", "training.md"),
    *("python.md", "windows.md", "yaml.md"),
}


FAST = [page for page in RUN if page.name not in SLOW]
# What a page needs in addition to the tests' packages; `make test-examples` has it.
NEEDS = {"pretraining.md": "torch"}


@pytest.mark.parametrize("page", long_but(RUN, *FAST), ids=lambda page: page.name)
def test_the_blocks_of_a_page_run(folder: Path, page: Path) -> None:
    if page.name in NEEDS:
        pytest.importorskip(NEEDS[page.name], reason="see make test-examples")
    assert run_page(page, folder)


def test_the_index_says_what_is_not_run() -> None:
    shown = {
        page.name for page in PAGES if any(one.kind in ("console", "py") for one in blocks(page))
    }
    text = INDEX.read_text("utf-8")
    named = text[text.index("These are not run:") :].split("\n## ")[0]
    assert set(re.findall(r"\]\((\w+\.md)\)", named)) == shown
    elsewhere = [page for page in PAGES for one in blocks(page) if is_elsewhere(one)]
    assert not elsewhere, "make, pip and git are of the README alone"
