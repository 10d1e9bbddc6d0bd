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
    from pipelines.count.job import CountCorpus as CountCorpus
    from pipelines.encode.job import EncodeCorpus as EncodeCorpus
    from pipelines.transforms.counting import CountPretokens as CountPretokens
    from pipelines.transforms.counts_files import ReadCounts as ReadCounts
    from pipelines.transforms.counts_files import WriteCounts as WriteCounts
    from pipelines.transforms.documents import ReadDocuments as ReadDocuments
    from pipelines.transforms.drift import MeasureDrift as MeasureDrift
    from pipelines.transforms.encoding import EncodeDocuments as EncodeDocuments
    from pipelines.transforms.mixing import MixCounts as MixCounts
    from pipelines.transforms.ml import BPETokenize as BPETokenize
    from pipelines.transforms.token_ids import WriteTokenIds as WriteTokenIds
    from pipelines.transforms.training import TrainTokenizer as TrainTokenizer

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
__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
