"""The summary at the end of a job, on standard output: for people, or as JSON for programs."""

from __future__ import annotations

import json
import os
import sys
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from pipelines.progress import draws_on, duration, many, size_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from bpe import Tokenizer
    from pipelines.summaries import (
        CountSummary,
        EncodeSummary,
        ExportSummary,
        TrainSummary,
        VerifySummary,
    )

    Summary: TypeAlias = CountSummary | TrainSummary | EncodeSummary | ExportSummary | VerifySummary


def show_summary(asked: Mapping[str, Any], **summaries: Summary) -> None:
    """Print what was made; the arguments are those of `summarized`."""
    show_result(asked, *summarized(asked, **summaries))


def show_result(asked: Mapping[str, Any], facts: object, lines: Iterable[str]) -> None:
    """Print a result: as JSON if that is asked for, else its lines."""
    if asked["json"]:
        show_json(facts)
    else:
        click.echo("\n".join(lines), color=takes_colour())


def summarized(asked: Mapping[str, Any], **summaries: Summary) -> tuple[dict[str, Any], list[str]]:
    """Return what was made, as a JSON object and as lines for people.

    Args:
        asked: the options, for the size that was asked for.
        summaries: by the name of the job. One alone is one JSON object; of several, each is
            under its name.
    """
    facts = {job: summary.as_dict() for job, summary in summaries.items()}
    result = facts if len(facts) > 1 else next(iter(facts.values()))
    everything: dict[str, Any] = {}  # with the phases of a training before its own
    for job, summary in summaries.items():
        everything |= {**summary.phases, job: summary}
    lines: list[str] = []
    for job, summary in everything.items():
        past, lines_of = _LINES[job]
        lines += titled(past, lines_of(summary))
    all_warnings = (text for one in everything.values() for text in _warnings(one, asked))
    warnings = list(dict.fromkeys(all_warnings))  # a training has those of its counts, too
    return {**result, "warnings": warnings}, [*lines, *warning_lines(warnings)]


def titled(title: str, lines: Iterable[str]) -> list[str]:
    """Return lines with a title before the first."""
    return [f"{one:10}{line}" for one, line in zip_longest([title], lines, fillvalue="")]


def warning_lines(warnings: Iterable[str]) -> list[str]:
    """Return the warnings below a summary."""
    return [f"{'warning':10}{text}" for text in warnings]


def show_json(value: object) -> None:
    """Print a JSON value; in ASCII where the stream takes no UTF-8."""
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    click.echo(json.dumps(value, ensure_ascii=not utf8, indent=2))


def sizes(tokenizer: Tokenizer) -> dict[str, int]:
    """Return how many tokens, merges and superwords a tokenizer has."""
    parts = {"merges": tokenizer.merges, "superwords": tokenizer.superwords}
    return {"tokens": len(tokenizer), **{name: len(part) for name, part in parts.items()}}


def size_line(facts: Mapping[str, int]) -> str:
    """Return the `sizes` among facts in words."""
    names = ("token", "merge", *(["superword"] if facts["superwords"] else []))
    return ", ".join(many(facts[f"{name}s"], name) for name in names)


def _counted(summary: CountSummary) -> Iterator[str]:
    pretokens = f"{many(summary.pretokens, summary.unit)}, {summary.distinct_pretokens:,} distinct"
    files = f"{many(summary.parts, 'file')}, {size_text(summary.output_bytes)} of Parquet"
    yield f"{_corpus(summary)}: {pretokens}"
    yield f"{near(summary.output)}: {files}, {_done(int(summary.resumed), 1, _time(summary))}"


