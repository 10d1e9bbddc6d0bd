"""``bpe export``: every format holds the ids and the borders of the Parquet rows."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.encode.manifest import read_encoded
from pipelines.errors import ConfigError, InputError, OutputError
from pipelines.export.format import ExportJob
from pipelines.export.shards import cut
from pipelines.export.steps import check_settings, encoded_by
from pipelines.report import report
from pipelines.settings import EncodeSettings, Execution, ExportSettings, OutputSettings
from tests import jobs
from tests.pipelines.corpora import (
    END,
    FOUR,
    MODES,
    ONE,
    encode,
    tree,
    write_corpus,
    write_jsonl,
)
from tests.pipelines.export_readers import (
    flat_ids,
    litdata_rows,
    manifest_of,
    mds_rows,
    megatron_rows,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipelines.summaries import ExportSummary

FORMATS = ("bin", "megatron", "mds", "litdata")
SHAPES = ("documents", "ends", "chunks with ends", "packed, dropped")


@pytest.fixture(scope="module")
def encoded(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The directory of an encoded corpus, one for each way in which rows can differ."""
    folder = tmp_path_factory.mktemp("encoded")
    corpus = write_corpus(folder / "corpus")

    def made(mode: str = "ends") -> Path:
        directory = folder / mode
        if not directory.exists():
            encode(corpus.inputs(), model, directory, encoding=MODES[mode])
        return directory

    return made


def export(
    source: Path,
    output: Path,
    to: str = "bin",
    *,
    execution: Execution = ONE,
    overwrite: bool = False,
    resume: bool = False,
    **settings: Any,
) -> ExportSummary:
    return jobs.export(
        directory=str(source),
        output=OutputSettings(directory=str(output), overwrite=overwrite, resume=resume),
        settings=ExportSettings(to=to, **settings),  # type: ignore[arg-type]
        execution=execution,
    )


def parts_of(source: Path) -> list[Path]:
    return sorted(source.glob("data/*.parquet"))


def rows_of(path: Path, column: str = "input_ids") -> list[Any]:
    rows: list[Any] = pq.read_table(path, columns=[column])[column].to_pylist()
    return rows


def all_rows(source: Path) -> list[list[int]]:
    return [row for part in parts_of(source) for row in rows_of(part)]


def joined(rows: list[list[int]]) -> list[int]:
    return [id_ for row in rows for id_ in row]


def id_type(source: Path) -> str:
    return str(json.loads((source / "manifest.json").read_bytes())["id_type"])


@pytest.mark.parametrize("mode", SHAPES)
def test_bin_holds_the_ids_of_each_part(
    encoded: Callable[[str], Path], tmp_path: Path, mode: str
) -> None:
    source = encoded(mode)
    summary = export(source, tmp_path / "out")
    kind = "<u2" if id_type(source) == "uint16" else "<u4"
    for part in parts_of(source):
        path, ids = tmp_path / "out" / f"{part.stem}.bin", joined(rows_of(part))
        assert path.exists() == bool(ids)
        assert not ids or flat_ids(path, kind) == ids
    assert summary.tokens == len(joined(all_rows(source)))
    assert summary.rows == len(all_rows(source))
    assert summary.parts == len(parts_of(source))
    assert summary.files == len([*(tmp_path / "out").glob("train-*.bin")])


@pytest.mark.parametrize("mode", ["documents", "ends"])
def test_one_file_holds_all_parts_in_order_and_llm_c_header(
    encoded: Callable[[str], Path], tmp_path: Path, mode: str
) -> None:
    source = encoded(mode)
    kind, magic = {"uint16": ("<u2", [20240520, 1]), "uint32": ("<u4", [20240801, 7])}[
        id_type(source)
    ]
    export(source, tmp_path / "one", one_file=True)
    ids = joined(all_rows(source))
    assert flat_ids(tmp_path / "one" / "train.bin", kind) == ids
    export(source, tmp_path / "header", one_file=True, header="llm.c")
    path = tmp_path / "header" / "train.bin"
    header = np.fromfile(path, "<i4", 256).tolist()
    assert header == [*magic, len(ids), *[0] * 253]
    assert flat_ids(path, kind, 1024) == ids
    assert sorted(one.name for one in path.parent.iterdir()) == [
        ".plan.json",
        "export.json",
        "train.bin",
    ]


def test_each_file_of_llm_c_counts_its_own_ids(
    encoded: Callable[[str], Path], tmp_path: Path
) -> None:
    export(encoded("documents"), tmp_path / "out", header="llm.c")
    for path in (tmp_path / "out").glob("train-*.bin"):
        header = np.fromfile(path, "<i4", 256)
        part = encoded("documents") / "data" / f"{path.stem}.parquet"
        assert header[2] == len(joined(rows_of(part))) > 0


