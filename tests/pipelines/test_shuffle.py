"""Documents in an order that a seed decides: whole jobs, and the files in between."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bpe
from pipelines.corpus.inputs import InputFile, find_inputs
from pipelines.corpus.splits import Split
from pipelines.encode.encoder import file_seed
from pipelines.encode.job import EncodeRequest, job_of
from pipelines.encode.parts import finished_part
from pipelines.encode.shuffle import (
    COMPRESSED,
    finished_split,
    in_order,
    planned_parts,
    shuffle_path,
    shuffle_split,
    shuffled_documents,
)
from pipelines.encode.steps import write_manifest
from pipelines.errors import (
    ConfigError,
    InputError,
    JobError,
    OutputError,
    RecordError,
    VerificationError,
)
from pipelines.failures import Failures
from pipelines.output.names import MAX_PARTS, SHUFFLE, manifest_bytes
from pipelines.progress import LineProgress
from pipelines.settings import EncodeSettings, InputSettings, OutputSettings
from tests import jobs
from tests.examples import examples
from tests.pipelines.corpora import (
    END,
    FOUR,
    ONE,
    TWO,
    Corpus,
    begun,
    decoded,
    encode,
    sentence,
    tree,
    write_corpus,
    write_jsonl,
)
from tests.pipelines.killing import run_until
from tests.pipelines.object_store import ObjectStore

if TYPE_CHECKING:
    from collections.abc import Iterator

SEED = 11
SHUFFLED = EncodeSettings(shuffle=SEED)
PACKED = EncodeSettings(shuffle=SEED, validation=0.3, pack=16, append_token=END)


def rows(directory: Path, half: str = "train") -> list[dict[str, Any]]:
    paths = sorted(directory.glob(f"data/{half}-*"))
    return [row for path in paths for row in pq.read_table(path).to_pylist()]


def key(seed: int, name: str, place: int) -> int:
    """As the documentation says it."""
    of_file = file_seed(seed, f"shuffle {name}")
    return int(bpe.row_seeds(of_file, 1, first=place)[0])


def test_the_order_is_that_of_the_keys(model: Path, tmp_path: Path) -> None:
    expected = []
    for name in ("a", "b"):
        texts = [f"{name} {sentence(i)}" for i in range(40)]
        lines = [json.dumps({"text": text}) for text in texts]
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / "in" / f"{name}.jsonl").write_text("\n".join(lines))
        places = [0, *np.cumsum([len(line.encode()) + 1 for line in lines]).tolist()]
        expected += [
            (key(SEED, f"{name}.jsonl", place), f"{name}.jsonl:{place}", text)
            for place, text in zip(places, texts, strict=False)
        ]
    inputs = InputSettings(patterns=(str(tmp_path / "in"),), split_size=600)
    encode(inputs, model, tmp_path / "ids", encoding=SHUFFLED)
    assert decoded(tmp_path / "ids") == [(id_, text) for _, id_, text in sorted(expected)]


def test_workers_and_splits_change_nothing(corpus: Corpus, model: Path, tmp_path: Path) -> None:
    summary = encode(corpus.inputs(), model, tmp_path / "one", encoding=PACKED)
    assert summary.documents == len(corpus.documents)
    encode(corpus.inputs(), model, tmp_path / "four", encoding=PACKED, execution=FOUR)
    assert tree(tmp_path / "four") == tree(tmp_path / "one")
    order = decoded(tmp_path / "one")
    for size in (4000, None):
        ids = tmp_path / str(size)
        encode(corpus.inputs(split_size=size), model, ids, encoding=PACKED)
        assert decoded(ids) == order
        jobs.verify(directory=str(ids), inputs=corpus.inputs(split_size=2000), execution=TWO)
    assert not (tmp_path / "one" / SHUFFLE).exists()


def test_another_seed_is_another_order(corpus: Corpus, model: Path, tmp_path: Path) -> None:
    orders = []
    for seed in (0, 1, 2**63 - 1):
        ids = tmp_path / str(seed)
        encode(corpus.inputs(), model, ids, encoding=EncodeSettings(shuffle=seed))
        orders.append(decoded(ids))
        assert sorted(orders[-1]) == sorted(corpus.documents)
    assert orders[0] != orders[1] != orders[2] != orders[0]


def test_rows_are_packed_of_documents_in_their_new_order(
    corpus: Corpus, model: Path, tmp_path: Path
) -> None:
    inputs = corpus.inputs(split_size=None)  # one part
    encode(inputs, model, tmp_path / "rows", encoding=replace(SHUFFLED, append_token=END))
    encode(inputs, model, tmp_path / "packed", encoding=replace(PACKED, validation=0.0))
    ids = [id_ for row in rows(tmp_path / "rows") for id_ in row["input_ids"]]
    packed = rows(tmp_path / "packed")
    assert [id_ for row in packed for id_ in row["input_ids"]] == ids
    assert {row["num_tokens"] for row in packed[:-1]} == {16}


def test_kept_columns_travel_with_their_documents(model: Path, tmp_path: Path) -> None:
    table = pa.table(
        {
            "id": [f"d{i}" for i in range(60)],
            "text": [sentence(i) for i in range(60)],
            "place": list(range(60)),  # as a column of ours is called
            "tags": [[f"t{i}"] * (i % 3) for i in range(60)],
            "at": pa.array([None if i % 7 == 0 else i for i in range(60)], pa.timestamp("us")),
        }
    )
    (tmp_path / "in").mkdir()
    pq.write_table(table, tmp_path / "in" / "a.parquet", row_group_size=9)
    inputs = InputSettings(patterns=(str(tmp_path / "in"),), split_size=500)
    encoding = replace(SHUFFLED, keep=("place", "tags", "at"))
    encode(inputs, model, tmp_path / "ids", encoding=encoding)
    names = ["id", "place", "tags", "at"]
    found = [{name: row[name] for name in names} for row in rows(tmp_path / "ids")]
    expected = table.select(names).to_pylist()
    assert found != expected
    assert sorted(found, key=lambda row: int(row["place"])) == expected
    jobs.verify(directory=str(tmp_path / "ids"), inputs=inputs)


def test_bad_records_are_named_by_their_splits(model: Path, tmp_path: Path) -> None:
    corpus = write_jsonl(tmp_path / "in" / "docs.jsonl", [sentence(i) for i in range(60)])
    path = corpus.folder / "docs.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:5], "{", *lines[5:], '{"text": 1}']))
    inputs = corpus.inputs(max_failures=2)
    summary = encode(inputs, model, tmp_path / "ids", encoding=PACKED)
    assert (summary.documents, summary.failures) == (60, 2)
    value = json.loads((tmp_path / "ids" / "manifest.json").read_bytes())
    assert [one["records"] for one in value["dead_letters"]] == [1, 1]
    assert jobs.verify(directory=str(tmp_path / "ids"), inputs=inputs).failures == 2
    path.write_text(path.read_text().replace('{"text": 1}', '{"text":"1"'))
    path.write_text(path.read_text().replace('"d3", "text"', '"d3", "tex."'))
    with pytest.raises(VerificationError, match="document 'd3' is not in the input"):
        jobs.verify(directory=str(tmp_path / "ids"), inputs=inputs)
    with pytest.raises(RecordError, match="bad records that `max_failures` allows"):
        encode(corpus.inputs(max_failures=1), model, tmp_path / "few", encoding=PACKED)


def test_what_is_not_the_shuffled_corpus_is_found(model: Path, tmp_path: Path) -> None:
    corpus, ids = write_corpus(tmp_path / "corpus"), tmp_path / "ids"
    encode(corpus.inputs(), model, ids, encoding=SHUFFLED)
    value = json.loads((ids / "manifest.json").read_bytes())
    (ids / "manifest.json").write_bytes(
        manifest_bytes({**value, "rows": {**value["rows"], "shuffle": SEED + 1}})
    )
    with pytest.raises(VerificationError, match="made from other inputs or with other settings"):
        jobs.verify(directory=str(ids))
    (ids / "manifest.json").write_bytes(manifest_bytes(value))
    path = corpus.folder / "b" / "docs.jsonl"
    text = path.read_text(encoding="utf-8")
    try:
        path.write_text(text.replace("quick", "QUICK", 1), encoding="utf-8")
        with pytest.raises(VerificationError, match=r"row \d+, document .* its ids do not decode"):
            jobs.verify(directory=str(ids), inputs=corpus.inputs())
    finally:
        path.write_text(text, encoding="utf-8")
    assert not (ids / SHUFFLE).exists()
    jobs.verify(directory=str(ids), inputs=corpus.inputs())


def test_a_verification_writes_nothing_to_the_corpus(
    corpus: Corpus, model: Path, tmp_path: Path
) -> None:
    ids, temp, inputs = tmp_path / "ids", tmp_path / "temp", corpus.inputs(split_size=2000)
    stream = io.StringIO()
    summary = jobs.encode(
        inputs=inputs,
        tokenizer=str(model),
        output=OutputSettings(directory=str(ids)),
        execution=TWO,
        encoding=PACKED,
        progress=LineProgress(stream),
    )
    assert f", {summary.parts} of {summary.parts} parts\n" in stream.getvalue()
    changed = ids.stat().st_mtime_ns
    for place in (None, str(temp)):
        jobs.verify(
            directory=str(ids),
            inputs=inputs,
            execution=TWO,
            progress=LineProgress(stream),
            temp=place,
        )
    assert stream.getvalue().count(f", {summary.parts} of {summary.parts} parts\n") == 3
    assert ids.stat().st_mtime_ns == changed
    assert not any(temp.iterdir())
    with pytest.raises(OutputError, match=r"tokenizer\.json is a file: name a directory"):
        jobs.verify(directory=str(ids), inputs=inputs, temp=str(model))
    (temp / SHUFFLE).symlink_to(tmp_path / "nowhere")
    with pytest.raises(OutputError, match="name another directory for these with `temp`"):
        jobs.verify(directory=str(ids), inputs=inputs, temp=str(temp))


def test_a_finished_job_is_only_looked_at(corpus: Corpus, model: Path, tmp_path: Path) -> None:
    ids = tmp_path / "ids"
    summary = encode(corpus.inputs(), model, ids, encoding=PACKED)
    before = tree(ids)
    stamps = {path: path.stat().st_mtime_ns for path in ids.glob("data/*")}
    again = encode(corpus.inputs(), model, ids, encoding=PACKED, resume=True)
    assert again.resumed_parts == summary.parts
    assert replace(again, resumed_parts=0, seconds=0.0) == replace(summary, seconds=0.0)
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps
    next(iter(stamps)).unlink()
    again = encode(corpus.inputs(), model, ids, encoding=PACKED, resume=True)
    assert again.resumed_parts == summary.parts - 1
    assert tree(ids) == before
    with pytest.raises(OutputError, match="settings shuffle was 11, is 12"):
        encode(corpus.inputs(), model, ids, encoding=replace(PACKED, shuffle=12), resume=True)


def test_an_input_that_changed_changes_all_parts(model: Path, tmp_path: Path) -> None:
    corpus = write_jsonl(tmp_path / "in" / "docs.jsonl", [sentence(i) for i in range(60)])
    encode(corpus.inputs(), model, tmp_path / "ids", encoding=SHUFFLED)
    path = corpus.folder / "docs.jsonl"
    path.write_text(path.read_text().replace("quick", "QUICK"))
    encode(corpus.inputs(), model, tmp_path / "new", encoding=SHUFFLED)
    again = encode(corpus.inputs(), model, tmp_path / "ids", encoding=SHUFFLED, resume=True)
    assert again.resumed_parts == 0
    assert tree(tmp_path / "ids") == tree(tmp_path / "new")


SCRIPT = """
import sys
from pathlib import Path
from pipelines.settings import EncodeSettings, InputSettings
from tests.pipelines.corpora import TWO, encode

