"""``bpe run``: count, train, encode and export as a file says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import click

from pipelines.cli import options
from pipelines.cli.command import JobCommand
from pipelines.cli.declared import own_option
from pipelines.cli.layers import Source, option_keys, source, stage_context, use_job
from pipelines.cli.loading import loading
from pipelines.cli.options import declared_options, settings_of, stage_command
from pipelines.cli.summary import show_summary
from pipelines.cli.train import (
    crosses_words,
    extended_pretokens,
    marked_pretokens,
    parity_settings,
    role_settings,
    train_settings,
)
from pipelines.option import declared
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


_WORDS = stage_command(
    "train",
    *(InputSettings, PretokenSettings, CountSettings, TrainSettings, ParitySettings),
    *(ModelSettings, RunSettings, RoleSettings),
)
_IDS = stage_command("encode", InputSettings, EncodeSettings)
_ROWS = stage_command("export", ExportSettings, optional=["to"])


class _Chain(JobCommand):
    """Explains options of the stages, which ``--set`` takes."""

    stages: ClassVar[Mapping[str, click.Command]] = {
        "count": _WORDS,
        "train": _WORDS,
        "encode": _IDS,
        "export": _ROWS,
    }

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse, and say how options of the stages are given."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            name = error.option_name.lstrip("-").replace("-", "_")
            if name not in option_keys(self):
                raise
            raise click.UsageError(
                f"{error.option_name} is an option of a stage: give --set {name}=VALUE", ctx
            ) from error


@click.command(
    cls=_Chain,
    short_help="Count, train, encode and export, as configured in a YAML file.",
    example="""
bpe run configs/demo.yaml
bpe run configs/demo.yaml --output elsewhere --set vocab_size=4096 --set export.shuffle=2
bpe run configs/demo.yaml --resume
bpe run configs/demo.yaml --config configs/runners/prism.yaml
""",
)
@click.argument("job", metavar="CONFIG.yaml", is_eager=True, expose_value=False, callback=use_job)
@declared_options(InputSettings, optional=["input"], only=["input"])
@own_option(
    "set",
    group="Input",
    several=True,
    metavar="KEY=VALUE",
    help="Value of an option of bpe count, train, encode or export, such as vocab_size=4096; "
    "repeatable. With the name of a section, as in encode.split_size=64MB, for that stage only. It "
    "overrides the file.",
)
@declared_options(OutputSettings)
@own_option(
    "discard_ids",
    kind="flag",
    default=False,
    group="Output",
    help="With an export: remove the encoded parts when the export is verified. Plan, records and "
    "manifest stay, so that --resume does not encode again.",
)
@options.preset_option()
@declared_options(Execution)
@options.config_option()
@options.report_options()
@click.pass_context
def run(ctx: click.Context, /, **_: Any) -> None:
    """Count a corpus, train a tokenizer, encode the corpus and export it, as CONFIG.yaml says.

    The file sets options of the four commands by name, such as vocab_size: 32000. A key in a
    section count, train, encode or export is for that stage only; count and train share theirs.
    Writes DIR/counts, DIR/tokenizer.json, DIR/training.json and DIR/encoded, and with `to` in the
    section export, DIR/export; with superwords or boundless also DIR/words and DIR/runs. With
    group_by, DIR/counts has a folder for each group; parity lets these groups choose the merges.
    With mix, it has a folder for each source, and the tokenizer is trained on the same shares, of
    bytes.
    """
    words, ids, rows = (stage_context(ctx, name) for name in ("train", "encode", "export"))
    parity = parity_settings(
        words,
        mix=rows.params["mix"],
        groups="group_by",
        remedy="--parity needs --group-by FIELD: the groups are the values of that field",
    )
    roles, training = role_settings(words), train_settings(words)
    exporting, progress = export_settings(ctx, rows), options.progress(ctx)
    crosses_words(words)
    with loading():
        from pipelines import recipes

    pretokens = roles.with_tokens(marked_pretokens(words, options.pretoken_settings(words)))
    summaries = recipes.run(
        inputs=settings_of(words, InputSettings),
        pretokens=extended_pretokens(words, pretokens, training),
        counting=settings_of(words, CountSettings),
        training=training,
        output=options.output_settings(ctx),
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
    """What the corpus is exported to; None where it is not.

    Raises:
        click.UsageError: there are options of an export, and no format.
    """
    if stage.params["to"] is None:
        of_both = declared(EncodeSettings)  # parquet_encoding
        given = [
            *(name for name in declared(ExportSettings) if source(stage, name) != Source.DEFAULT),
            *(["discard_ids"] * bool(ctx.params["discard_ids"])),
        ]
        for name in given:
            if name not in of_both:
                raise click.UsageError(f"{name} is of an export: give its format with `to`", ctx)
        return None
    of_parquet = (
        {} if stage.params["to"] == "parquet" else {"parquet_encoding": "byte-stream-split"}
    )
    return settings_of(stage, ExportSettings, **of_parquet)
