"""What frameworks themselves read of an export, where they are installed.

None is among the test packages: each needs PyTorch, which is gigabytes. The readers of
`tests.pipelines.export_readers` go by the same descriptions, and always run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.pipelines.corpora import MODES, encode, small_tokenizer, write_corpus
from tests.pipelines.test_export import export, joined, rows_with_files

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def source(tmp_path: Path) -> Path:
    small_tokenizer(tmp_path / "tokenizer.json")
    corpus = write_corpus(tmp_path / "corpus")
    encode(corpus.inputs(), tmp_path / "tokenizer.json", tmp_path / "ids", encoding=MODES["ends"])
    return tmp_path / "ids"


def needs(module: str, package: str) -> Any:
    return pytest.importorskip(module, reason=f"{package} is not installed: it needs PyTorch")


def test_megatron(source: Path, tmp_path: Path) -> None:
    reader = needs("megatron.core.datasets.indexed_dataset", "megatron-core")
    export(source, tmp_path / "out", "megatron", one_file=True)
    dataset = reader.IndexedDataset(str(tmp_path / "out" / "train"))
    rows = [dataset[i].tolist() for i in range(len(dataset))]
    assert rows == rows_with_files(source)


def test_streaming(source: Path, tmp_path: Path) -> None:
    streaming = needs("streaming", "mosaicml-streaming")
    export(source, tmp_path / "out", "mds", shard_size=900)
    dataset = streaming.StreamingDataset(local=str(tmp_path / "out"), batch_size=1)
    rows = [dataset[i]["input_ids"].tolist() for i in range(len(dataset))]
    assert rows == rows_with_files(source)


def test_litdata(source: Path, tmp_path: Path) -> None:
    litdata = needs("litdata", "litdata")
    export(source, tmp_path / "out", "litdata")
    loader = litdata.TokensLoader(block_size=1)
    dataset = litdata.StreamingDataset(str(tmp_path / "out"), item_loader=loader)
    ids = [int(dataset[i][0]) for i in range(len(dataset))]
    assert ids == joined(rows_with_files(source))
