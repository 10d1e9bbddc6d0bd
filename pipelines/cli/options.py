"""The options that several commands share, and the settings made from their values."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pipelines.cli.command import Command
from pipelines.cli.declared import add_option, own_option, stack
from pipelines.cli.layers import Source, beam_args, choose, source, use_configs, use_preset
from pipelines.cli.logs import LOG_FORMATS, is_json, use_format
from pipelines.option import Option, declared
from pipelines.settings import (
    NO_NORMALIZER,
    NORMALIZERS,
    AppendSettings,
    DriftSettings,
    Execution,
    OutputSettings,
    PretokenSettings,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from bpe import Tokenizer
    from pipelines.progress import Progress

Settings = TypeVar("Settings")

# As bpe has them (a test compares); bpe is not imported for `--help`.
PRESETS = ("byte-level", "interview", "notebook", "word-tutorial", "words")
BARE_FILES = (".tiktoken", "vocab.json")  # tokenizer files that do not record a pre-tokenizer
# Of commands that read stores, and have no runner.
OF_CUT = ("pretokenizer", "pattern", "normalizer", "never_split")  # but for special tokens
NO_RUNNER = ("runner", "workers", "stage", "shared_path")


def declared_options(
    *settings: type,
    optional: Collection[str] = (),
    leave_out: Collection[str] = (),
    only: Collection[str] = (),
) -> Callable[[Any], Any]:
    """The options that classes of settings declare, each once.

    Args:
        settings: the classes.
        optional: names of options that the command can do without.
        leave_out: names of options that the command has not.
        only: names of options that it has alone; none for all.
    """
    specs = {spec.name: spec for cls in settings for spec in declared(cls).values()}
    return stack(
        *(
            add_option(replace(spec, required=spec.required and name not in optional))
            for name, spec in specs.items()
            if name not in leave_out and (not only or name in only)
        )
    )


def stage_command(name: str, *settings: type, optional: Collection[str] = ()) -> click.Command:
    """A command that nobody types: the options of a stage of a job."""
    decorate = declared_options(*settings, optional=optional)
    return click.command(name, cls=Command, example="")(decorate(lambda **_: None))


def settings_of(ctx: click.Context, settings: type[Settings], **values: Any) -> Settings:
    """Settings from the values of a command's options; of those that it lacks, the defaults.

    Args:
        ctx: of the command.
        settings: the class.
        values: of fields that are not taken from an option as they are.
    """
    given = {
        name: ctx.params[spec.name]
        for name, spec in declared(settings).items()
        if ctx.params.get(spec.name) is not None
    }
    return settings(**{**given, **values})


def config_option() -> Callable[[Any], Any]:
    """Where defaults come from."""
    spec = Option(
        name="config",
        group="Where it runs",
        several=True,
        metavar="FILE",
        help="YAML file of defaults, by option name; repeatable. Later files override "
        "earlier ones, and the command line overrides all.",
    )
    return add_option(spec, is_eager=True, expose_value=False, callback=use_configs)


def preset_option(default: str | None = None) -> Callable[[Any], Any]:
    """Where defaults come from that neither the command line nor a file gives."""
    spec = Option(
        name="preset",
        group="Vocabulary",
        choices=PRESETS,
        default=default,
        metavar="NAME",
        help="Settings of a published description of BPE (docs/systems.md). --config and other "
        "options override them.",
    )
    return add_option(spec, is_eager=True, expose_value=False, callback=use_preset)


def traceback_option() -> Callable[[Any], Any]:
    """For those who look for a fault of bpe itself; ``main`` looks for it."""
    return click.option("--traceback", is_flag=True, hidden=True, expose_value=False)


def json_option() -> Callable[[Any], Any]:
    """In which form to print the result."""
    return own_option(
        "json", kind="flag", default=False, group="Messages", help="Print the result as JSON."
    )


def report_options() -> Callable[[Any], Any]:
    """What to say."""
    log_format = Option(
        name="log_format",
        group="Messages",
        advanced=True,
        choices=LOG_FORMATS,
        default="text",
        metavar="NAME",
        help="Format of messages on stderr. text: human-readable; json: one object per line, "
        "errors included.",
    )
    return stack(
        json_option(),
        own_option(
            "quiet",
            "-q",
            kind="flag",
            default=False,
            group="Messages",
            help="No progress on stderr.",
        ),
        add_option(
            log_format,
            expose_value=False,
            callback=lambda ctx, _, name: None if ctx.resilient_parsing else use_format(name),
        ),
        traceback_option(),
    )


def tokenizer_options() -> Callable[[Any], Any]:
    """How text is cut, and what is special, for tokenizer files that do not say it."""
    return stack(
        _of_file(
            "pretokenizer",
            default_is="from the file",
            help=f"Pre-tokenizer, for a file that does not record it ({', '.join(BARE_FILES)}).",
        ),
        _of_file(
            "pattern",
            help="Regular expression to use instead of --pretokenizer; repeatable, applied in "
            "order.",
        ),
        _of_file(
            "normalizer",
            choices=NORMALIZERS,
            help="Normalization, for a file that does not record it; repeatable, applied in order.",
        ),
        _of_file(
            "never_split",
            metavar="REGEX",
            help="Never split text that matches this, for a file that does not record it: url, "
            "email or a regular expression; repeatable.",
        ),
        vocabulary_path_option(),
        _of_file(
            "special_tokens",
            metavar="TOKEN[=ID]",
            help="Special token, with its id, for a file that does not record it "
            f"({', '.join(BARE_FILES)}). Omit the id if the file contains the token or the "
            "vocabulary is a published one; repeatable.",
        ),
    )


def vocabulary_path_option() -> Callable[[Any], Any]:
    """Where files of published vocabularies are looked for."""
    return own_option(
        "vocabulary_path",
        group="Input",
        advanced=True,
        metavar="DIR",
        help="Folder in which to look for the file of a published vocabulary (gpt2, cl100k, o200k, "
        "llama3), before the caches of tiktoken and Hugging Face's hub.",
    )


def tokenizer_path(ctx: click.Context, option: str = "tokenizer") -> str:
    """The file that ``--tokenizer`` names, or that of the published vocabulary it names.

    Args:
        ctx: of the command.
        option: another one that names a tokenizer.

    Raises:
        bpe.errors.TokenizerFileError: that is not on this machine.
    """
    from bpe.formats import published

    name: str = ctx.params[option]
    known = published.of_name(name)
    return name if known is None else str(published.find(known, ctx.params["vocabulary_path"]))


def _of_file(field: str, **changes: Any) -> Callable[[Any], Any]:
    spec = declared(PretokenSettings)[field]
    return add_option(replace(spec, advanced=True, default=None, **changes))


def load_tokenizer(ctx: click.Context, path: str) -> Tokenizer:
    """The tokenizer of a file, or of a complete directory, with what the options say of it."""
    import bpe

    choose(ctx, "pretokenizer", "pattern")
    if Path(path).is_dir():
        from pipelines.output.state import complete  # imports Beam

        complete(path)
    values = ctx.params
    return bpe.Tokenizer.load(
        path,
        pretokenizer=values["pretokenizer"],
        pattern=values["pattern"] or None,
        normalizer=values["normalizer"],
        never_split=values["never_split"],
        special_tokens=_special_ids(values["special_token"]),
        vocabulary_path=values["vocabulary_path"],
    )


def training_file(tokenizer: str) -> Path:
    """Where the training of a tokenizer stands, if anywhere: beside it."""
    path = Path(tokenizer)
    return (path if path.is_dir() else path.parent) / "training.json"


def _special_ids(given: tuple[str, ...]) -> dict[str, int | None] | None:
    """Ids by token; None where none is given."""
    ids: dict[str, int | None] = {}
    for text in given:
        match = re.fullmatch(r"(.+)=([0-9]{1,10})", text, re.DOTALL)
        content, id_ = (match[1], int(match[2])) if match else (text, None)
        if content in ids:
            raise click.UsageError(f"--special-token {content!r} is given twice: leave one out")
        ids[content] = id_
    return ids or None


def pretoken_settings(ctx: click.Context) -> PretokenSettings:
    """How the options cut text."""
    choose(ctx, "pretokenizer", "pattern")
    steps: tuple[str, ...] = ctx.params["normalizer"]
    if NO_NORMALIZER in steps:
        if len(steps) > 1:
            raise click.UsageError(
                "--normalizer none stands alone: leave out the others, or it", ctx
            )
        steps = ()
    pattern = ctx.params["pattern"] or None
    return settings_of(ctx, PretokenSettings, pattern=pattern, normalizer=steps)


def refuse_cutting(ctx: click.Context, *names: str, above: Source, why: str) -> None:
    """Refuse options that say how text is cut, where that is settled.

    Args:
        ctx: of the command.
        *names: of the options.
        above: the source from which on a value is refused, exclusive.
        why: what is said of the option.

    Raises:
        click.UsageError: one is given.
    """
    for name in names:
        if source(ctx, name) > above and ctx.params[name]:
            option = f"--{name}".replace("_", "-")
            raise click.UsageError(f"{option} {why}", ctx)


def output_settings(ctx: click.Context) -> OutputSettings:
    """Where the options write."""
    choose(ctx, "overwrite", "resume")
    return settings_of(ctx, OutputSettings)


def execution(ctx: click.Context) -> Execution:
    """Who does the work."""
    return settings_of(ctx, Execution, beam_args=beam_args(ctx))


def progress(ctx: click.Context) -> Progress:
    """Where progress goes: stderr, unless ``--quiet``. Logs of jobs elsewhere go to files."""
    from pipelines.cli.logs import job_log
    from pipelines.progress import NoProgress, progress_on

    shown: Progress
    if ctx.params["quiet"]:
        shown = NoProgress()
    elif is_json():
        from pipelines.progress.shown import JsonProgress

        shown = JsonProgress(sys.stderr)
    else:
        shown = progress_on(sys.stderr)
    shown.logs = job_log
    return shown


def drift_settings(ctx: click.Context) -> DriftSettings:
    """How the fit of the tokenizer is measured.

    Raises:
        click.UsageError: it was asked for of a job that does not append.
    """
    appends = settings_of(ctx, AppendSettings).appends
    for spec in declared(DriftSettings).values():
        if not appends and source(ctx, spec.name) is Source.COMMAND_LINE:
            option = f"--{spec.name}".replace("_", "-")
            raise click.UsageError(f"{option} needs --append", ctx)
    return settings_of(ctx, DriftSettings)