inputs = InputSettings(patterns=(sys.argv[1],), split_size=8000)
settings = EncodeSettings(shuffle=5, validation=0.2, pack=64)
encode(inputs, Path(sys.argv[2]), Path(sys.argv[3]), encoding=settings, execution=TWO, resume=True)
"""


def test_a_job_that_was_killed_goes_on(model: Path, tmp_path: Path) -> None:
    corpus = write_jsonl(tmp_path / "in" / "docs.jsonl", [sentence(i, 60) for i in range(900)])
    arguments, out = [corpus.folder, model], tmp_path / "killed"
    assert not run_until(SCRIPT, arguments, tmp_path / "undisturbed", "*", 10**6)
    killed = [
        run_until(SCRIPT, arguments, out, pattern, files)
        for pattern, files in ((f"{SHUFFLE}/part-*.arrow", 3), ("data/*.parquet", 5))
    ]
    assert any(killed)
    assert not run_until(SCRIPT, arguments, out, "*", 10**6)
    assert tree(out) == tree(tmp_path / "undisturbed")
    assert not (out / SHUFFLE).exists()


def test_what_a_killed_job_left_is_replaced(corpus: Corpus, model: Path, tmp_path: Path) -> None:
    split_of(corpus, model, tmp_path / "ids")
    (tmp_path / "ids" / SHUFFLE / "note.txt").write_text("mine")
    with pytest.raises(OutputError, match="is not finished: repeat its command with `resume`"):
        encode(corpus.inputs(), model, tmp_path / "ids", encoding=SHUFFLED)
    encode(corpus.inputs(), model, tmp_path / "ids", overwrite=True)
    assert [path.name for path in (tmp_path / "ids" / SHUFFLE).iterdir()] == ["note.txt"]
    assert decoded(tmp_path / "ids") == corpus.documents


def split_of(corpus: Corpus, model: Path, directory: Path, *, run_bytes: int = 1 << 20) -> Any:
    """The job of a shuffle whose splits were all encoded, its splits and its tokenizer."""
    request = EncodeRequest.of(
        inputs=corpus.inputs(),
        tokenizer=str(model),
        output=OutputSettings(directory=str(directory)),
        encoding=PACKED,
    ).started()
    splits = begun(request)
    job, tokenizer = job_of(request), request.load()
    for split in splits:
        shuffle_split(split, job, tokenizer, Failures(), run_bytes=run_bytes)
    return job, splits, tokenizer


def test_any_flipped_byte_of_a_shuffle_file_is_found(
    corpus: Corpus, model: Path, tmp_path: Path
) -> None:
    job, splits, tokenizer = split_of(corpus, model, tmp_path / "ids")
    split, layout = splits[1], job.layout(tokenizer)
    part = Split(part=0, parts=job.parts, pieces=())
    path = Path(shuffle_path(job, split.part))
    good, found = path.read_bytes(), finished_split(split, job)
    assert found is not None
    assert found.documents > 0
    for place in range(0, len(good), max(len(good) // 400, 1)):
        damaged = bytearray(good)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        assert finished_split(split, job) is None, place
    for length in (0, 7, len(good) // 2, len(good) - 1):
        path.write_bytes(good[:length])
        assert finished_split(split, job) is None, length
        with pytest.raises(InputError, match="a temporary file of this job, cannot be read"):
            list(shuffled_documents(part, job, layout))
    path.write_bytes(good)
    assert finished_split(replace(split, part=0), job) != found
    assert finished_split(split, replace(job, parts=job.parts + 1)) is None
    assert finished_split(split, job) == found


def test_parts_that_lack_documents_are_not_complete(
    corpus: Corpus, model: Path, tmp_path: Path
) -> None:
    job, splits, _ = split_of(corpus, model, tmp_path / "ids")
    shuffled = [found for split in splits if (found := finished_split(split, job)) is not None]
    encode(corpus.inputs(), model, tmp_path / "ids", encoding=PACKED, resume=True)
    parts = [
        part
        for number in range(job.parts)
        for half in job.halves(Split(part=number, parts=job.parts, pieces=()))
        if (part := finished_part(job.directory, half, fingerprint=job.fingerprint(half)))
    ]
    more = replace(shuffled[0], documents=shuffled[0].documents + 1)
    job = replace(job, run="")
    total = len(corpus.documents)
    with pytest.raises(JobError, match=f"splits have {total + 1} documents, and the parts {total}"):
        write_manifest(parts, job, shuffled=[more, *shuffled[1:]])
    assert write_manifest(parts, job, shuffled=shuffled)["totals"]["documents"] == total


@pytest.mark.parametrize(("run_bytes", "memory"), [(900, 700), (1 << 20, 100)])
def test_less_memory_gives_the_same_documents(
    corpus: Corpus, model: Path, tmp_path: Path, run_bytes: int, memory: int
) -> None:
    job, _, tokenizer = split_of(corpus, model, tmp_path / "ids", run_bytes=run_bytes)
    wide, _, _ = split_of(corpus, model, tmp_path / "wide")
    layout, total = job.layout(tokenizer), 0
    for number in range(job.parts):
        for half in (False, True):
            part = Split(part=number, parts=job.parts, pieces=(), held_out=half)
            found, expected = (
                list(shuffled_documents(part, of, layout, memory=held))
                for of, held in ((job, memory), (wide, 1 << 28))
            )
            assert len(expected) <= 1
            for column in ("ids", "input_ids"):
                one, other = (
                    [value for some, _ in got for value in getattr(some, column).to_pylist()]
                    for got in (found, expected)
                )
                assert one == other
            assert sum(text for _, text in found) == sum(text for _, text in expected)
            total += sum(len(some.ids) for some, _ in found)
    assert total == len(corpus.documents)


@examples(50)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 50)), unique=True))
def test_equal_keys_are_ordered_by_file_and_place(rows: list[tuple[int, int, int]]) -> None:
    types = {"key": pa.uint64(), "file": pa.int32(), "place": pa.int64()}
    columns = {
        name: pa.array([row[i] for row in rows], kind)
        for i, (name, kind) in enumerate(types.items())
    }
    found = in_order(pa.table(columns)).to_pylist()
    assert [tuple(row.values()) for row in found] == sorted(rows)


def test_a_compressed_file_fills_several_parts() -> None:
    def file(name: str, size: int, compression: Any = "none", format_: Any = "jsonl") -> InputFile:
        return InputFile(path=name, name=name, size=size, format=format_, compression=compression)

    assert planned_parts([file("a", 1000)], 100) == 10
    assert planned_parts([file("a", 1000, "gz")], 100) == 10 * COMPRESSED
    assert planned_parts([file("a", 1000, format_="parquet")], 100) == 10 * COMPRESSED
    assert planned_parts([file("a", 0)], 100) == planned_parts([file("a", 9)], None) == 1
    assert planned_parts([file("a", 1 << 60)], 1) == MAX_PARTS
    assert planned_parts([file("a", 1 << 60)], 100, tokens=250) == 10
    assert planned_parts([file("a", 300)], 100, tokens=250) == 3


@pytest.fixture
def stored(model: Path) -> Iterator[str]:
    texts = [json.dumps({"id": f"d{i}", "text": sentence(i)}) for i in range(60)]
    ObjectStore.objects["store://bucket/in/docs.jsonl"] = "\n".join(texts).encode()
    ObjectStore.objects["store://bucket/tokenizer.json"] = model.read_bytes()
    yield "store://bucket"
    ObjectStore.objects.clear()


def test_in_a_store_it_is_the_same(stored: str, model: Path, tmp_path: Path) -> None:
    inputs = InputSettings(patterns=(f"{stored}/in",), split_size=700)
    output = OutputSettings(directory=f"{stored}/out")
    tokenizer = f"{stored}/tokenizer.json"
    jobs.encode(inputs=inputs, tokenizer=tokenizer, output=output, encoding=PACKED, execution=TWO)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "docs.jsonl").write_bytes(ObjectStore.objects[f"{stored}/in/docs.jsonl"])
    local = InputSettings(patterns=(str(tmp_path / "in"),), split_size=700)
    assert [file.name for file in find_inputs(local).files] == ["docs.jsonl"]
    encode(local, model, tmp_path / "ids", encoding=PACKED, execution=ONE)
    expected = tree(tmp_path / "ids")
    found = ObjectStore.tree(f"{stored}/out")
    parts = [name for name in expected if name.startswith("data/")]
    assert {name: found[name] for name in parts} == {name: expected[name] for name in parts}
    jobs.verify(directory=f"{stored}/out", inputs=inputs, execution=TWO)
    assert not [name for name in ObjectStore.tree(f"{stored}/out") if SHUFFLE in name]


@pytest.mark.parametrize("seed", [-1, 2**63, 1.5, "7", True])
def test_what_is_no_seed_is_refused(seed: Any) -> None:
    with pytest.raises(ConfigError, match="`shuffle` "):
        EncodeSettings(shuffle=seed)
