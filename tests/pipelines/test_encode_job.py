"""Encoding through a pipeline: every document its row, in its part."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bpe
from pipelines import parquet_writer
from pipelines.corpus.keys import row_hashes
from pipelines.encode import steps
from pipelines.encode.parts import open_part
from pipelines.encode.rows import row_schema, rows_of
from pipelines.errors import InputError, OutputError, RecordError
from pipelines.parquet_writer import RowWriter
from pipelines.settings import EncodeSettings
from pipelines.storage import replacing
from tests.pipelines.corpora import (
    Corpus,
    begun,
    decoded,
    encode,
    encode_request,
    encoded_manifest,
    make_units,
    sentence,
    small_tokenizer,
    tree,
    write_jsonl,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.settings import ParquetEncoding


def rows(directory: Path) -> pa.Table:
    return pa.concat_tables(pq.read_table(path) for path in sorted(directory.glob("data/train-*")))


def test_every_document_has_its_row(corpus: Corpus, model: Path, tmp_path: Path) -> None:
    summary = encode(corpus.inputs(), model, tmp_path / "ids")
    tokenizer = bpe.Tokenizer.load(model)
    table = rows(tmp_path / "ids")
    assert table["id"].to_pylist() == [id_ for id_, _ in corpus.documents]
    expected = [tokenizer.encode(text) for text in corpus.texts]
    assert table["input_ids"].to_pylist() == expected
    ids_type = pa.list_(pa.field("element", pa.uint16(), nullable=False))
    assert table.schema.types == [pa.string(), pa.uint64(), ids_type, pa.uint32()]
    assert summary.documents == len(expected)
    assert summary.bytes == sum(len(text.encode()) for text in corpus.texts)
    assert summary.parts > 4
    assert summary.resumed_parts == 0
    files = tree(tmp_path / "ids")
    parts = [f"data/train-{i:05d}-of-{summary.parts:05d}.parquet" for i in range(summary.parts)]
    others = [".plan.json", "manifest.json", "records.parquet", "tokenizer.json"]
    assert sorted(files) == sorted([*others, *parts])
    assert files["tokenizer.json"] == model.read_bytes()
    manifest = encoded_manifest(tmp_path / "ids")
    assert [part["file"] for part in manifest["parts"]] == parts
    assert manifest["totals"]["bytes"] == summary.output_bytes
    assert [source["name"] for source in manifest["inputs"]][:2] == ["a ünï.txt", "b/docs.jsonl"]
    assert str(tmp_path) not in files["manifest.json"].decode()  # it may be moved


def test_an_empty_split_has_its_part(model: Path, tmp_path: Path) -> None:
    corpus = write_jsonl(tmp_path / "in" / "docs.jsonl", [])
    summary = encode(corpus.inputs(), model, tmp_path / "ids")
    assert (summary.parts, summary.documents, summary.tokens) == (1, 0, 0)
    assert summary.bytes_per_token is None
    assert decoded(tmp_path / "ids") == []


def large_tokenizer(path: Path) -> None:
    """Save a tokenizer with ids that 16 bits do not hold."""
    tokens = [bytes([byte]) for byte in range(256)]
    tokens += [bytes([i >> 8, i & 255]) for i in range(65536)]
    merges = [(i >> 8, i & 255, 256 + i) for i in range(65536)]
    cut = bpe.Pretokenizer("none")
    bpe.Tokenizer(tokens=tokens, merges=merges, pretokenizer=cut).save(path)


def test_large_vocabularies_have_32_bit_ids(tmp_path: Path) -> None:
    large_tokenizer(tmp_path / "t.json")
    corpus = write_jsonl(tmp_path / "in" / "docs.jsonl", ["zz"])
    assert encode(corpus.inputs(), tmp_path / "t.json", tmp_path / "ids").id_type == "uint32"
    table = rows(tmp_path / "ids")
    assert table["input_ids"].to_pylist() == [[256 + (122 << 8) + 122]]
    assert table.schema.field("input_ids").type.value_type == pa.uint32()


def encodings(directory: Path) -> list[set[str]]:
    group = pq.ParquetFile(min(directory.glob("data/train-*"))).metadata.row_group(0)
    levels = {"RLE"}
    return [set(group.column(i).encodings) - levels for i in range(group.num_columns)]


def test_ids_are_stored_split_into_bytes_or_plainly(model: Path, tmp_path: Path) -> None:
    corpus = write_jsonl(tmp_path / "in" / "docs.jsonl", [sentence(i) for i in range(50)])
    encode(corpus.inputs(), model, tmp_path / "split")
    plain = EncodeSettings(parquet_encoding="plain")
    encode(corpus.inputs(), model, tmp_path / "plain", encoding=plain)
    split = {"BYTE_STREAM_SPLIT"}
    assert encodings(tmp_path / "split") == [{"DELTA_BYTE_ARRAY"}, {"PLAIN"}, split, split]
    assert encodings(tmp_path / "plain") == [{"PLAIN"}] * 4
    assert rows(tmp_path / "split").to_pylist() == rows(tmp_path / "plain").to_pylist()
    assert rows(tmp_path / "plain").schema.field("input_ids").type == pa.list_(pa.uint16())


def test_a_tokenizer_that_changes_under_the_job_is_noticed(
    corpus: Corpus, model: Path, tmp_path: Path
) -> None:
    request = encode_request(corpus.inputs(), model, tmp_path / "ids")
    begun(request)
    other = bpe.train(bpe.count_pretokens(["aaaa bbbb"]), vocab_size=258)
    other.save(tmp_path / "ids" / "tokenizer.json")
    (stage,) = request.stages
    for _ in range(2):
        with pytest.raises(InputError, match="was changed while the job ran"):
            make_units(stage, 1)


def test_row_groups_end_by_a_fixed_rule(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_writer, "ROW_GROUP_TOKENS", 100)
    table = pa.array([[1] * 60, [2] * 60, [], [3]], pa.list_(pa.uint32()))
    path = tmp_path / "part"
    encoding: ParquetEncoding = "byte-stream-split"
    schema = row_schema("uint16", encoding)
    with replacing(str(path)) as sink, RowWriter(sink, schema, encoding=encoding) as writer:
        for row in range(4):
            ids = pa.array([str(row)])
            keys, lists = row_hashes(ids), table[row : row + 1]
            writer.add(rows_of(schema, ids=ids, passthrough=(), keys=keys, input_ids=lists))
        writer.close()
    groups = pq.ParquetFile(path).metadata
    assert [groups.row_group(i).num_rows for i in range(groups.num_row_groups)] == [2, 2]
    assert pq.read_table(path)["input_ids"].to_pylist() == table.to_pylist()


def test_pages_have_checksums(ids: Path) -> None:
    path = max(ids.glob("data/train-*"), key=lambda path: path.stat().st_size)
    column = pq.ParquetFile(path).metadata.row_group(0).column(1)
    data = bytearray(path.read_bytes())
    data[column.data_page_offset + column.total_compressed_size - 5] ^= 1
    path.write_bytes(data)
    with pytest.raises(OSError, match=r"(?i)crc|checksum"):
        open_part(path).read()


def test_a_document_that_no_row_can_hold_is_a_bad_record(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "MAX_ROW_TOKENS", 50)
    texts = [sentence(1, 4), "#" * 51, sentence(2, 4), "!" * 50]
    corpus = write_jsonl(tmp_path / "in" / "docs.jsonl", texts)
    with pytest.raises(RecordError, match=r"record at byte \d+: its 51 tokens do not fit a row"):
        encode(corpus.inputs(split_size=None), model, tmp_path / "ids")
    inputs = corpus.inputs(split_size=None, max_failures=1)
    summary = encode(inputs, model, tmp_path / "ids", overwrite=True)
    assert (summary.documents, summary.failures) == (3, 1)
    assert rows(tmp_path / "ids")["id"].to_pylist() == ["d0", "d2", "d3"]
    assert summary.bytes == sum(len(texts[i].encode()) for i in (0, 2, 3))


def test_the_summary_says_what_was_read_and_what_was_passed_over(
    corpus: Corpus, model: Path, tmp_path: Path
) -> None:
    inputs = corpus.inputs()
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "README.md").touch()
    (tmp_path / "more" / "z.jsonl").write_text('{"text": "z"}')
    inputs = replace(inputs, patterns=(*inputs.patterns, str(tmp_path / "more")))
    summary = encode(inputs, model, tmp_path / "ids")
    assert summary.formats == {"jsonl": 81, "parquet": 50, "text": 1}
    (over,) = summary.passed_over
    assert (over.files, over.first) == (1, str(tmp_path / "more" / "README.md"))
    assert summary.as_dict()["passed_over"][0]["reason"] == "by their names"


def test_the_tokenizer_may_not_lie_in_the_output(corpus: Corpus, tmp_path: Path) -> None:
    (tmp_path / "ids").mkdir()
    small_tokenizer(tmp_path / "ids" / "tokenizer.json")
    with pytest.raises(OutputError, match="is in its output directory"):
        encode(
            corpus.inputs(), tmp_path / "ids" / "tokenizer.json", tmp_path / "ids", overwrite=True
        )
