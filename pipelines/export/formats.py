"""The formats by their names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.export.flat import FlatFormat
from pipelines.export.litdata import LitdataFormat
from pipelines.export.mds import MdsFormat
from pipelines.export.megatron import MegatronFormat

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipelines.export.format import Format

FORMATS: Mapping[str, Format] = {
    "bin": FlatFormat(),
    "megatron": MegatronFormat(),
    "mds": MdsFormat(),
    "litdata": LitdataFormat(),
}
