"""Exports of small ids, what they hold, and what the oracle expects of them."""

from __future__ import annotations

import itertools
import json
import uuid
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from bpe import Tokenizer
from pipelines.export.job import ExportJob
from pipelines.export.plan import pinned_before, plan_export
from pipelines.progress import SlotWriter
from pipelines.settings import ExportSettings, InputSettings, OutputSettings
from pipelines.stage.stage import make_unit
from tests import jobs
from tests.export import oracle, readers
from tests.pipelines.corpora import ONE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pipelines.settings import ExportFormat
    from tests.export.oracle import Document, Row

FORMATS: tuple[ExportFormat, ...] = ("parquet", "bin", "megatron", "mds", "litdata")
UNIT = 300  # tokens: a fifth of a corpus here
Options = partial(ExportSettings, to="parquet")  # unless another format is named
PLAIN = Options()


def export(
    sources: Mapping[str, Path],
    output: Path | str,
    options: ExportSettings = PLAIN,
) -> None:
    """Run the job as the command does."""
    jobs.export(
        sources=inputs_of(sources).patterns,
        output=OutputSettings(directory=str(output)),
        settings=options,
        execution=ONE,
        unit_tokens=UNIT,
    )


def export_plainly(
    sources: Mapping[str, Path],
    output: Path,
    options: ExportSettings = PLAIN,
    *,
    unit_tokens: int = UNIT,
    overwrite: bool = False,
    resume: bool = False,
    stop: int | None = None,
) -> int:
    """The stages of the job without Beam, which is most of a small one; the units that it made.

    ``stop``: break off when so many units are made.
    """
    plan, *_ = plan_export(
        inputs_of(sources).patterns,
        options,
        unit_tokens=unit_tokens,
        pinned=pinned_before(str(output)) if resume else None,
    )
    settings = OutputSettings(directory=str(output), overwrite=overwrite, resume=resume)
    job = ExportJob(run=uuid.uuid4().hex, plan=plan, output=settings)
    units = 0
    for stage in job.stages if job.begin() else ():
        records = []
        for unit in stage.units():
            if units == stop:
                return units
            slot = SlotWriter(None, 0)
            record, resumed = make_unit(stage, unit, slot=slot, stopped=lambda: False)
            units += not resumed
            records.append(record)
        stage.fold(records)
    job.finish()
    return units


def verify(output: Path, sources: Mapping[str, Path] | None = None) -> None:
    """Check an export, given its sources against them."""
    jobs.verify(directory=str(output), inputs=inputs_of(sources) if sources else None)


def inputs_of(sources: Mapping[str, Path | str]) -> InputSettings:
    """The sources as ``bpe verify --input`` gets them."""
    return InputSettings(patterns=tuple(f"{name}={one}" for name, one in sources.items()))


def expected(
    sources: Mapping[str, Path], options: ExportSettings, *, unit_tokens: int = UNIT
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
    """The rows of each part as a format stores them; a stream of ids has no rows without ids."""
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
    made = json.loads((output / "manifest.json").read_bytes())
    kind = {"uint16": "<u2", "uint32": "<u4"}[made["id_type"]]
    header = 1024 if made["settings"]["header"] == "llm.c" else 0
    return [readers.flat_ids(path, kind, header) for path in paths]


def unnumbered(row: Row) -> Row:
    for piece in row.get("documents", ()):
        piece.pop("number", None)
    return row


def rows(output: Path, half: str = "train") -> list[Row]:
    """The rows of a half of a Parquet export."""
    return [row for rows in found(output, "parquet", half) for row in rows]


def check_names(names: list[str], half: str) -> None:
    assert names == [f"{half}-{i:05}-of-{len(names):05}" for i in range(len(names))]


def check(
    sources: Mapping[str, Path],
    output: Path,
    options: ExportSettings = PLAIN,
    *,
    unit_tokens: int = UNIT,
) -> None:
    """Compare an export with the oracle: its parts one by one, and the totals of its manifest."""
    manifest = json.loads((output / "manifest.json").read_bytes())
    halves = oracle.halves(oracle.read(sources), options)
    for half, parts in expected(sources, options, unit_tokens=unit_tokens).items():
        assert found(output, options.to, half) == stored(parts, options.to), half
        totals = manifest["training" if half == "train" else half]
        rows = [row for part in parts for row in part]
        for name, value in totals_of(halves[half], rows).items():
            assert totals[name] == value, f"{name} of {half}"


def totals_of(documents: list[Document], rows: list[Row]) -> dict[str, int]:
    """The totals of the manifest: of all documents of a half, and the rows that were made."""
    tokens = sum(row["num_tokens"] for row in rows)
    pieces = [
        piece
        for row in rows
        for piece in row.get("documents", [{"offset": row.get("chunk_index", 0)}])
    ]
    return {
        "documents": len(documents),
        "rows": len(rows),
        "tokens": tokens,
        "padding": sum(len(row["input_ids"]) for row in rows) - tokens,
        "dropped_tokens": sum(len(one.ids) for one in documents) - tokens,
        "dropped_documents": len(documents) - sum(not piece["offset"] for piece in pieces),
    }


def export_and_check(
    sources: Mapping[str, Path],
    output: Path,
    options: ExportSettings = PLAIN,
    *,
    unit_tokens: int = UNIT,
    **arguments: Any,
) -> None:
    """Export, without Beam, and compare."""
    export_plainly(sources, output, options, unit_tokens=unit_tokens, **arguments)
    check(sources, output, options, unit_tokens=unit_tokens)
