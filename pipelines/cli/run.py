"""``bpe run``: count, train, encode and export as a file says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from pipelines.cli import options
from pipelines.cli.command import JobCommand, Source, own_option, source, use_job
from pipelines.cli.loading import loading
from pipelines.cli.options import declared_options, settings_of
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
    from pipelines.progress import Progress
    from pipelines.summaries import ExportSummary


@click.command(
    cls=JobCommand,
    short_help="Count, train, encode and export, as configured in a YAML file.",
    example="""
bpe run configs/demo.yaml
bpe run configs/demo.yaml --output elsewhere --vocab-size 4096
bpe run configs/demo.yaml --resume
bpe run configs/demo.yaml --config configs/runners/prism.yaml
""",
)
@click.argument("job", metavar="CONFIG.yaml", is_eager=True, expose_value=False, callback=use_job)
@declared_options(
    *(InputSettings, PretokenSettings, CountSettings, TrainSettings, ParitySettings),
    *(ModelSettings, RunSettings, RoleSettings, EncodeSettings, ExportSettings),
    *(OutputSettings, Execution),
    optional=["to"],
)
@own_option(
    "discard_ids",
    kind="flag",
    default=False,
    group="Output",
    help="With --to: remove the encoded parts when the export is verified. Plan, records and "
    "manifest stay, so that --resume does not encode again.",
)
@options.preset_option()
@options.config_option()
@options.report_options()
@click.pass_context
def run(ctx: click.Context, /, **_: Any) -> None:
    """Count a corpus, train a tokenizer, encode the corpus and export it, as CONFIG.yaml says.

    The file sets the options below by name, such as vocab_size: 32000, also in sections count,
    train, encode and export; options on the command line override it. Writes DIR/counts,
    DIR/tokenizer.json, DIR/training.json and DIR/encoded, and with --to DIR/export; with
    --superwords or --boundless also DIR/words and DIR/runs. With --group-by, DIR/counts has a
    folder for each group; --parity lets these groups choose the merges. With --mix, it has a folder
    for each source, and the tokenizer is trained on the same shares, of bytes.
    """
    superwords = crosses_words(ctx)
    parity = parity_settings(
        ctx,
        groups="group_by",
        remedy="--parity needs --group-by FIELD: the groups are the values of that field",
    )
    inputs, roles = settings_of(ctx, InputSettings), role_settings(ctx)
    pretokens = roles.with_tokens(marked_pretokens(ctx, options.pretoken_settings(ctx)))
    training, encoding = train_settings(ctx), settings_of(ctx, EncodeSettings)
    runs = settings_of(ctx, RunSettings)
    execution = options.execution(ctx)
    output = options.output_settings(ctx)
    counts_output = options.output_settings(ctx, below="/counts")
    encoded_output = options.output_settings(ctx, below="/encoded")
    exporting = export_settings(ctx)
    progress = options.progress(ctx)
    with loading():
        from bpe.ties import needs_order
        from pipelines.corpus.inputs import check_sources
        from pipelines.count.job import count
        from pipelines.encode.job import encode
        from pipelines.export.job import export
        from pipelines.train import counts_of_sources, in_training, train

    shares = {} if exporting is None else exporting.shares
    if shares:
        check_sources(inputs, shares)
    pretokens = extended_pretokens(ctx, pretokens, training)
    check_run(
        inputs=inputs,
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
            ctx,
            CountSettings,
            track_order=ctx.params["track_order"] or needs_order(training.ties),
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
        inputs=inputs,
        tokenizer=f"{output.directory.rstrip('/')}/tokenizer.json",
        output=encoded_output,
        encoding=encoding,
        execution=execution,
        progress=progress,
    )
    if exporting is None:
        show_summary(ctx, count=counted, train=trained, encode=encoded)
        return
    exported = export(
        sources=[encoded_output.directory],
        output=options.output_settings(ctx, below="/export"),
        settings=exporting,
        execution=execution,
        progress=progress,
    )
    if ctx.params["discard_ids"]:
        discard(encoded_output.directory, exported, execution=execution, progress=progress)
    show_summary(ctx, count=counted, train=trained, encode=encoded, export=exported)


def discard(
    directory: str, exported: ExportSummary, *, execution: Execution, progress: Progress
) -> None:
    """Verify an export against its ids, and remove these, where they are there yet."""
    from pipelines.encode.discard import discard_parts
    from pipelines.encode.manifest import is_discarded
    from pipelines.failures import job_errors
    from pipelines.verify.job import verify

    with job_errors():
        if not is_discarded(directory):
            inputs = InputSettings(patterns=(directory,))
            verify(directory=exported.output, inputs=inputs, execution=execution, progress=progress)
        discard_parts(directory, progress)


def export_settings(ctx: click.Context) -> ExportSettings | None:
    """What the corpus is exported to; None where it is not.

    Raises:
        click.UsageError: there are options of an export, and no format.
    """
    given = [
        name
        for name in declared(ExportSettings)
        if name not in declared(EncodeSettings) and source(ctx, name) != Source.DEFAULT
    ]
    if ctx.params["to"] is None:
        given += ["discard_ids"] * bool(ctx.params["discard_ids"])
        if given:
            flag = given[0].replace("_", "-")
            raise click.UsageError(f"--{flag} is of an export: give its format with --to", ctx)
        return None
    of_parquet = {} if ctx.params["to"] == "parquet" else {"parquet_encoding": "byte-stream-split"}
    return settings_of(ctx, ExportSettings, **of_parquet)


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
    from pipelines.parity import check_groups
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
            runs=runs,
        )
        if parity.parity:
            check_groups(
                parity,
                training,
                pretokenizer=pretokens.cut,
                special_tokens=pretokens.special_tokens,
            )
        directory = storage.located(output.directory)
        refuse_links(directory, ["counts", "words", "runs", "encoded", "export"])
        decide(output, None, keep=["counts"])  # the count decides about them
        if encoding.keep:
            find_kept(find_inputs(inputs).files, encoding)