def rows_with_files(source: Path) -> list[list[int]]:
    """The rows of the parts that have ids: the others make no file."""
    return [row for part in parts_of(source) if joined(rows_of(part)) for row in rows_of(part)]


def documents_of(source: Path) -> list[list[int]]:
    """The rows of each document, by their numbers."""
    documents: list[list[int]] = []
    row = 0
    for part in (one for one in parts_of(source) if joined(rows_of(one))):
        table = pq.read_table(part)
        chunked = "chunk_index" in table.column_names
        for chunk in table["chunk_index"].to_pylist() if chunked else [0] * len(table):
            if chunk == 0:
                documents.append([])
            documents[-1].append(row)
            row += 1
    return documents


@pytest.mark.parametrize("mode", SHAPES)
@pytest.mark.parametrize("one_file", [False, True])
def test_megatron_has_the_rows_and_their_documents(
    encoded: Callable[[str], Path], tmp_path: Path, mode: str, one_file: bool
) -> None:
    source, out = encoded(mode), tmp_path / "out"
    export(source, out, "megatron", one_file=one_file)
    rows: list[list[int]] = []
    documents: list[list[int]] = []
    for path in sorted(out.glob("*.idx")):
        some, of_some = megatron_rows(path.with_suffix(""))
        documents += [[len(rows) + row for row in one] for one in of_some]
        rows += some
    assert rows == rows_with_files(source)
    assert documents == documents_of(source)
    assert len([*out.glob("*.idx")]) == 1 or not one_file


@pytest.mark.parametrize(
    ("mode", "shard_size"), [("documents", 1), ("ends", 64 << 20), *((one, 600) for one in SHAPES)]
)
def test_mds_and_litdata_have_the_rows(
    encoded: Callable[[str], Path], tmp_path: Path, mode: str, shard_size: int
) -> None:
    source = encoded(mode)
    export(source, tmp_path / "mds", "mds", shard_size=shard_size)
    export(source, tmp_path / "litdata", "litdata", shard_size=shard_size)
    rows = rows_with_files(source)
    assert [one["input_ids"] for one in mds_rows(tmp_path / "mds")] == rows
    assert litdata_rows(tmp_path / "litdata") == rows
    for path in tmp_path.glob("*/train-*"):
        count = int.from_bytes(path.read_bytes()[:4], "little")
        assert path.stat().st_size <= shard_size or count == 1 or shard_size == 1


def test_mds_has_the_ids_of_documents(encoded: Callable[[str], Path], tmp_path: Path) -> None:
    source = encoded("chunks with ends")
    export(source, tmp_path / "out", "mds", with_id=True, shard_size=900)
    samples = mds_rows(tmp_path / "out")
    parts = [part for part in parts_of(source) if joined(rows_of(part))]
    assert [one["id"] for one in samples] == [id_ for part in parts for id_ in rows_of(part, "id")]
    assert [one["input_ids"] for one in samples] == rows_with_files(source)
    with pytest.raises(ConfigError, match=r"`with_id`: the rows of .* are packed"):
        export(encoded("packed with ends"), tmp_path / "packed", "mds", with_id=True)


@given(
    lengths=st.lists(st.integers(0, 40), min_size=1, max_size=60).filter(any),
    limit=st.integers(1, 400),
    head=st.integers(0, 50),
)
def test_shards_are_filled_up_to_their_size(lengths: list[int], limit: int, head: int) -> None:
    sizes = np.array(lengths, np.int64) * 2
    shards = [*cut(sizes, np.array(lengths), head=head, limit=limit)]
    row = 0
    for number, shard in enumerate(shards):
        rows = lengths[row : row + shard.rows]
        assert (shard.number, shard.tokens) == (number, sum(rows))
        assert shard.tokens > 0
        begin = head + 4 + 4 * len(rows)
        assert shard.offsets.tolist() == [
            begin + 2 * sum(rows[:end]) for end in range(len(rows) + 1)
        ]
        with_ids = sum(map(bool, rows))
        assert shard.offsets[-1] <= limit or with_ids == 1 or not any(lengths[row + shard.rows :])
        row += shard.rows
    assert row == len(lengths)