def _trained(summary: TrainSummary) -> Iterator[str]:
    merges, output = many(summary.merges, "merge"), near(summary.output)
    if summary.superwords is not None:
        merges += f", {many(summary.superwords, 'superword')}"
    read = f"{many(summary.documents, 'document')}{_formats(summary)}"
    corpus = ""
    if summary.bytes_per_token is not None and summary.tokens is not None:
        tokens = many(summary.tokens, "token")
        if summary.scale > 1:  # weights are fractions of it
            tokens = f"{summary.tokens / summary.scale:,.1f} tokens"
        weighted = "weighted " if any(source.weight != "1" for source in summary.mix) else ""
        figure = f"{summary.bytes_per_token:.2f} bytes per token"
        corpus = f": the {weighted}corpus is {tokens}, {figure}"
    time = duration(summary.seconds)
    yield f"{many(summary.vocab_size, 'token')} ({merges}) of {read} in {time}{corpus}"
    yield f"{output}/tokenizer.json, {output}/training.json"
    if summary.run_tokens is not None and summary.run_tokens_left is not None:
        share = 1 - summary.run_tokens_left / max(summary.run_tokens, 1)
        yield (
            f"{many(summary.run_tokens, 'token')} in runs are {summary.run_tokens_left:,} with "
            f"superwords ({share:.1%} fewer)"
        )
    for source in summary.mix:
        shares = f"{source.bytes_share:.1%} of the bytes, {source.pretokens_share:.1%} of the "
        shares += "pre-tokens"
        if source.tokens_share is not None:
            shares += f", {source.tokens_share:.1%} of the tokens"
        yield f"{near(source.path)}, weight {source.weight}: {shares}"
    if summary.dialect is not None:
        converted = "; bpe convert writes one for other libraries" if summary.superwords else ""
        yield f"only bpe reads this tokenizer.json: {summary.dialect}{converted}"


def _encoded(summary: EncodeSummary) -> Iterator[str]:
    tokens = many(summary.tokens, "token")
    if summary.bytes_per_token is not None:
        tokens += f", {summary.bytes_per_token:.2f} bytes per token"
    size = f"{size_text(summary.output_bytes)} of Parquet"
    files = f"{many(summary.parts, 'file')}, {size}, {summary.id_type} ids"
    done = _done(summary.resumed_parts, summary.parts, _time(summary))
    yield f"{_corpus(summary)}: {tokens}"
    yield f"{near(summary.output)}: {files}, {done}"
    for name, one in summary.sources.items():
        yield f"{name}: {many(one.documents, 'document')}, {many(one.tokens, 'token')}"
    yield from _unknown(summary)


def _unknown(summary: EncodeSummary | VerifySummary) -> Iterator[str]:
    """Yield how much of the corpus has no token of its own."""
    if summary.unknown_tokens:
        share = summary.unknown_tokens / summary.tokens
        yield f"unknown tokens: {summary.unknown_tokens:,} of {summary.tokens:,} ({share:.2%})"


_PROOFS: Mapping[tuple[str, bool | None], str] = {
    ("counts", None): "counting the input again gives the same",
    ("encoded", True): "every document decodes to its own bytes",
    ("encoded", False): "encoding every document again gives its ids (they do not hold all of its "
    "text)",
    ("export", None): "its ids are those of the encoded corpus",
}


def _verified(summary: VerifySummary) -> Iterator[str]:
    units = f"{many(summary.tokens, summary.unit)} in {many(summary.parts, 'file')}"
    proof = "as its manifest says; it was not compared with its source (--input)"
    if summary.compared:
        proof = _PROOFS[summary.kind, summary.lossless]
    yield f"{_corpus(summary)}: {units}; {proof}"
    yield f"{near(summary.directory)}: {_time(summary)}"
    yield from _unknown(summary)


def _exported(summary: ExportSummary) -> Iterator[str]:
    tokens = many(summary.tokens, "token")
    yield f"{many(summary.documents, 'document')}: {many(summary.rows, 'row')}, {tokens}"
    if summary.validation_documents is not None and summary.validation_tokens is not None:
        validation = many(summary.validation_documents, "document")
        tokens = many(summary.validation_tokens, "token")
        yield f"of these, {validation} ({tokens}) held out for validation"
    for one in summary.taken:
        if one.share:
            times = one.tokens / one.available_tokens
            repeated = f", {times:.2f} times each" if times > 1 else ""
            yield f"{one.name}: {many(one.tokens, 'token')} of {one.available_tokens:,}{repeated}"
    if summary.padding_tokens:
        yield f"{many(summary.padding_tokens, 'token')} of padding"
    if summary.dropped_tokens:
        yield f"{many(summary.dropped_tokens, 'token')} of the last rows dropped"
    done, units = "complete already", summary.made_units + summary.resumed_units
    if summary.made_units:
        done = _done(summary.resumed_units, units, duration(summary.seconds))
    files = f"{many(summary.files, 'file')}, {size_text(summary.output_bytes)} of {summary.format}"
    yield f"{near(summary.output)}: {files}, {done}"


