"""The options that several commands share, and the settings made from their values."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any, NoReturn

import click

from pipelines.cli.command import (
    Described,
    Size,
    Source,
    WholeNumber,
    beam_args,
    choose,
    source,
    stack,
    use_configs,
)
from pipelines.cli.logs import LOG_FORMATS, is_json, use_format
from pipelines.settings import (
    FORMATS,
    MAX_RECORD,
    STAGINGS,
    CountSettings,
    CountsInput,
    Execution,
    InputSettings,
    OutputSettings,
    PretokenSettings,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipelines.progress import Progress

if TYPE_CHECKING:
    ChoiceType = click.Choice[str]
else:
    ChoiceType = click.Choice  # generic in click 8.2 and later only

# As in bpe.PRETOKENIZERS and bpe.NORMALIZERS (a test compares); bpe is not imported for `--help`.
PRETOKENIZERS = ("gpt2", "cl100k", "o200k", "llama3", "qwen2", "words", "spaces", "bert", "none")
NORMALIZERS = (
    "nfc",
    "nfd",
    "nfkc",
    "nfkd",
    "lowercase",
    "strip-accents",
    "strip-nonspacing",
    "clean-text",
    "space-han",
)
NO_NORMALIZER = "none"
# That shells complete; any that Beam knows will do.
RUNNERS = (
    "DirectRunner",
    "DataflowRunner",
    "FlinkRunner",
    "PortableRunner",
    "PrismRunner",
    "SparkRunner",
)


class PretokenizerName(ChoiceType):
    """The name of a pre-tokenizer; of another one, the error says which was meant."""

    def __init__(self) -> None:
        super().__init__(PRETOKENIZERS)

    def fail(
        self,
        message: str,
        param: click.Parameter | None = None,
        ctx: click.Context | None = None,
    ) -> NoReturn:
        """Raise the error."""
        from bpe.pretokenize import did_you_mean

        name = message.partition("'")[2].partition("'")[0]
        super().fail(message.removesuffix(".") + did_you_mean(name), param, ctx)


def input_options(*, required: bool) -> Callable[[Any], Any]:
    """Which documents to read."""
    return stack(
        click.option(
            "--input",
            "input",
            multiple=True,
            required=required,
            metavar="PATTERN",
            help="File, directory or glob (in quotes) to read; repeatable. Local, or of any "
            "filesystem Beam knows, such as gs:// or s3://.",
        ),
        click.option(
            "--format",
            type=click.Choice(FORMATS),
            default="auto",
            metavar="NAME",
            help="How files hold documents. text: a file is one; lines: a line is one; jsonl, "
            "parquet: a record is one; auto: by the file's name: .jsonl, .ndjson and .json are "
            "JSON lines, .parquet and .pq Parquet, all others text; README and LICENSE files are "
            "passed over, and a directory or glob with both records and text is an error. "
            "Compressed files (.jsonl.gz, .json.zst, .txt.bz2, .xz) are read as what they hold.",
        ),
        click.option(
            "--text-field",
            default="text",
            metavar="NAME",
            help="Field (jsonl) or column (parquet) of the text.",
        ),
        click.option(
            "--id-field",
            metavar="NAME",
            cls=Described,
            default_is="id where there is one, else the file and the place in it",
            help="Field or column of the document's id.",
        ),
        click.option(
            "--max-record-size",
            type=Size(),
            default=MAX_RECORD,
            metavar="SIZE",
            cls=Described,
            default_is="1GiB",
            help="A longer record is a bad one, also where a compressed file unpacks to it; it is "
            "passed over in little memory.",
        ),
    )


def bulk_options() -> Callable[[Any], Any]:
    """How a job takes its input, and what it does with bad records."""
    return stack(
        click.option(
            "--split-size",
            type=Size(),
            metavar="SIZE",
            cls=Described,
            default_is="1/64 of the corpus, between 8MiB and 256MiB",
            help="Input a worker takes at a time, such as 64MiB.",
        ),
        click.option(
            "--max-failures",
            type=WholeNumber(0),
            default=0,
            metavar="N",
            help="Bad records to set aside in dead-letters/; one more ends the job.",
        ),
    )


def pretoken_options() -> Callable[[Any], Any]:
    """How to cut text before counting."""
    return stack(
        click.option(
            "--pretokenizer",
            type=PretokenizerName(),
            default="gpt2",
            metavar="NAME",
            help="How text is cut into the pieces in which pairs are merged: as gpt2, cl100k "
            "(GPT-4), o200k (GPT-4o), llama3 or qwen2 do; words: at white space, which is lost; "
            "spaces: at U+0020 alone, lost too; bert: words, punctuation apart; none: not at all.",
        ),
        click.option(
            "--pattern",
            multiple=True,
            metavar="REGEX",
            help="Cut by this regular expression instead (syntax of the regex package; slower "
            "than the named ones); repeated, or with names: one after the other.",
        ),
        click.option(
            "--normalizer",
            type=click.Choice((*NORMALIZERS, NO_NORMALIZER)),
            multiple=True,
            metavar="NAME",
            help="Change text before it is cut, such as nfc, nfkc, lowercase or strip-accents; "
            "repeatable, in order. none: not at all, whatever a preset or file says.",
        ),
        click.option(
            "--never-split",
            multiple=True,
            metavar="PATTERN",
            help="Keep what this matches whole: url, email, or a regular expression; repeatable.",
        ),
        click.option(
            "--special-token",
            "special_token",
            multiple=True,
            metavar="TOKEN",
            help="Text with an id of its own, such as '<|endoftext|>': never counted, never "
            "merged across; repeatable.",
        ),
    )


def special_ids_option() -> Callable[[Any], Any]:
    """Special tokens of a tokenizer file that does not say which they are."""
    return click.option(
        "--special-token",
        "special_token",
        multiple=True,
        metavar="TOKEN[=ID]",
        help="Special token of a file that does not say so (.tiktoken, vocab.json), with its id; "
        "without, where the file or its publisher gives it one; repeatable.",
    )


def special_ids(given: tuple[str, ...]) -> dict[str, int | None] | None:
    """The values of :func:`special_ids_option`: ids by token; None where none is given."""
    found: dict[str, int | None] = {}
    for one in given:
        match = re.fullmatch(r"(.+)=([0-9]{1,10})", one, re.DOTALL)
        content, id_ = (match[1], int(match[2])) if match else (one, None)
        if content in found:
            raise click.UsageError(f"--special-token {content!r} is given twice: leave one out")
        found[content] = id_
    return found or None


def output_options() -> Callable[[Any], Any]:
    """Where to write."""
    return stack(
        click.option(
            "--output", required=True, metavar="DIR", help="Directory to write; made if need be."
        ),
        click.option(
            "--overwrite/--no-overwrite",
            default=False,
            show_default=False,
            help="Replace what an earlier job left in DIR.",
        ),
        click.option(
            "--resume/--no-resume",
            default=False,
            show_default=False,
            help="Go on where an interrupted run of this job stopped.",
        ),
    )


def counting_options() -> Callable[[Any], Any]:
    """What the counts hold, and in how many files."""
    return stack(
        click.option(
            "--track-order/--no-track-order",
            default=False,
            show_default=False,
            help="Also keep where each pre-token was seen first; --ties first-seen needs it.",
        ),
        click.option(
            "--shards",
            type=WholeNumber(1, 99_999),
            default=16,
            metavar="N",
            help="Parquet files to spread the counts over.",
        ),
    )


def config_option() -> Callable[[Any], Any]:
    """Where defaults come from."""
    return click.option(
        "--config",
        metavar="FILE",
        multiple=True,
        is_eager=True,
        expose_value=False,
        callback=use_configs,
        help="YAML file of defaults for these options, by name; of several the last one wins, and "
        "the command line over all.",
    )


def traceback_option() -> Callable[[Any], Any]:
    """For those who look for a fault of bpe itself; ``main`` looks for it."""
    return click.option("--traceback", is_flag=True, hidden=True, expose_value=False)


def execution_options() -> Callable[[Any], Any]:
    """Who does the work."""
    return stack(
        click.option(
            "--runner",
            default="DirectRunner",
            metavar="NAME",
            shell_complete=lambda _, __, begun: [one for one in RUNNERS if one.startswith(begun)],
            help="Beam runner. DirectRunner is this machine, in this process; FlinkRunner, "
            "SparkRunner, PrismRunner, PortableRunner and DataflowRunner take their options, such "
            "as --job_endpoint=HOST:PORT, behind a lone --.",
        ),
        click.option(
            "--workers",
            type=WholeNumber(0, 1_000),
            default=0,
            metavar="N",
            cls=Described,
            default_is="one for each core",
            help="Workers of the local runner.",
        ),
        click.option(
            "--stage",
            type=click.Choice(STAGINGS),
            default="auto",
            metavar="HOW",
            help="How workers of another environment get this package. wheel: one is built here; "
            "sdist: they compile it; none: they have it; auto: wheel, unless Beam's options bring "
            "it (--extra_package, --setup_file, an image of your own).",
        ),
        click.option(
            "--package",
            metavar="FILE",
            help="Wheel or sdist of this package for the workers, in place of one built here.",
        ),
        click.option(
            "--shared-path",
            multiple=True,
            metavar="DIR",
            help="Local directory that workers elsewhere see under the same name (NFS, a mounted "
            "volume); repeatable.",
        ),
        config_option(),
    )


def json_option() -> Callable[[Any], Any]:
    """In which form to print the result."""
    return click.option(
        "--json/--no-json",
        default=False,
        show_default=False,
        help="Print the result as JSON.",
    )


def report_options() -> Callable[[Any], Any]:
    """What to say."""
    return stack(
        json_option(),
        click.option(
            "--quiet/--no-quiet",
            "-q",
            default=False,
            show_default=False,
            help="No progress on stderr.",
        ),
        click.option(
            "--log-format",
            type=click.Choice(LOG_FORMATS),
            default="text",
            metavar="NAME",
            expose_value=False,
            callback=lambda ctx, _, name: None if ctx.resilient_parsing else use_format(name),
            help="What lines on stderr are. text: for people; json: an object each, also for what "
            "goes wrong.",
        ),
        traceback_option(),
    )


def input_settings(ctx: click.Context) -> InputSettings:
    """The documents that the options name."""
    values = ctx.params
    return InputSettings(
        patterns=values["input"],
        format=values["format"],
        text_field=values["text_field"],
        id_field=values["id_field"],
        split_size=values.get("split_size"),  # `verify` has neither
        max_failures=values.get("max_failures", 0),
        max_record_size=values["max_record_size"],
    )


def pretoken_settings(ctx: click.Context) -> PretokenSettings:
    """How the options cut text."""
    choose(ctx, "pretokenizer", "pattern")
    values = ctx.params
    return PretokenSettings(
        pretokenizer=values["pretokenizer"],
        pattern=values["pattern"] or None,
        normalizer=_normalizer(ctx),
        never_split=values["never_split"],
        special_tokens=values["special_token"],
    )


def count_settings(ctx: click.Context) -> CountSettings:
    """What the counts hold, and in how many files."""
    names = ("track_order", "prune_below", "shards")
    return CountSettings(**{name: ctx.params[name] for name in names})


def _normalizer(ctx: click.Context) -> tuple[str, ...]:
    steps: tuple[str, ...] = ctx.params["normalizer"]
    if NO_NORMALIZER not in steps:
        return steps
    if len(steps) > 1:
        raise click.UsageError("--normalizer none stands alone: leave out the others, or it", ctx)
    return ()


def counts_inputs(ctx: click.Context) -> tuple[CountsInput, ...]:
    """The counts to train on; ``DIR:3`` is DIR with each count three times."""
    return tuple(CountsInput.parse(one) for one in ctx.params["counts"])


def refuse_recutting(ctx: click.Context) -> None:
    """Counts are of pre-tokens: how their text was cut is settled.

    Raises:
        click.UsageError: counts are given, and how to cut text as well.
    """
    for name in ("pretokenizer", "pattern", "normalizer", "never_split"):
        if ctx.params["counts"] and source(ctx, name) > Source.PRESET and ctx.params[name]:
            option = f"--{name}".replace("_", "-")
            raise click.UsageError(
                f"{option} goes with --input: --counts were cut when they were made, and the "
                "tokenizer will cut text the same way",
                ctx,
            )


def output_settings(ctx: click.Context, *below: str) -> OutputSettings:
    """Where the options write: ``--output``, or a directory below it."""
    choose(ctx, "overwrite", "resume")
    values = ctx.params
    return OutputSettings(
        directory=join(values["output"], *below),
        overwrite=values["overwrite"],
        resume=values["resume"],
    )


def join(directory: str, *below: str) -> str:
    """A path below a directory of any filesystem."""
    return "/".join([directory.rstrip("/") or directory, *below]) if below else directory


def execution(ctx: click.Context) -> Execution:
    """Who does the work."""
    values = ctx.params
    return Execution(
        runner=values["runner"],
        workers=values["workers"],
        beam_args=beam_args(ctx),
        stage=values["stage"],
        package=values["package"] or "",
        shared_paths=values["shared_path"],
    )


def progress(ctx: click.Context) -> Progress:
    """Where progress goes: stderr, unless ``--quiet``."""
    from pipelines.progress import NoProgress, progress_on

    if ctx.params["quiet"]:
        return NoProgress()
    if is_json():
        from pipelines.progress.json_lines import JsonProgress

        return JsonProgress(sys.stderr)
    return progress_on(sys.stderr)