def test_ids_that_a_format_does_not_hold_are_refused(encoded: Callable[[str], Path]) -> None:
    encoded_ = encoded_by(read_encoded(str(encoded("ends"))))
    large = ExportJob(
        source="ids",
        directory="out",
        encoded=replace(encoded_, vocab_size=(1 << 31) + 1),
        settings=ExportSettings(to="megatron"),
    )
    with pytest.raises(ConfigError, match="ids are int32 there, and the greatest id of ids"):
        check_settings(large, [])
    header = replace(large, settings=ExportSettings(to="bin", header="llm.c", one_file=True))
    part = replace(read_encoded(str(encoded("ends"))).parts[0], tokens=1 << 30)
    check_settings(header, [part])
    with pytest.raises(ConfigError, match="counts to 2,147,483,647: leave out `one_file`"):
        check_settings(header, [part, part])


@pytest.mark.parametrize("to", FORMATS)
def test_the_bytes_are_the_same_with_any_number_of_workers(
    encoded: Callable[[str], Path], tmp_path: Path, to: str
) -> None:
    export(encoded("ends"), tmp_path / "one", to)
    export(encoded("ends"), tmp_path / "four", to, execution=FOUR)
    one, four = tree(tmp_path / "one"), tree(tmp_path / "four")
    del one[".plan.json"], four[".plan.json"]  # which has the id of the run
    assert one == four


@pytest.mark.parametrize("to", FORMATS)
def test_resume_keeps_the_files_of_complete_parts(
    encoded: Callable[[str], Path], tmp_path: Path, to: str
) -> None:
    source, out = encoded("ends"), tmp_path / "out"
    export(source, tmp_path / "whole", to)
    whole = tree(tmp_path / "whole")
    last = parts_of(source)[-1]
    moved = last.rename(tmp_path / "moved.parquet")  # ends the first run, after other parts
    try:
        with pytest.raises(InputError, match="is missing"):
            export(source, out, to)
    finally:
        moved.rename(last)
    assert not (out / "export.json").exists()
    with pytest.raises(OutputError, match="not finished: repeat its command with `resume`"):
        export(source, out, to)
    before = {one.name: one.stat().st_mtime_ns for one in out.glob("train-*")}
    summary = export(source, out, to, resume=True)
    assert 0 < summary.resumed_parts < summary.parts
    for name, time in before.items():
        assert (out / name).stat().st_mtime_ns == time
    made = tree(out)
    del made[".plan.json"], whole[".plan.json"]
    assert made == whole


@pytest.mark.parametrize("to", FORMATS)
def test_resume_writes_a_damaged_part_again(
    encoded: Callable[[str], Path], tmp_path: Path, to: str
) -> None:
    source, out = encoded("documents"), tmp_path / "out"
    export(source, out, to)
    whole = {name: data for name, data in tree(out).items() if name != ".plan.json"}
    first = min(out.glob("train-*"))
    first.write_bytes(first.read_bytes()[:-1])
    summary = export(source, out, to, resume=True)
    assert summary.resumed_parts == 0  # complete directories keep no state of their parts
    assert {name: data for name, data in tree(out).items() if name != ".plan.json"} == whole
    assert export(source, out, to, resume=True).resumed_parts == summary.parts


