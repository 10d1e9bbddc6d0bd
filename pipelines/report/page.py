"""The page: one file that needs no other, and runs no script but its own."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from typing import TYPE_CHECKING

from bpe import javascript
from pipelines.output.names import REPORT_MARK
from pipelines.report.html import Html, escaped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipelines.report.html import Section


def page(*, title: str, head: Html, sections: Sequence[Section], data: Html) -> str:
    """The text of the HTML file.

    Args:
        title: the heading.
        head: what stands below it.
        sections: in order.
        data: blocks for the script of the box; empty where there is no box.
    """
    script = f"{javascript.script()}\n{_file('page.js')}" if data.text else ""
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
<meta http-equiv="Content-Security-Policy" content="{_policy(script)}">
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
{data.text}
{f"<script>{script}</script>" if script else ""}
</body>
</html>
"""


def _policy(script: str) -> str:
    """Nothing from elsewhere, and of scripts this one alone, whatever a token may hold."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    scripts = f"'sha256-{digest}'" if script else "'none'"
    return (
        f"default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; base-uri 'none'; "
        "form-action 'none'"
    )


def _file(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")
