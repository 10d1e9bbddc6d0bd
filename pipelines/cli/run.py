"""``bpe run``: count, train, encode and export as a file says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import click

from pipelines.cli import options
from pipelines.cli.command import Command, JobCommand, command
from pipelines.cli.declared import declared_options
from pipelines.cli.layers import Origin, settings_of, source, stage_context, use_job
from pipelines.cli.loading import loading
from pipelines.cli.summary import show_summary
from pipelines.cli.train import (
    marked_pretokens,
    parity_settings,
    role_settings,
    train_settings,
)
from pipelines.option import Settings, declared, option
from pipelines.settings import (
    CountSettings,
    EncodeSettings,
    Execution,
    ExportSettings,
    InputSettings,
    ModelSettings,
    OutputSettings,
    ParitySettings,
    PretokenSettings,
    RoleSettings,
    RunSettings,
    TrainSettings,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


def _stage(name: str, *settings: type, **more: Any) -> Command:
    """Return a command that nobody types: the options of a stage."""
    return Command(name, example="", params=declared_options(*settings, **more))


_WORDS = _stage(
    "train",
    *(InputSettings, PretokenSettings, CountSettings, TrainSettings, ParitySettings),
    *(ModelSettings, RunSettings, RoleSettings),
)


class _Chain(JobCommand):
    """The command ``bpe run``; its file and ``--set`` give options of stages, by section."""

    stages: ClassVar[Mapping[str, click.Command]] = {
        "count": _WORDS,
        "train": _WORDS,
        "encode": _stage("encode", InputSettings, EncodeSettings),
        "export": _stage("export", ExportSettings, optional=["to"]),
    }


@dataclass(frozen=True, kw_only=True)
class Stages(Settings):
    """Settings of the stages.

    Attributes:
        set: Value of an option of bpe count, train, encode or export, such as vocab_size=4096;
            repeatable. It overrides the file. With a section, as in encode.split_size=64MB, it is
            for that stage only.
        discard_ids: With an export: remove the encoded parts when the export is verified. Plan,
            records and manifest stay, so that --resume does not encode again.
    """

    set: tuple[str, ...] = option((), group="Input", metavar="KEY=VALUE")
    discard_ids: bool = option(False, group="Output")


@command(
    *(InputSettings, Stages, OutputSettings, options.Preset, Execution),
    *(options.Config, options.Messages),
    cls=_Chain,
    optional=["input"],
    leave_out=[one.name for one in declared(InputSettings).values() if one.name != "input"],
    short_help="Count, train, encode and export, as configured in a YAML file.",
    example="""
bpe run configs/demo.yaml
bpe run configs/demo.yaml --output elsewhere --set vocab_size=4096 --set export.shuffle=2
bpe run configs/demo.yaml --resume
bpe run configs/demo.yaml --config configs/runners/prism.yaml
""",
)
@click.argument("job", metavar="CONFIG.yaml", is_eager=True, expose_value=False, callback=use_job)
def run(ctx: click.Context) -> None:
    """Count a corpus, train a tokenizer, encode the corpus and export it, as CONFIG.yaml says.

    The file sets options of the four commands by name, such as vocab_size: 32000. A key in the
    section encode or export is for that stage only. The sections count and train are one: a key in
    either is for both stages.

    Writes DIR/counts, DIR/tokenizer.json, DIR/training.json and DIR/encoded. With `to` in the
    section export, it also writes DIR/export; with superwords or boundless, DIR/words and DIR/runs.
    With group_by, DIR/counts has a folder for each group; with mix, for each source. The shares of
    mix are in bytes for the training, and in tokens for the export.
    """
    words, ids, rows = (stage_context(ctx, name) for name in ("train", "encode", "export"))
    words.params["mix"] = rows.params["mix"]
    parity, roles = parity_settings(words), role_settings(words)
    training, exporting = train_settings(words), export_settings(ctx, rows)
    progress = options.progress(ctx)
    with loading():
        from pipelines import recipes

    summaries = recipes.run(
        inputs=settings_of(words, InputSettings),
        pretokens=marked_pretokens(words, roles),
        counting=settings_of(words, CountSettings),
        training=training,
        output=settings_of(ctx, OutputSettings),
        execution=options.execution(ctx),
        roles=roles,
        parity=parity,
        runs=settings_of(words, RunSettings),
        encoded_inputs=settings_of(ids, InputSettings),
        encoding=settings_of(ids, EncodeSettings),
        exporting=exporting,
        discard_ids=ctx.params["discard_ids"],
        progress=progress,
    )
    show_summary(words.params | ctx.params, **summaries)


def export_settings(ctx: click.Context, stage: click.Context) -> ExportSettings | None:
    """Return the settings of the export; None without one.

    Raises:
        click.UsageError: there are options of an export, and no format.
    """
    if stage.params["to"] is None:
        of_both = declared(EncodeSettings)  # parquet_encoding
        given = [
            *(name for name in declared(ExportSettings) if source(stage, name) != Origin.DEFAULT),
            *(["discard_ids"] * bool(ctx.params["discard_ids"])),
        ]
        for name in given:
            if name not in of_both:
                raise click.UsageError(f"{name} is of an export: give its format with `to`", ctx)
        return None
    of_parquet = (  # that of the ids, if the export has another format
        {} if stage.params["to"] == "parquet" else {"parquet_encoding": "byte-stream-split"}
    )
    return settings_of(stage, ExportSettings, **of_parquet)
