"""``bpe run``: count, train, encode and export as a file says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from pipelines.cli import options
from pipelines.cli.command import command
from pipelines.cli.declared import specs_of
from pipelines.cli.layers import Origin, stage_values
from pipelines.cli.loading import loading
from pipelines.cli.summary import show_summary
from pipelines.cli.train import training_arguments
from pipelines.option import Option, Settings, declared, option
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

    from pipelines.cli.layers import Values


_WORDS = specs_of(
    *(InputSettings, PretokenSettings, CountSettings, TrainSettings, ParitySettings),
    *(ModelSettings, RunSettings, RoleSettings),
)


# By section of the file, and of ``--set``.
_STAGES: Mapping[str, Mapping[str, Option]] = {
    "count": _WORDS,
    "train": _WORDS,
    "encode": specs_of(InputSettings, EncodeSettings),
    "export": specs_of(ExportSettings, changes={"to": {"required": False}}),
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
    stages=_STAGES,
    changes={"input": {"required": False}},
    leave_out=[one.name for one in declared(InputSettings).values() if one.name != "input"],
)
@click.argument("job", metavar="CONFIG.yaml", is_eager=True)
def run(values: Values) -> None:
    """Count, train, encode and export, as configured in a YAML file.

    The file sets options of the four commands by name, such as vocab_size: 32000. A key in the
    section encode or export is for that stage only. The sections count and train are one: a key in
    either is for both stages.

    Writes DIR/counts, DIR/tokenizer.json, DIR/training.json and DIR/encoded. With `to` in the
    section export, it also writes DIR/export; with superwords or boundless, DIR/words and DIR/runs.
    With group_by, DIR/counts has a folder for each group; with mix, for each source. The shares of
    mix are in bytes for the training, and in tokens for the export.

    Example:
        bpe run configs/demo.yaml
        bpe run configs/demo.yaml --output elsewhere --set vocab_size=4096 --set export.shuffle=2
        bpe run configs/demo.yaml --resume
        bpe run configs/demo.yaml --config configs/runners/prism.yaml
    """
    words, ids, rows = (
        stage_values(values, _STAGES, name) for name in ("train", "encode", "export")
    )
    words["mix"] = rows["mix"]
    training, exporting = training_arguments(words), export_settings(values, rows)
    with loading():
        from pipelines import recipes

    summaries = recipes.run(
        inputs=words.settings(InputSettings),
        counting=words.settings(CountSettings),
        output=values.settings(OutputSettings),
        execution=values.settings(Execution),
        encoded_inputs=ids.settings(InputSettings),
        encoding=ids.settings(EncodeSettings),
        exporting=exporting,
        discard_ids=values["discard_ids"],
        progress=options.progress(values),
        **training,
    )
    show_summary(words | values, **summaries)


def export_settings(values: Values, stage: Values) -> ExportSettings | None:
    """Return the settings of the export; None without one.

    Raises:
        click.UsageError: there are options of an export, and no format.
    """
    if stage["to"] is None:
        given = [name for name in declared(ExportSettings) if stage.origins[name] != Origin.DEFAULT]
        given = [name for name in given if name not in declared(EncodeSettings)]
        given += ["discard_ids"] * values["discard_ids"]
        if given:
            raise click.UsageError(f"{given[0]} is of an export: give its format with `to`")
        return None
    of_parquet = (  # that of the ids, if the export has another format
        {} if stage["to"] == "parquet" else {"parquet_encoding": "byte-stream-split"}
    )
    return stage.settings(ExportSettings, **of_parquet)
