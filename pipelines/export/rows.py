"""Rows on their way from Parquet to a format, and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from pipelines.encode.rows import Ids, Numbers


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Consecutive rows of a part.

    Attributes:
        ids: of all of them, one behind the other.
        lengths: ids in each; None where a format has no borders.
        begins: whether a row begins a document (a later chunk of one does not); None: all do.
        names: ids of the documents, where they are asked for.
    """

    ids: Ids
    lengths: Numbers | None
    begins: npt.NDArray[np.bool_] | None = None
    names: pa.StringArray | None = None
