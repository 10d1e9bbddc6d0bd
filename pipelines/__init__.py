"""Beam transforms around ``bpe``: documents, counts of pre-tokens, tokenizers, token ids.

For pipelines of any program: `ReadDocuments`, `CountPretokens`, `MixCounts`, `WriteCounts`,
`ReadCounts`, `TrainTokenizer`, `EncodeDocuments`, `MeasureDrift` and `WriteTokenIds` take and make
the elements of PCollections; `BPETokenize` is for Beam's ``MLTransform``; `CountCorpus` and
`EncodeCorpus` go from files to files. Beam is imported only where one of them is used.

``CONTRIBUTING.md`` names the files for each kind of change.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipelines.count.job import CountCorpus
    from pipelines.encode.job import EncodeCorpus
    from pipelines.transforms.counting import CountPretokens
    from pipelines.transforms.counts_files import ReadCounts, WriteCounts
    from pipelines.transforms.documents import ReadDocuments
    from pipelines.transforms.drift import MeasureDrift
    from pipelines.transforms.encoding import EncodeDocuments
    from pipelines.transforms.mixing import MixCounts
    from pipelines.transforms.ml import BPETokenize
    from pipelines.transforms.token_ids import WriteTokenIds
    from pipelines.transforms.training import TrainTokenizer

__all__ = [
    "BPETokenize",
    "CountCorpus",
    "CountPretokens",
    "EncodeCorpus",
    "EncodeDocuments",
    "MeasureDrift",
    "MixCounts",
    "ReadCounts",
    "ReadDocuments",
    "TrainTokenizer",
    "WriteCounts",
    "WriteTokenIds",
]

_MODULES = {
    "BPETokenize": "pipelines.transforms.ml",
    "CountCorpus": "pipelines.count.job",
    "CountPretokens": "pipelines.transforms.counting",
    "EncodeDocuments": "pipelines.transforms.encoding",
    "EncodeCorpus": "pipelines.encode.job",
    "MeasureDrift": "pipelines.transforms.drift",
    "MixCounts": "pipelines.transforms.mixing",
    "ReadCounts": "pipelines.transforms.counts_files",
    "ReadDocuments": "pipelines.transforms.documents",
    "TrainTokenizer": "pipelines.transforms.training",
    "WriteCounts": "pipelines.transforms.counts_files",
    "WriteTokenIds": "pipelines.transforms.token_ids",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
