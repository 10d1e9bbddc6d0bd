"""The page and its pieces: one file that loads no other; nothing a corpus holds can act in it."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

from bpe.explain import visible
from pipelines.output.names import REPORT_MARK

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MOST_SHOWN = 60  # characters of a token
_COLOURS = 6  # of tokens, in page.css
DASH = "\N{EN DASH}"
_NUMBER = re.compile(r"[-+]?[0-9][0-9,]*(?:\.[0-9]+)?%?")


@dataclass(frozen=True)
class Html:
    """Text that is HTML already; every other text is escaped."""

    text: str


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of the report under a heading of its own.

    Attributes:
        key: what a link leads to, ``#key``; of letters and hyphens.
        title: the heading.
        body: what stands below it.
    """

    key: str
    title: str
    body: Html


def escaped(value: object) -> str:
    """A value as HTML: numbers with commas, text without power."""
    if isinstance(value, Html):
        return value.text
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return html.escape(str(value))


def joined(*parts: Html) -> Html:
    """One after the other."""
    return Html("\n".join(part.text for part in parts))


def paragraph(*parts: object) -> Html:
    """A paragraph of texts and HTML."""
    return Html(f"<p>{''.join(map(escaped, parts))}</p>")


def subheading(*parts: object) -> Html:
    """A heading within a section, of texts and HTML."""
    return Html(f"<h3>{''.join(map(escaped, parts))}</h3>")


def explanation(text: str) -> Html:
    """What a reader must know to understand what stands below."""
    return Html(f'<p class="explanation">{html.escape(text)}</p>')


def shortened(data: bytes) -> str:
    """A token as it looks, whatever it holds; a long one is cut short, with its size."""
    shown = visible(data)
    return shown if len(shown) <= MOST_SHOWN else f"{shown[:MOST_SHOWN]}… ({len(data):,} bytes)"


def token(data: bytes) -> Html:
    """A token or pre-token as it looks, whatever it holds; long ones are cut short."""
    return Html(f"<code><bdi>{html.escape(shortened(data))}</bdi></code>")


class TokenBox(NamedTuple):
    """A token of a text, to be shown in a colour.

    Attributes:
        text: how it looks.
        title: what is shown when one points at it; "" for nothing.
        special: whether it is a special token.
        ends_line: whether what follows stands on the next line.
    """

    text: str
    title: str = ""
    special: bool = False
    ends_line: bool = False


def token_boxes(boxes: Iterable[TokenBox]) -> Html:
    """Tokens in colours; a screen reader reads their texts."""
    return Html("".join(_token_box(box, number) for number, box in enumerate(boxes)))


def _token_box(box: TokenBox, number: int) -> str:
    name = f"t c{number % _COLOURS}{' special' if box.special else ''}"
    title = f' title="{html.escape(box.title)}"' if box.title else ""
    end = "<br>" if box.ends_line else ""
    return f'<span class="{name}"{title}>{html.escape(box.text)}</span>{end}'


def tokens(several: Iterable[bytes]) -> Html:
    """Tokens in a row."""
    return Html(" ".join(token(one).text for one in several))


def table(heads: Sequence[str], rows: Iterable[Sequence[object]], *, most: int = 100) -> Html:
    """A table; what is a number stands to the right. Rows beyond ``most`` are counted only."""
    every = [list(row) for row in rows]
    numeric = [_is_number(value) for value in every[0]] if every else [False] * len(heads)
    lines = [
        "".join(
            _cell("th", html.escape(head), numeric=of)
            for head, of in zip(heads, numeric, strict=True)
        )
    ]
    lines += [
        "".join(_cell("td", escaped(value), numeric=_is_number(value)) for value in row)
        for row in every[:most]
    ]
    body = "\n".join(f"<tr>{line}</tr>" for line in lines)
    more = f"<p class='more'>and {len(every) - most:,} more rows</p>" if len(every) > most else ""
    return Html(f'<div class="wide"><table>{body}</table></div>{more}')


def facts(rows: Iterable[tuple[str, object]]) -> Html:
    """Names, and what they are, below each other."""
    lines = "".join(
        f'<tr><th scope="row">{html.escape(name)}</th><td>{escaped(value)}</td></tr>'
        for name, value in rows
    )
    return Html(f'<div class="wide"><table>{lines}</table></div>')


def _cell(kind: str, text: str, *, numeric: bool) -> str:
    return f"<{kind}{' class=n' if numeric else ''}>{text}</{kind}>"


def _is_number(value: object) -> bool:
    if isinstance(value, int | float):
        return True
    return isinstance(value, str) and (value == DASH or _NUMBER.fullmatch(value) is not None)


def folded(summary: str, body: Html) -> Html:
    """What is shown when its heading is clicked."""
    return Html(f"<details><summary>{html.escape(summary)}</summary>{body.text}</details>")


def tiles(facts: Iterable[tuple[str, object]]) -> Html:
    """A few numbers, large, each with what it is."""
    cells = (
        f"<div><dt>{html.escape(name)}</dt><dd>{escaped(value)}</dd></div>" for name, value in facts
    )
    return Html(f'<dl class="tiles">{"".join(cells)}</dl>')


def side_by_side(*parts: Html) -> Html:
    """Blocks beside each other where there is room."""
    return Html(
        f'<div class="columns">{"".join(f"<div>{part.text}</div>" for part in parts)}</div>'
    )


# Nothing from elsewhere, and no script, whatever a token may hold.
_POLICY = (
    "default-src 'none'; script-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; "
    "form-action 'none'"
)
# How tokens look.
WRITTEN = "␣ is a space, \\n the end of a line, and \\x.. a byte that is no character by itself."


def page(*, title: str, head: Html, sections: Sequence[Section]) -> str:
    """The text of the HTML file.

    Args:
        title: the heading.
        head: what stands below it.
        sections: in order.
    """
    links = "\n".join(f'<a href="#{one.key}">{escaped(one.title)}</a>' for one in sections)
    nav = f"<nav>\n{links}\n</nav>\n" if len(sections) > 1 else ""
    bodies = "\n".join(
        f'<section id="{one.key}">\n<h2>{escaped(one.title)}</h2>\n{one.body.text}\n</section>'
        for one in sections
    )
    return f"""<!doctype html>
{REPORT_MARK}
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escaped(title)}</title>
<style>
{_file("page.css")}</style>
</head>
<body>
<h1>{escaped(title)}</h1>
{head.text}
{nav}{bodies}
<footer>Made by bpe. Nothing in this page is loaded from elsewhere.</footer>
</body>
</html>
"""


def _file(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")
