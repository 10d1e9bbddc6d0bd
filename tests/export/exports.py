"""Exports of small ids, what they hold, and what the oracle expects of them."""

from __future__ import annotations

import itertools
import uuid
from typing import TYPE_CHECKING, Any, cast

import pyarrow.parquet as pq

from bpe import Tokenizer
from pipelines.export.job import ExportJob
from pipelines.export.plan import plan_export
from pipelines.progress import SlotWriter
from pipelines.settings import ExportSettings, OutputSettings
from pipelines.stage.stage import make_unit
from tests import jobs
from tests.export import oracle, readers
from tests.export.oracle import Options, Row
from tests.pipelines.corpora import ONE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pipelines.settings import Execution, ExportFormat
    from pipelines.summaries import ExportSummary

FORMATS: tuple[ExportFormat, ...] = ("parquet", "bin", "megatron", "mds", "litdata")
UNIT = 150  # tokens: a tenth of a corpus here
PLAIN = Options()


def export(
    sources: Mapping[str, Path],
    output: Path | str,
    options: Options = PLAIN,
    *,
    to: str = "parquet",
    unit_tokens: int = UNIT,
    fan_in: int = 256,
    execution: Execution = ONE,
    overwrite: bool = False,
    resume: bool = False,
    **of_format: Any,
) -> ExportSummary:
    """Run the job as the command does."""
    return jobs.export(
        sources=[f"{name}={directory}" for name, directory in sources.items()],
        output=OutputSettings(directory=str(output), overwrite=overwrite, resume=resume),
        settings=settings_of(options, to, **of_format),
        execution=execution,
        unit_tokens=unit_tokens,
        fan_in=fan_in,
    )


def settings_of(options: Options, to: str, **of_format: Any) -> ExportSettings:
    values = {**vars(options), "validation": float(oracle.share(options.validation))}
    values["mix"] = tuple(f"{name}={share}" for name, share in options.mix.items())
    return ExportSettings(to=cast("ExportFormat", to), **values, **of_format)


def export_plainly(
    sources: Mapping[str, Path],
    output: Path,
    options: Options = PLAIN,
    *,
    to: str = "parquet",
    unit_tokens: int = UNIT,
    fan_in: int = 256,
    resume: bool = False,
    stop: int | None = None,
) -> int:
    """The stages of the job without Beam, which is most of a small one; how many units were made.

    Args:
        sources: by name.
        output: the directory.
        options: about rows.
        to: the format.
        unit_tokens: of a unit of work.
        fan_in: of the shuffle.
        resume: whether an earlier run may have begun.
        stop: break off when so many units are made.
    """
    directories = {name: str(directory) for name, directory in sources.items()}
    plan, *_ = plan_export(directories, settings_of(options, to), unit_tokens=unit_tokens)
    settings = OutputSettings(directory=str(output), resume=resume)
    run = uuid.uuid4().hex
    job = ExportJob(run=run, plan=plan, output=settings, fan_in=fan_in)
    made = 0
    for stage in job.stages if job.begin() else ():
        records = []
        for unit in stage.units():
            if made == stop:
                return made
            with SlotWriter(None, 0) as slot:
                record, resumed = make_unit(stage, unit, slot=slot, stopped=lambda: False)
            made += not resumed
            records.append(record)
        stage.fold(records)
    job.finish()
    return made


def expected(
    sources: Mapping[str, Path], options: Options, *, unit_tokens: int = UNIT
) -> dict[str, list[list[Row]]]:
    """The rows of each part of both halves."""
    documents = oracle.read(sources)
    tokenizer = Tokenizer.load(next(iter(sources.values())) / "tokenizer.json")
    pad = tokenizer.special_tokens[options.pad_token] if options.pad_token else None
    return {
        half: oracle.parts(some, documents, options, unit_tokens=unit_tokens, pad=pad)
        for half, some in oracle.halves(documents, options).items()
    }


def stored(parts: list[list[Row]], to: str) -> list[Any]:
    """What a format stores of the rows of each part; a stream of ids has no rows without any."""
    if to in ("bin", "litdata"):
        parts = [rows for rows in parts if any(row["input_ids"] for row in rows)]
    rows_of_parts = [[row["input_ids"] for row in rows] for rows in parts]
    if to == "parquet":
        return parts
    if to == "bin":
        return [list(itertools.chain(*rows)) for rows in rows_of_parts]
    if to == "megatron":
        return [(rows, documents_of(part)) for rows, part in zip(rows_of_parts, parts, strict=True)]
    return rows_of_parts


def documents_of(rows: list[Row]) -> list[list[int]]:
    """The rows of each document of Megatron: all chunks of one, or one other row."""
    documents: list[list[int]] = []
    for number, row in enumerate(rows):
        if not row.get("chunk_index"):
            documents.append([])
        documents[-1].append(number)
    return documents


def found(output: Path, to: str, half: str = "train") -> list[Any]:
    """The same as the files of a half say it, after a check of their names."""
    if to in ("mds", "litdata"):
        folder = output / "validation" if half == "validation" else output
        if not (folder / "index.json").exists():
            return []
        shards = readers.mds_shards(folder) if to == "mds" else readers.litdata_shards(folder)
        parts: dict[str, list[Any]] = {}
        for name, rows in shards:
            part, number, _ = name.rsplit(".", 2)
            assert (number == "00000") == (part not in parts)
            parts.setdefault(part, []).extend(rows)
        check_names(list(parts), half)
        return list(parts.values())
    ending = {"parquet": "parquet", "bin": "bin", "megatron": "idx"}[to]
    folder = output / "data" if to == "parquet" else output
    paths = sorted(folder.glob(f"{half}-*.{ending}"))
    check_names([path.stem for path in paths], half)
    if to == "parquet":
        return [[unnumbered(row) for row in pq.read_table(path).to_pylist()] for path in paths]
    if to == "megatron":
        return [readers.megatron_rows(path.with_suffix("")) for path in paths]
    return [readers.flat_ids(path, "<u2") for path in paths]


def unnumbered(row: Row) -> Row:
    for piece in row.get("documents", ()):
        piece.pop("number", None)
    return row


def check_names(names: list[str], half: str) -> None:
    assert names == [f"{half}-{i:05}-of-{len(names):05}" for i in range(len(names))]


def check(
    sources: Mapping[str, Path],
    output: Path,
    options: Options = PLAIN,
    *,
    to: str = "parquet",
    unit_tokens: int = UNIT,
) -> None:
    """Compare an export with the oracle, part by part."""
    for half, parts in expected(sources, options, unit_tokens=unit_tokens).items():
        assert found(output, to, half) == stored(parts, to), half


def export_and_check(
    sources: Mapping[str, Path],
    output: Path,
    options: Options = PLAIN,
    *,
    to: str = "parquet",
    unit_tokens: int = UNIT,
    **arguments: Any,
) -> ExportSummary:
    summary = export(sources, output, options, to=to, unit_tokens=unit_tokens, **arguments)
    check(sources, output, options, to=to, unit_tokens=unit_tokens)
    return summary


def check_plainly(
    sources: Mapping[str, Path],
    output: Path,
    options: Options,
    *,
    unit_tokens: int = UNIT,
    fan_in: int = 256,
) -> None:
    """Export without Beam, and compare."""
    export_plainly(sources, output, options, unit_tokens=unit_tokens, fan_in=fan_in)
    check(sources, output, options, unit_tokens=unit_tokens)
