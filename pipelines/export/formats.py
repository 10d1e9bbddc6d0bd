"""The formats, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.export.flat import FlatPart
from pipelines.export.litdata import LitdataPart
from pipelines.export.mds import MdsPart
from pipelines.export.megatron import MegatronPart
from pipelines.export.parquet import ParquetPart

if TYPE_CHECKING:
    from pipelines.export.format import PartWriter
    from pipelines.settings import ExportFormat

PARTS: dict[ExportFormat, type[PartWriter]] = {
    "parquet": ParquetPart,
    "bin": FlatPart,
    "megatron": MegatronPart,
    "mds": MdsPart,
    "litdata": LitdataPart,
}
