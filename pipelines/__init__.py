"""Apache Beam jobs around ``bpe``: corpus to counts, counts to tokenizer, corpus to token ids.

`CountPretokens` and `EncodeToParquet` are transforms for pipelines of any program; whole jobs are
in `pipelines.jobs`. Beam is imported only where one of them is used.
"""

from __future__ import annotations

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipelines.count.transform import CountPretokens
    from pipelines.encode.transform import EncodeToParquet

__all__ = ["CountPretokens", "EncodeToParquet"]


def _is_wanted(record: logging.LogRecord) -> bool:
    # Beam says this on import wherever its Google Cloud extra is not installed, to everybody.
    return "apitools not found" not in record.getMessage()


logging.getLogger().addFilter(_is_wanted)  # to the root logger alone, as Beam does

_MODULES = {
    "CountPretokens": "pipelines.count.transform",
    "EncodeToParquet": "pipelines.encode.transform",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
