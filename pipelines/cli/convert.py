"""``bpe convert``: a tokenizer from one file format to another."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bpe.names import Dialect, LossName  # noqa: TC001 - types of settings
from pipelines.cli import options
from pipelines.cli.command import command
from pipelines.cli.loading import loading
from pipelines.cli.summary import show_result, size_line, sizes, titled
from pipelines.option import Settings, option
from pipelines.progress import many

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from bpe import Tokenizer
    from pipelines.cli.layers import Values


@dataclass(frozen=True, kw_only=True)
class Conversion(Settings):
    """The handling of a tokenizer that a format cannot hold.

    Attributes:
        leave_out: Instead of failing, omit this if the format of TO cannot hold it; repeatable.
        dialect: Dialect of a tokenizer.json. huggingface: fail if Hugging Face's libraries cannot
            express the tokenizer; beam-bpe: write a file that only bpe reads.
        approximate: Write superwords as SuperBPE publishes them: as ordinary merges, with a
            pre-tokenizer that hardly splits. Some ids differ.
        counts: With --approximate: counts of runs or of pre-tokens on which to measure how many
            tokens differ; repeatable.
        overwrite: Replace TO.
    """

    leave_out: tuple[LossName, ...] = option((), metavar="NAME")
    dialect: Dialect = option("huggingface", metavar="NAME")
    approximate: bool = option(False)
    counts: tuple[str, ...] = option((), needs="approximate", metavar="DIR")
    overwrite: bool = option(False)


@command(
    *(options.VocabularyPath, options.FileSettings, Conversion, options.JsonResult),
)
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
def convert(values: Values) -> None:
    """Convert a tokenizer to another file format.

    Writes the tokenizer in FROM to TO, in the format of its file name. The formats are
    tokenizer.json (Hugging Face), *.tiktoken, *.model (SentencePiece's BPE), and *vocab.json with
    *merges.txt (name either; both are written). Ids, merges and pre-tokenization stay the same. If
    TO cannot hold something that ids depend on, the command fails and names it, unless you give its
    name to --leave-out. Roles, and the pre-tokenizer of a .tiktoken file, are only reported. The
    command prints the options that you need to load TO.

    Superwords are written into a tokenizer.json for Hugging Face if the ids are then the same.
    Otherwise the command fails; --approximate writes another tokenizer with the same tokens.

    Example:
        bpe convert r50k_base.tiktoken gpt2/tokenizer.json
        bpe convert model/tokenizer.json model/vocab.json
        bpe convert model/tokenizer.json model.tiktoken --leave-out special-tokens
        bpe convert mine.tiktoken mine.json --pretokenizer cl100k --special-token '<|end|>=5000'
        bpe convert super/tokenizer.json hf/tokenizer.json --approximate --counts super/runs
    """
    from bpe import formats
    from bpe.files import write_atomically
    from pipelines.storage import is_local

    source, asked = values["source"], values.settings(Conversion)
    if not is_local(target := values["target"]):
        raise click.UsageError(f"TO must be a local file, not {target}: convert, then copy it")
    tokenizer = exact = options.load_tokenizer(values, source)
    if asked.approximate:
        tokenizer = exact.approximate()
    measured = _measured(exact, tokenizer, asked.counts)
    files = formats.write(
        tokenizer.parts, Path(target), leave_out=asked.leave_out, dialect=asked.dialect
    )
    for path in files.contents:
        if path.exists() and not asked.overwrite:
            raise click.ClickException(f"{path} is there already: give --overwrite to replace it")
    for path, data in files.contents.items():
        write_atomically(path, data)
    lacks = {name: lack.what for name, lack in files.losses.items()}
    summary = {
        "from": source,
        "to": [str(path) for path in files.contents],
        **sizes(tokenizer),
        "lacks": lacks,
        "dialect": files.dialect,
        "give": _arguments(tokenizer, lacks),
        "approximate": measured if asked.approximate else None,
    }
    show_result(values, summary, titled("converted", _lines(summary)))


def _measured(exact: Tokenizer, other: Tokenizer, counts: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return, for each directory of counts, how much of it another tokenizer splits otherwise."""
    if not counts:
        return []
    with loading():
        from bpe.diff import agreement
        from pipelines.count.directory import load_counts
        from pipelines.output.names import TOKENIZER
        from pipelines.storage import join, located
        from pipelines.tokenizer_files import load_tokenizer

    measured = []
    for directory in counts:
        counted = load_counts(directory)
        words = load_tokenizer(join(located(directory), TOKENIZER)) if counted.runs else None
        differing = agreement(exact, other, counts=counted, words=words)
        unit = "run" if counted.runs else "pre-token"
        measured.append({"counts": directory, "unit": unit, **vars(differing)})
    return measured


def _arguments(tokenizer: Tokenizer, lacks: dict[LossName, str]) -> list[str]:
    """Return the options with which a file that lacks something loads as the same tokenizer."""
    cut, special_tokens = tokenizer.pretokenizer, tokenizer.special_tokens.items()
    given: dict[LossName, dict[str, Iterable[str]]] = {
        "pretokenizer": {"--pretokenizer": filter(None, [cut.name]), "--pattern": cut.patterns},
        "normalizer": {"--normalizer": cut.normalizer},
        "never-split": {"--never-split": cut.never_split},
        "special-tokens": {"--special-token": [f"{text}={id_}" for text, id_ in special_tokens]},
    }
    flags = [flag for name in given if name in lacks for flag in given[name].items()]
    return [word for flag, values in flags for value in values for word in (flag, value)]


def _lines(summary: dict[str, Any]) -> Iterator[str]:
    yield f"{summary['from']}: {size_line(summary)}"
    yield ", ".join(summary["to"])
    yield from (f"does not hold {what}" for what in summary["lacks"].values())
    if summary["dialect"]:
        yield f"only bpe reads it: {summary['dialect']}"
    if summary["approximate"] is not None:
        yield f"approximate: it may give other ids than {summary['from']}"
        yield from map(_differing, summary["approximate"])
        if not summary["give"]:
            command = shlex.join(["bpe", "compare", summary["from"], summary["to"][0]])
            yield f"documents may differ more: {command} --input PATTERN"
    if summary["give"]:
        yield f"to load it, pass: {shlex.join(summary['give'])}"


def _differing(one: dict[str, Any]) -> str:
    texts, tokens = (
        f"{number:,} of {many(one[what], noun)} ({number / (one[what] or 1):.2%})"
        for what, noun in (("texts", one["unit"]), ("tokens", "token"))
        for number in (one[f"{what}_that_differ"],)
    )
    return f"{one['counts']}: {texts} and {tokens} differ"
