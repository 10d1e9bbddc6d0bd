"""Beam transforms around ``bpe``: documents, counts of pre-tokens, tokenizers, token ids.

For pipelines of any program: `ReadDocuments`, `CountPretokens`, `WriteCounts`, `ReadCounts`,
`TrainTokenizer`, `EncodeDocuments` and `WriteTokenIds` take and make the elements of PCollections;
`BPETokenize` is for Beam's ``MLTransform``; `CountCorpus` and `EncodeCorpus` go from files to
files. Beam is imported only where one of them is used.

Where to add

- an option: its declaration in ``settings/``, a field and its help in the docstring, from which the
  command line and job files follow (``needs=`` names the option without which it means nothing,
  ``excludes=`` those that it cannot be given with); and the step that goes by it, in ``encode/``,
  ``export/`` or ``count/``. What
  changes the rows of ``bpe encode`` belongs in ``RowSettings``, which workers, fingerprints and the
  manifest get; it is checked against the tokenizer in ``encode/tokens.py``. Options of reading and
  of rows are left out of fingerprints at their defaults, so old output stays valid.
  ``scripts/generate_reference.py`` writes ``docs/commands.md`` and ``configs/reference.yaml``.
- a job over a corpus: a `planned.CorpusRequest`, which plans, makes and sums up; its place in
  ``recipes.py``, where ``bpe run`` and trainings are lists of jobs; and a `Kind` in
  ``tests/contract/kinds.py``, for which every promise is tested then.
- an input format: its line in ``formats.py``, its reader in ``corpus/documents/`` (``uncut`` where
  a part of a file cannot be read without its beginning); and how two tests write it, ``write`` in
  ``test_documents.py`` and ``test_encode_matrix.py``.
- a storage scheme: nothing where fsspec knows it, else a row of ``_STORES`` in ``stores.py``, with
  its ``locate`` and ``make``.
- a column of encoded output: ``encode/rows.py``; it is filled in ``encode/steps.py`` and
  ``transforms/token_ids.py``. Fingerprints and ``bpe verify --input`` go by the columns. Where it
  is always there, old output is refused: raise VERSION in ``encode/manifest.py``, which holds the
  totals as well. In words: ``cli/encode.py``, ``docs/files.md``, ``docs/rows.md``.
- a check of ``bpe verify``: ``verify/__init__.py`` says which module checks what.
- a section of the report: ``report/job.py``, and the module of its sections.
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
    from pipelines.transforms.encoding import EncodeDocuments
    from pipelines.transforms.ml import BPETokenize
    from pipelines.transforms.token_ids import WriteTokenIds
    from pipelines.transforms.training import TrainTokenizer

__all__ = [
    "BPETokenize",
    "CountCorpus",
    "CountPretokens",
    "EncodeCorpus",
    "EncodeDocuments",
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
