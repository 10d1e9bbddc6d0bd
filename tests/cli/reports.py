"""Reads pages that ``bpe report`` has written."""

from __future__ import annotations

import re
from collections import Counter
from html import unescape
from html.parser import HTMLParser
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def sections(page: str) -> list[str]:
    """The keys of the sections of a page, in order."""
    return re.findall(r'<section id="([\w-]+)">', page)


def section(page: Path, key: str) -> str:
    """One of them, as HTML."""
    found = re.search(f'<section id="{key}">(.*?)</section>', page.read_text("utf-8"), re.DOTALL)
    assert found, f"{page} has no section {key}"
    return found[1]


def text(page: str) -> str:
    """The visible text, in one line."""
    return " ".join(
        re.sub(r"<[^>]*>", " ", re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)).split()
    )


def _tables(page: str) -> list[list[list[str]]]:
    """The rows of each table, as they are read."""
    return [
        [
            [unescape(re.sub(r"<[^>]*>", "", cell)) for cell in _inside("t[dh]", row)]
            for row in _inside("tr", one)
        ]
        for one in _inside("table", page)
    ]


def _inside(tag: str, page: str) -> list[str]:
    return re.findall(rf"<{tag}\b[^>]*>(.*?)</{tag}>", page, re.DOTALL)


def table(html: str, *heads: str, below: str = "") -> list[list[str]]:
    """The rows of the only table with these heads, as they are read.

    Args:
        html: what it is in.
        heads: of its columns.
        below: the heading that is clicked to see it; "" for one that is not folded.
    """
    if below:
        html = html[html.index(f"<summary>{below}</summary>") :]
        html = html[: html.index("</details>")]
    (found,) = [one[1:] for one in _tables(html) if one[:1] == [list(heads)]]
    return found


def facts(html: str) -> dict[str, str]:
    """The first table as a mapping: it has a name and a value in each row."""
    first, *_ = _tables(html)
    return dict(first)


class _Elements(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: Counter[str] = Counter()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names[tag] += 1
        for name, value in attrs:
            assert not name.startswith("on"), (tag, name)
            if name in ("src", "href", "xlink:href", "action", "srcset", "data"):
                assert (value or "").startswith("#"), (tag, name, value)


def harmless_elements(page: str) -> Counter[str]:
    """The number of elements of each name in a page, which loads and runs nothing."""
    names = _Elements(page).names
    assert not {"script", "img", "link", "iframe", "object", "embed", "base"} & set(names)
    assert not re.search(r"@import|url\((?!#)", page)
    return names