_LINES: Mapping[str, tuple[str, Callable[[Any], Iterator[str]]]] = {
    "count": ("counted", _counted),
    "words": ("words", _trained),
    "runs": ("runs", _counted),
    "train": ("trained", _trained),
    "encode": ("encoded", _encoded),
    "export": ("exported", _exported),
    "verify": ("verified", _verified),
}


def _warnings(summary: Any, asked: Mapping[str, Any]) -> Iterator[str]:
    if summary.documents == 0 and summary.failures:
        yield f"no documents: all that the input holds is {many(summary.failures, 'bad record')}"
    elif summary.documents == 0:
        yield "the input holds no documents"
    if summary.failures:
        output = getattr(summary, "output", None) or summary.directory
        of_counts = getattr(summary, "counts", (output,))  # of a training
        places = ", ".join(f"{near(one).rstrip('/')}/dead-letters/" for one in of_counts)
        yield f"{many(summary.failures, 'bad record')} set aside, see {places}"
    yield from getattr(summary, "warnings", ())
    if aside := getattr(summary, "set_aside", ()):
        yield f"{many(len(aside), 'file')} set aside, such as {aside[0]}"
    if outdated := getattr(summary, "outdated", ()):
        yield (
            f"{many(len(outdated), 'file')} changed after they were counted (old text counted), "
            f"such as {outdated[0]}"
        )
    duplicates = getattr(summary, "duplicate_ids", None)
    if duplicates is not None and duplicates.documents:
        yield (
            f"{many(duplicates.documents, 'document')} with the id of another one, such as "
            f"{duplicates.example!r}: an export treats them alike"
        )
    yield from map(str, summary.passed_over)
    name = "vocab_size" if getattr(summary, "superwords", None) is None else "superwords"
    found, wanted = getattr(summary, name, None), asked.get(name)
    if found is None or wanted is None:
        return
    why, unit = summary.stopped, name
    if name == "vocab_size":
        unit = "tokens"
        if found > wanted:
            yield too_small(found, wanted)
        if why != "no pair left":  # but the other limit
            return
        rare = int(asked.get("min_frequency") or 1) > 1
        why += f" (train on more text{', or lower --min-frequency' if rare else ''})"
    if found < wanted:
        yield f"the corpus gave {found:,} {unit}, not the {wanted:,} that were asked for: {why}"


def too_small(size: int, wanted: int) -> str:
    """Return the warning about a vocabulary that its alphabet alone fills.

    Args:
        size: tokens that it has.
        wanted: tokens that were asked for.
    """
    return (
        f"no merge was trained: special tokens and characters alone are {size:,} tokens, and "
        f"--vocab-size is {wanted:,}: use a greater one"
    )


def _corpus(summary: CountSummary | EncodeSummary | VerifySummary) -> str:
    documents = many(summary.documents, "document")
    held = "files" if getattr(summary, "kind", None) == "export" else "text"
    return f"{documents}{_formats(summary)}, {size_text(summary.bytes)} of {held}"


def _formats(summary: Summary) -> str:
    """Of which formats the documents are, where that is known."""
    if len(summary.formats) < 2:
        return "".join(f" ({name})" for name in summary.formats)
    return f" ({', '.join(f'{number:,} {name}' for name, number in summary.formats.items())})"


def _done(kept: int, total: int, time: str) -> str:
    """Return how much of the work an earlier run had done, and the time of the rest."""
    if not kept:
        return time
    return "complete already" if kept == total else f"{kept} of {total} complete already, {time}"


def _time(summary: CountSummary | EncodeSummary | VerifySummary) -> str:
    if not summary.seconds:  # nothing was to be done
        return duration(0)
    speed = size_text(summary.bytes / summary.seconds)
    return f"{duration(summary.seconds)} ({speed}/s)"


def near(path: str) -> str:
    """Return a local path below the current folder as one types it."""
    return path.removeprefix(f"{Path.cwd()}{os.sep}")


def takes_colour() -> bool:
    """Return whether standard output is a terminal that shows colours, and NO_COLOR is not set."""
    return draws_on(sys.stdout) and not os.environ.get("NO_COLOR")