def test_another_job_is_refused_and_can_be_overwritten(
    encoded: Callable[[str], Path], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    export(encoded("ends"), out)
    with pytest.raises(OutputError, match="holds the output of bpe export, which is complete"):
        export(encoded("ends"), out)
    with pytest.raises(OutputError, match="begun as another job"):
        export(encoded("ends"), out, header="llm.c", resume=True)
    (out / "notes.txt").write_text("mine")
    export(encoded("documents"), out, overwrite=True, one_file=True)
    assert {one.name for one in out.iterdir()} == {
        *(".plan.json", "export.json", "train.bin", "notes.txt")
    }


def test_a_source_that_was_changed_is_refused(
    encoded: Callable[[str], Path], model: Path, tmp_path: Path
) -> None:
    corpus = write_jsonl(tmp_path / "in" / "a.jsonl", ["the quick brown fox"])
    encode(corpus.inputs(), model, tmp_path / "ids")
    (part,) = parts_of(tmp_path / "ids")
    part.write_bytes(parts_of(encoded("documents"))[0].read_bytes())
    with pytest.raises(InputError, match="bytes, the manifest says"):
        export(tmp_path / "ids", tmp_path / "out")
    assert not (tmp_path / "out" / "export.json").exists()


def test_what_is_no_encoded_corpus_is_refused(tmp_path: Path, model: Path) -> None:
    with pytest.raises(InputError, match="holds a tokenizer"):
        export(model.parent, tmp_path / "out")
    with pytest.raises(InputError, match="no such directory"):
        export(tmp_path / "none", tmp_path / "out")


def test_an_export_is_no_encoded_corpus(encoded: Callable[[str], Path], tmp_path: Path) -> None:
    export(encoded("ends"), tmp_path / "out")
    for job in (
        lambda: export(tmp_path / "out", tmp_path / "again"),
        lambda: jobs.decode(directory=str(tmp_path / "out"), stream=io.BytesIO()),
        lambda: report(str(tmp_path / "out"), output=str(tmp_path / "r.html")),
    ):
        with pytest.raises(
            InputError, match=r"holds an export \(of bpe export\): name a directory"
        ):
            job()


def test_an_output_around_its_source_is_refused(encoded: Callable[[str], Path]) -> None:
    source = encoded("documents")
    with pytest.raises(OutputError, match="lies in its output directory"):
        export(source, source.parent)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"to": "megatron", "header": "llm.c"}, "`header` goes with `to` bin"),
        ({"to": "mds", "one_file": True}, "`one_file` goes with `to` bin or megatron, not mds"),
        ({"to": "bin", "with_id": True}, "`with_id` goes with `to` mds"),
        ({"to": "bin", "shard_size": 5}, "`shard_size` goes with `to` mds or litdata"),
        ({"to": "csv"}, "`to` 'csv' is unknown"),
    ],
)
def test_options_of_other_formats_are_refused(settings: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        ExportSettings(**settings)


@pytest.mark.parametrize("to", FORMATS)
def test_a_corpus_without_text_is_exported(model: Path, tmp_path: Path, to: str) -> None:
    corpus = write_jsonl(tmp_path / "in" / "a.jsonl", ["", ""])
    encode(corpus.inputs(), model, tmp_path / "ids")
    summary = export(tmp_path / "ids", tmp_path / "out", to)
    assert (summary.rows, summary.tokens) == (2, 0)
    assert manifest_of(tmp_path / "out")["totals"]["rows"] == 2


@pytest.mark.parametrize("to", FORMATS)
def test_row_groups_are_read_one_after_the_other(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, to: str
) -> None:
    monkeypatch.setattr("pipelines.encode.parts.ROW_GROUP_ROWS", 3)
    corpus = write_jsonl(tmp_path / "in" / "a.jsonl", [f"{i} the quick " * i for i in range(40)])
    encoding = EncodeSettings(append_token=END)
    inputs = corpus.inputs(split_size=1 << 20)
    encode(inputs, model, tmp_path / "ids", encoding=encoding)
    summary = export(tmp_path / "ids", tmp_path / "out", to)
    assert summary.tokens == len(joined(all_rows(tmp_path / "ids")))


@pytest.mark.parametrize("to", FORMATS)
def test_filled_rows_are_exported_as_they_are(
    encoded: Callable[[str], Path], tmp_path: Path, to: str
) -> None:
    source = encoded("packed, padded")
    rows = all_rows(source)
    assert json.loads((source / "manifest.json").read_bytes())["totals"]["padding"]
    assert {len(row) for row in rows} == {33}
    summary = export(source, tmp_path / "out", to)
    assert (summary.rows, summary.tokens) == (len(rows), len(joined(rows)))
    compared = jobs.verify(directory=str(tmp_path / "out"), encoded=str(source))
    assert (compared.compared, compared.tokens) == (True, len(joined(rows)))


@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize("half", ["train", "validation"])
def test_documents_held_out_are_exported_by_themselves(
    encoded: Callable[[str], Path], tmp_path: Path, to: str, half: str
) -> None:
    source, out = encoded("held out"), tmp_path / "out"
    rows = [row for part in sorted(source.glob(f"data/{half}-*")) for row in rows_of(part)]
    one_file = to in ("bin", "megatron")
    summary = export(source, out, to, validation=half == "validation", one_file=one_file)
    assert (summary.rows, summary.documents) == (len(rows), len(rows))
    assert summary.tokens == len(joined(rows)) > 0
    others = {"export.json", "index.json"}
    names = {path.name for path in out.iterdir() if path.name[0] != "."} - others
    assert {name.partition("-")[0].partition(".")[0] for name in names} == {half}
    if to == "bin":
        kind = "<u2" if id_type(source) == "uint16" else "<u4"
        assert flat_ids(out / f"{half}.bin", kind) == joined(rows)
    assert jobs.verify(directory=str(out), encoded=str(source)).compared


def test_there_must_be_documents_held_out(encoded: Callable[[str], Path], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no documents of this corpus were held out"):
        export(encoded("ends"), tmp_path / "out", validation=True)
    assert not (tmp_path / "out").exists()
