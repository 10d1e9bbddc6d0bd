"""Bytes of token ids on disk, in each encoding of Parquet."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from benchmarks import vocabularies
from benchmarks.contenders import encode_command
from benchmarks.contenders.report import Report
from benchmarks.contenders.whole_command import measured
from benchmarks.corpora import DATA, jsonl_file
from benchmarks.processes import cores_there

if TYPE_CHECKING:
    from collections.abc import Sequence

prepare = encode_command.prepare


def run(name: str, arguments: Sequence[str], *, check: bool) -> Report:
    """Encode copies of a corpus.

    Args:
        name: of ``--parquet-encoding``.
        arguments: the corpus, bytes of it, and how many copies.
        check: whether the output is compared.
    """
    corpus, size, copies = arguments
    source = jsonl_file(corpus, int(size), copies=int(copies))
    tokenizer = vocabularies.tokenizer_json("r50k_base")
    with TemporaryDirectory(dir=DATA) as folder:
        command = encode_command.ours(source, tokenizer, Path(folder), workers=cores_there())
        measures = measured([*command, "--parquet-encoding", name], check=check)
        groups = (
            file.row_group(number)
            for path in Path(folder).glob("data/*.parquet")
            for file in [pq.read_metadata(path)]
            for number in range(file.num_row_groups)
        )
        columns = (group.column(i) for group in groups for i in range(group.num_columns))
        ids = sum(
            one.total_compressed_size
            for one in columns
            if one.path_in_schema.startswith("input_ids.")
        )
        digest = encode_command.parquet_digest(Path(folder))
    return Report(digest=digest, measures=measures if check else {"bytes": float(ids)})
