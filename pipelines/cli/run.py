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
    CountsInput,
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

    from pipelines.cli.summary import Summary
    from pipelines.progress import Progress
    from pipelines.summaries import ExportSummary


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
    superwords = crosses_words(words)
    parity = parity_settings(
        words,
        mix=rows.params["mix"],
        groups="group_by",
        remedy="--parity needs --group-by FIELD: the groups are the values of that field",
    )
    inputs, roles = settings_of(words, InputSettings), role_settings(words)
    pretokens = roles.with_tokens(marked_pretokens(words, options.pretoken_settings(words)))
    training, encoding = train_settings(words), settings_of(ids, EncodeSettings)
    encoded_inputs, runs = settings_of(ids, InputSettings), settings_of(words, RunSettings)
    execution = options.execution(ctx)
    output = options.output_settings(ctx)
    counts_output = options.output_settings(ctx, below="/counts")
    encoded_output = options.output_settings(ctx, below="/encoded")
    exporting = export_settings(ctx, rows)
    progress = options.progress(ctx)
    with loading():
        from bpe.ties import needs_order
        from pipelines.corpus.inputs import check_sources
        from pipelines.count.job import count
        from pipelines.encode.job import encode
        from pipelines.export.job import export
        from pipelines.mix import counts_of_sources
        from pipelines.recipes import in_training, train
        from pipelines.tokenizer_files import forget_tokenizer

    shares = {} if exporting is None else exporting.shares
    for corpus in (inputs, encoded_inputs) if shares else ():
        check_sources(corpus, shares)
    pretokens = extended_pretokens(words, pretokens, training)
    check_run(
        inputs=encoded_inputs,
        pretokens=pretokens,
        training=training,
        roles=roles,
        output=output,
        encoding=encoding,
        execution=execution,
        runs=runs if superwords else None,
        parity=parity,
    )
    counted = count(
        inputs=inputs,
        pretokens=pretokens,
        output=in_training(counts_output, output.directory),
        settings=settings_of(
            words,
            CountSettings,
            track_order=words.params["track_order"] or needs_order(training.ties),
            # Of a mix, what is rare is so in all of it, with its weights: the training drops it.
            **({"prune_below": 1} if shares else {}),
        ),
        sources=tuple(sorted(shares)),
        execution=execution,
        progress=progress,
    )
    trained = train(
        inputs=inputs if superwords else None,
        counts=counts_of_sources(counts_output.directory, shares)
        or (CountsInput(directory=counts_output.directory),),
        pretokens=pretokens,
        training=training,
        output=output,
        execution=execution,
        roles=roles,
        parity=parity,
        runs=runs,
        progress=progress,
        then="encoded" if exporting is None else "export",
    )
    encoded = encode(
        inputs=encoded_inputs,
        tokenizer=f"{output.directory.rstrip('/')}/tokenizer.json",
        output=encoded_output,
        encoding=encoding,
        execution=execution,
        progress=progress,
    )
    summaries: dict[str, Summary] = {"count": counted, "train": trained, "encode": encoded}
    if exporting is not None:
        forget_tokenizer()  # its caches of words, some 20 MB a thread, are not for rows
        summaries["export"] = exported = export(
            sources=[encoded_output.directory],
            output=options.output_settings(ctx, below="/export"),
            settings=exporting,
            execution=execution,
            progress=progress,
        )
        if ctx.params["discard_ids"]:
            discard(encoded_output.directory, exported, execution=execution, progress=progress)
    show_summary(words.params | ctx.params, **summaries)


def discard(
    directory: str, exported: ExportSummary, *, execution: Execution, progress: Progress
) -> None:
    """Verify an export against its ids, and remove these, where they are there yet."""
    from pipelines.encode.discard import discard_parts
    from pipelines.encode.manifest import read_header
    from pipelines.failures import job_errors
    from pipelines.verify.job import verify

    with job_errors():
        if not read_header(directory, discarded=True).discarded:
            inputs = InputSettings(patterns=(directory,))
            verify(directory=exported.output, inputs=inputs, execution=execution, progress=progress)
        discard_parts(directory, progress)


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


def check_run(
    *,
    pretokens: PretokenSettings,
    training: TrainSettings,
    output: OutputSettings,
    inputs: InputSettings,
    encoding: EncodeSettings,
    execution: Execution,
    roles: RoleSettings = RoleSettings(),  # noqa: B008  # immutable
    runs: RunSettings | None = None,
    parity: ParitySettings = ParitySettings(),  # noqa: B008  # immutable
) -> None:
    """Refuse settings and a directory that would end the job only after the corpus is counted.

    Raises:
        JobError: something is wrong; the class says what.
    """
    from bpe.roles import Roles
    from pipelines import storage
    from pipelines.corpus.inputs import find_inputs
    from pipelines.encode.kept import find_kept
    from pipelines.encode.steps import check_special_tokens, in_tokens
    from pipelines.extension import load_extended, located
    from pipelines.failures import job_errors
    from pipelines.output.directory import decide, refuse_links
    from pipelines.parity import expected_groups
    from pipelines.run import options as use_options
    from pipelines.train import check_training, read_roles

    with job_errors():
        use_options(execution)
        extend = load_extended(located(training))
        known = read_roles(roles) or (Roles() if extend is None else extend.roles)
        rows = in_tokens(encoding, pretokens.special_tokens, known)
        check_special_tokens(pretokens.special_tokens, rows)
        check_training(
            training,
            pretokenizer=pretokens.cut,
            special_tokens=pretokens.special_tokens,
            extend=extend,
            counted_without=pretokens.special_tokens if parity.parity else (),
            runs=runs,
            groups=expected_groups(parity, training) if parity.parity else None,
        )
        directory = storage.located(output.directory)
        refuse_links(directory, ["counts", "words", "runs", "encoded", "export"])
        decide(output, None, keep=["counts"])  # the count decides about them
        if encoding.keep:
            find_kept(find_inputs(inputs).files, encoding)
