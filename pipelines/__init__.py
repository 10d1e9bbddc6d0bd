"""Apache Beam jobs around ``bpe``: corpus to counts, counts to tokenizer, corpus to token ids.

`CountPretokens` and `EncodeToParquet` are transforms for pipelines of any program; whole jobs are
in `pipelines.jobs`. Beam is imported only where one of them is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipelines.count import CountPretokens
    from pipelines.encode import EncodeToParquet

__all__ = ["CountPretokens", "EncodeToParquet"]


_MODULES = {"CountPretokens": "pipelines.count", "EncodeToParquet": "pipelines.encode"}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
