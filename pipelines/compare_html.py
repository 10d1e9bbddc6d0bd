"""A comparison of tokenizers as HTML: a section for a report, or a page that stands by itself.

Nothing is loaded from elsewhere, and nothing in a text can become markup. Colours follow the
reader's choice of light or dark.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from pipelines.progress import many, size_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

GROUPS = 200
COLOURS = 6

STYLE = """
.compare { --ink: #1d2430; --soft: #5c6675; --line: #d9dee6; --paper: #ffffff; --bar: #d7e5fb;
  color: var(--ink); background: var(--paper); font: 15px/1.5 system-ui, sans-serif; }
@media (prefers-color-scheme: dark) { .compare { --ink: #e6e9ef; --soft: #9aa5b5; --line: #343c49;
  --paper: #14181f; --bar: #25456f; } }
.compare table { border-collapse: collapse; margin: 0.5em 0 1.5em; }
.compare caption { text-align: left; color: var(--soft); padding-bottom: 0.3em; }
.compare th, .compare td { padding: 0.25em 0.8em; border-bottom: 1px solid var(--line);
  text-align: right; vertical-align: top; white-space: nowrap; }
.compare th:first-child, .compare td:first-child, .compare .tokens { text-align: left; }
.compare td.tokens { white-space: normal; font-family: ui-monospace, monospace; }
.compare td.bar { min-width: 7em;
  background: linear-gradient(to right, var(--bar) var(--share), transparent 0); }
.compare td.best { font-weight: 700; }
.compare .scroll { overflow-x: auto; }
.compare .token { border-radius: 3px; padding: 0 2px; margin-right: 2px; }
.compare .t0 { background: #8ab4f855; } .compare .t1 { background: #fbbc0455; }
.compare .t2 { background: #34a85355; } .compare .t3 { background: #ea433555; }
.compare .t4 { background: #a142f455; } .compare .t5 { background: #24c1e055; }
"""


def page(result: dict[str, Any]) -> str:
    """A whole page, in one file."""
    names = " and ".join(escape(one["name"]) for one in result["tokenizers"])
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>Tokenizers compared: {names}</title>\n<style>{STYLE}\n"
        "html { background: #ffffff; } body { margin: 0; }\n"
        "@media (prefers-color-scheme: dark) { html { background: #14181f; } }\n"
        ".compare { max-width: 75em; margin: 0 auto; padding: 1em 1.5em; }</style>\n"
        f"</head>\n<body>\n{section(result)}</body>\n</html>\n"
    )


def section(result: dict[str, Any]) -> str:
    """The comparison as a ``<section class="compare">``; `STYLE` is what it looks like.

    Args:
        result: of `pipelines.jobs.compare`, or of its file.
    """
    total = result["total"]
    explained = (
        f"<p>{many(total['documents'], 'document')}, {size_text(total['bytes'])} of text. "
        "More bytes per token are fewer tokens for the same text: models read more at a time. "
        "A token of a single byte is what is left where no merge fits.</p>\n"
    )
    parts = [
        '<section class="compare">\n<h2>Tokenizers compared</h2>\n',
        explained,
        _in_all(result),
        _by_group(result),
        *(_difference(one) for one in result["differences"]),
        _failures(result),
        "</section>\n",
    ]
    return "".join(parts)


def _in_all(result: dict[str, Any]) -> str:
    best = max((one["bytes_per_token"] or 0 for one in result["total"]["tokenizers"]), default=0)
    rows = []
    first = result["total"]["tokenizers"][0]["tokens"]
    for tokenizer, one in zip(result["tokenizers"], result["total"]["tokenizers"], strict=True):
        used = one["vocabulary_used"]
        title = escape(f"{tokenizer['path']}; {tokenizer['model']}, {tokenizer['pretokenizer']}")
        rows.append(
            [
                f'<td title="{title}">{escape(tokenizer["name"])}</td>',
                _cell(f"{one['tokens']:,}"),
                _cell(f"{one['tokens'] / first:.3f}" if first else ""),
                _bar(one["bytes_per_token"], best),
                _cell(_decimal(one["tokens_per_document"])),
                _cell(_percent(one["single_byte_share"])),
                _cell(f"{one['unknown_tokens']:,}"),
                _cell(f"{used:,} of {tokenizer['vocab_size']:,}"),
            ]
        )
    heads = (
        *("tokenizer", "tokens", "to the first", "bytes per token", "tokens per document"),
        *("single bytes", "unknown tokens", "vocabulary used"),
    )
    return _table("The whole corpus", heads, rows)


def _by_group(result: dict[str, Any]) -> str:
    groups = result["groups"]
    if not groups:
        return ""
    rates = [one["bytes_per_token"] or 0 for group in groups for one in group["tokenizers"]]
    most = max(rates, default=0)
    rows = [
        [
            _cell("(none)" if group["name"] is None else group["name"]),
            _cell(f"{group['documents']:,}"),
            _cell(size_text(group["bytes"])),
            *(
                _bar(
                    one["bytes_per_token"],
                    most,
                    best=one["bytes_per_token"]
                    == max(other["bytes_per_token"] or 0 for other in group["tokenizers"]),
                )
                for one in group["tokenizers"]
            ),
        ]
        for group in groups[:GROUPS]
    ]
    hidden = len(groups) - GROUPS
    more = f"; {many(hidden, 'more group')} with less text" if hidden > 0 else ""
    heads = (result["by"], "documents", "text", *(one["name"] for one in result["tokenizers"]))
    return _table(f"Bytes per token by {result['by']}{more}", heads, rows)


def _difference(difference: dict[str, Any]) -> str:
    first, second = difference["first"], difference["second"]
    fewer, more = difference["pieces_with_fewer_tokens"], difference["pieces_with_more_tokens"]
    whole = fewer + more + difference["pieces_with_as_many_tokens"]
    share = (
        f": fewer tokens of {fewer / whole:.1%} of all pieces of text, more of {more / whole:.1%}"
        if whole
        else ""
    )
    rows = [
        [
            _cell(example["piece"]),
            _cell(f"{example['count']:,}"),
            _cell(f"{example['more_tokens']:+,}"),
            *(f'<td class="tokens">{_tokens(tokens)}</td>' for tokens in example["tokens"]),
        ]
        for example in difference["examples"]
    ]
    heads = ("piece of text", "occurs", "tokens more", first, second)
    return _table(f"Where {second} differs most from {first}{share}", heads, rows, left=(3, 4))


def _failures(result: dict[str, Any]) -> str:
    if not result["failures"]:
        return ""
    places = "".join(
        f"<li>{escape(one['file'])}, record at {escape(one['unit'])} {one['place']}: "
        f"{escape(one['reason'])}</li>\n"
        for one in result["bad_records"]
    )
    number = many(result["failures"], "bad record")
    return f"<p>{number} left out, the first:</p>\n<ul>\n{places}</ul>\n"


def _table(
    caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]], *, left: Sequence[int] = ()
) -> str:
    kinds = [' class="tokens"' if i in left else "" for i in range(len(heads))]
    head = "".join(
        f'<th scope="col"{kind}>{escape(name)}</th>'
        for name, kind in zip(heads, kinds, strict=True)
    )
    body = "".join(f"<tr>{''.join(row)}</tr>\n" for row in rows)
    return (
        f'<div class="scroll"><table>\n<caption>{escape(caption)}</caption>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table></div>\n"
    )


def _cell(text: str) -> str:
    return f"<td>{escape(text)}</td>"


def _bar(value: float | None, most: float, *, best: bool = False) -> str:
    if value is None:
        return "<td></td>"
    name = "bar best" if best else "bar"
    return f'<td class="{name}" style="--share: {value / (most or 1):.1%}">{value:,.2f}</td>'


def _tokens(tokens: Iterable[str]) -> str:
    return "".join(
        f'<span class="token t{i % COLOURS}">{escape(token)}</span>'
        for i, token in enumerate(tokens)
    )


def _decimal(value: float | None) -> str:
    return "" if value is None else f"{value:,.2f}"


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"
