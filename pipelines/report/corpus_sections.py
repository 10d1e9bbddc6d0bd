"""What the report says of counts, of encoded documents, and of the jobs that made them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipelines.output.entries import WATCH
from pipelines.progress import duration, many, size_text
from pipelines.report import charts
from pipelines.report.facts import MOST_READ, Reason
from pipelines.report.html import (
    DASH,
    WRITTEN,
    Html,
    Section,
    TokenBox,
    escaped,
    explanation,
    facts,
    folded,
    joined,
    paragraph,
    shortened,
    side_by_side,
    subheading,
    table,
    token,
    token_boxes,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from bpe import Tokenizer
    from bpe.counts.manifest import CountsManifest
    from pipelines.encode.manifest import EncodedManifest
    from pipelines.output.timings import Timing
    from pipelines.report.facts import CountedFacts, EncodedFacts, SampleRow

_WIDEST = 24  # bytes: longer pre-tokens share a bar
_LISTED = 50  # files of a manifest


_OF_PRETOKENS = (
    "Before anything is joined, text is cut into pre-tokens: words, roughly, with the space before "
    "them. No token reaches across such a cut, so all that training needs is how often each "
    "distinct pre-token occurs."
)
_OF_RUNS = (
    "A run is the longest sequence of two or more pre-tokens that follow each other and are one "
    "token each. Superwords, tokens that cross the boundaries of words, are learnt of how often "
    "each distinct run occurs. Long runs in few copies take most of the memory."
)


def counted(manifest: CountsManifest, facts: CountedFacts, tokenizer: Tokenizer | None) -> Section:
    """What was counted: pre-tokens, or runs of the tokens of a tokenizer."""
    text: Callable[[bytes], Html] = token
    if manifest.runs is None:
        name, unit, rare_are = "pre-token", "bytes", ": names, numbers, typing errors"
        explained = _OF_PRETOKENS
    else:
        name, unit, rare_are, explained = "run", "tokens", "", _OF_RUNS
        text = _run_text(tokenizer, facts.id_bytes or 1)
    scale = manifest.scale
    sizes = range(1, min(max(facts.lengths, default=0), _WIDEST) + 1)

    def share(counts: Mapping[int, int], size: int) -> float:
        total = max(sum(counts.values()), 1)
        if size < _WIDEST:
            return 100 * counts.get(size, 0) / total
        return 100 * sum(count for one, count in counts.items() if one >= size) / total

    powers = range(max(facts.frequencies, default=-1) + 1)
    distinct = max(sum(one for one, _ in facts.frequencies.values()), 1)
    times = max(sum(one for _, one in facts.frequencies.values()), 1)
    rare = facts.frequencies.get(0, (0, 0))[0]
    weighted = f" Counts are weighted: all are in units of 1/{scale:,}." if scale != 1 else ""
    body = joined(
        explanation(explained),
        charts.bars(
            f"{name.capitalize()} frequencies",
            values=[
                (_power(power), 100 * facts.frequencies.get(power, (0, 0))[0] / distinct)
                for power in powers
            ],
            second=[100 * facts.frequencies.get(power, (0, 0))[1] / times for power in powers],
            axes=(f"occurrences of the {name}", "percent"),
            legend=(f"of distinct {name}s", "of the corpus"),
        ),
        paragraph(
            f"{rare:,} of {distinct:,} distinct {name}s ({rare / distinct:.1%}) occur once"
            f"{rare_are}.{weighted}"
        ),
        charts.bars(
            f"{name.capitalize()} lengths",
            values=[
                (f"{n}+" if n == _WIDEST else str(n), share(facts.distinct_lengths, n))
                for n in sizes
            ],
            second=[share(facts.lengths, n) for n in sizes],
            axes=(f"{unit} of the {name}", "percent"),
            legend=(f"of distinct {name}s", "of the corpus"),
        ),
        side_by_side(
            folded(
                f"The most frequent {name}s",
                table(
                    (name, "occurrences"),
                    ((text(one), count) for count, one in facts.frequent),
                ),
            ),
            folded(
                f"The longest {name}s",
                table(
                    (name, unit, "occurrences"),
                    ((text(one), size, count) for size, count, one in facts.longest),
                ),
            ),
        ),
    )
    return Section(key=f"{name}s", title=f"{name.capitalize()}s", body=body)


def _run_text(tokenizer: Tokenizer | None, id_bytes: int) -> Callable[[bytes], Html]:
    """Shows the text of a run, whose key is the ids of its tokens."""
    if tokenizer is None:
        raise ValueError("runs are of the tokens of a tokenizer")

    def text(key: bytes) -> Html:
        ids = (
            int.from_bytes(key[at : at + id_bytes], "little") for at in range(0, len(key), id_bytes)
        )
        return token(b"".join(map(tokenizer.token_bytes, ids)))

    return text


def pretoken_kinds(facts: CountedFacts) -> Section:
    """Of which scripts the counted text is."""
    total = max(sum(bytes_ for _, _, bytes_ in facts.kinds.values()), 1)
    order = sorted(facts.kinds, key=lambda kind: (-facts.kinds[kind][2], kind))
    body = joined(
        explanation(
            "Which writing systems the counted text is of, each pre-token by its first letter (or "
            "digits, punctuation, white space where it has none). A script with a small share "
            "here will get few tokens."
        ),
        charts.horizontal_bars(
            "The counted text by script",
            values=[(kind, 100 * facts.kinds[kind][2] / total) for kind in order],
            axis="percent of its bytes",
        ),
        table(
            ("script", "distinct pre-tokens", "occurrences", "bytes", "share of the bytes"),
            ((kind, *facts.kinds[kind], f"{facts.kinds[kind][2] / total:.2%}") for kind in order),
        ),
    )
    return Section(key="text-scripts", title="Scripts of the text", body=body)


def sources(manifest: EncodedManifest) -> Section | None:
    """What each named source holds; None where inputs have no names."""
    totals = manifest.totals
    if not totals.sources:
        return None
    heads = ("source", "documents", "tokens", "share of the tokens", "bytes of text")
    rows = (
        (
            name,
            one.documents,
            one.tokens,
            f"{one.tokens / max(totals.tokens, 1):.2%}",
            one.text_bytes,
        )
        for name, one in totals.sources.items()
    )
    return Section(key="sources", title="Sources", body=table(heads, rows))


def document_lengths(manifest: EncodedManifest, facts: EncodedFacts, *, sampled: bool) -> Section:
    """How many tokens documents have."""
    bins: dict[int, int] = {}
    for size, rows in enumerate(facts.lengths.tolist()):
        if rows:
            power = size.bit_length()
            bins[power] = bins.get(power, 0) + rows
    powers = range(min(bins, default=0), max(bins, default=-1) + 1)
    rows_ = max(facts.rows, 1)
    note = (
        f" Only {facts.parts:,} of {len(manifest.parts):,} parts were read for this."
        if sampled
        else ""
    )
    body = joined(
        explanation(
            "How many tokens a document has; each bar is twice as wide as the one before it."
        ),
        charts.bars(
            "Tokens per document",
            values=[
                ("0" if power == 0 else _power(power - 1), 100 * bins.get(power, 0) / rows_)
                for power in powers
            ],
            axes=("tokens of the document", "percent of documents"),
        ),
        table(
            ("share of all", "tokens of a document at most"),
            [
                (name, facts.length_at(share))
                for name, share in (
                    *(("a tenth", 0.1), ("a quarter", 0.25), ("half", 0.5)),
                    *(("three quarters", 0.75), ("nine tenths", 0.9), ("99 of 100", 0.99)),
                    ("all", 1.0),
                )
            ]
            if facts.rows
            else [],
        ),
        paragraph(f"{facts.rows:,} documents, {int(facts.tokens.sum()):,} tokens.{note}"),
    )
    return Section(key="tokens-per-document", title="Tokens per document", body=body)


def sample_rows(
    manifest: EncodedManifest, samples: Sequence[SampleRow], tokenizer: Tokenizer
) -> Section | None:
    """A few documents as coloured tokens; None where the corpus has none."""
    if not samples:
        return None
    body = joined(
        explanation(
            f"{many(len(samples), 'document')} of {manifest.totals.documents:,}, evenly spread "
            "over the corpus. Each colour is one token; point at it to see its id. Special tokens "
            f"have an outline. {WRITTEN}"
        ),
        *(_sample(row, tokenizer) for row in samples),
    )
    return Section(key="samples", title="Sample documents", body=body)


def _sample(row: SampleRow, tokenizer: Tokenizer) -> Html:
    size = many(row.tokens, "token")
    if len(row.ids) < row.tokens:
        size += f"; cut here after the first {len(row.ids):,}"
    note = escaped(f"{size} (row {row.row:,} of {row.file}, from 0).")
    empty = "" if row.tokens else ": no tokens"
    blocks = [
        subheading("Document ", token(row.id.encode()), empty),
        Html(f'<p class="note">{note}</p>'),
    ]
    if row.ids:
        blocks.append(Html(f'<div class="sample">{_boxes(row, tokenizer).text}</div>'))
    return joined(*blocks)


def _boxes(row: SampleRow, tokenizer: Tokenizer) -> Html:
    special = set(tokenizer.special_tokens.values())
    tokens = ((id_, tokenizer.tokens[id_]) for id_ in row.ids)
    return token_boxes(
        TokenBox(
            text="(no token)" if data is None else shortened(data),
            title=f"id {id_}",
            special=id_ in special,
            ends_line=data is not None and data.endswith(b"\n"),
        )
        for id_, data in tokens
    )


def dead_letters(found: Sequence[tuple[str, int, Mapping[str, Reason]]]) -> Section | None:
    """Why records were set aside.

    Args:
        found: for each job its name, how many records it set aside, and why.
    """
    blocks = []
    for stage, failures, reasons in found:
        if not failures:
            continue
        more = f" The reasons are those of the first {MOST_READ:,}." if failures > MOST_READ else ""
        rows = [
            (
                reason,
                one.records,
                Html(
                    "<br>".join(
                        f"{escaped(file)}, {escaped(at)}: {escaped(said)}"
                        for file, at, said in one.examples
                    )
                ),
            )
            for reason, one in reasons.items()
        ]
        blocks.append(
            joined(
                paragraph(f"{stage}: {failures:,} records were set aside.{more}"),
                table(("reason", "records", "such as"), rows),
            )
        )
    if not blocks:
        return None
    intro = explanation(
        "Records that could not be read, each kept in dead-letters/ with file, place and reason. "
        "They are in none of the other numbers."
    )
    return Section(key="dead-letters", title="Dead letters", body=joined(intro, *blocks))


def throughput(
    timings: Sequence[Timing], unknown: Sequence[str], watched: Sequence[str]
) -> Section:
    """How fast each step was.

    Args:
        timings: of the steps whose time is known.
        unknown: the steps whose time is not.
        watched: the steps that take files as they arrive, which have none.
    """
    rows = [
        (
            one.stage,
            duration(one.seconds),
            one.documents,
            size_text(one.bytes),
            f"{size_text(one.bytes / one.seconds)}/s" if one.seconds else DASH,
            f"{one.items:,} {one.unit}",
            f"{one.items / one.seconds:,.0f}/s" if one.seconds else DASH,
            f"{one.runner}, " + (many(one.workers, "worker") if one.workers else "a worker a core"),
        )
        for one in timings
    ]
    heads = ("step", "time", "documents", "text", "speed", "made", "speed of that", "by")
    body = joined(
        explanation("How long each step took on the machine where it ran, start of Beam included.")
        if rows or unknown
        else Html(""),
        table(heads, rows) if rows else Html(""),
        *(
            paragraph(
                f"The same pre-tokens come again and again, so the encoder remembers how it cut "
                f"them: of {of:,}, {one.cache_hits / of:.2%} were in its cache, and only the "
                f"other {one.cache_misses:,} had to be merged."
            )
            for one in timings
            if (of := one.cache_hits + one.cache_misses)
        ),
        paragraph(
            f"Not known: {', '.join(unknown)} (finished with --resume, or made by a version that "
            "did not keep it)."
        )
        if unknown
        else Html(""),
        *(
            paragraph(
                f"{stage}: a watch. It takes files as they arrive and waits for them most of the "
                "time, so it has no speed of its own."
            )
            for stage in watched
        ),
    )
    return Section(key="throughput", title="Throughput", body=body)


def manifest(name: str, value: Mapping[str, Any], *, watched: bool) -> Section:
    """A manifest as tables.

    Args:
        name: of what it is: ``counts`` or ``corpus``.
        value: the manifest, as JSON values.
        watched: whether files are taken as they arrive, so that it grows.
    """
    if isinstance(watch := value.get(WATCH), dict):
        value = {**value, WATCH: watch["inputs"]}
    simple = {one: of for one, of in value.items() if not isinstance(of, list) or not of}
    simple |= {one: of for one, of in value.items() if one == "special_tokens"}
    blocks = [facts(_flat(simple))]
    if watched:
        blocks.insert(
            0,
            paragraph(
                "A watch takes files as they arrive: this is of all that were taken when this "
                "page was made, whether its manifest or only its log tells of them so far."
            ),
        )
    for one, of in value.items():
        if isinstance(of, list) and of and one not in simple:
            blocks.append(folded(f"{one}: {len(of):,}", _listed(of)))
    title = {"counts": "the counts", "corpus": "the encoded corpus"}[name]
    return Section(key=f"manifest-{name}", title=f"Manifest of {title}", body=joined(*blocks))


def _flat(value: Mapping[str, Any], before: str = "") -> list[tuple[str, object]]:
    """Names with dots, and what is there in words."""
    rows: list[tuple[str, object]] = []
    for name, of in value.items():
        if isinstance(of, dict):
            rows += _flat(of, f"{before}{name}.")
        else:
            rows.append((f"{before}{name}".replace("_", " "), _said(of)))
    return rows


def _said(value: Any) -> object:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(
            f"{name} {of:,}" if isinstance(of, int) else f"{name} {of}" for name, of in _flat(value)
        )
    if isinstance(value, list):
        return ", ".join(str(_said(one)) for one in value) or "none"
    return value if isinstance(value, int) else str(value)


def _listed(items: Sequence[Any]) -> Html:
    if not all(isinstance(one, dict) for one in items):
        return table(("",), ((_said(one),) for one in items), most=_LISTED)
    some = [dict(_flat(one)) for one in items[:_LISTED]]
    heads = list(dict.fromkeys(name for one in some for name in one))
    shown = table(heads, ([one.get(name, "") for name in heads] for one in some))
    if len(items) <= _LISTED:
        return shown
    return joined(shown, paragraph(f"and {len(items) - _LISTED:,} more"))


def _power(power: int) -> str:
    """The numbers from 2^power to below the next power of two."""
    first, last = 2**power, 2 ** (power + 1) - 1
    return str(first) if first == last else f"{_short(first)}{DASH}{_short(last)}"


def _short(number_: int) -> str:
    for scale, unit in ((10**9, "G"), (10**6, "M"), (10**4, "k")):
        if number_ >= scale:
            return f"{number_ / (1000 if unit == 'k' else scale):.0f}{unit}"
    return str(number_)
