"""Documents held out for validation: which, and where they are."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import datasets
import pyarrow.parquet as pq
import pytest

from pipelines.errors import ConfigError, InputError, OutputError, VerificationError
from pipelines.option import parse_share
from pipelines.output.names import manifest_bytes
from pipelines.settings import EncodeSettings, InputSettings
from tests import jobs
from tests.pipelines.corpora import (
    END,
    TWO,
    encode,
    sentence,
    tree,
)

if TYPE_CHECKING:
    from pathlib import Path

SHARE = 0.25
HELD_OUT = EncodeSettings(validation=SHARE, append_token=END)


def is_held_out(key: str, share: float = SHARE) -> bool:
    """As the documentation says it."""
    digest = blake2b(key.encode(), digest_size=8, person=b"bpe validation").digest()
    return int.from_bytes(digest, "big") < share * 2**64


def write(path: Path, records: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(record) + "\n" for record in records)
    path.write_text(lines, encoding="utf-8")


def inputs(folder: Path, *, max_failures: int = 0, split_size: int = 1000) -> InputSettings:
    patterns = (str(folder),)
    return InputSettings(patterns=patterns, split_size=split_size, max_failures=max_failures)


def half(ids: Path, name: str) -> list[dict[str, Any]]:
    found = sorted(ids.glob(f"data/{name}-*"))
    return [row for path in found for row in pq.read_table(path).to_pylist()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus") / "in"
    write(folder / "b.jsonl", [{"id": f"d{i}", "text": sentence(i)} for i in range(90)])
    return folder


def test_the_hash_of_the_id_chooses(folder: Path, model: Path, tmp_path: Path) -> None:
    ids = tmp_path / "ids"
    summary = encode(inputs(folder), model, ids, encoding=HELD_OUT)
    names = [f"d{i}" for i in range(90)]
    held_out = [name for name in names if is_held_out(name)]
    assert 0 < len(held_out) < 90
    assert [row["id"] for row in half(ids, "validation")] == held_out
    assert [row["id"] for row in half(ids, "train")] == [n for n in names if n not in held_out]
    totals = json.loads((ids / "manifest.json").read_bytes())["totals"]
    rows = half(ids, "validation")
    tokens = sum(row["num_tokens"] for row in rows)
    assert totals["validation"] == {"documents": len(rows), "rows": len(rows), "tokens": tokens}
    assert (summary.validation_documents, summary.validation_tokens) == (len(rows), tokens)
    assert (summary.documents, totals["documents"]) == (90, 90)
    assert summary.parts == len(list(ids.glob("data/*.parquet")))


def test_a_text_without_an_id_chooses_by_itself(model: Path, tmp_path: Path) -> None:
    texts = [sentence(i) for i in range(60)]
    write(tmp_path / "in" / "b.jsonl", [{"text": text} for text in texts])
    settings = replace(HELD_OUT, append_token=None)
    encode(inputs(tmp_path / "in"), model, tmp_path / "one", encoding=settings)
    # Their names and places change, and so do their ids.
    (tmp_path / "in" / "b.jsonl").rename(tmp_path / "in" / "c.jsonl")
    write(
        tmp_path / "in" / "a.jsonl", [{"id": f"n{i}", "text": sentence(i + 90)} for i in range(9)]
    )
    encode(inputs(tmp_path / "in"), model, tmp_path / "two", encoding=settings)
    before, after = half(tmp_path / "one", "validation"), half(tmp_path / "two", "validation")
    assert len(before) == sum(map(is_held_out, texts)) > 0
    grown = [row["input_ids"] for row in after if row["id"].startswith("c.jsonl:")]
    assert grown == [row["input_ids"] for row in before]


def test_files_that_are_documents_choose_by_their_text(model: Path, tmp_path: Path) -> None:
    texts = [sentence(i) for i in range(40)]
    (tmp_path / "in").mkdir()
    for number, text in enumerate(texts):
        (tmp_path / "in" / f"{number:02}.txt").write_text(text, encoding="utf-8")
    encode(inputs(tmp_path / "in"), model, tmp_path / "ids", encoding=HELD_OUT)
    found = [row["id"] for row in half(tmp_path / "ids", "validation")]
    assert found == [f"{i:02}.txt" for i, text in enumerate(texts) if is_held_out(text)]


def test_workers_and_splits_change_nothing(folder: Path, model: Path, tmp_path: Path) -> None:
    encode(inputs(folder), model, tmp_path / "one", encoding=HELD_OUT)
    encode(inputs(folder), model, tmp_path / "two", encoding=HELD_OUT, execution=TWO)
    assert tree(tmp_path / "one") == tree(tmp_path / "two")
    encode(inputs(folder, split_size=100_000), model, tmp_path / "large", encoding=HELD_OUT)
    for name in ("train", "validation"):
        assert half(tmp_path / "large", name) == half(tmp_path / "one", name)


def test_packed_rows_mix_no_documents_of_both(folder: Path, model: Path, tmp_path: Path) -> None:
    settings = replace(HELD_OUT, pack=16, pack_remainder="pad", pad_token=END)
    ids = tmp_path / "ids"
    encode(inputs(folder, split_size=100_000), model, ids, encoding=settings)
    for name, expected in (("validation", True), ("train", False)):
        pieces = [piece["id"] for row in half(ids, name) for piece in row["documents"]]
        assert {is_held_out(id_) for id_ in pieces} == {expected}
    assert jobs.verify(directory=str(ids), inputs=inputs(folder)).documents == 90


def test_datasets_loads_both(folder: Path, model: Path, tmp_path: Path) -> None:
    ids = tmp_path / "ids"
    encode(inputs(folder), model, ids, encoding=HELD_OUT)
    loaded = datasets.load_dataset(str(ids), streaming=True)
    files = {name: str(ids / "data" / f"{name}-*") for name in ("train", "validation")}
    named = datasets.load_dataset("parquet", data_files=files, streaming=True)
    for found in (loaded, named):
        assert {name: list(found[name]) for name in found} == {
            name: half(ids, name) for name in ("train", "validation")
        }


def test_bad_records_are_named_once(model: Path, tmp_path: Path) -> None:
    path = tmp_path / "in" / "b.jsonl"
    write(path, [{"id": f"d{i}", "text": sentence(i)} for i in range(30)])
    path.write_text(path.read_text("utf-8") + "{\n", "utf-8")
    corpus, ids = inputs(tmp_path / "in", max_failures=1), tmp_path / "ids"
    assert encode(corpus, model, ids, encoding=HELD_OUT).failures == 1
    assert jobs.verify(directory=str(ids), inputs=corpus).failures == 1
    jobs.decode(directory=str(ids), stream=(stream := io.BytesIO()))
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert sorted(line["id"] for line in lines) == sorted(f"d{i}" for i in range(30))


def test_another_share_is_another_job(folder: Path, model: Path, tmp_path: Path) -> None:
    ids = tmp_path / "ids"
    encode(inputs(folder), model, ids, encoding=HELD_OUT)
    other = replace(HELD_OUT, validation=0.5)
    with pytest.raises(OutputError, match=r"settings validation was 0\.25, is 0\.5"):
        encode(inputs(folder), model, ids, encoding=other, resume=True)
    encode(inputs(folder), model, ids, encoding=EncodeSettings(), overwrite=True)
    assert not half(ids, "validation")
    jobs.verify(directory=str(ids), inputs=inputs(folder))


@pytest.mark.parametrize("lost", ["train", "validation"])
def test_a_part_that_is_missing_is_found(
    folder: Path, model: Path, tmp_path: Path, lost: str
) -> None:
    ids = tmp_path / "ids"
    encode(inputs(folder), model, ids, encoding=HELD_OUT)
    min(ids.glob(f"data/{lost}-*")).unlink()
    with pytest.raises(VerificationError, match=f"{lost}-00000-of-.* is missing"):
        jobs.verify(directory=str(ids))


def test_halves_that_changed_places_are_found(folder: Path, model: Path, tmp_path: Path) -> None:
    ids = tmp_path / "ids"
    encode(inputs(folder), model, ids, encoding=HELD_OUT)
    value = json.loads((ids / "manifest.json").read_bytes())
    halves = len(value["parts"]) // 2
    train, held = value["parts"][0], value["parts"][halves]
    paths = [ids / train["file"], ids / held["file"]]
    contents = [path.read_bytes() for path in paths]
    for path, data in zip(paths, reversed(contents), strict=True):
        path.write_bytes(data)
    train["file"], held["file"] = held["file"], train["file"]
    value["parts"][0], value["parts"][halves] = held, train
    sums = ("documents", "rows", "tokens")
    for name in sums:
        value["totals"]["validation"][name] += train[name] - held[name]
    (ids / "manifest.json").write_bytes(manifest_bytes(value))
    with pytest.raises(VerificationError, match="made from other inputs or with other settings"):
        jobs.verify(directory=str(ids))
    value["parts"].pop()
    (ids / "manifest.json").write_bytes(manifest_bytes(value))
    with pytest.raises(InputError, match="parts, of which half are held out"):
        jobs.verify(directory=str(ids))


def test_shares_as_people_write_them() -> None:
    assert parse_share("0.7%") == parse_share("0.007") == parse_share("7e-3") == 0.007
    assert parse_share("0.5 %") == parse_share("1/200") == 0.005
    for text in ("", "%", "half", "1/0", "1/2%", "nan", "-1", "1e999"):
        with pytest.raises(ValueError, match=r"is not a share: write 0\.5%"):
            parse_share(text)


@pytest.mark.parametrize("share", [1, 1000, -0.1, float("nan"), "0.5%", True])
def test_what_is_no_share_is_refused(share: Any) -> None:
    with pytest.raises(ConfigError, match=r"`validation` .*: give a share from 0 to below 1"):
        EncodeSettings(validation=share)
