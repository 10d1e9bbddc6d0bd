"""The formats, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.export.flat import FlatPart
from pipelines.export.litdata import LitdataPart, litdata_index
from pipelines.export.mds import MdsPart, mds_index
from pipelines.export.megatron import MegatronPart
from pipelines.export.parquet import ParquetPart

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pipelines.export.format import PartWriter
    from pipelines.export.manifest import ExportHeader
    from pipelines.settings import ExportFormat
    from pipelines.stage.record import StoredFile

PARTS: dict[ExportFormat, type[PartWriter]] = {
    "parquet": ParquetPart,
    "bin": FlatPart,
    "megatron": MegatronPart,
    "mds": MdsPart,
    "litdata": LitdataPart,
}
INDEXES: dict[ExportFormat, Callable[[Sequence[StoredFile], ExportHeader], bytes]] = {
    "mds": mds_index,
    "litdata": litdata_index,
}
"""Of the formats that have one: the contents of ``index.json``."""
