"""What the report says of tokenizers that were compared; and a page of that alone."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

from pipelines.progress import many, size_text
from pipelines.report.html import (
    DASH,
    MOST_SHOWN,
    Html,
    Section,
    TokenBox,
    escaped,
    explanation,
    facts,
    folded,
    joined,
    page,
    paragraph,
    subheading,
    table,
    token_boxes,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

GROUPS = 200
_MOST_TOKENS = 30  # of a piece


def comparison(result: Mapping[str, Any], *, number: int = 1) -> Section:
    """A comparison as a section.

    Args:
        result: of `pipelines.compare.job.compare`, or of its file.
        number: of the comparison, where the page has several.
    """
    names = [one["name"] for one in result["tokenizers"]]
    total = result["total"]
    body = joined(
        explanation(
            f"The same text, {many(total['documents'], 'document')} with "
            f"{size_text(total['bytes'])}, was cut by each of these tokenizers. The fewer tokens "
            "one makes of it, the more text a model reads at a time, and the less each page "
            f"costs: more bytes per token are better. The first, {names[0]}, is the measure of the "
            "others."
        ),
        _in_all(result),
        explanation(
            "Single bytes: the share of tokens that stand for one byte, which is what is left "
            "where a tokenizer knows nothing longer. Unknown tokens stand for text that is lost. "
            "Vocabulary used: how many different tokens the text needed, of all that there are. "
            f"Same tokens: the share of the tokens of {names[0]} that stand for the same piece of "
            "text at the same place. Same documents: those of which all tokens are the same."
        ),
        _which(result),
        _by_group(result),
        *(_difference(one) for one in result["differences"]),
        _failures(result),
    )
    key = "comparison" if number == 1 else f"comparison-{number}"
    return Section(key=key, title=f"Comparison of {_listed(names)}", body=body)


def comparison_page(result: Mapping[str, Any]) -> str:
    """A comparison as a page by itself."""
    section = comparison(result)
    head = explanation(
        "Language models read numbers, not text. A tokenizer cuts text into pieces, its tokens, "
        "and gives each a number."
    )
    return page(title="Tokenizers compared", head=head, sections=[section])


def _listed(names: list[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _in_all(result: Mapping[str, Any]) -> Html:
    measures = result["total"]["tokenizers"]
    most = max((one["bytes_per_token"] or 0 for one in measures), default=0)
    first = measures[0]["tokens"]
    rows = [
        (
            tokenizer["name"],
            one["tokens"],
            _to_first(one["tokens"], first) if number else DASH,
            _bar(one["bytes_per_token"], most),
            _decimal(one["tokens_per_document"]),
            _percent(one["single_byte_share"]),
            one["unknown_tokens"],
            f"{one['vocabulary_used']:,} of {tokenizer['vocab_size']:,}",
            _percent(one["same_token_share"]),
            _percent(one["same_document_share"]),
        )
        for number, (tokenizer, one) in enumerate(zip(result["tokenizers"], measures, strict=True))
    ]
    heads = (
        *("tokenizer", "tokens", "to the first", "bytes per token", "tokens per document"),
        *("single bytes", "unknown tokens", "vocabulary used", "same tokens", "same documents"),
    )
    return table(heads, rows)


def _to_first(tokens: int, first: int) -> str:
    return f"{tokens / first - 1:+.1%}" if first else DASH


def _which(result: Mapping[str, Any]) -> Html:
    rows = [
        (one["name"], f"{one['path']} ({one['model']}, pre-tokenizer {one['pretokenizer']})")
        for one in result["tokenizers"]
    ]
    corpus = [(one["name"], size_text(one["size"])) for one in result["inputs"]]
    files = table(("file", "size"), corpus)
    return joined(
        folded("Which tokenizers these are", facts(rows)),
        folded(f"The text: {many(len(corpus), 'file')}", files),
    )


def _by_group(result: Mapping[str, Any]) -> Html:
    groups = result["groups"]
    if not groups:
        return Html("")
    shown = groups[:GROUPS]
    rates = [one["bytes_per_token"] or 0 for group in shown for one in group["tokenizers"]]
    most = max(rates, default=0)
    rows = []
    for group in shown:
        best = max(one["bytes_per_token"] or 0 for one in group["tokenizers"])
        rows.append(
            (
                "(none)" if group["name"] is None else group["name"],
                group["documents"],
                Html(f'<span class="whole">{escaped(size_text(group["bytes"]))}</span>'),
                *(
                    _bar(one["bytes_per_token"], most, best=one["bytes_per_token"] == best)
                    for one in group["tokenizers"]
                ),
            )
        )
    heads = (result["by"], "documents", "text", *(one["name"] for one in result["tokenizers"]))
    hidden = len(groups) - len(shown)
    parts = [
        subheading(f"Bytes per token by {result['by']}"),
        table(heads, rows, most=GROUPS),
    ]
    if hidden > 0:
        parts.append(paragraph(f"and {many(hidden, 'more group')} with less text"))
    return joined(*parts)


def _difference(difference: Mapping[str, Any]) -> Html:
    first, second = difference["first"], difference["second"]
    fewer, more = difference["pieces_with_fewer_tokens"], difference["pieces_with_more_tokens"]
    whole = fewer + more + difference["pieces_with_as_many_tokens"]
    parts = [subheading(f"Where {second} differs most from {first}")]
    if whole:
        parts.append(
            explanation(
                f"Of all {whole:,} pieces of the text (mostly words), {second} cuts "
                f"{fewer / whole:.1%} into fewer tokens than {first}, {more / whole:.1%} into "
                "more, and the rest into as many. These pieces make the greatest difference over "
                "the whole text; each colour is one token."
            )
        )
    rows = [
        (
            f"{example['more_tokens']:+,}",
            _piece(example["piece"]),
            example["count"],
            *(_tokens(tokens) for tokens in example["tokens"]),
        )
        for example in difference["examples"]
    ]
    if rows:
        parts.append(table(("tokens more", "piece", "occurs", first, second), rows, most=len(rows)))
    return joined(*parts)


def _failures(result: Mapping[str, Any]) -> Html:
    if not result["failures"]:
        return Html("")
    places = (
        f"{one['file']}, record at {one['unit']} {one['place']}: {one['reason']}"
        for one in result["bad_records"]
    )
    items = "".join(f"<li>{escaped(place)}</li>" for place in places)
    number = many(result["failures"], "bad record")
    return joined(
        subheading("Left out"), paragraph(f"{number}, the first:"), Html(f"<ul>{items}</ul>")
    )


def _bar(value: float | None, most: float, *, best: bool = False) -> Html:
    if value is None:
        return Html(DASH)
    name = "bar best" if best else "bar"
    share = value / most if most else 0
    return Html(f'<span class="{name}" style="--share: {share:.1%}">{value:,.2f}</span>')


def _piece(text: str) -> Html:
    shown = text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"
    return Html(f'<code class="whole"><bdi>{html.escape(shown)}</bdi></code>')


def _tokens(tokens: Iterable[str]) -> Html:
    listed = list(tokens)
    boxes = token_boxes(map(TokenBox, listed[:_MOST_TOKENS]))
    more = f" and {len(listed) - _MOST_TOKENS} more" if len(listed) > _MOST_TOKENS else ""
    return Html(f'<span class="chips">{boxes.text}</span>{more}')


def _decimal(value: float | None) -> str:
    return DASH if value is None else f"{value:,.2f}"


def _percent(value: float | None) -> str:
    return DASH if value is None else f"{value:.1%}"
